"""`aberra export`: a model as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, shell


@command
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that aberra fit wrote.")],
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The file to write; it ends in .onnx.")
    ],
) -> None:
    """Write a model as an ONNX file, which runs without Aberra and without Python.

    The graph takes X, doubles in the order of the columns, and returns scores and flags. Of a
    localiser it is one call of its network. What the graph leaves to you is printed, and stands
    in the metadata of the file.

    Example: aberra export patients.aberra -o patients.onnx
    """
    from aberra.workflow import export as write

    found = write(model, output)
    shell().say("\n".join(found.stated))
    shell().say(f"ONNX: {found.path}, {found.n_bytes / 1e6:.2f} MB")
    shell().result({"onnx": str(found.path), "bytes": found.n_bytes, "stated": found.stated})
