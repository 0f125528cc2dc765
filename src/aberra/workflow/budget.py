"""Training that ends when its time is used, with what is finished by then."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

from aberra.errors import RoundsExhaustedWarning
from aberra.progress import advance, deadline
from aberra.robust.iadc import IADC


@dataclass(frozen=True)
class Budget:
    """Time that training may take, from now on."""

    minutes: float
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """All of it."""
        return 60.0 * self.minutes

    @property
    def used(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    @property
    def left(self) -> float:
        """Seconds to the end; negative when it is over."""
        return self.seconds - self.used


@dataclass(frozen=True)
class Ending:
    """How a training came to its end.

    Parameters
    ----------
    minutes : float or None
        The time that was allowed.
    early : bool
        Whether the time ended it.
    share : float
        Share of the training steps that were taken; 1 for a training in rounds.
    """

    minutes: float | None = None
    early: bool = False
    share: float = 1.0


def fit_within(model: Any, data: Any, minutes: float | None, further: bool = False) -> Ending:
    """Fit a model, or train it further; with a limit, end in time with what was learnt by then."""
    learn = model.adapt if further else model.fit
    if minutes is None or not model.stops_early:
        learn(data)
        return Ending(minutes)
    budget = Budget(minutes)
    if isinstance(model, IADC):
        return Ending(minutes, fit_in_rounds(model, data, budget))
    with deadline(budget.left) as limit:
        learn(data)
    return Ending(minutes) if limit.stopped_at is None else Ending(minutes, True, limit.stopped_at)


def fit_in_rounds(model: IADC, data: Any, budget: Budget) -> bool:
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
