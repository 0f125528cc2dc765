"""From the types of a trained part to the way it is written and read.

What a part consists of is said once, by the typed fields of its dataclass; what an estimator has
learnt, by its `learnt` attributes. This module turns those types into kinds (kinds.py). Nothing
here knows a method by name: the classes that a file may name are those that the types of registered
methods lead to.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Members
from aberra.declare import AnyShape, Shape, Size, Within, learnt_by
from aberra.detectors.foreign import ForeignMembers
from aberra.errors import MissingExtraError
from aberra.methods import Method, methods
from aberra.model_file.composite import NamedBy, OneOf, Part
from aberra.model_file.foreign import Foreign
from aberra.model_file.kinds import Array, As, Count, Kind, ListOf, Maybe, OneWord, Ranged, Scalar

SCALARS = (int, float, str, bool)


class _Registered(Mapping[str, Any]):
    """The classes of registered methods by name; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        for method in methods():
            if method.name == name:
                return method.load()
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (method.name for method in methods())

    def __len__(self) -> int:
        return sum(1 for _ in methods())


CLASSES = _Registered()


Kinds = dict[str, Kind]
ARRAYS = (np.ndarray, get_origin(NDArray[np.object_]))  # an alias of its own from NumPy 2.5 on


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """Return the types of a class's attributes; looking their names up takes longer than a save."""
    return get_type_hints(cls, include_extras=True)


@cache
def learnt_kinds(cls: type) -> tuple[Kinds, Kinds]:
    """Return the kinds of what an estimator class learns: always, and for some data only."""
    hints = hints_of(cls)
    always: Kinds = {}
    sometimes: Kinds = {}
    for one in learnt_by(cls):
        place = sometimes if one.metadata["optional"] else always
        place[one.name] = kind_of(hints[one.name])
    return always, sometimes


def kind_of(hint: Any) -> Kind:
    """Return the kind of a type."""
    if get_origin(hint) is not None:
        return _generic(get_origin(hint), get_args(hint))
    if hint in SCALARS:
        return Scalar(hint)
    if hint is Any:
        return Foreign()
    if hint is Members:
        return OneOf(member_part)
    return _class(hint)


def _generic(origin: Any, of: tuple[Any, ...]) -> Kind:
    if origin is Annotated:
        return _annotated(*of)
    if origin is Literal:
        return OneWord(str, of)
    if origin in (Union, UnionType):
        return _union(of)
    return _collection(origin, of)


@cache
def part_of(cls: type) -> Part:
    """Return the part of a dataclass: all fields that its constructor takes."""
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__name__} is no dataclass, so a model file cannot keep it.")
    hints = hints_of(cls)
    fields = [f for f in dataclasses.fields(cls) if f.init]
    later = frozenset(f.name for f in fields if f.metadata.get("later"))
    return Part(cls, {f.name: kind_of(hints[f.name]) for f in fields}, later)


def member_part(name: str) -> Part | None:
    """Return the part of a class of trained members, if a registered method has one of that name.

    Methods that are loaded already are asked first, and the method that a file names is one of
    them by then. So a model is read without loading the other methods and what they need.
    """
    if name == ForeignMembers.__name__:
        return part_of(ForeignMembers)
    for method in sorted(methods(), key=lambda method: method.module not in sys.modules):
        cls = _members_of(method)
        if cls is not None and cls.__name__ == name:
            return part_of(cls)
    return None


def _members_of(method: Method) -> type | None:
    """Return the class of a method's members; None for ensembles, and what cannot run here."""
    if method.takes == "anything":
        return None
    try:
        return hints_of(method.load())["members_"]
    except MissingExtraError:
        return None


def _annotated(hint: Any, mark: Any) -> Kind:
    if isinstance(mark, Size):
        return Count(mark.name)
    if isinstance(mark, Within):
        return Ranged(int, mark.low, mark.high)
    if not isinstance(mark, Shape):
        raise TypeError(f"A model file does not know what {mark!r} means.")
    dims = None if isinstance(mark, AnyShape) else mark.dims
    return Array(dims, mark.dtype, tensor=getattr(hint, "__name__", None) == "Tensor")


def _union(options: tuple[Any, ...]) -> Kind:
    some = [option for option in options if option is not NoneType]
    if len(some) < len(options):
        return Maybe(kind_of(some[0]) if len(some) == 1 else _union(tuple(some)))
    parts = {option.__name__: part_of(option) for option in some}
    return OneOf(parts.get)


def _collection(origin: Any, of: tuple[Any, ...]) -> Kind:
    if origin is dict:
        return NamedBy(kind_of(of[1]), of[0])
    if origin in ARRAYS:  # without a shape: only names are kept this way
        return As(_names, ListOf(Scalar(str)))
    if origin is list:
        return ListOf(kind_of(of[0]))
    length = None if of[-1] is Ellipsis else len(of)
    return As(tuple, ListOf(kind_of(of[0])), length)


def _class(cls: type) -> Kind:
    """Return the kind of a dataclass, or of a network that is made from a plan."""
    plan = hints_of(cls).get("plan")
    if plan is not None and not dataclasses.is_dataclass(cls):
        from aberra.model_file.networks import Networks

        return Networks((cls, part_of(plan)))
    return part_of(cls)


def _names(items: list[str]) -> Any:
    return np.array(items, dtype=object)
