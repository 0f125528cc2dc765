"""What a model file keeps of a round on a long table: the oddest rows, and some of all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Scores
from aberra.declare import Shape

MOST_ROWS = 10_000  # up to so many, all rows are kept
ODDEST, OTHERS = 100, 4000
MOST_PLACES = 1_000_000  # in a sorted list of scores that is made of a sample


@dataclass(frozen=True, eq=False)
class Sampled:
    """Which rows of a long table a round still knows about.

    Parameters
    ----------
    n_rows : int
        Rows that trained.
    n_low : int
        How many of all these had low trust after the round.
    rows : ndarray of shape (k,)
        Positions of the rows that are kept, from 0.
    ranks : ndarray of shape (k,)
        Their ranks among the scores of all rows, 0 for the lowest.
    trust : ndarray of shape (k,)
        The trust in them after the round.
    """

    n_rows: int
    n_low: int
    rows: Annotated[NDArray[np.int32], Shape("N", dtype="int32")]
    ranks: Annotated[NDArray[np.int32], Shape("N", dtype="int32")]
    trust: Annotated[NDArray[np.float32], Shape("N", dtype="float32")]

    def __post_init__(self) -> None:
        for places in (self.rows, self.ranks):
            if not len(places) or places.min() < 0 or places.max() >= self.n_rows:
                raise ValueError("a row that is kept is not one of the training rows")

    def every_score(self, scores: Scores) -> Scores:
        """Return about the scores of all rows, sorted, from those of the rows that are kept.

        The oddest hundred are exact, and so is every n/4000-th of the others.
        """
        order = np.argsort(self.ranks)
        places = np.linspace(0, self.n_rows - 1, min(self.n_rows, MOST_PLACES))
        return np.interp(places, self.ranks[order], scores[order])


def some_rows(scores: Scores) -> NDArray[np.int32]:
    """Return the rows that a file keeps: the oddest, and some at even distances in the ranking."""
    order = np.argsort(scores, kind="stable")
    even = np.linspace(0, len(order) - ODDEST - 1, OTHERS).astype(np.int64)
    chosen = np.concatenate([even, np.arange(len(order) - ODDEST, len(order))])
    return np.sort(order[chosen]).astype(np.int32)


def ranks_of(scores: Scores) -> NDArray[np.int32]:
    """Return the rank of every score, 0 for the lowest; ties in their order."""
    ranks = np.empty(len(scores), dtype=np.int32)
    ranks[np.argsort(scores, kind="stable")] = np.arange(len(scores))
    return ranks
