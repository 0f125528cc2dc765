"""Kinds made of other kinds: fields by name, objects of known classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from aberra.model_file.kinds import Array, Kind, Node, Reader, Writer, damaged
from aberra.nets.building import in_layout


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
        if self.name is int and not all(name.isdecimal() for name in found):
            damaged(where, "a name is no number")
        return {
            self.name(name): self.kind.decode(item, file, f"{where}.{name}")
            for name, item in found.items()
        }


@dataclass(frozen=True)
class Part:
    """An object that is made from its fields, `cls(**fields)`, and keeps them under their names."""

    cls: type
    fields: Mapping[str, Kind]

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write every field."""
        held = vars(value)
        fields = {name: held[name] if name in held else held[f"_{name}"] for name in self.fields}
        return encode_fields(self.fields, fields, out, where)

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read every field and make the object."""
        return self.cls(**decode_fields(self.fields, node, file, where))


STATE = NamedBy(Array(None, "float32", tensor=True))


class OneOf:
    """An object of one of several known classes; the node gives the name of its class."""

    def __init__(self, *parts: Part) -> None:
        self.parts = {part.cls.__name__: part for part in parts}

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write the class's name, then the object."""
        name = type(value).__name__
        if name not in self.parts or type(value) is not self.parts[name].cls:
            damaged(where, f"cannot save a {name}, only {', '.join(self.parts)}")
        return {name: self.parts[name].encode(value, out, where)}

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Look the name up among the known ones."""
        names = list(checked_object(node, where))
        if len(names) != 1 or names[0] not in self.parts:
            damaged(where, f"got {names} where one of {list(self.parts)} belongs")
        return self.parts[names[0]].decode(node[names[0]], file, where)


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
        damaged(where, f"got {node!r} where a JSON object belongs")
    return node


class Networks:
    """A torch module of one of several known classes, as its plan and its state.

    The module is made without memory first, so that a forged plan cannot ask for any: what it holds
    in the end are the arrays of the file, and their shapes must be those of the plan.
    """

    def __init__(self, *plans: tuple[Any, Part]) -> None:
        self.plans = {cls.__name__: (cls, plan) for cls, plan in plans}

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Write class, plan and state."""
        name = type(value).__name__
        if name not in self.plans or type(value) is not self.plans[name][0]:
            damaged(where, f"cannot save a {name}, only {', '.join(self.plans)}")
        state = {key: tensor.cpu() for key, tensor in value.state_dict().items()}
        plan = self.plans[name][1].encode(value.plan, out, f"{where}.plan")
        return {"class": name, "plan": plan, "state": STATE.encode(state, out, f"{where}.state")}

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Make the module from its plan and fill it."""
        found = checked_keys(node, {"class", "plan", "state"}, where)
        name = found["class"]
        if not isinstance(name, str) or name not in self.plans:
            damaged(where, f"unknown network {name!r}; known are {', '.join(self.plans)}")
        cls, plan = self.plans[name]
        state = STATE.decode(found["state"], file, f"{where}.state")
        with torch.device("meta"):
            module = cls(plan.decode(found["plan"], file, f"{where}.plan"))
        try:
            module.load_state_dict(state, assign=True)
        except RuntimeError as error:
            damaged(where, f"the arrays do not fit the plan ({error})")
        return in_layout(module).eval().requires_grad_(False)
