"""`aberra demo`: the main jobs on real data that ships with the dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from aberra.cli.shell import command, shell
from aberra.extras import need

if TYPE_CHECKING:
    from aberra.demo import Line


@command
def demo(
    out: Annotated[Path, typer.Option(help="The folder for pictures and reports.")] = Path(
        "aberra-demo"
    ),
) -> None:
    """Try Aberra on data that comes with it.

    First it finds the anomalies in a real table that is 15 % contaminated, then what is
    missing in images. The data come with scikit-learn, so nothing is downloaded. An
    interrupted demonstration starts again from the beginning.

    Example: aberra demo --out my-demo
    """
    for name in ("matplotlib", "jinja2"):
        need(name, "report", "The demonstration")
    reports = [_clean_a_table(out)]
    if find_spec("torch") is None or find_spec("monai") is None:
        shell().say('The second part, on images, needs more: pip install "aberra[images]"')
    else:
        reports.append(_find_what_is_broken(out))
    shell().say("\nOpen in a browser:\n" + "\n".join(f"  {path}" for path in reports))
    shell().result({"reports": [str(path) for path in reports], "folder": str(out)})


def _clean_a_table(out: Path) -> Path:
    from aberra.demo import N_MALIGNANT, clean_a_table, dirty_breast_cancer

    X, _ = dirty_breast_cancer()
    shell().say(
        f"Breast cancer data: {len(X)} rows, {X.shape[1]} columns. {N_MALIGNANT} malignant rows "
        "hide among the benign ones.\nNo detector is told which; the labels only measure the "
        "result."
    )
    with shell().progress():
        found = clean_a_table(out)
    shell().say(_table(found.lines))
    shell().say(f"Picture of IADC(DeepSVDD()): {found.picture}")
    return found.report


def _find_what_is_broken(out: Path) -> Path:
    from aberra.demo import broken_digits, find_what_is_broken

    digits = broken_digits()
    shell().say(
        f"\nDigits data: ADDM learns from {len(digits.whole)} handwritten zeros, and restores "
        f"{len(digits.broken)} others\nthat each lack a piece."
    )
    with shell().progress():
        found = find_what_is_broken(out)
    shell().say(f"Pixel AUROC of the maps: {found.auroc:.3f}. Picture: {found.picture}")
    return found.report


def _table(lines: Sequence[Line]) -> Table:
    table = Table(title="AUROC on the dirty training table (5 members, seed 0)")
    table.add_column("detector")
    table.add_column("training")
    for name in ("AUROC", "rows with low trust", "of them malignant", "seconds"):
        table.add_column(name, justify="right")
    for line in lines:
        lost = ("", "") if line.lost_trust is None else map(str, line.lost_trust)
        cells = (line.detector, line.variant, f"{line.auroc:.3f}", *lost, f"{line.seconds:.1f}")
        table.add_row(*cells)
    return table
