"""`aberra demo`: the main jobs on real data that ships with the dependencies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from aberra.cli.shell import command

if TYPE_CHECKING:
    from aberra.demo import Line


@command
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path("aberra-demo"),
) -> None:
    """Clean up a real table that is 15 % contaminated, then find what is broken in images.

    Example: aberra demo --out my-demo
    """
    from aberra import DeepSVDD
    from aberra.demo import N_MALIGNANT, compare, dirty_breast_cancer, draw
    from aberra.errors import RoundsExhaustedWarning
    from aberra.progress import progress_bar
    from aberra.robust.iadc import default_detector

    console = Console()
    X, y = dirty_breast_cancer()
    console.print(
        f"Breast cancer data: {len(X)} rows, {X.shape[1]} columns. {N_MALIGNANT} malignant rows "
        "hide among the benign ones;\nno detector is told which. Labels only measure the result.",
        soft_wrap=True,
    )
    warnings.simplefilter("ignore", RoundsExhaustedWarning)
    default = default_detector()
    lines = []
    for name, detector in ((type(default).__name__, default), ("DeepSVDD", DeepSVDD())):
        with progress_bar():
            found, model = compare(name, detector, X, y)
        lines += found
    draw(model, X, y, out / "trust.png")
    console.print(_table(lines))
    console.print(f"Picture of IADC(DeepSVDD()): {out / 'trust.png'}", soft_wrap=True)
    _localisation(console, out / "localised.png")


def _localisation(console: Console, picture: Path) -> None:
    """Show a localiser at work on digits, where the extra for images is installed."""
    from importlib.util import find_spec

    if find_spec("monai") is None:
        console.print('For the second part, on images: pip install "aberra[mri]"', markup=False)
        return
    from aberra.demo import broken_digits, draw_localised, localise
    from aberra.progress import progress_bar

    digits = broken_digits()
    console.print(
        f"\nDigits data: ADDM learns {len(digits.whole)} handwritten zeros and restores "
        f"{len(digits.broken)} others,\nout of each of which a piece was taken.",
        soft_wrap=True,
    )
    with progress_bar():
        model, found = localise(digits)
    draw_localised(model, digits, picture)
    console.print(f"Pixel AUROC of the maps: {found:.3f}. Picture: {picture}", soft_wrap=True)


def _table(lines: Sequence[Line]) -> Table:
    table = Table(title="AUROC on the dirty training table (5 members, seed 0)")
    table.add_column("detector")
    table.add_column("training")
    for name in ("AUROC", "rows that lost trust", "of them malignant", "seconds"):
        table.add_column(name, justify="right")
    for line in lines:
        lost = ("", "") if line.lost_trust is None else map(str, line.lost_trust)
        cells = (line.detector, line.variant, f"{line.auroc:.3f}", *lost, f"{line.seconds:.1f}")
        table.add_row(*cells)
    return table
