"""A small language for ONNX graphs: an operation takes values and returns the name of its result.

Numbers inside are in double precision. onnxruntime computes some functions in single precision
alone (asinh, sinh), so these are made of others here.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from aberra.extras import need

Value: TypeAlias = (
    "str | NDArray[Any] | float"  # the name of a result (empty: left out), or a constant
)

OPSET = 18
IR_VERSION = 9  # what onnxruntime 1.16 reads, too


class Graph:
    """The operations so far."""

    def __init__(self) -> None:
        need("onnx", "onnx", "Writing ONNX")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: NDArray[Any] | float) -> str:
        """Keep numbers in the graph, and return their name."""
        from onnx import numpy_helper

        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def op(self, kind: str, *inputs: Value, n_outputs: int = 1, **attributes: Any) -> str:
        """Add an operation, and return the name of its (last) result."""
        from onnx import helper

        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        outputs = [f"v{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(helper.make_node(kind, names, outputs, **attributes))
        return outputs[-1]

    def named(self, value: str, name: str) -> None:
        """Make a value an output of the graph."""
        from onnx import helper

        self.nodes.append(helper.make_node("Identity", [value], [name]))

    # Short forms

    def cast(self, x: Value, kind: str) -> str:
        """Return x as "float32", "float64", "int64" or "bool"."""
        from onnx import TensorProto

        kinds = {
            "float32": TensorProto.FLOAT,
            "float64": TensorProto.DOUBLE,
            "int64": TensorProto.INT64,
            "bool": TensorProto.BOOL,
        }
        return self.op("Cast", x, to=kinds[kind])

    def columns(self, x: Value, places: NDArray[np.int64]) -> str:
        """Return some columns of x, along its last axis."""
        return self.op("Gather", x, places.astype(np.int64), axis=-1)

    def reduced(self, how: str, x: Value, axis: int, keep: bool = False) -> str:
        """Return the "Sum", "Mean", "Max" or "Min" over an axis."""
        return self.op(f"Reduce{how}", x, np.array([axis]), keepdims=int(keep))

    def unsqueezed(self, x: Value, axis: int) -> str:
        """Return x with one more axis."""
        return self.op("Unsqueeze", x, np.array([axis]))

    def asinh(self, x: Value) -> str:
        """Return the area hyperbolic sine, accurate for small x, too."""
        size = self.op("Abs", x)
        square = self.op("Mul", x, x)
        root = self.op("Sqrt", self.op("Add", square, 1.0))
        u = self.op("Add", size, self.op("Div", square, self.op("Add", root, 1.0)))
        return self.op("Mul", self.op("Sign", x), self.log1p(u))

    def log1p(self, u: Value) -> str:
        """Return log(1 + u) for u >= 0, with what rounding takes from 1 + u given back."""
        w = self.op("Add", u, 1.0)
        kept = self.op("Sub", w, 1.0)
        none = self.op("Equal", kept, 0.0)
        part = self.op("Div", u, self.op("Where", none, 1.0, kept))
        return self.op("Where", none, u, self.op("Mul", self.op("Log", w), part))

    def sinh(self, x: Value) -> str:
        """Return the hyperbolic sine."""
        up, down = self.op("Exp", x), self.op("Exp", self.op("Neg", x))
        return self.op("Mul", self.op("Sub", up, down), 0.5)
