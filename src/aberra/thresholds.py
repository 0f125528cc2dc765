"""Thresholds on the anomaly score that need no labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def robust_z(scores: NDArray[np.float64], z: float = 3.0) -> float:
    """Return the score that lies `z` robust standard deviations above the median.

    The spread is taken from the lower half (median minus lower quartile), which contamination,
    being odd and so high, cannot widen.
    """
    middle = float(np.median(scores))
    spread = (middle - float(np.quantile(scores, 0.25))) / 0.6745
    return middle + z * spread
