"""`aberra info`: what a model file is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from aberra.cli.shell import command, loading, shell
from aberra.words import number, percent

if TYPE_CHECKING:
    from aberra.workflow import ModelInfo

MOST_COLUMNS = 40


@command
def info(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A file that aberra fit or aberra.save wrote, or brain-t1."
        ),
    ],
    card: Annotated[
        bool, typer.Option("--card", help="Print the card of the model, as Markdown.")
    ] = False,
) -> None:
    """Say what a model is, what it was trained on and when, and where its threshold lies.

    For a table, every column is listed with what its values were in training. This is what
    aberra score compares new rows with. The card is a page of Markdown that travels with the model:
    what it is, what it was trained on, what to know before you use it.

    Example: aberra info patients.aberra
    """
    with loading():
        from aberra.workflow import info as about

    found = about(model)
    speaker = shell()
    if card:
        speaker.say(found.card)
        speaker.result({"card": found.card})
        return
    speaker.say(_facts(found))
    if found.columns:
        speaker.say(_columns(found))
    speaker.result(found.as_dict())


def _facts(found: ModelInfo) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold", max_width=110)
    table.add_row("model", found.model)
    for sentence in found.sentences:
        table.add_row("", sentence)
    table.add_row("trained on", found.data or "data in Python")
    for fact in found.facts:
        names = fact.note if len(fact.note) < 80 else ""
        table.add_row(fact.name.lower(), f"{fact.value}{f' ({names})' if names else ''}")
    table.add_row("threshold", f"{number(found.threshold)} (rule: {found.threshold_rule})")
    for name, why in found.dropped.items():
        table.add_row("left out", f"{name}: {why}")
    if found.settings:
        table.add_row("settings", ", ".join(f"{name}={value}" for name, value in found.settings))
    table.add_row("file", f"{found.path}, {found.n_bytes / 1e6:.2f} MB, written {found.written}")
    table.add_row("versions", ", ".join(f"{name} {v}" for name, v in found.versions.items()))
    return table


def _columns(found: ModelInfo) -> Table:
    shown = found.columns[:MOST_COLUMNS]
    left = len(found.columns) - len(shown)
    more = f", the first {MOST_COLUMNS} of {len(found.columns)}" if left else ""
    table = Table(title=f"The columns in training{more}", box=None)
    for name in ("column", "holds", "values"):
        table.add_column(name, overflow="fold")
    table.add_column("gaps", justify="right")
    for column in shown:
        table.add_row(column.name, column.kind, column.values, percent(column.gaps))
    return table
