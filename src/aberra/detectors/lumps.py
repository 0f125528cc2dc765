"""Columns that mostly hold one of a few values: where a normal column would have each of them.

A flag that one row in ten carries has no shape. Measured in deviations its rarer value is far out,
a single cut parts it from the others, and once its rows are left out the column no longer varies:
views that go by distances and cuts would call every tenth row odd, and a row that really is odd
would drown among them. So a value lies where a normal column with the same shares has it: the rarer
value of such a flag in the upper tenth. While a member learns, rows of one value are spread over
their part of the normal, as the rows of any other column are; when rows are scored, all rows of a
value lie in the middle of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from aberra.declare import Shape
from aberra.detectors.scaling import NO_SPAN

Array = NDArray[np.float64]

MOST_VALUES = 12  # counts and amounts have more, and how far out they lie says something
MOSTLY = 0.5  # share of the rows that hold the commonest value
RARE, FEW = 0.01, 5  # a value of a smaller share, or of fewer rows,
FURTHER = 3.0  # and so many times further out than the others, is an error
EDGE = 1e-4  # of a value's part of the normal, on either side, stays free


@dataclass(frozen=True)
class Lump:
    """A column of few values, and the share of the rows that holds each of them.

    Parameters
    ----------
    column : int
        Among the columns that vary.
    values : ndarray of shape (q,)
        In rising order, as scaled.
    shares : ndarray of shape (q,)
    """

    column: int
    values: Annotated[Array, Shape("q")]
    shares: Annotated[Array, Shape("q")]

    def __post_init__(self) -> None:
        rising = len(self.values) > 1 and bool((np.diff(self.values) > 0).all())
        if not rising or not np.isfinite(self.values[[0, -1]]).all():
            raise ValueError("the values of a column are not in order")
        if not ((self.shares > 0).all() and abs(self.shares.sum() - 1) < 1e-6):
            raise ValueError("the shares of a column's values do not add up to 1")

    @property
    def places(self) -> Array:
        """Where each value lies: in the middle of its part of a normal."""
        places: Array = ndtri(np.cumsum(self.shares) - self.shares / 2)
        return places

    @property
    def slope(self) -> float:
        """How far a unit beyond the known values leads."""
        places = self.places
        return float((places[-1] - places[0]) / (self.values[-1] - self.values[0]))

    def settled(self, x: Array) -> Array:
        """Return where cells lie; others than the known values on a line between or beyond."""
        beyond = x - np.clip(x, self.values[0], self.values[-1])
        place: Array = np.interp(x, self.values, self.places) + self.slope * beyond
        return place

    def spread(self, x: Array, generator: np.random.Generator) -> Array:
        """Return the same of training rows, those of one value spread over its part."""
        own = np.minimum(np.searchsorted(self.values, x), len(self.values) - 1)
        start = np.cumsum(self.shares) - self.shares
        within = self.shares[own] * generator.uniform(EDGE, 1 - EDGE, len(x))
        return np.where(self.values[own] == x, ndtri(start[own] + within), self.settled(x))


def lumps(scaled: Array) -> list[Lump]:
    """Find the columns of few values, most rows holding one of them."""
    found = []
    for j, x in enumerate(scaled.T):
        values, counts = np.unique(x, return_counts=True)
        if 2 <= len(values) <= MOST_VALUES and _is_lumped(values, counts):
            found.append(Lump(j, values, counts / counts.sum()))
    return found


def put_in_place(
    scaled: Array, found: list[Lump], generator: np.random.Generator | None = None
) -> Array:
    """Put the cells of lumped columns where a normal has them, in the array that is given.

    With a generator the rows of one value are spread, as members learn from them.
    """
    for lump in found:
        x = scaled[:, lump.column]
        x[:] = lump.settled(x) if generator is None else lump.spread(x, generator)
    return scaled


def _is_lumped(values: Array, counts: NDArray[Any]) -> bool:
    """Say whether one value is held by most, and no rare one lies much further out than others."""
    common = int(counts.argmax())
    if counts[common] < MOSTLY * counts.sum() or values[-1] - values[0] <= NO_SPAN:
        return False
    away = np.abs(np.delete(values, common) - values[common])
    rare = np.delete(counts, common) < max(RARE * counts.sum(), FEW)
    usual = away.min() if rare.all() else away[~rare].max()
    return bool(away.max() <= FURTHER * usual)
