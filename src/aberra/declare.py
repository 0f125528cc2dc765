"""How an estimator is declared: every parameter once, with its default, its range and its text.

scikit-learn wants a constructor that names all parameters and only stores them, a table of their
ranges, and a docstring that explains each one. Written out by hand these are three copies of one
list, and every subclass that changes a default needs three more. Here a parameter is one line in
the class body, and the constructor, the table and the docstring are made from it:

    @estimator
    class Distance(Scorer):
        '''The distance to the k-th nearest neighbour.'''

        k: int = parameter(
            Interval(Integral, 1, None, closed="left"), default=5, doc="Which neighbour counts."
        )

A subclass inherits the parameters of its parents, and changes a default in one line with
`changed`. What `fit` learns is declared in the same way with `learnt`, so that the docstring lists
it and the model file knows what to keep.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, dataclass, field
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, dataclass_transform

from aberra.scikit import HasMethods, Interval, StrOptions

Class = TypeVar("Class", bound=type)

SECTIONS = ("See Also", "Notes", "References", "Examples")  # what numpydoc puts after Attributes


class Shape:
    """The shape and type of an array in a trained part: `Annotated[Array, Shape("s", "k")]`.

    Parameters
    ----------
    *dims : int, str or None
        The dimensions in order. A number is a fixed size and None any size. A name stands for a
        size that must be the same wherever it occurs: within one part for a small letter, in the
        whole model for a capital one (D columns, N rows).
    dtype : str, default="float64"
        The type of the numbers.
    """

    def __init__(self, *dims: int | str | None, dtype: str = "float64") -> None:
        self.dims = dims
        self.dtype = dtype


class AnyShape(Shape):
    """The type of an array whose shape is left open."""


class Size:
    """A number that is also the size of a named dimension: `Annotated[int, Size("D")]`."""

    def __init__(self, name: str) -> None:
        self.name = name


class Within:
    """The range of a whole number in a trained part: `Annotated[int, Within(1, 1024)]`.

    Time and memory follow from such a number, so a model file that exceeds the range is refused
    unless its limits are lifted (`load(path, limits=False)`). No number may be below the range.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high


# Metadata of a dataclass field that is None unless it is needed, and is then left out of a model
# file. Files that were written before there was such a field can still be read.
LATER: dict[str, Any] = {"later": True}


def parameter(*allowed: Any, default: Any, doc: str, kind: str = "", kw_only: bool = True) -> Any:
    """Declare a constructor parameter.

    Parameters
    ----------
    *allowed : constraint
        What it may be, in scikit-learn's words: `Interval`, `StrOptions`, "boolean",
        "random_state", a type, None.
    default : object
        Its default value.
    doc : str
        What it means. The type and the default are added by themselves.
    kind : str, default=""
        The type as the docstring shows it; found from `allowed` by default.
    kw_only : bool, default=True
        Whether it has to be given by name.
    """
    held = {"allowed": list(allowed), "doc": doc, "kind": kind}
    return field(default=default, kw_only=kw_only, metadata=held)


def changed(*allowed: Any, default: Any, doc: str = "", kw_only: bool = True) -> Any:
    """Give an inherited parameter another default, and where needed another range or text."""
    held = {"changed": True, "allowed": list(allowed), "doc": doc}
    return field(default=default, kw_only=kw_only, metadata=held)


def learnt(doc: str = "", *, optional: bool = False, init: Literal[False] = False) -> Any:
    """Declare an attribute that `fit` sets.

    Parameters
    ----------
    doc : str, default=""
        What it holds; without a text the docstring does not list it.
    optional : bool, default=False
        Whether `fit` sets it for some data only.
    init : False
        Never given to the constructor; type checkers read this.
    """
    return field(init=init, metadata={"learnt": True, "doc": doc, "optional": optional})


@dataclass_transform(
    eq_default=False, kw_only_default=True, field_specifiers=(parameter, changed, learnt)
)
def estimator(cls: Class) -> Class:
    """Make the constructor, the table of ranges and the docstring of an estimator class."""
    _complete_changed(cls)
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    made._parameter_constraints = {
        f.name: list(f.metadata["allowed"]) for f in parameters_of(made) if f.metadata["allowed"]
    }
    made.__doc__ = _filled(made)
    return made


def parameters_of(cls: type) -> list[Field[Any]]:
    """Return the declared parameters of an estimator class, in the order of its constructor."""
    every = [f for f in dataclasses.fields(cls) if f.init]
    return sorted(every, key=lambda f: bool(f.kw_only))  # as the constructor has them


def learnt_by(cls: type) -> list[Field[Any]]:
    """Return the declared attributes that `fit` of an estimator class sets."""
    return [f for f in dataclasses.fields(cls) if f.metadata.get("learnt")]


def _complete_changed(cls: type) -> None:
    """Fill in what a changed parameter takes over from the parent's declaration."""
    inherited = {f.name: f for parent in cls.__mro__[:0:-1] for f in _own_fields(parent)}
    for name, value in list(vars(cls).items()):
        if not (isinstance(value, Field) and value.metadata.get("changed")):
            continue
        if name not in inherited:
            raise TypeError(f"{cls.__name__} changes {name}, which no parent of it declares.")
        old, new = inherited[name].metadata, value.metadata
        held = {"allowed": new["allowed"] or old["allowed"], "doc": new["doc"] or old["doc"]}
        held["kind"] = old["kind"]
        kw_only = bool(inherited[name].kw_only)
        setattr(cls, name, field(default=value.default, kw_only=kw_only, metadata=held))


def _own_fields(cls: type) -> Iterable[Field[Any]]:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


# The docstring


def _filled(cls: type) -> str:
    """Return the class's docstring with its Parameters and Attributes put in their place."""
    text = inspect.cleandoc(vars(cls).get("__doc__") or "")
    pattern = "|".join(re.escape(name) for name in SECTIONS)
    found = re.search(rf"^(?:{pattern})\n-+$", text, flags=re.MULTILINE)
    place = found.start() if found else len(text)
    before, after = text[:place].rstrip(), text[place:]
    shown = [f for f in learnt_by(cls) if f.metadata["doc"]]
    parts = [before, _section("Parameters", map(_parameter_entry, parameters_of(cls)))]
    parts.append(_section("Attributes", (_entry(f, _type_name(f)) for f in shown)))
    return "\n\n".join(part for part in [*parts, after] if part)


def _section(title: str, entries: Iterable[str]) -> str:
    held = list(entries)
    return "\n".join([title, "-" * len(title), *held]) if held else ""


def _parameter_entry(f: Field[Any]) -> str:
    kind = f.metadata["kind"] or _kinds(f.metadata["allowed"]) or _type_name(f)
    return _entry(f, f"{kind}, default={_default(f)}")


def _entry(f: Field[Any], kind: str) -> str:
    lines = inspect.cleandoc(f.metadata["doc"]).splitlines()
    return "\n".join([f"{f.name} : {kind}", *(f"    {line}" if line else "" for line in lines)])


def _default(f: Field[Any]) -> str:
    assert f.default is not MISSING
    return f'"{f.default}"' if isinstance(f.default, str) else repr(f.default)


def _type_name(f: Field[Any]) -> str:
    words = str(f.type).removeprefix("Annotated[").split(", S")[0].replace(" | ", " or ")
    return re.sub(r"NDArray\[[^]]*\]", "ndarray", words)


def _kinds(allowed: Iterable[Any]) -> str:
    """Return ranges as a person reads them: `int or None`, `{"a", "b"}`."""
    return " or ".join(dict.fromkeys(word for one in allowed for word in _kind_words(one)))


def _kind_words(one: Any) -> Iterator[str]:
    if one is None:
        yield "None"
    elif isinstance(one, Interval):
        yield {Integral: "int", Real: "float"}.get(one.type, "number")
    elif isinstance(one, StrOptions):
        yield "{" + ", ".join(f'"{option}"' for option in sorted(one.options)) + "}"
    elif isinstance(one, HasMethods):
        yield "estimator"
    elif isinstance(one, str):
        yield {"boolean": "bool", "random_state": "int, RandomState or None"}.get(one, one)
    else:
        yield {"Path": "path"}.get(one.__name__, one.__name__)
