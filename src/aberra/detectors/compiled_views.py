"""The loops over all cells and all views that scoring a row takes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled

Array = NDArray[np.float64]
Single = NDArray[np.float32]

OUTSIDE = 1 + 1e-6  # rounding puts the largest training value a hair beyond the last bin


@compiled
def mean_surprise(
    rows: Single, start: Single, per_unit: Single, nats: Single, found: Array
) -> None:
    """Write the mean over the columns of the nats of each cell's bin."""
    n, d = rows.shape
    n_bins = nats.shape[1] - 2
    for i in range(n):
        total = 0.0
        for j in range(d):
            place = (rows[i, j] - start[j]) * per_unit[j]
            k = int(min(max(place, np.float32(0.0)), np.float32(n_bins - 1))) + 1
            if place < 0 or rows[i, j] < start[j]:
                k = 0
            elif place > n_bins * OUTSIDE or (per_unit[j] == 0 and rows[i, j] > start[j]):
                k = n_bins + 1
            total += nats[j, k]
        found[i] = total / d


@compiled
def mean_nats(views: Array, middle: Array, scale: Array, skew: float, table: Array) -> Array:
    """Return the mean over the views of what `table` says about a row's normal deviate.

    The table starts at -8 and has 64 entries a unit; beyond its end the last entry counts.
    """
    m, n = views.shape
    last = len(table) - 2
    found = np.zeros(n)
    for v in range(m):
        for i in range(n):
            x = 1 + skew * (views[v, i] - middle[v]) / scale[v]
            place = (np.log(max(x, 1e-12)) / skew + 8.0) * 64.0
            if not place >= 0.0:  # NaN, too, which would be no place in the table
                place = 0.0 if place < 0.0 else np.nan
            if np.isnan(place):
                found[i] = np.nan
                continue
            place = min(place, float(last))
            k = int(place)
            found[i] += table[k] + (place - k) * (table[k + 1] - table[k])
    return found / m
