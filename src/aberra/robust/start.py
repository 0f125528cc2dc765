"""What the first round goes by: nothing, or what members of `MultiView` say about the rows."""

from __future__ import annotations

import numpy as np

from aberra.contract.members import Data, Scores
from aberra.detectors.multiview import MultiView
from aberra.rng import single_thread
from aberra.robust.history import History
from aberra.robust.rounds import Setup, Turn, train_round

N_ADVISERS = 5
ADVICE = 1 << 20  # number of the round whose random numbers are the advisers'


def first_trust(
    start: str, data: Data, history: History, prior: Scores, entropy: int
) -> tuple[Scores, Scores]:
    """Return the weights of the next round, and what counts in every round besides."""
    w = next_trust(start, history, len(data))
    if start == "equal":
        return w, prior
    given = advice(data, history, prior, entropy)
    if start == "advised":
        return w, prior * given
    return (w if len(history) else given), prior


def next_trust(start: str, history: History, n: int) -> Scores:
    """Return what the rounds so far say about the trust in the coming one.

    In the papers the last round alone decides. Where there was advice, each round goes half of the
    way from the trust before to its own, because its own ranking may be worse than the advice
    (benchmarks/settle_study.py).
    """
    if start != "advised":
        return history.next_weights(n)
    w = np.ones(n)
    for t in range(len(history)):
        w = (w + history.weights(t)) / 2
    return w


def advice(data: Data, history: History, prior: Scores, entropy: int) -> Scores:
    """Return the trust that follows from what `MultiView`, told the prior trust, says of rows."""
    view = MultiView()
    with single_thread():
        prepared = view._prepare(data)
    setup = Setup(view, prepared, data, N_ADVISERS, resample=False)
    turn = Turn(entropy, ADVICE, prior)
    return history.trust_by(train_round(setup, [turn])[1][0].scores)
