"""The command line: one module a command, each of which imports what is heavy when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from aberra import __version__
from aberra.cli import data, demo, fit, report, reproduce, score, view
from aberra.cli.shell import Shell, begin

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Find anomalies, and learn from data that is already dirty.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aberra {__version__}")
        raise typer.Exit


@app.callback()
def root(
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object on standard output, for scripts.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no remarks.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """Find anomalies, and learn from data that is already dirty."""
    begin(Shell(json, quiet, debug))


app.command("demo")(demo.demo)
app.command("fit", epilog=fit.METHODS)(fit.fit)
app.command("score")(score.score)
app.command("report")(report.report)
app.command("reproduce")(reproduce.reproduce)
app.add_typer(data.app, name="data")
app.command("view")(view.view)


def main() -> None:
    """Run the command line."""
    app()
