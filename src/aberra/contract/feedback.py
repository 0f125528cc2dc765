"""What reviewers said about some rows, and how it changes the scores of all rows like them.

The score of a model is taken as what is known beforehand, and the marks as measurements of how far
it is off. Between them stands a Gaussian process: near a marked row, and in the direction in which
it is odd, scores move towards what the reviewer said; far from all marks they stay as they were.
Nothing is trained again, and a mark can be added at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.contract.members import Scores
from aberra.declare import Shape
from aberra.errors import DataError

NEAR = 0.1  # squared distance, per column, at which a mark has lost a good third of its influence
DIRECTION = 0.2  # how much the direction of oddness counts, beside nearness
DOUBT = 0.1  # variance of what a reviewer says, against that of the scores themselves
LEAST = 1.0  # a mark moves its row by at least this much, even if the score agrees already
ROWS_AT_A_TIME = 256  # few enough to stay close to the processor
LABELS = {"reject": 1, "accept": 0, "1": 1, "0": 0}

Matrix = NDArray[np.float64]


def checked_labels(labels: ArrayLike) -> NDArray[np.int64]:
    """Return 1 for rows that a reviewer rejects and 0 for those that are accepted."""
    given = np.asarray(labels).ravel().tolist()
    found = [LABELS.get(label, label) if isinstance(label, str) else label for label in given]
    odd = [label for label in found if label not in (0, 1)]
    if odd:
        raise DataError(
            f"A mark is {odd[0]!r}. Give 1 or 'reject' for an anomaly and 0 or 'accept' for a row "
            "that is fine."
        )
    return np.array([int(label) for label in found], dtype=np.int64)


@dataclass(frozen=True)
class Feedback:
    """All marks so far, and what they were measured against.

    Parameters
    ----------
    rows : ndarray of shape (k, d)
        The marked rows, as the detector sees them.
    labels : ndarray of shape (k,)
        1 for a rejected row (an anomaly), 0 for an accepted one.
    scores : ndarray of shape (k,)
        What the model had said about them by itself.
    calls : ndarray of shape (k,)
        In which call of `feedback`, counted from 1, each mark came.
    middle, spread : ndarray of shape (d,)
        The median of each column, and the unit in which distances from it are measured.
    usual : ndarray of shape (3,)
        The median of the training scores, their upper quartile, and nearly the largest (99.9 %).
    """

    rows: Annotated[Matrix, Shape("k", "D")]
    labels: Annotated[NDArray[np.int64], Shape("k", dtype="int64")]
    scores: Annotated[Matrix, Shape("k")]
    calls: Annotated[NDArray[np.int64], Shape("k", dtype="int64")]
    middle: Annotated[Matrix, Shape("D")]
    spread: Annotated[Matrix, Shape("D")]
    usual: Annotated[Matrix, Shape(3)]

    @classmethod
    def empty(cls, middle: Matrix, spread: Matrix, usual: Matrix) -> Feedback:
        """Return feedback without marks."""
        none = np.empty(0, np.int64)
        return cls(np.empty((0, len(middle))), none, np.empty(0), none, middle, spread, usual)

    def with_marks(self, rows: Matrix, labels: NDArray[np.int64], scores: Scores) -> Feedback:
        """Return the feedback with more marks; a new mark of the same row replaces the old one."""
        call = int(self.calls.max(initial=0)) + 1
        again = (self.rows[:, None] == rows[None]).all(axis=2).any(axis=1)
        kept = ~again
        return Feedback(
            np.concatenate([self.rows[kept], rows]),
            np.concatenate([self.labels[kept], labels]),
            np.concatenate([self.scores[kept], scores]),
            np.concatenate([self.calls[kept], np.full(len(rows), call)]),
            self.middle,
            self.spread,
            self.usual,
        )

    def adjusted(self, scores: Scores, data: NDArray[Any]) -> Scores:
        """Return the scores of rows in the light of the marks; high is still odd.

        Sums run over the marks one by one, so a row's score does not depend on other rows.
        """
        moved = self._bent(scores)
        for start in range(0, len(data), ROWS_AT_A_TIME):
            block = slice(start, start + ROWS_AT_A_TIME)
            moved[block] += self._pulled(data[block])
        return self._unbent(moved)

    def weights(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return where the marked rows lie, in which direction they are odd, and their pulls."""
        return *self._marks, self._pulls

    def _pulled(self, data: Matrix) -> Scores:
        """Return how far all marks together pull at some rows."""
        places, directions = self._seen(data)
        total = np.zeros(len(data))
        for place, direction, pull in zip(*self._marks, self._pulls, strict=True):
            total += pull * _likeness(places, directions, place, direction)
        return total

    @cached_property
    def _marks(self) -> tuple[Matrix, Matrix]:
        return self._seen(self.rows)

    @cached_property
    def _pulls(self) -> Matrix:
        """How strongly each mark pulls at rows like it: the weights of the Gaussian process."""
        places, directions = self._marks
        pairs = zip(places, directions, strict=True)
        alike = np.stack([_likeness(places, directions, *pair) for pair in pairs])
        known = self._bent(self.scores)
        high, low = float(self._bent(self.usual[2:])[0]), 0.0
        off = np.where(
            self.labels == 1, np.maximum(LEAST, high - known), np.minimum(-LEAST, low - known)
        )
        return np.asarray(np.linalg.solve(alike + DOUBT * np.eye(len(off)), off))

    def _seen(self, data: NDArray[Any]) -> tuple[Matrix, Matrix]:
        """Return where rows lie, far values drawn closer, and in which direction they are odd."""
        places = np.arcsinh((data.astype(np.float64) - self.middle) / self.spread)
        places[np.isnan(places)] = 0.0  # a gap counts as the median
        directions = np.concatenate([np.maximum(places, 0), np.maximum(-places, 0)], axis=1)
        length = np.sqrt((directions**2).sum(axis=1, keepdims=True))
        return places, directions / np.maximum(length, 1e-9)

    def _bent(self, scores: Scores) -> Scores:
        """Return scores on a scale on which the usual ones spread by 1 and far ones lie closer."""
        return np.asarray(np.arcsinh((scores - self.usual[0]) / self.unit))

    def _unbent(self, values: Scores) -> Scores:
        return np.asarray(self.usual[0] + self.unit * np.sinh(values))

    @property
    def unit(self) -> float:
        """How far the usual scores spread."""
        return max(float(self.usual[1] - self.usual[0]), 1e-12)


def _likeness(places: Matrix, directions: Matrix, place: Matrix, direction: Matrix) -> Matrix:
    """Return how like one marked row other rows are."""
    apart = ((places - place) ** 2).mean(axis=1)
    return np.asarray(
        np.exp(-apart / (2 * NEAR)) + DIRECTION * (directions * direction).sum(axis=1)
    )
