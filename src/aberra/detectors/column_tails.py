"""How far out in its column each cell of a row lies, as a rank; averaged over the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

Array = NDArray[np.float64]
Single = NDArray[np.float32]

N_BINS = 256


@dataclass(frozen=True)
class ColumnTails:
    """A histogram of every column; each bin has the surprise of lying there or further out."""

    start: Annotated[Single, Shape("V", dtype="float32")]  # of the first bin
    per_unit: Annotated[Single, Shape("V", dtype="float32")]  # bins
    nats: Annotated[Single, Shape("V", N_BINS + 2, dtype="float32")]  # outside on either side, too

    def __post_init__(self) -> None:
        # Compiled code turns numbers into places of the table without another look.
        if not (np.isfinite(self.start).all() and np.isfinite(self.per_unit).all()):
            raise ValueError("the bins of a column are not finite")

    def oddness(self, rows: Single) -> Array:
        """Return the mean surprise of a row's cells."""
        from aberra.detectors.compiled_views import mean_surprise

        found = np.empty(len(rows))
        mean_surprise(rows, self.start, self.per_unit, self.nats, found)
        return found


def column_tails(rows: Single, trust: Array) -> ColumnTails:
    """Learn the distribution of every column from its rows, each counted by the trust in it.

    The surprise of a bin is minus the log of the share of rows in it or below, or in it or above,
    whichever is smaller. Values far out are tamed before, so that bins of one width will do.
    """
    start, end = rows.min(axis=0), rows.max(axis=0)
    span = (end - start).astype(np.float64)
    per_unit = np.divide(N_BINS, span, out=np.zeros_like(span), where=span > 0).astype(np.float32)
    nats = [_surprise(bins, trust) for bins in bins_of(rows, start, per_unit).T]
    return ColumnTails(start, per_unit, np.stack(nats).astype(np.float32))


def bins_of(rows: Single, start: Single, per_unit: Single) -> NDArray[np.int64]:
    """Return the bin of every cell that lies inside the histogram, from 1."""
    place = (rows - start) * per_unit
    return np.clip(place, 0, N_BINS - 1).astype(np.int64) + 1


def _surprise(bins: NDArray[np.int64], trust: Array) -> Array:
    counts = np.bincount(bins, trust, N_BINS + 2)
    below, above = np.cumsum(counts), np.cumsum(counts[::-1])[::-1]
    rarer = np.minimum(below, above)  # 0 in both bins outside
    total = trust.sum()
    found: Array = -np.log((rarer + 0.5) / (total + 0.5))
    return found
