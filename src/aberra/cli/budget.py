"""Training that ends when its time is used, with what is finished by then."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from aberra.cli.wishes import DIFFUSION, Budget, DetectorName, Wishes
from aberra.errors import RoundsExhaustedWarning
from aberra.progress import advance

TRIAL_STEPS = 8
TRIAL_IMAGES = 32
TRAINING_SHARE = 0.85  # of the time left; the rest is for thresholds and scores


def fit_in_rounds(model: Any, data: Any, budget: Budget) -> bool:
    """Fit IADC round by round; return whether the budget ended it.

    No round is begun that would take longer than what is left. The first one always runs.
    """
    most = model.max_rounds
    model.set_params(warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)  # of each single round
        for rounds in range(1, most + 1):
            model.set_params(max_rounds=rounds).fit(data)
            history = model.history_
            advance("time budget", min(budget.used / budget.seconds, 0.999), history.note())
            if history.reason != "max_rounds" or budget.left < history[-1].seconds:
                break
    advance("time budget", 1.0)
    ended = history.reason == "max_rounds" and rounds < most
    if ended:
        history.reason = "interrupted"
    model.set_params(max_rounds=most, warm_start=False)
    return ended


def steps_within(model: Any, images: Any, wishes: Wishes) -> tuple[int, float] | None:
    """Return the training steps that fit into the budget and the seconds of one, if too few."""
    usual = _usual_steps(wishes)
    seconds = _seconds_a_step(model, np.asarray(images[:TRIAL_IMAGES]))
    steps = int(TRAINING_SHARE * wishes.budget.left / seconds)
    return (max(1, steps), seconds) if steps < usual else None


def _seconds_a_step(model: Any, images: Any) -> float:
    """Time two short trainings; their difference is free of what happens once."""
    took = []
    for steps in (1, 1 + TRIAL_STEPS):
        trial = clone(model).set_params(train_steps=steps, checkpoint=None)
        started = time.perf_counter()
        trial.fit(images)
        took.append(time.perf_counter() - started)
    return max(took[1] - took[0], 1e-4) / TRIAL_STEPS


def _usual_steps(wishes: Wishes) -> int:
    name: DetectorName = wishes.localiser
    if name in DIFFUSION:
        from aberra.localise.diffusion import PRESETS

        return PRESETS[wishes.preset.value].train_steps
    from aberra.localise.reconstruction import PRESETS as REBUILDERS

    return REBUILDERS[wishes.preset.value].pace.train_steps
