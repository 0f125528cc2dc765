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
    from aberra.demo import CleanedTable, Line

GREETING = (
    "Welcome to Aberra. It finds what does not belong, and learns from data that are already\n"
    "dirty. Two jobs on data that come with scikit-learn; they take a minute or two.\n"
)
NEXT = "Try next, with a table of your own:  aberra fit yours.csv -o yours.aberra"


@command
def demo(
    out: Annotated[Path, typer.Option(help="The folder for pictures and reports.")] = Path(
        "aberra-demo"
    ),
) -> None:
    """Try Aberra on data that comes with it.

    First it finds damaged rows in a real table, and says where other detectors are ahead; then it
    finds what is missing in images. The data come with scikit-learn, so nothing is downloaded. An
    interrupted demonstration starts again from the beginning.

    Example: aberra demo --out my-demo
    """
    for name in ("matplotlib", "jinja2"):
        need(name, "report", "The demonstration")
    shell().say(GREETING)
    reports = [_clean_a_table(out)]
    if find_spec("torch") is None or find_spec("monai") is None:
        shell().say('The second part, on images, needs more: pip install "aberra[images]"')
    else:
        reports.append(_find_what_is_broken(out))
    listed = "\n".join(f"  {path}" for path in reports)
    shell().say(f"\nOpen in a browser:\n{listed}\n\n{NEXT}")
    shell().result({"reports": [str(path) for path in reports], "folder": str(out)})


def _clean_a_table(out: Path) -> Path:
    from aberra.demo import DAMAGED, N_MALIGNANT, clean_a_table, damaged_breast_cancer

    X, y = damaged_breast_cancer()
    shell().say(
        f"1. A table of {len(X)} benign tumours, {X.shape[1]} columns. {y.sum()} rows "
        f"({100 * DAMAGED:.0f} %) are damaged as happens every day: a\ncomma slipped, columns "
        "changed places, a row was copied, two rows were mixed up. No detector is told\nwhich; "
        "the labels only measure."
    )
    with shell().progress():
        found = clean_a_table(out)
    shell().say(_table("Damaged rows, trained and scored as they are", found.damaged))
    shell().say(
        f"\nThe same table undamaged, with {N_MALIGNANT} malignant tumours hidden in it. They are "
        "a cloud of their own beside\nthe benign ones, and other detectors can be ahead:"
    )
    shell().say(_table("Malignant rows, trained and scored as they are", found.malignant))
    shell().say(_verdict(found))
    shell().say(f"Picture of how IADC(DeepSVDD()) learnt whom to trust: {found.picture}")
    return found.report


def _verdict(found: CleanedTable) -> str:
    """Say where the default is ahead and where it is not, by the figures."""
    from aberra.demo import OURS, best

    said = []
    for what, lines in (("damaged", found.damaged), ("malignant", found.malignant)):
        ours, others = lines[0], [line for line in lines if line.detector != OURS]
        first = best(others)
        ahead = "is ahead of" if ours.auroc > first.auroc else "is behind"
        figures = f"({ours.auroc:.3f} and {first.auroc:.3f})"
        said.append(f"On {what} rows the default {ahead} {first.detector} {figures}.")
    return "\n".join([*said, "So where you can measure, try more than one detector."])


def _find_what_is_broken(out: Path) -> Path:
    from aberra.demo import broken_digits, find_what_is_broken

    digits = broken_digits()
    shell().say(
        f"\n2. Handwritten digits: ADDM learns from {len(digits.whole)} zeros, and restores "
        f"{len(digits.broken)} others that each lack\na piece."
    )
    with shell().progress():
        found = find_what_is_broken(out)
    shell().say(f"Pixel AUROC of the maps: {found.auroc:.3f}. Picture: {found.picture}")
    return found.report


def _table(title: str, lines: Sequence[Line]) -> Table:
    table = Table(title=title)
    table.add_column("detector")
    for name in ("AUROC", "flagged", "rightly", "seconds"):
        table.add_column(name, justify="right")
    for line in lines:
        counted = str(line.flagged), str(line.rightly)
        table.add_row(line.detector, f"{line.auroc:.3f}", *counted, f"{line.seconds:.1f}")
    return table
