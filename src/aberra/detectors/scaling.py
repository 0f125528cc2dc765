"""Bring raw rows to the range that networks expect, one tile at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

NO_SPREAD = 1e-9  # of a column's deviation: its quartiles coincide, up to rounding
NO_SPAN = 1e-200  # a column that varies by less is constant: its inverse would overflow


@dataclass(frozen=True)
class Scaling:
    """An affine map per column (or one for all pixels): (x - shift) * factor."""

    shift: Annotated[NDArray[np.float64], Shape("k")]
    factor: Annotated[NDArray[np.float64], Shape("k")]

    def __call__(self, rows: NDArray[np.generic]) -> NDArray[np.float64]:
        """Scale rows in double precision."""
        # Always in C order: BLAS rounds other layouts in another way.
        scaled = np.subtract(rows, self.shift, dtype=np.float64, order="C")
        scaled *= self.factor
        return scaled

    def copy(self, data: NDArray[np.generic], tile: int = 65536) -> NDArray[np.float32]:
        """Return the one scaled single-precision copy that training needs."""
        scaled = np.empty(data.shape, dtype=np.float32)
        for start in range(0, len(data), tile):
            scaled[start : start + tile] = self(data[start : start + tile])
        return scaled


def min_max(data: NDArray[np.generic]) -> Scaling:
    """Map every column to [0, 1]; a constant column becomes 0.

    Standardising first, as the Deep-SAD code does, changes nothing: the second map undoes the
    first, and the result is the same up to rounding.
    """
    low = data.min(axis=0).astype(np.float64)
    return Scaling(low, _inverse(data.max(axis=0).astype(np.float64) - low))


def standard(data: NDArray[np.float64], weights: NDArray[np.float64]) -> Scaling:
    """Give every column mean 0 and variance 1, counted by weight; a constant column becomes 0."""
    share = weights / weights.sum()
    mean = share @ data
    return Scaling(mean, _inverse(np.sqrt(share @ np.square(data - mean))))


def robust(data: NDArray[Any]) -> Scaling:
    """Give every column median 0 and the quartiles of a standard normal.

    Where the quartiles coincide, as in a column that is mostly one value, the standard deviation
    takes their place. Gaps do not count.
    """
    numbers = data.astype(np.uint8) if data.dtype == bool else data
    gaps = numbers.dtype.kind == "f" and bool(np.isnan(numbers).any())
    percentile, std = (np.nanpercentile, np.nanstd) if gaps else (np.percentile, np.std)
    low, middle, high = percentile(numbers, (25, 50, 75), axis=0)
    # Where there are gaps, NumPy squares in the precision that it is given, and 1e20 overflows.
    exact = numbers.astype(np.float64, copy=False) if gaps else numbers
    spread, deviation = (high - low) / 1.349, std(exact, axis=0, dtype=np.float64)
    deviation[deviation <= 1e-12 * np.abs(middle)] = 0.0  # a constant column, up to rounding
    centre = np.ascontiguousarray(middle)
    return Scaling(centre, _inverse(np.where(spread > NO_SPREAD * deviation, spread, deviation)))


def pixels(data: NDArray[np.generic]) -> Scaling:
    """Map images to [0, 1] with one factor: bytes by 255, others by their own range."""
    if data.dtype == np.uint8:
        return Scaling(np.zeros(1), np.full(1, 1 / 255))
    low, high = float(data.min()), float(data.max())
    if low >= 0.0 and high <= 1.0:
        return Scaling(np.zeros(1), np.ones(1))
    return Scaling(np.full(1, low), _inverse(np.full(1, high - low)))


def _inverse(span: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.divide(1.0, span, out=np.ones_like(span), where=span > NO_SPAN)
