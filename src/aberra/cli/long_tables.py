"""Options that `fit` and `score` share, for tables in many files."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

import typer

from aberra.cli.shell import choice
from aberra.workflow.choices import OnError

Unreadable: TypeAlias = Annotated[
    str | None,
    choice(
        get_args(OnError),
        "Tables in many files: name the files that cannot be read and stop (stop, the "
        "default), or leave them out (skip).",
    ),
]
Address: TypeAlias = Annotated[
    str | None, typer.Option(help="With --engine ray: where the cluster is, such as auto.")
]
