"""How the rows are trusted from round to round: as in the papers, gently, or with advice."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from aberra.contract.members import Data, Scores
from aberra.detectors.multiview import MultiView
from aberra.metrics import auroc
from aberra.rng import single_thread
from aberra.robust.history import History
from aberra.robust.rounds import Setup, Turn, train_round
from aberra.robust.weighting import in_quartiles, top_rows

STARTS = ("equal", "gentle", "informed", "advised")
ADVISED = ("informed", "advised")  # those that ask `MultiView`
N_ADVISERS = 5
ADVICE = 1 << 20  # number of the round whose random numbers are the advisers'
# The share of the way that a round goes from the trust before it to its own. In the papers it goes
# all of the way. A detector whose ranking swings settles at a slower pace, and advice would be
# forgotten at a fast one (benchmarks/settle_study.py).
PACE = {"gentle": 0.25, "advised": 0.5}
# Rounds of an informed start: equal trust, the advisers', its own. Those after it walk back to
# where the papers' start ends, or swing (benchmarks/hybrid_rounds.py).
INFORMED_ROUNDS = 3
OPINION = 0.1  # the share of the rows, the oddest in the advisers' eyes, on which they are compared


@dataclass(frozen=True, eq=False)
class Course:
    """What decides how far each row is trusted in the coming round.

    Parameters
    ----------
    start : {"equal", "gentle", "informed", "advised"}
        How the rounds begin and go on; `IADC` says what each means.
    prior : ndarray of shape (n,)
        What counts in every round besides what is learnt.
    said : ndarray of shape (n,)
        The advisers' scores; empty where nobody was asked.
    """

    start: str
    prior: Scores
    said: Scores = field(default_factory=lambda: np.empty(0))

    def trust(self, history: History) -> Scores:
        """Return what was learnt so far about the trust in each row, the prior left out."""
        if self.start == "informed" and len(history) == 1:
            return history.trust_by(self.said)
        if self.start not in PACE:
            return history.next_weights(len(self.prior))
        w, pace = np.ones(len(self.prior)), PACE[self.start]
        for line in history:
            w = w + pace * (history.trust_by(self._joined(line.scores)) - w)
        return w

    def judge(self, history: History) -> None:
        """End the rounds of an informed start, if doubt in rows does harm or after the third.

        The first round trusts all rows the same, the second goes by what the advisers say. If the
        second agrees less with them than the first does, the detector does not learn from trust
        what its advisers mean by it, and the first is kept. Otherwise a third round goes by the
        scores of the second, and is kept.
        """
        if self.start == "informed" and len(history) > 1:
            oddest = top_rows(self.said, OPINION)
            before, after = (auroc(oddest, line.scores) for line in history[:2])
            if after < before:
                history.reason = "harm"
            elif len(history) == INFORMED_ROUNDS:
                history.reason = "heard"

    def _joined(self, scores: Scores) -> Scores:
        """Return the scores of a round, the advisers' added on the same scale."""
        if self.start != "advised":
            return scores
        return in_quartiles(scores) + in_quartiles(self.said)


def course_of(start: str, data: Data, history: History, prior: Scores, entropy: int) -> Course:
    """Return the course of a fit; the advisers are asked if the start needs them."""
    if start not in ADVISED:
        return Course(start, prior)
    said = advice(data, prior, entropy)
    counts = prior * history.trust_by(said) if start == "advised" else prior
    return Course(start, counts, said)


def advice(data: Data, prior: Scores, entropy: int) -> Scores:
    """Return the scores that members of `MultiView`, told the prior trust, give to the rows."""
    view = MultiView()
    with single_thread():
        prepared = view._prepare(data)
    setup = Setup(view, prepared, data, N_ADVISERS, resample=False)
    return train_round(setup, [Turn(entropy, ADVICE, prior)])[1][0].scores
