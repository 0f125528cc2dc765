"""A number for every row that looks random but follows from the row's position and a seed.

Whoever draws rows by these keys draws the same rows, however the table is cut into blocks and
whoever reads them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]
Positions = NDArray[np.int64]

STEP = np.uint64(0x9E3779B97F4A7C15)
MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
SAFETY = 10.0  # deviations: fewer rows than wanted pass the bound once in 10^23 tables


def row_keys(positions: Positions, seed: int = 0) -> Keys:
    """Return a 64-bit key for each position (splitmix64; Steele, Lea and Flood 2014).

    Parameters
    ----------
    positions : ndarray of shape (n,)
        Positions in the whole table, from 0.
    seed : int, default 0
        Another seed gives keys that have nothing to do with these.

    Returns
    -------
    keys : ndarray of shape (n,), dtype uint64
        Evenly spread, and different for different positions.
    """
    origin = _mixed(np.full(1, seed % (1 << 64), np.uint64) + STEP)
    return _mixed((positions.astype(np.uint64) + np.uint64(1)) * STEP + origin)


def _mixed(z: Keys) -> Keys:
    z = (z ^ (z >> SHIFTS[0])) * MIX[0]
    z = (z ^ (z >> SHIFTS[1])) * MIX[1]
    return z ^ (z >> SHIFTS[2])


def key_bound(n: int, size: int) -> np.uint64:
    """Return a key that the `size` smallest of n keys do not exceed.

    A block then passes on hardly more rows than will be kept, instead of `size` rows itself.
    """
    share = min(1.0, (size + SAFETY * np.sqrt(size)) / max(n, 1))
    return np.uint64(min(int(share * 2.0**64), (1 << 64) - 1))
