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
def pooled_nats(
    views: Array,
    middle: Array,
    scale: Array,
    skew: float,
    table: Array,
    counts: Array,
    lifts: Array,
) -> Array:
    """Return the mean of a row's nats over the views, lifted by the views that may lift it.

    The nats of a view are what `table` says about its normal deviate. The table starts at -8 and
    has 64 entries a unit; beyond its end the last entry counts. `counts` are the views' parts in
    the mean; a view above the mean adds its part in `lifts` of what it is above.
    """
    m, n = views.shape
    last = len(table) - 2
    found = np.zeros(n)
    own = np.zeros(m)
    for i in range(n):
        mean = 0.0
        for v in range(m):
            x = 1 + skew * (views[v, i] - middle[v]) / scale[v]
            place = (np.log(max(x, 1e-12)) / skew + 8.0) * 64.0
            if np.isnan(place):  # would be no place in the table
                own[v] = np.nan
            else:
                place = min(max(place, 0.0), float(last))
                k = int(place)
                own[v] = table[k] + (place - k) * (table[k + 1] - table[k])
            mean += counts[v] * own[v]
        found[i] = mean
        for v in range(m):
            if lifts[v] > 0 and own[v] > mean:
                found[i] += lifts[v] * (own[v] - mean)
    return found
