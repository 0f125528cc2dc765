"""What fitting on pictures and on scans has in common: training, heights of maps, the recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.errors import DataError
from aberra.explain.doubts import Doubt, doubts, trust_in
from aberra.progress import advance, stopping_between_steps
from aberra.recipe import Choices
from aberra.words import count
from aberra.workflow.about import about_ending, about_ensemble, about_method
from aberra.workflow.budget import Ending, fit_within
from aberra.workflow.choices import LookFor, Preset
from aberra.workflow.outcome import checkpoint_folder
from aberra.workflow.plan import Plan, set_up

FEWEST_IMAGES = 4
SCORED = 256  # training images that are scored afterwards, where training itself does not
AT_A_TIME = 64


@dataclass(frozen=True)
class Learnt:
    """A fitted localiser, or ensemble of them, and what is to be said about its training."""

    model: Any
    choices: Choices
    scores: NDArray[np.float64]
    rows: NDArray[np.int64]  # the training images that have a score

    def doubts(self, names: Sequence[str]) -> list[Doubt]:
        """Return the training images that are trusted least."""
        scored = [names[k] for k in self.rows]
        return doubts(trust_in(self.model, self.scores), self.scores, scored)


def prepared(
    plan: Plan, preset: Preset | None, look_for: LookFor | None, output: Path | None
) -> Any:
    """Return the model to fit; a localiser alone keeps its unfinished training beside the output.

    Members of an ensemble train side by side, so one folder cannot keep their trainings.
    """
    keeps = output is not None and plan.ensemble is None
    folder = checkpoint_folder(output) if keeps and output is not None else None
    set_up(plan.detector, preset=preset, look_for=look_for, checkpoint=folder)
    return plan.model()


def learnt_from(model: Any, images: NDArray[Any], plan: Plan, source: Path) -> Learnt:
    """Train on images; score them, or some of them."""
    if len(images) < FEWEST_IMAGES:
        found = count(len(images), "image")
        raise DataError(f"{source} has {found}. Give at least {FEWEST_IMAGES}.")
    with stopping_between_steps():
        ending = fit_within(model, images, plan.minutes, plan.further)
    if "checkpoint" in model.get_params(deep=False):
        model.set_params(checkpoint=None)  # of no use to whoever loads the model
    scores, rows = model.training_scores(), np.arange(len(images))
    if scores is None:
        rows = spread(len(images), SCORED)
        scores = _scores(model, images[rows])
    return Learnt(model, _about_training(model, plan, ending), scores, rows)


def spread(n: int, most: int) -> NDArray[np.int64]:
    """Return at most so many of n positions, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _scores(model: Any, images: NDArray[Any]) -> NDArray[np.float64]:
    parts = []
    for start in range(0, len(images), AT_A_TIME):
        parts.append(model.anomaly_score(images[start : start + AT_A_TIME]))
        advance("scoring", min(1.0, (start + AT_A_TIME) / len(images)))
    return np.concatenate(parts)


# What is said about it


def _about_training(model: Any, plan: Plan, ending: Ending) -> Choices:
    preset = plan.detector.get_params(deep=False).get("preset")
    size = "" if preset is None else f", preset {preset}"
    robust = about_ensemble(plan)
    if plan.ensemble is None:
        robust += " (choose iadc for images that may not all be healthy)"
    return [
        ("detector", f"{about_method(plan)}{size}"),
        ("robust training", robust),
        *about_ending(model, ending),
        ("seed", str(plan.seed)),
    ]


def about_map(localiser: Any) -> str:
    """Say what the map of a localiser shows."""
    settings = localiser.get_params(deep=False)
    shown = str(settings.get("error", settings.get("side", "")))
    for side in ("dark", "bright"):
        if shown.startswith(side):
            return f"shows where an image is {side}er than the model would have it"
    return "shows where an image is darker or brighter than the model would have it"


def about_alarms(localiser: Any, what: str) -> str:
    """Say which share of healthy pixels the height of the map lets through."""
    return f"so that {100 * localiser.false_alarm_rate:g} % of healthy {what} is flagged"
