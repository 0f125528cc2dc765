"""Kinds made of other kinds: fields by name, objects of known classes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from aberra.model_file.kinds import Kind, Node, Reader, Writer, damaged, shown


@dataclass(frozen=True)
class NamedBy:
    """Any names, each with something of one kind; a name may be a number, as of a column."""

    kind: Kind
    name: type[str] | type[int] = str

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write a JSON object, whose names are always text."""
        return {
            str(name): self.kind.encode(item, out, f"{where}.{name}")
            for name, item in value.items()
        }

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read a JSON object."""
        found = checked_object(node, where)
        if self.name is int and not all(re.fullmatch("0|[1-9][0-9]{0,8}", name) for name in found):
            damaged(where, "a name is no number")
        return {
            self.name(name): self.kind.decode(item, file, f"{where}.{name}")
            for name, item in found.items()
        }


@dataclass(frozen=True)
class Part:
    """An object that is made from its fields, `cls(**fields)`, and keeps them under their names.

    Fields that came `later` are None where a file lacks them.
    """

    cls: type
    fields: Mapping[str, Kind]
    later: frozenset[str] = frozenset()

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write every field."""
        held = vars(value)
        fields = {name: held[name] if name in held else held[f"_{name}"] for name in self.fields}
        absent = {name for name in self.later if fields[name] is None}
        return encode_fields(self._but(absent), fields, out, where)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read every field and make the object."""
        absent = self.later - set(checked_object(node, where))
        return self.cls(**decode_fields(self._but(absent), node, file, where))

    def _but(self, absent: Set[str]) -> dict[str, Kind]:
        return {name: kind for name, kind in self.fields.items() if name not in absent}


class OneOf:
    """An object of one of several known classes; the node gives the name of its class.

    Parameters
    ----------
    part_named : callable
        Returns the part of a class name, or None where no known class has that name.
    """

    def __init__(self, part_named: Callable[[str], Part | None]) -> None:
        self.part_named = part_named

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write the class's name, then the object."""
        name = type(value).__name__
        part = self.part_named(name)
        if part is None or type(value) is not part.cls:
            damaged(where, f"cannot save a {name}, which is no part of a registered method")
        return {name: part.encode(value, out, where)}

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Look the name up among the known ones."""
        names = list(checked_object(node, where))
        part = self.part_named(names[0]) if len(names) == 1 else None
        if part is None:
            damaged(where, f"got {names}, which is no part of a registered method")
        return part.decode(node[names[0]], file, where)


def encode_fields(
    kinds: Mapping[str, Kind], values: Mapping[str, Any], out: Writer, where: str
) -> Node:
    """Write the values of all `kinds`, by name."""
    return {name: kind.encode(values[name], out, f"{where}.{name}") for name, kind in kinds.items()}


def decode_fields(
    kinds: Mapping[str, Kind], node: Node, file: Reader, where: str
) -> dict[str, Any]:
    """Read exactly the names in `kinds`."""
    checked_keys(node, set(kinds), where)
    return {name: kind.decode(node[name], file, f"{where}.{name}") for name, kind in kinds.items()}


def checked_keys(node: Node, expected: set[str], where: str) -> dict[str, Any]:
    """Return a JSON object that has just the expected keys."""
    found = checked_object(node, where)
    if unknown := sorted(set(found) - expected):
        damaged(where, f"unknown entries {unknown}")
    if missing := sorted(expected - set(found)):
        damaged(where, f"missing entries {missing}")
    return found


def checked_object(node: Node, where: str) -> dict[str, Any]:
    """Return the node if it is a JSON object."""
    if not isinstance(node, dict):
        damaged(where, f"got {shown(node)} where a JSON object belongs")
    return node
