"""Single, ADC and IADC of one detector, for several seeds at once.

The members of all seeds train in one call, each with its own rows, weights and shuffling. That
gives the same bytes as one fit per seed, because both use `train_round`, and it keeps all threads
busy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.contract.members import Data, Members, Scores, member_scores
from aberra.contract.scorer import checked_weights
from aberra.progress import advance
from aberra.rng import draw_seeds, entropy_of, single_thread
from aberra.robust.history import History
from aberra.robust.iadc import IADC
from aberra.robust.rounds import Setup, Turn, train_and_score, train_round
from aberra.robust.start import Course, course_of


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
    course: Course
    single: Scores = field(default_factory=lambda: np.empty(0))
    single_unseen: Scores = field(default_factory=lambda: np.empty(0))
    single_seconds: float = 0.0
    unseen: list[Scores] = field(default_factory=list)

    def turn(self) -> Turn:
        """Return what this seed brings to its next round."""
        weights = self.course.trust(self.history) * self.course.prior
        return Turn(self.entropy, len(self.history), weights)


def run_seeds(
    model: IADC,
    X: ArrayLike,
    seeds: Sequence[int],
    ratios: Sequence[float] = (0.5,),
    unseen: ArrayLike | None = None,
    rounds_at_least: int = 1,
    sample_weight: ArrayLike | None = None,
) -> list[Trial]:
    """Run all seeds until the ranking has settled for every outlier ratio.

    Parameters
    ----------
    model : IADC
        Carries the detector and the settings; its own `random_state` is not used, and its
        `outlier_ratio` only decides which round counts as kept.
    X : array-like of shape (n, n_features) or (n, channels, height, width)
        Training rows.
    seeds : sequence of int
        One run for each.
    ratios : sequence of float, default=(0.5,)
        The rounds go on until the rule would have stopped for each of them.
    unseen : array-like or None, default=None
        Rows that are scored in every round and train in none.
    rounds_at_least : int, default=1
        Rounds that are run even if the ranking has settled before.
    sample_weight : array-like of shape (n,) or None, default=None
        As in `IADC.fit`.

    Returns
    -------
    trials : list of Trial
        The same bytes as those of `IADC(..., random_state=seed).fit(X)`, one per seed.
    """
    data = model._validate(X, reset=True)
    new = None if unseen is None else model._validate(unseen, reset=False)
    prior, setup = checked_weights(sample_weight, data), model._setup(data, model.resample)
    trials = [_begun(model, setup, prior, seed) for seed in seeds]

    def goes_on(trial: Trial) -> bool:
        history = trial.history
        if history.decided:
            return False
        if len(history) < rounds_at_least:
            return True
        done = all(history.settled(r) for r in ratios)
        return len(history) < model.max_rounds and not done

    _train_singles(setup, trials, prior, new)
    while active := [trial for trial in trials if goes_on(trial)]:
        members, found = train_round(setup, [trial.turn() for trial in active])
        others = np.split(_unseen_scores(members, new), len(active))
        for trial, line, own in zip(active, found, others, strict=True):
            trial.history.append(line)
            trial.course.judge(trial.history)
            trial.unseen.append(own.mean(axis=0))
        t = max(len(trial.history) for trial in active)
        advance("rounds", t / model.max_rounds, active[0].history.note())
    advance("rounds", 1.0)
    return trials


def _begun(model: IADC, setup: Setup, prior: Scores, seed: int) -> Trial:
    history, entropy = model._new_history(setup), entropy_of(seed)
    course = course_of(model._start_of(setup), setup.data, history, prior, entropy)
    return Trial(seed, history, entropy, course)


def _train_singles(
    setup: Setup, trials: Sequence[Trial], prior: Scores, unseen: Data | None
) -> None:
    """Train one detector per seed on all rows that have weight, as the detector's `fit` does."""
    started, k = time.perf_counter(), len(trials)
    rows, weights = np.tile(np.flatnonzero(prior), (k, 1)), np.tile(prior, (k, 1))
    seeds = [draw_seeds(trial.entropy, 0, n=1)[0] for trial in trials]
    members, scores = train_and_score(setup, rows, weights, seeds)
    seconds = (time.perf_counter() - started) / k
    others = _unseen_scores(members, unseen)
    for trial, own, other in zip(trials, scores, others, strict=True):
        trial.single, trial.single_unseen, trial.single_seconds = own, other, seconds


def _unseen_scores(members: Members, unseen: Data | None) -> NDArray[np.float64]:
    if unseen is None:
        return np.empty((members.n_members, 0))
    with single_thread():
        return member_scores(members, unseen)
