"""Quantiles of weighted values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def quantiles(values: NDArray[np.floating], weights: Array, shares: Sequence[float]) -> Array:
    """Return the values below which these shares of the weight lie, with straight lines between."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    places = (total - 0.5 * weights[order]) / total[-1]
    return np.interp(shares, places, values[order].astype(np.float64))
