"""A model of scans to go on from: its own, or one that comes with Aberra."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aberra.data.mri.prepare import Preparation
from aberra.errors import ArgumentError
from aberra.localise.base import Localiser
from aberra.workflow.choices import ALONE
from aberra.workflow.opened import opened
from aberra.workflow.plan import Plan

DECIDED = ("detector", "preset", "whole_brain")  # by the model that is there


@dataclass(frozen=True)
class Start:
    """Where training goes on."""

    plan: Plan
    preparation: Preparation
    name: str


def start(
    model: str | Path, seed: int, time_budget: float | None, robust: str, **asked: Any
) -> Start:
    """Return the plan to train a model of scans further.

    Raises
    ------
    ArgumentError
        If the model was not fitted on scans, or if something was asked for that it has decided.
    """
    for name in DECIDED:
        if asked[name] is not None:
            raise ArgumentError(name, f"{model} has decided about the {name}: leave it out.")
    if robust != ALONE:
        raise ArgumentError("robust", f"Training from {model} is for one localiser alone.")
    known = opened(model)
    recipe = known.recipe
    if known.kind != "volumes" or recipe is None or not isinstance(known.model, Localiser):
        raise ArgumentError("start_from", f"{known.name} is no localiser that was fitted on scans.")
    if time_budget is not None and not known.model.stops_early:
        raise ArgumentError("time_budget", f"{known.name} cannot stop early: leave it out.")
    plan = Plan(known.model, None, seed, time_budget, by_default=False, further=True)
    return Start(plan, recipe.scan_preparation(), known.name)
