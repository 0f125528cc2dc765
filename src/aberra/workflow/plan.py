"""What is going to be trained: a detector or localiser, alone or in an ensemble."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import clone

from aberra.errors import ArgumentError
from aberra.methods import Method, find
from aberra.recipe import Source
from aberra.thresholds import RULES
from aberra.workflow.choices import (
    ALONE,
    CALLED,
    TAKES,
    LookFor,
    Preset,
    detector_for,
    ensemble_for,
)

PIXELS: dict[str, int] = {"small": 64, "medium": 128, "paper": 256}  # a side, as a network sees it
ERRORS: dict[LookFor, str] = {"darker": "darker", "brighter": "brighter", "both": "absolute"}
SIDES: dict[LookFor, str] = {"darker": "dark", "brighter": "bright", "both": "both"}


@dataclass(frozen=True)
class Plan:
    """What is going to be trained.

    Parameters
    ----------
    detector : estimator
        Not fitted, with the settings that were asked for.
    ensemble : Method or None
        The ensemble around it.
    seed : int
    minutes : float or None
        How long training may take.
    by_default : bool
        Whether nobody asked for this detector.
    flags : dict, default={}
        The parameters of the model that decide what is flagged, where they were asked for.
    further : bool, default=False
        Whether the detector is fitted already and is to be trained further.
    """

    detector: Any
    ensemble: Method | None
    seed: int
    minutes: float | None
    by_default: bool
    flags: dict[str, Any] = field(default_factory=dict)
    further: bool = False

    @property
    def robust(self) -> str:
        """The name of the ensemble, or "none"."""
        return ALONE if self.ensemble is None else self.ensemble.name.lower()

    def model(self, **settings: Any) -> Any:
        """Return the model that is to be fitted; the outermost part gets the settings."""
        settings |= {**self.flags, "random_state": self.seed}
        if self.ensemble is None:
            return self.detector.set_params(**settings)
        return self.ensemble.load()(self.detector, **settings)


def plan_for(
    kind: Source, detector: Any, robust: str | None, seed: int, time_budget: float | None
) -> Plan:
    """Return the plan for what was asked, with the defaults for this kind of data.

    Raises
    ------
    ArgumentError
        If the detector does not take such data, or could not stop when its time is over.
    """
    if time_budget is not None and time_budget <= 0:
        raise ArgumentError("time_budget", f"{time_budget:g} minutes are too few.")
    ensemble = ensemble_for(kind, robust)
    chosen = _detector(kind, detector, ensemble)
    plan = Plan(chosen, ensemble, seed, time_budget, by_default=detector is None)
    if kind != "table" and time_budget is not None and not plan.model().stops_early:
        raise ArgumentError(
            "time_budget",
            f"{type(plan.detector).__name__} with robust training {plan.robust!r} cannot stop "
            "early. Use IADC, choose a detector whose training has one stage, or leave the budget "
            "out.",
        )
    return plan


def flag_settings(
    threshold: str | None, contamination: float | None, fdr: float | None
) -> dict[str, Any]:
    """Return the parameters of a model that decide what is flagged, after a look at them."""
    given = {"threshold": threshold, "contamination": contamination, "fdr": fdr}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if len(asked) > 1 and asked.get("threshold") != "fdr":
        raise ArgumentError("threshold", f"{' and '.join(asked)} exclude each other: give one.")
    if threshold is not None and threshold not in RULES:
        raise ArgumentError("threshold", f"There is no rule {threshold!r}; there are {[*RULES]}.")
    for name, share in (("contamination", contamination), ("fdr", fdr)):
        if share is not None and not 0 < share < 1:
            raise ArgumentError(name, f"A share lies between 0 and 1, but got {share:g}.")
    if contamination is not None:
        return {"threshold": contamination}
    return asked if fdr is None else {"threshold": "fdr", "fdr": fdr}


def _detector(kind: Source, asked: Any, ensemble: Method | None) -> Any:
    """Return an unfitted detector: by default, by its name, or a copy of the one given."""
    if asked is None or isinstance(asked, str):
        return detector_for(kind, asked).load()()
    method, name = find(asked), type(asked).__name__
    if method is not None and method.takes != TAKES[kind]:
        raise ArgumentError("detector", f"{name} does not take {CALLED[kind]}.")
    if method is None and (kind != "table" or ensemble is None):
        raise ArgumentError(
            "detector",
            f"{name} is not one of Aberra's methods, so it can only be trained on a table, in an "
            "ensemble.",
        )
    return clone(asked)


# Localisers


def set_up(
    localiser: Any, *, preset: Preset | None, look_for: LookFor | None, checkpoint: Path | None
) -> None:
    """Give a localiser what was asked for; everything else stays at its own defaults."""
    known = localiser.get_params(deep=False)
    asked: dict[str, Any] = {"preset": preset, "checkpoint": checkpoint and str(checkpoint)}
    if look_for is not None:
        asked |= _what_counts(localiser, look_for)
    localiser.set_params(**{k: v for k, v in asked.items() if k in known and v is not None})


def _what_counts(localiser: Any, look_for: LookFor) -> dict[str, str]:
    """Return the setting that makes the map show only what is looked for."""
    if look_for == "both" and localiser.get_params(deep=False).get("error") == "net":
        return {}  # it shows both as it is
    for name, values in (("error", ERRORS), ("side", SIDES)):
        if name in localiser.get_params(deep=False):
            return {name: values[look_for]}
    raise ArgumentError(
        "look_for", f"{type(localiser).__name__} cannot be told what to look for: leave it out."
    )


def pixels_for(localiser: Any, preset: Preset | None) -> int:
    """Return how many pixels a side images are reduced to before the localiser sees them."""
    known = localiser.get_params(deep=False)
    return known.get("image_size") or PIXELS[preset or known.get("preset", "small")]
