"""The command line: one module for each command; heavy libraries are imported when it runs."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from aberra import __version__
from aberra.cli import (
    data,
    demo,
    evaluate,
    export,
    feedback,
    fit,
    info,
    report,
    reproduce,
    score,
    serve,
    view,
)
from aberra.cli.shell import Shell, begin

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Find anomalies, even if the data to learn from contains some already.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aberra {__version__}")
        raise typer.Exit


@app.callback()
def root(
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text, for scripts.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print neither progress nor results.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find anomalies, even if the data to learn from contains some already."""
    begin(Shell(json, quiet, debug))


app.command("demo")(demo.demo)
app.command("fit", epilog=fit.METHODS)(fit.fit)
app.command("score")(score.score)
app.command("evaluate")(evaluate.evaluate)
app.command("export")(export.export)
app.command("feedback")(feedback.feedback)
app.command("info")(info.info)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(data.app, name="data")
app.command("serve")(serve.serve)
app.command("view")(view.view)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # what it cannot write is written out, not a crash
            stream.reconfigure(errors="backslashreplace")
    app()
