"""The types of a trained part decide how a model file keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import Tensor, nn, zeros

from aberra.declare import AnyShape, Shape, Size
from aberra.errors import ModelFileError
from aberra.methods import methods
from aberra.model_file.derive import CLASSES, kind_of, member_part
from aberra.model_file.kinds import Reader, Writer

Array = NDArray[np.float64]


@dataclass
class Inner:
    place: Annotated[Array, Shape("s", 2)]
    heights: Annotated[Tensor, Shape("s", dtype="float32")]


@dataclass
class Other:
    level: float


@dataclass
class Outer:
    n: Annotated[int, Size("D")]
    way: Literal["up", "down"]
    sides: tuple[int, int]
    many: tuple[float, ...]
    parts: list[Inner | Other]
    rates: dict[int, float]
    names: NDArray[np.object_]
    last: Annotated[Array, Shape("D")] | None = None
    derived: int = field(init=False, default=7)


def example():
    inner = Inner(np.ones((3, 2)), zeros(3))
    names = np.array(["a", "b"], dtype=object)
    parts = [inner, Other(0.5)]
    return Outer(4, "up", (1, 2), (0.1, 0.2, 0.3), parts, {3: 0.5}, names, np.arange(4.0))


def written(value, hint):
    out = Writer()
    node = kind_of(hint).encode(value, out, "x")
    return node, out.arrays


def test_round_trip_keeps_everything():
    node, arrays = written(example(), Outer)
    back = kind_of(Outer).decode(node, Reader(arrays), "x")
    assert (back.n, back.way, back.sides, back.many) == (4, "up", (1, 2), (0.1, 0.2, 0.3))
    assert isinstance(back.parts[0], Inner)
    assert isinstance(back.parts[0].heights, Tensor)
    assert np.array_equal(back.parts[0].place, np.ones((3, 2)))
    assert back.parts[1] == Other(0.5)
    assert back.rates == {3: 0.5}
    assert back.names.tolist() == ["a", "b"]
    assert back.last.tolist() == [0, 1, 2, 3]
    assert back.derived == 7
    assert "derived" not in node


@pytest.mark.parametrize(
    ("place", "array"),
    [
        ("x.last", np.arange(5.0)),  # D is 4
        ("x.parts.0.place", np.ones((2, 2))),  # s is 3
        ("x.parts.0.place", np.ones((3, 3))),  # 2 is fixed
        ("x.parts.0.place", np.ones((3, 2), np.float32)),
    ],
)
def test_sizes_and_types_must_agree(place, array):
    node, arrays = written(example(), Outer)
    with pytest.raises(ModelFileError, match=place.rpartition(".")[0]):
        kind_of(Outer).decode(node, Reader({**arrays, place: array}), "x")


def test_a_name_leads_only_to_classes_that_the_types_mention():
    node, arrays = written(example(), Outer)
    node["parts"][1] = {"Outer": node["parts"][1]["Other"]}
    with pytest.raises(ModelFileError, match=r"x\.parts\.1"):
        kind_of(Outer).decode(node, Reader(arrays), "x")


class Held:
    members_: Inner


def test_methods_that_are_loaded_are_asked_before_others_are_loaded(monkeypatch):
    asked = []

    def method(name, module, takes="tables"):
        return SimpleNamespace(module=module, takes=takes, load=lambda: asked.append(name) or Held)

    every = [method("later", "not.loaded"), method("ensemble", "sys", "anything"),
             method("here", "sys")]  # fmt: skip
    monkeypatch.setattr("aberra.model_file.derive.methods", lambda: every)
    assert member_part("Inner").cls is Inner
    assert asked == ["here"]
    assert member_part("Nobody") is None
    assert asked == ["here", "here", "later"]


@dataclass(frozen=True)
class Plan:
    width: int


class Net(nn.Module):
    plan: Plan

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        self.layer = nn.Linear(plan.width, 1)


def test_networks_are_made_from_their_plan():
    net = Net(Plan(3))
    node, arrays = written([net], list[Net])
    (back,) = kind_of(list[Net]).decode(node, Reader(arrays), "x")
    assert back.plan == Plan(3)
    assert back.layer.weight.equal(net.layer.weight)
    assert not back.training  # what comes from a file scores, and is not trained
    assert not any(weight.requires_grad for weight in back.parameters())


@pytest.mark.parametrize("name", ["Nobody", ["Net"], None])
def test_a_network_of_no_known_class_is_refused(name):
    node, arrays = written([Net(Plan(3))], list[Net])
    node[0]["class"] = name
    with pytest.raises(ModelFileError, match=r"unknown network .*; known are Net"):
        kind_of(list[Net]).decode(node, Reader(arrays), "x")


@pytest.mark.parametrize("cls", [nn.Linear, type("Net", (nn.Linear,), {})])
def test_a_network_of_another_class_is_not_saved(cls):
    with pytest.raises(ModelFileError, match=f"cannot save a {cls.__name__}, only Net"):
        written([cls(1, 1)], list[Net])


@dataclass(frozen=True)
class Deep:
    widths: tuple[int, ...]


class DeepNet(nn.Module):
    plan: Deep

    def __init__(self, plan: Deep) -> None:
        assert max(plan.widths) <= 64, "no plan that asks for memory is carried out"
        super().__init__()
        self.plan = plan
        self.layers = nn.ModuleList(nn.Linear(1, 1, bias=False) for _ in plan.widths)


def test_a_plan_that_asks_for_more_than_the_file_holds_is_refused_before_it_is_carried_out():
    node, arrays = written([DeepNet(Deep((64,) * 64))], list[DeepNet])
    plan, kind = node[0]["plan"], kind_of(list[DeepNet])
    (back,) = kind.decode(node, Reader(dict(arrays)), "x")
    assert len(back.layers) == 64
    plan["widths"] = [1] * 63 + [65]
    with pytest.raises(ModelFileError, match=r"x.*plan\.widths.*65 is more than all numbers"):
        kind.decode(node, Reader(dict(arrays)), "x")
    plan["widths"] = [1] * 65
    with pytest.raises(ModelFileError, match="65 entries, but a network has few layers"):
        kind.decode(node, Reader(dict(arrays)), "x")
    node, arrays = written([Net(Plan(99))], list[Net])  # 99 weights and the constant: 100 numbers
    for width, words in ((100, "do not fit the plan"), (101, "101 is more than all numbers")):
        node[0]["plan"]["width"] = width
        with pytest.raises(ModelFileError, match=words):
            kind_of(list[Net]).decode(node, Reader(dict(arrays)), "x")


def test_classes_of_registered_methods_are_counted_as_they_are_listed():
    assert len(CLASSES) == len(list(CLASSES)) == len(list(methods()))
    assert "Nobody" not in CLASSES


def test_arrays_of_any_shape():
    hint = dict[str, Annotated[Tensor, AnyShape(dtype="float32")]]
    node, arrays = written({"a": zeros(2, 3)}, hint)
    assert kind_of(hint).decode(node, Reader(arrays), "x")["a"].shape == (2, 3)


class Plain:
    pass


@pytest.mark.parametrize("hint", [Plain, Annotated[int, "mark"], list[Plain]])
def test_types_without_a_way_are_refused(hint: Any):
    with pytest.raises(TypeError, match=r"model file"):
        kind_of(hint)
