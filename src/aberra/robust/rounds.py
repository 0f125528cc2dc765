"""One round of an ensemble: its members draw rows, train from scratch and score every row.

A fit of `ADC` or `IADC` trains one ensemble. The papers' tables train the ensembles of several
seeds at once, which gives the same bytes and keeps all threads busy. Both call `train_round`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Members, Rows, Scores, member_scores
from aberra.detectors.foreign import Trainer
from aberra.engine import run_members
from aberra.rng import draw_seeds, single_thread, stream
from aberra.robust.committee import Committee
from aberra.robust.history import Round
from aberra.robust.resampling import Resample, resampled_rows, with_weight


@dataclass(frozen=True)
class Setup:
    """What stays the same in all rounds.

    Parameters
    ----------
    trainer : Trainer
        The detector whose copies are the members.
    prepared : object
        What the detector made of the training rows, once for all rounds.
    data : ndarray of shape (n, d)
        The training rows.
    n_members : int
        Members of one ensemble.
    resample : bool or "subsample"
        How members draw their rows.
    engine : str or None, default=None
        The joblib backend that members are spread over; None trains in this process.
    """

    trainer: Trainer
    prepared: Any
    data: Data
    n_members: int
    resample: Resample
    engine: str | None = None


class Turn(NamedTuple):
    """What an ensemble brings to a round.

    Its random numbers follow from `entropy` and the number of the round, and from nothing else.
    """

    entropy: int
    number: int  # 0 for the first round
    weights: Scores  # (n,): how much each row counts


def train_round(setup: Setup, turns: Sequence[Turn]) -> tuple[Committee, list[Round]]:
    """Train one round of one or more ensembles, and score every row with every member.

    Parameters
    ----------
    setup : Setup
        What stays the same in all rounds.
    turns : sequence of Turn
        One for each ensemble. They do not influence each other.

    Returns
    -------
    members : Committee
        The members of all ensembles, in the order of `turns`.
    rounds : list of Round
        What each ensemble found.
    """
    started, m = time.perf_counter(), setup.n_members
    rows = [_drawn_rows(setup, turn) for turn in turns]
    weights = [np.broadcast_to(turn.weights, (m, len(setup.data))) for turn in turns]
    seeds = [seed for turn in turns for seed in draw_seeds(turn.entropy, turn.number, 1, n=m)]
    members, scores = train_and_score(setup, _joined(rows), _joined(weights), seeds)
    seconds = (time.perf_counter() - started) / len(turns)
    own = (scores[k * m : (k + 1) * m] for k in range(len(turns)))
    return members, [Round(each.mean(axis=0), seconds) for each in own]


def train_and_score(
    setup: Setup, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
) -> tuple[Committee, NDArray[np.float64]]:
    """Train a member for each line of `rows`, and return all with their scores (m, n)."""

    def work(part: slice) -> Members:
        return setup.trainer._train(setup.prepared, rows[part], weights[part], seeds[part])

    members = Committee(run_members(work, len(rows), setup.engine))
    with single_thread():
        return members, member_scores(members, setup.data)


def _drawn_rows(setup: Setup, turn: Turn) -> Rows:
    generator = stream(turn.entropy, turn.number, 0)
    rows = resampled_rows(len(setup.data), setup.n_members, setup.resample, generator)
    leaves_out = setup.trainer.draws_rows and not setup.resample  # rows without weight, itself
    return rows if leaves_out else with_weight(rows, turn.weights)


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)  # no copy for a single one
