"""The kind of a torch module; only models that hold one need torch."""

from __future__ import annotations

from typing import Any

import torch

from aberra.model_file.composite import NamedBy, Part, checked_keys
from aberra.model_file.kinds import Array, Node, Reader, Writer, damaged
from aberra.nets.building import in_layout

STATE = NamedBy(Array(None, "float32", tensor=True))
MOST_LAYERS = 64  # that a plan lists


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
        made = plan.decode(found["plan"], file, f"{where}.plan")
        _check_plan(made, sum(array.numel() for array in state.values()), f"{where}.plan")
        module = _made(cls, made, f"{where}.plan")
        try:
            module.load_state_dict(state, assign=True)
        except RuntimeError as error:
            damaged(where, f"the arrays do not fit the plan ({error})")
        return in_layout(module).eval().requires_grad_(False)


def _made(cls: Any, plan: Any, where: str) -> Any:
    """Return a module without memory; the parts of a forged plan may contradict each other."""
    try:
        with torch.device("meta"):
            return cls(plan)
    except Exception as error:  # of torch, MONAI or Python
        damaged(where, f"no network can be made of it ({error})")


def _check_plan(plan: Any, n_numbers: int, where: str) -> None:
    """Refuse a plan of more layers, or of wider ones, than the file has numbers for."""
    for name, value in vars(plan).items():
        items = value if isinstance(value, tuple) else (value,)
        if len(items) > MOST_LAYERS:
            damaged(f"{where}.{name}", f"{len(items)} entries, but a network has few layers")
        large = [item for item in items if isinstance(item, int) and item > max(64, n_numbers)]
        if large:
            damaged(f"{where}.{name}", f"{large[0]} is more than all numbers of the network")
