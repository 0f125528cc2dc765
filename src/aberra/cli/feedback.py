"""`aberra feedback`: a model learns from what a reviewer marked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, shell
from aberra.words import count


@command
def feedback(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that aberra fit wrote.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="The table that was scored and reviewed.")
    ],
    marks: Annotated[
        Path,
        typer.Argument(
            metavar="MARKS",
            help="aberra-marks.json, which aberra view writes, or a CSV file with the columns id "
            "(or row) and mark (reject or accept).",
        ),
    ],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write; it may be MODEL.")
    ],
    id_column: Annotated[
        str | None,
        typer.Option(
            help="The column that names the rows. Default: the one that the model was fitted with."
        ),
    ] = None,
) -> None:
    """Let a model learn from a review, without training it again.

    Rejected rows, and rows like them, get higher scores; accepted rows get lower ones. All marks
    are kept in the model file.

    Example: aberra feedback patients.aberra new.csv aberra-marks.json -o patients.aberra
    """
    from aberra.workflow import feedback as learn

    found = learn(model, data, marks, output, id_column=id_column)
    shell().say(
        f"The model knows {count(found.n_rejected + found.n_accepted, 'mark')}: "
        f"{found.n_rejected:,} rejected, {found.n_accepted:,} accepted.\nModel: {found.path}"
    )
    shell().result(
        {
            "model": str(found.path),
            "rejected": found.n_rejected,
            "accepted": found.n_accepted,
        }
    )
