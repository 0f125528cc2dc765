"""`aberra report`: one HTML file about a model and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, loading, shell


@command
def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that aberra fit wrote.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA", help="A table, images or scans in which to look for anomalies."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="The heading of the page.")] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help='Scans: which names in the folder are scans, such as "*_t1w.nii.gz". Default: '
            "the pattern that the model was fitted with."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=1000, help="How many anomalies to list.")] = 24,
) -> None:
    """Write a report about a model.

    It is one HTML file that says how the model was trained and what it finds in DATA. It works
    without a network and needs no other file. If DATA is the training data, the report also
    shows how far each sample is trusted. An interrupted report starts again from the
    beginning.

    Example: aberra report model.aberra patients.csv -o report.html
    """
    with loading():
        from aberra.workflow import report as write_report

    speaker = shell()
    with speaker.progress():
        page = write_report(model, data, output, title=title, pattern=pattern, top=top)
    speaker.say(f"Report: {page.path} ({page.n_bytes / 1e6:.1f} MB, opens in any browser)")
    speaker.result({"report": str(page.path), "bytes": page.n_bytes})
