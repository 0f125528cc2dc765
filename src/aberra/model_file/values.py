"""Constructor parameters: plain values, arrays, random states, estimators inside estimators.

JSON's own types stand for themselves; everything else is an object with one entry, whose name
says what it is: {"tuple": [...]}, {"array": "C"}, {"estimator": {...}}.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from sklearn.base import clone

from aberra.model_file.composite import NamedBy, checked_keys
from aberra.model_file.foreign import Foreign
from aberra.model_file.kinds import As, Kind, ListOf, Node, Reader, Scalar, Writer, damaged

NUMBERS = "biuf"  # dtype kinds that parameters may have


class RandomStates:
    """A `RandomState` with all that it has yet to draw."""

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write the state of a Mersenne twister."""
        state = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            damaged(where, f"cannot save a RandomState on {state['bit_generator']}; pass an int")
        key = out.put(where, state["state"]["key"])
        return [key, int(state["state"]["pos"]), int(state["has_gauss"]), float(state["gauss"])]

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Return a generator of its own that goes on where the saved one stood."""
        if not isinstance(node, list) or [type(item) for item in node] != [str, int, int, float]:
            damaged(where, "the random state is malformed")
        order, position, has_gauss, gauss = node
        key = file.take(where, order)
        if key.dtype != np.uint32 or key.shape != (624,) or not 0 <= position <= 624:
            damaged(where, "the random state is malformed")
        random_state = np.random.RandomState()
        random_state.set_state(("MT19937", key, position, has_gauss, gauss))
        return random_state


class NumberArrays:
    """An array of numbers of any shape."""

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Put the numbers aside."""
        if value.dtype.kind not in NUMBERS:
            damaged(where, f"cannot save an array of type {value.dtype}")
        return out.put(where, value)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Fetch the numbers."""
        return file.take(where, node)


class Unfitted:
    """An estimator of ours by class and parameters; what it has learnt is not part of it."""

    def __init__(self, classes: Mapping[str, Any], values: Kind) -> None:
        self.classes = classes
        self.params = NamedBy(values)

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write class and parameters."""
        params = value.get_params(deep=False)
        return {"class": type(value).__name__, "params": self.params.encode(params, out, where)}

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Make an estimator of a known class with known parameters."""
        name = checked_keys(node, {"class", "params"}, where)["class"]
        if not isinstance(name, str) or name not in self.classes:
            damaged(where, f"unknown class {name!r}; known are {', '.join(self.classes)}")
        params = self.params.decode(node["params"], file, where)
        if unknown := sorted(set(params) - set(self.classes[name]._get_param_names())):
            damaged(where, f"{name} has no parameters {unknown}")
        return self.classes[name](**params)


class Template(Foreign):
    """An estimator of scikit-learn as members are copied from; what it has learnt is left out."""

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write an unfitted copy."""
        return super().encode(clone(value, safe=False), out, where)


class Values:
    """Whatever a constructor may have been given; `classes` are the estimators that are ours."""

    def __init__(self, classes: Mapping[str, Any]) -> None:
        self.classes = classes
        self.tags: dict[str, Kind] = {
            "tuple": As(tuple, ListOf(self)),
            "array": NumberArrays(),
            "float": Scalar(float),
            "random_state": RandomStates(),
            "estimator": Unfitted(classes, self),
            "sklearn": Template(),
        }

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write a value."""
        plain = value.item() if isinstance(value, np.generic) else value
        plain = str(plain) if isinstance(plain, PurePath) else plain
        if plain is None or isinstance(plain, bool | int | str):
            return plain
        if isinstance(plain, list):
            return ListOf(self).encode(plain, out, where)
        if isinstance(plain, float) and math.isfinite(plain):
            return plain
        tag = self._tag(plain, where)
        return {tag: self.tags[tag].encode(plain, out, where)}

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read a value."""
        if isinstance(node, list):
            return ListOf(self).decode(node, file, where)
        if not isinstance(node, dict):
            return node
        tags = list(node)
        if len(tags) != 1 or tags[0] not in self.tags:
            damaged(where, f"unknown sort of value {tags}")
        return self.tags[tags[0]].decode(node[tags[0]], file, where)

    def _tag(self, value: Any, where: str) -> str:
        if type(value) is self.classes.get(type(value).__name__):
            return "estimator"
        for cls, tag in TAGS.items():
            if isinstance(value, cls):
                return tag
        if not hasattr(value, "fit"):
            damaged(where, f"cannot save a {type(value).__name__}, {value!r}")
        return "sklearn"


TAGS: dict[type, str] = {
    tuple: "tuple",
    float: "float",
    np.ndarray: "array",
    np.random.RandomState: "random_state",
}
