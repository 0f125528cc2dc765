"""`aberra evaluate`: how well a model finds lesions that somebody has outlined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from aberra.cli.shell import command, shell
from aberra.words import count

if TYPE_CHECKING:
    from aberra.workflow import Evaluated


@command
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model of scans: a file, or the name brain-t1."),
    ],
    scans: Annotated[Path, typer.Argument(metavar="SCANS", help="A folder of scans, or one scan.")],
    *,
    masks: Annotated[
        Path,
        typer.Option(
            help="A folder with a mask for each scan, on its grid: of the same name, or of a name "
            "that begins like the scan's. A scan without a lesion has a mask of zeros."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write to.")],
    pattern: Annotated[
        str | None,
        typer.Option(
            help='Which names in the folder are scans, such as "*_t1w.nii.gz". Default: the '
            "pattern that the model was fitted with."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the draws for the intervals.")] = 0,
) -> None:
    """Measure a model on scans whose lesions were outlined.

    Masks are compared with what the model flags by itself and are never used to choose
    anything, except where a metric is called an oracle. You get evaluation.md to read,
    evaluation.html with pictures of scans that went as usual or badly, evaluation.json, and
    patients.csv with one line for each scan.

    Example: aberra evaluate brain-t1 scans/ --masks masks/ -o evaluation/
    """
    from aberra.workflow import evaluate as evaluate_scans

    with shell().progress():
        found = evaluate_scans(model, scans, masks, output, pattern=pattern, seed=seed)
    shell().say(_table(found))
    for name, why in list(found.errors.items())[:5]:
        shell().say(f"Left out: {name}: {why}")
    shell().say(f"Everything: {found.folder / 'evaluation.md'}")
    told = found.intervals.to_dict("records")
    shell().result({"folder": str(found.folder), "metrics": told, "errors": found.errors})


def _table(found: Evaluated) -> Table:
    table = Table(title=f"{count(len(found.patients), 'scan')}, 95 % intervals", box=None)
    for name, justify in (("protocol", "left"), ("metric", "left"), ("mean", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("interval", justify="right")
    for row in found.intervals.itertuples():
        table.add_row(
            str(row.protocol), str(row.metric), f"{row.mean:.3f}", f"{row.low:.3f}-{row.high:.3f}"
        )
    return table
