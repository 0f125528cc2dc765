"""The scores of any number of rows in a few hundred kilobytes that can be added up.

Scores are counted in bins, and the highest are kept as they are. A bin is named by the leading bits
of a score's distance from an origin, so that bins are fine near the origin and wide far away, and
need not know the range beforehand. Counts are whole numbers: sums do not depend on their order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from aberra.data.blocks.keys import Positions

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FRACTION_BITS = 11  # of a score's distance from the origin: exact to 1 in 2048
SHIFT = 52 - FRACTION_BITS
MOST_TOP = 4096


def _no_integers() -> Integers:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class ScoreSketch:
    """Scores, counted: `ScoreSketch(origin)` is empty, `add` takes a block, `+` combines two.

    Parameters
    ----------
    origin : float
        Where bins are finest, such as the median of some of the scores.
    bins, counts : ndarray of shape (q,)
        Bins that hold anything, rising, and how many scores each of them has.
    top, positions : ndarray of shape (t,)
        The highest scores, falling, and where in the table they are; of equal ones the first.
    lowest : float, default infinity
        The smallest score.
    """

    origin: float
    bins: Integers = field(default_factory=_no_integers)
    counts: Integers = field(default_factory=_no_integers)
    top: Array = field(default_factory=lambda: np.empty(0))
    positions: Positions = field(default_factory=_no_integers)
    lowest: float = np.inf

    @property
    def n(self) -> int:
        """How many scores were counted."""
        return int(self.counts.sum())

    def add(self, start: int, scores: Array) -> Self:
        """Return the sketch with the scores of rows whose first one is at position `start`."""
        if not len(scores):
            return self
        bins, counts = np.unique(_bin_of(scores - self.origin), return_counts=True)
        top, positions = _highest(scores, np.arange(start, start + len(scores)))
        held = (bins, counts.astype(np.int64), top, positions, float(scores.min()))
        return self + type(self)(self.origin, *held)

    def __add__(self, other: Self) -> Self:
        """Return the scores of both together."""
        bins, place = np.unique(np.concatenate([self.bins, other.bins]), return_inverse=True)
        counts = np.zeros(len(bins), np.int64)
        np.add.at(counts, place, np.concatenate([self.counts, other.counts]))
        top, positions = _highest(
            np.concatenate([self.top, other.top]), np.concatenate([self.positions, other.positions])
        )
        lowest = min(self.lowest, other.lowest)
        return replace(self, bins=bins, counts=counts, top=top, positions=positions, lowest=lowest)

    def quantiles(self, levels: Array) -> Array:
        """Return about the scores below which these shares lie; the two ends are exact."""
        ranks = np.asarray(levels) * self.n
        ends = np.cumsum(self.counts)
        k = np.minimum(np.searchsorted(ends, ranks, side="left"), len(ends) - 1)
        inside = (ranks - (ends[k] - self.counts[k])) / self.counts[k]
        low, high = self.edges()
        return np.clip(low[k] + inside * (high[k] - low[k]), self.lowest, self.top[0])

    def evenly(self, n: int) -> Array:
        """Return n scores that stand for all: evenly spaced quantiles."""
        return self.quantiles((np.arange(min(n, self.n)) + 0.5) / min(n, self.n))

    def edges(self) -> tuple[Array, Array]:
        """Return the lower and upper edge of each bin that holds anything."""
        size = np.abs(self.bins)
        near, far = _value(size), _value(size + 1)
        below, zero = self.bins < 0, self.bins == 0
        low = np.where(zero | below, -far, near)
        return self.origin + low, self.origin + np.where(below, -near, far)

    def falling(self) -> tuple[Array, Integers]:
        """Return scores that fall, and how many rows score at least as high as each.

        The highest are scores as they are, the others are lower edges of bins.
        """
        low, _ = self.edges()
        at_least = np.cumsum(self.counts[::-1])
        below = at_least > len(self.top)  # a bin that also holds others than the highest
        values = np.concatenate([self.top, low[::-1][below]])
        ranks = np.arange(1, len(self.top) + 1)
        return values, np.concatenate([ranks, at_least[below]])


def _bin_of(distance: Array) -> Integers:
    size = np.abs(distance).view(np.int64) >> SHIFT
    return np.where(distance < 0, -size, size)


def _value(size: Integers) -> Array:
    return (size << SHIFT).view(np.float64)


def _highest(scores: Array, positions: Positions) -> tuple[Array, Positions]:
    if len(scores) > 4 * MOST_TOP:  # most cannot be among them, so they need no sorting
        least = np.partition(scores, len(scores) - MOST_TOP)[len(scores) - MOST_TOP]
        scores, positions = scores[scores >= least], positions[scores >= least]
    order = np.lexsort((positions, -scores))[:MOST_TOP]
    return scores[order], positions[order].astype(np.int64)
