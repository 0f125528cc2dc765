"""How each kind of learnt thing is written down, read back and checked.

A kind turns a value into a JSON node, with arrays put aside under the name of their place
("members_.scaling.shift"), and back. Nothing in a node chooses code: the kind that reads it is
known beforehand, from the types (`derive.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from aberra.errors import ModelFileError

Node = Any  # what JSON can hold

LARGEST_INTEGER = (1 << 63) - 1
LONGEST_SHOWN = 80


def shown(node: Node) -> str:
    """Return a node as a message shows it: not longer than a line."""
    text = repr(node)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]} ..."


MEMBERS = "learnt.members_"


def damaged(where: str, why: str) -> NoReturn:
    """Raise the error that names the wrong part."""
    raise ModelFileError(f"{where}: {why}")


@dataclass
class Writer:
    """Collects the arrays of one model."""

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def put(self, where: str, array: NDArray[Any]) -> str:
        """Keep an array; return its order in memory, which sums depend on in the last bit."""
        column_major = array.flags.f_contiguous and not array.flags.c_contiguous
        self.arrays[where] = array.T if column_major else array
        return "F" if column_major else "C"


@dataclass
class Reader:
    """Hands out the arrays of one file, each once, and remembers sizes that must agree."""

    arrays: dict[str, NDArray[Any]]
    limits: bool = True  # whether numbers that cost time and memory are bounded
    sizes: dict[str, int] = field(default_factory=dict)

    def take(self, where: str, order: Node) -> NDArray[Any]:
        """Return the array of a place, in the order it had."""
        if order not in ("C", "F"):
            damaged(where, f"the order of the array is {order!r}, neither 'C' nor 'F'")
        if where not in self.arrays:
            damaged(where, "the array is missing")
        array = self.arrays.pop(where)
        return array.T if order == "F" else array

    def bind(self, name: str, size: int, where: str) -> None:
        """Note the size of a named dimension; the same name must have the same size again."""
        if self.sizes.setdefault(name, size) != size:
            known = self.sizes[name]
            damaged(where, f"a dimension has size {size}, but {known} elsewhere")


def check_finite(array: NDArray[Any], where: str) -> None:
    """Refuse what a member has learnt if it is not finite: its scores would not be either.

    Only members: rows that are kept for other ends, such as those of a reviewer, may have gaps.
    """
    if where.startswith(MEMBERS) and array.dtype.kind == "f" and not np.isfinite(array).all():
        damaged(where, "some numbers are not finite")


class Kind(Protocol):
    """One way of writing and reading."""

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Return the JSON node of a value."""

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Return the value of a node, or raise `ModelFileError`."""


@dataclass(frozen=True)
class Scalar:
    """A number, text or truth value."""

    of: type

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write it as JSON; what JSON lacks (infinity, NaN) as text."""
        plain = self.of(value)
        return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Accept this very type."""
        value = float(node) if self.of is float and node in ("inf", "-inf", "nan") else node
        if type(value) is not self.of:
            damaged(where, f"got {shown(node)} where a {self.of.__name__} belongs")
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            damaged(where, f"the number {shown(node)} is beyond 64 bits")
        if isinstance(value, float):
            check_finite(np.asarray(value), where)
        return value


@dataclass(frozen=True)
class Ranged(Scalar):
    """A whole number that time or memory depends on, and its range."""

    low: int
    high: int

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Accept what is in the range, or above it where limits are lifted."""
        value = super().decode(node, file, where)
        if value < self.low or (file.limits and value > self.high):
            damaged(
                where,
                f"got {value}, but {self.low} to {self.high} is what a model may ask for (if you "
                "made this file yourself, load(path, limits=False) lifts the limit)",
            )
        return value


@dataclass(frozen=True)
class OneWord(Scalar):
    """One of a few words."""

    words: tuple[str, ...]

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Accept one of the words."""
        if node not in self.words:
            damaged(where, f"got {shown(node)} where one of {', '.join(self.words)} belongs")
        return node


@dataclass(frozen=True)
class Count:
    """An integer that is also the size of a dimension."""

    name: str

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write the integer."""
        return int(value)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read the integer and bind the dimension."""
        value = Scalar(int).decode(node, file, where)
        file.bind(self.name, value, where)
        return value


@dataclass(frozen=True)
class Array:
    """An array or tensor of one type.

    A dimension is a fixed size, or a name (capital: one size in the whole file; small: one size
    within the same part), or None for any size. `dims=None` leaves the shape open.
    """

    dims: tuple[int | str | None, ...] | None
    dtype: str = "float64"
    tensor: bool = False

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Put the numbers aside; the node is their order in memory."""
        array = value.numpy() if self.tensor else value
        if array.dtype != self.dtype:
            damaged(where, f"cannot save numbers of type {array.dtype}, only {self.dtype}")
        check_finite(array, where)
        return out.put(where, array)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Fetch the numbers; check type and shape."""
        array = file.take(where, node)
        if array.dtype != self.dtype:
            damaged(where, f"the array is of type {array.dtype} instead of {self.dtype}")
        self._check_shape(array.shape, file, where)
        check_finite(array, where)
        return self._made(array)

    def _made(self, array: NDArray[Any]) -> Any:
        if not self.tensor:
            return array
        from torch import from_numpy

        return from_numpy(array)

    def _check_shape(self, shape: tuple[int, ...], file: Reader, where: str) -> None:
        if self.dims is None:
            return
        if len(shape) != len(self.dims):
            damaged(where, f"the array has shape {shape} instead of {len(self.dims)} dimensions")
        for size, dim in zip(shape, self.dims, strict=True):
            if isinstance(dim, str):
                place = "" if dim.isupper() else where.rpartition(".")[0]
                file.bind(f"{place}:{dim}" if place else dim, size, where)
            elif dim is not None and size != dim:
                damaged(where, f"the array has shape {shape}, with {size} instead of {dim}")


@dataclass(frozen=True)
class ListOf:
    """Any number of one kind."""

    kind: Kind

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write one after the other."""
        return [self.kind.encode(item, out, f"{where}.{k}") for k, item in enumerate(value)]

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read one after the other."""
        if not isinstance(node, list):
            damaged(where, "a list belongs here")
        return [self.kind.decode(item, file, f"{where}.{k}") for k, item in enumerate(node)]


@dataclass(frozen=True)
class As:
    """A list that Python holds as something else: a tuple, an array of names."""

    make: Callable[[list[Any]], Any]
    kind: ListOf
    length: int | None = None

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write it as a list."""
        return self.kind.encode(value, out, where)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read the list, check its length, convert it."""
        items = self.kind.decode(node, file, where)
        if self.length is not None and len(items) != self.length:
            damaged(where, f"{len(items)} entries instead of {self.length}")
        return self.make(items)


@dataclass(frozen=True)
class Maybe:
    """Something of one kind, or None."""

    kind: Kind

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write None as null."""
        return None if value is None else self.kind.encode(value, out, where)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read null as None."""
        return None if node is None else self.kind.decode(node, file, where)
