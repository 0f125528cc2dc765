"""Training that ends when its time is used, with what is finished by then."""

from __future__ import annotations

import warnings
from typing import Any

from aberra.cli.wishes import Budget
from aberra.errors import RoundsExhaustedWarning
from aberra.progress import advance, deadline


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


def fit_in_time(model: Any, images: Any, budget: Budget) -> float | None:
    """Fit a localiser; return the share of its steps that were taken, if the budget ended them."""
    with deadline(budget.left) as limit:
        model.fit(images)
    return limit.stopped_at
