"""Write a model as an ONNX file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aberra.errors import DataError
from aberra.export import Exported, export_onnx
from aberra.workflow.opened import opened


def export(model: Any, output: str | os.PathLike[str]) -> Exported:
    """Write a model as an ONNX file, which runs without Aberra and without Python.

    Parameters
    ----------
    model : str, path-like, Fitted or estimator
        The model, or its file.
    output : str or path-like
        The file to write, which ends in .onnx.

    Returns
    -------
    exported : Exported
        The path, the size, and what the graph leaves to its user.

    Raises
    ------
    DataError
        If a part of the model cannot be expressed, or the output does not end in .onnx.
    """
    path = Path(output)
    if path.suffix.lower() != ".onnx":
        raise DataError(f"An ONNX file ends in .onnx, but the output is {path}.")
    if not path.parent.is_dir():
        raise DataError(f"There is no folder {path.parent}. Make it first.")
    return export_onnx(opened(model).model, path)
