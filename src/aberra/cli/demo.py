"""`aberra demo`: the main jobs on real data that ships with the dependencies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from aberra.cli.shell import command, shell

if TYPE_CHECKING:
    from aberra.demo import Line


@command
def demo(
    out: Annotated[Path, typer.Option(help="Folder for pictures and reports.")] = Path(
        "aberra-demo"
    ),
) -> None:
    """Clean up a real table that is 15 % contaminated, then find what is broken in images.

    Example: aberra demo --out my-demo
    """
    from importlib.util import find_spec

    from aberra.extras import need

    for name in ("matplotlib", "jinja2"):
        need(name, "report", "The demonstration")
    reports = [_clean_a_table(out)]
    if find_spec("monai") is None:
        shell().say('For the second part, on images: pip install "aberra[mri]"')
    else:
        reports.append(_find_what_is_broken(out))
    shell().say("\nOpen in a browser:\n" + "\n".join(f"  {path}" for path in reports))
    shell().result({"reports": [str(path) for path in reports], "folder": str(out)})


def _clean_a_table(out: Path) -> Path:
    """Compare trainings on a dirty table; return the report on the best."""
    from aberra import DeepSVDD
    from aberra.demo import N_MALIGNANT, compare, dirty_breast_cancer, draw, table_recipe
    from aberra.errors import RoundsExhaustedWarning
    from aberra.report import html
    from aberra.report.writing import write
    from aberra.robust.ensemble import default_detector

    speaker = shell()
    X, y = dirty_breast_cancer()
    speaker.say(
        f"Breast cancer data: {len(X)} rows, {X.shape[1]} columns. {N_MALIGNANT} malignant rows "
        "hide among the benign ones;\nno detector is told which. Labels only measure the result."
    )
    warnings.simplefilter("ignore", RoundsExhaustedWarning)
    default = default_detector()
    with speaker.progress():
        lines, model = compare(type(default).__name__, default, X, y)
        others, deep = compare("DeepSVDD", DeepSVDD(), X, y)
    draw(deep, X, y, out / "trust.png")
    speaker.say(_table([*lines, *others]))
    speaker.say(f"Picture of IADC(DeepSVDD()): {out / 'trust.png'}")
    title = "Breast tumours: which rows do not belong?"
    write(out / "table-report.html", html(model, X, recipe=table_recipe(lines, X), title=title))
    return out / "table-report.html"


def _find_what_is_broken(out: Path) -> Path:
    """Let a localiser restore broken digits; return the report."""
    from aberra.demo import broken_digits, digits_recipe, draw_localised, localise
    from aberra.report import ImagesToReport, html
    from aberra.report.writing import write

    speaker, digits = shell(), broken_digits()
    speaker.say(
        f"\nDigits data: ADDM learns {len(digits.whole)} handwritten zeros and restores "
        f"{len(digits.broken)} others,\nout of each of which a piece was taken."
    )
    names = [f"zero {k}" for k in range(len(digits.broken))]
    data = ImagesToReport(names, lambda some: digits.broken[list(some)], "the broken digits")
    with speaker.progress():
        model, found = localise(digits)
        page = html(
            model,
            data,
            recipe=digits_recipe(model, digits),
            title="Handwritten zeros: what is missing?",
        )
    draw_localised(model, digits, out / "localised.png")
    speaker.say(f"Pixel AUROC of the maps: {found:.3f}. Picture: {out / 'localised.png'}")
    write(out / "image-report.html", page)
    return out / "image-report.html"


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
