"""How the values of one column are distributed, in a few numbers that can be added up.

Training chooses the points at which a distribution is looked at. Other rows are counted at the same
points, chunk by chunk, and chunks are added. So rows of any number can be compared with the
training data, although neither is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.declare import Shape

Counts = NDArray[np.int64]

MOST_LABELS = 64  # labels of a column of text that are counted one by one
HEAVY = 0.02  # share of rows that makes one value stand for itself
SHOWN = 5  # labels never seen before that are remembered


@dataclass(frozen=True)
class Numbers:
    """A distribution of numbers: how many lie below, and how many up to, each of some points.

    Parameters
    ----------
    points : ndarray of shape (q,)
        Rising values. In training they are quantiles, the smallest and the largest value included.
    below, upto : ndarray of shape (q,)
        How many values are smaller than each point, and how many are not larger.
    n : int
        How many values there are.
    lowest, highest : float
        The smallest and the largest value; NaN without any.
    """

    points: Annotated[NDArray[np.float64], Shape("q")]
    below: Annotated[Counts, Shape("q", dtype="int64")]
    upto: Annotated[Counts, Shape("q", dtype="int64")]
    n: int
    lowest: float
    highest: float

    @classmethod
    def of(cls, values: NDArray[np.float64], n_points: int) -> Self:
        """Return the distribution of training values, with points at their quantiles."""
        if not len(values):
            return cls._at(np.empty(0), values)
        levels = np.linspace(0, 1, n_points)
        quantiles = np.quantile(values, levels, method="inverted_cdf")
        return cls._at(np.unique(quantiles).astype(np.float64), values)

    def count(self, values: NDArray[np.float64]) -> Self:
        """Return the distribution of other values, at the same points."""
        return self._at(self.points, values)

    @classmethod
    def _at(cls, points: NDArray[np.float64], values: NDArray[np.float64]) -> Self:
        ordered = np.sort(values)
        ends = (float(ordered[0]), float(ordered[-1])) if len(ordered) else (np.nan, np.nan)
        below = np.searchsorted(ordered, points, side="left").astype(np.int64)
        upto = np.searchsorted(ordered, points, side="right").astype(np.int64)
        return cls(points, below, upto, len(ordered), *ends)

    def __add__(self, other: Self) -> Self:
        """Return the distribution of both together."""
        return replace(
            self,
            below=self.below + other.below,
            upto=self.upto + other.upto,
            n=self.n + other.n,
            lowest=float(np.fmin(self.lowest, other.lowest)),
            highest=float(np.fmax(self.highest, other.highest)),
        )

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of values below, and up to, each point: shape (2, q)."""
        return np.stack([self.below, self.upto]) / max(self.n, 1)

    def quantile(self, level: float) -> float:
        """Return about the value below which this share lies."""
        heavy = (self.upto - self.below > HEAVY * self.n) & (self.shares[1] >= level)
        if heavy.any() and self.shares[0][k := int(heavy.argmax())] < level:
            return float(self.points[k])  # many rows have this very value
        places = np.concatenate([[self.lowest], self.points, [self.highest]])
        levels = np.concatenate([[0.0], self.shares[1], [1.0]])
        inside = (places >= self.lowest) & (places <= self.highest)
        return float(np.interp(level, levels[inside], places[inside]))


@dataclass(frozen=True)
class Categories:
    """A distribution of labels: how often the most common ones occur, and all others together.

    Parameters
    ----------
    labels : list of str
        The labels of the training rows that are counted one by one, the most common first.
    counts : ndarray of shape (k,)
        How often each occurs.
    n_others : int
        Rows with another label.
    complete : bool
        Whether `labels` are all that the training rows had.
    others : list of str
        A few of the other labels; kept for new rows only.
    """

    labels: list[str]
    counts: Annotated[Counts, Shape("k", dtype="int64")]
    n_others: int
    complete: bool
    others: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, labels: pd.Series[Any]) -> Self:
        """Return the distribution of the labels of training rows."""
        found = labels.value_counts()
        counts = np.asarray(found, np.int64)
        order = sorted(range(len(found)), key=lambda k: (-counts[k], str(found.index[k])))
        kept = order[:MOST_LABELS]
        names = [str(found.index[k]) for k in kept]
        rest = int(counts.sum() - counts[kept].sum())
        return cls(names, counts[kept], rest, len(kept) == len(order))

    def count(self, labels: pd.Series[Any]) -> Self:
        """Return the distribution of other labels, counted in the same way."""
        found = labels.value_counts()
        known = np.asarray(found.reindex(self.labels, fill_value=0), np.int64)
        usual = set(self.labels)
        others = [str(label) for label in found.index if label not in usual]
        rest = int(found.sum() - known.sum())
        return replace(self, counts=known, n_others=rest, others=sorted(others)[:SHOWN])

    def __add__(self, other: Self) -> Self:
        """Return the distribution of both together."""
        return replace(
            self,
            counts=self.counts + other.counts,
            n_others=self.n_others + other.n_others,
            others=sorted({*self.others, *other.others})[:SHOWN],
        )

    @property
    def n(self) -> int:
        """How many rows have a label."""
        return int(self.counts.sum()) + self.n_others

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each label, and of all others: shape (k + 1,)."""
        return np.append(self.counts, self.n_others) / max(self.n, 1)
