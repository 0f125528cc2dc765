"""Single, ADC and IADC of one detector for several seeds at once.

The members of all seeds train in one call, each with its own rows, weights and shuffling. That
gives the same numbers as one fit per seed, and keeps all threads busy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Members, member_scores, training_scores
from aberra.progress import advance
from aberra.rng import draw_seeds, entropy_of, single_thread, stream
from aberra.robust.history import History, Round
from aberra.robust.iadc import IADC, with_weight
from aberra.robust.resampling import resampled_rows

Scores = NDArray[np.float64]


@dataclass
class Trial:
    """One seed's run.

    Attributes
    ----------
    single : ndarray of shape (n,)
        Scores of the training rows by one detector that saw all of them.
    history : History
        The rounds of IADC; the first one is ADC.
    single_unseen, unseen : ndarray of shape (n_unseen,), and one for each round
        The same on rows that did not train.
    """

    seed: int
    history: History
    entropy: int
    single: Scores = field(default_factory=lambda: np.empty(0))
    single_unseen: Scores = field(default_factory=lambda: np.empty(0))
    single_seconds: float = 0.0
    unseen: list[Scores] = field(default_factory=list)


def run_seeds(
    model: IADC,
    data: Data,
    seeds: Sequence[int],
    ratios: Sequence[float] = (0.5,),
    unseen: Data | None = None,
    rounds_at_least: int = 1,
) -> list[Trial]:
    """Run all seeds until the ranking has settled for every outlier ratio.

    Parameters
    ----------
    model : IADC
        Carries the detector and the settings; its own `outlier_ratio` and `random_state` are not
        used.
    data : ndarray of shape (n, n_features) or (n, channels, height, width)
    seeds : sequence of int
    ratios : sequence of float
        The rounds go on until the rule would have stopped for each of them.
    unseen : ndarray, optional
        Rows that are scored in every round and train in none.
    rounds_at_least : int, default=1

    Returns
    -------
    trials : list of Trial
        Equal to those of `IADC(..., random_state=seed).fit(data)`, one a seed.
    """
    data = model._validate(data, reset=True)
    unseen = None if unseen is None else model._validate(unseen, reset=False)
    trials = [Trial(seed, _empty_history(model), entropy_of(seed)) for seed in seeds]
    trainer = model._trainer()

    def goes_on(trial: Trial) -> bool:
        history = trial.history
        if len(history) < rounds_at_least:
            return True
        done = all(history.settled(r) for r in ratios)
        return len(history) < model.max_rounds and not done

    with single_thread():
        prepared = trainer._prepare(data)
        _singles(trials, trainer, prepared, data, unseen)
        while active := [trial for trial in trials if goes_on(trial)]:
            _one_round(active, model, trainer, prepared, data, unseen)
            t = max(len(trial.history) for trial in active)
            advance("rounds", t / model.max_rounds, active[0].history.note())
    advance("rounds", 1.0)
    return trials


def _empty_history(model: IADC) -> History:
    return History(model.outlier_ratio, model.patience, model.temperature)


def _singles(
    trials: Sequence[Trial], trainer: Any, prepared: Any, data: Data, unseen: Data | None
) -> None:
    """Train one detector a seed on all rows; seeds are those of the detector's own `fit`."""
    started, n, k = time.perf_counter(), len(data), len(trials)
    rows = np.tile(np.arange(n), (k, 1))
    drawn = [draw_seeds(trial.entropy, 0, n=1)[0] for trial in trials]
    members = trainer._train(prepared, rows, np.ones((k, n)), drawn)
    scores = training_scores(members, data)
    seconds = (time.perf_counter() - started) / k
    others = _unseen_scores(members, unseen)
    for i, trial in enumerate(trials):
        trial.single, trial.single_seconds = scores[i], seconds
        trial.single_unseen = others[i]


def _one_round(
    active: Sequence[Trial],
    model: IADC,
    trainer: Any,
    prepared: Any,
    data: Data,
    unseen: Data | None,
) -> None:
    started, n, m = time.perf_counter(), len(data), model.n_members
    drawn, weights, seeds = [], [], []
    for trial in active:
        t, w = len(trial.history), trial.history.next_weights(n)
        rows = resampled_rows(n, m, model.resample, stream(trial.entropy, t, 0))
        drawn.append(with_weight(rows, w))
        weights.append(np.broadcast_to(w, (m, n)))
        seeds += draw_seeds(trial.entropy, t, 1, n=m)
    all_rows = np.concatenate(drawn)
    members = trainer._train(prepared, all_rows, np.concatenate(weights), seeds)
    scores = training_scores(members, data)
    seconds = (time.perf_counter() - started) / len(active)
    others = _unseen_scores(members, unseen)
    for k, trial in enumerate(active):
        part = slice(k * m, (k + 1) * m)
        trial.history.append(Round(scores[part].mean(axis=0), seconds))
        trial.unseen.append(others[part].mean(axis=0))


def _unseen_scores(members: Members, unseen: Data | None) -> NDArray[np.float64]:
    if unseen is None:
        return np.empty((members.n_members, 0))
    return member_scores(members, unseen)
