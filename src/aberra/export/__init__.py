"""Fitted models as ONNX files, which run without Aberra and without Python."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from aberra.export.about import about_rows
from aberra.export.graph import IR_VERSION, OPSET, Graph
from aberra.extras import need
from aberra.files import write_atomically

__all__ = ["Exported", "export_onnx"]


@dataclass(frozen=True)
class Exported:
    """An ONNX file that was written.

    Parameters
    ----------
    path : Path
        The file.
    n_bytes : int
        Its size.
    stated : list of str
        What the graph leaves to its user, in sentences.
    """

    path: Path
    n_bytes: int
    stated: list[str]


def export_onnx(model: Any, path: str | os.PathLike[str]) -> Exported:
    """Write a fitted model as an ONNX file.

    The file of a detector or an ensemble takes `X`, doubles of the shape that the model was fitted
    on, and returns `scores`, doubles, and `flags`. Scaling, the filling of gaps and reviewers'
    marks are part of the graph. Text and dates are not: the metadata of the file say which numbers
    they become. The file of a localiser is one call of its network, in single precision.

    Parameters
    ----------
    model : estimator
        Any of Aberra's detectors, alone or in `ADC` and `IADC`, or a localiser that restores
        images by calls of one network.
    path : str or path-like
        The file to write, by convention `*.onnx`. Its folder must exist.

    Returns
    -------
    exported : Exported
        The path, the size, and what the graph leaves to its user.

    Raises
    ------
    DataError
        If a part of the model cannot be expressed.
    MissingExtraError
        If onnx is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aberra import MultiView, export_onnx
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = MultiView(random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(model, Path(folder) / "model.onnx").n_bytes > 0
    True
    """
    need("onnx", "onnx", "Writing ONNX")
    check_is_fitted(model, ["members_", "threshold_"])
    data, about = _localiser(model) if model.localises else _rows(model)
    write_atomically(Path(path), data)
    return Exported(Path(path), len(data), json.loads(about["stated"]))


def _rows(model: Any) -> tuple[bytes, dict[str, str]]:
    from aberra.export.tables import cut, row_graph

    image = model.image_shape_
    shape = (len(model.references_[0]),) if image is None else image
    about = about_rows(model, cut(model))
    return _serialised(row_graph(model), shape, about), about


def _serialised(g: Graph, shape: tuple[int, ...], about: dict[str, str]) -> bytes:
    from onnx import TensorProto, checker, helper

    from aberra.export.tables import FLAGS, INPUT, SCORES

    made = helper.make_tensor_value_info
    graph = helper.make_graph(
        g.nodes,
        "aberra",
        [made(INPUT, TensorProto.DOUBLE, ["n", *shape])],
        [made(SCORES, TensorProto.DOUBLE, ["n"]), made(FLAGS, TensorProto.BOOL, ["n"])],
        g.constants,
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
    model.producer_name = "aberra"
    helper.set_model_props(model, about)
    checker.check_model(model)
    return model.SerializeToString()


def _localiser(model: Any) -> tuple[bytes, dict[str, str]]:
    from aberra.export.localisers import one_call

    return one_call(model)
