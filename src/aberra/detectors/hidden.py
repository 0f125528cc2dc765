"""Neighbours of a row while one of its cells after the other is hidden, in compiled loops."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled

Array = NDArray[np.float64]


def hidden_neighbour_distance(x: Array, other: Array, landmarks: Array, k: int) -> Array:
    """Return the distance to the k-th nearest landmark, (n, d), each cell in turn as in `other`.

    Moving cell j from x to y adds (y - x) (x + y - 2 l) to the square of a distance.

    Parameters
    ----------
    x : (n, d)
    other : (1, d)
    landmarks : (s, d)
    k : int
    """
    squares = np.square(x).sum(axis=1, keepdims=True) + np.square(landmarks).sum(axis=1)
    squares -= 2 * x @ landmarks.T
    twice = np.ascontiguousarray(2 * landmarks.T)
    nearest = np.empty(x.shape)
    _kth_smallest(squares, x + other, other - x, twice, min(k, len(landmarks)), nearest)
    return np.sqrt(np.maximum(nearest, 0.0))


@compiled
def _kth_smallest(
    squares: Array, total: Array, step: Array, twice: Array, k: int, nearest: Array
) -> None:
    n, s = squares.shape
    moved, best = np.empty(s), np.empty(k)  # the k smallest so far, sorted
    for i in range(n):
        for j in range(step.shape[1]):
            for m in range(s):
                moved[m] = squares[i, m] + step[i, j] * (total[i, j] - twice[j, m])
            best[:] = np.inf
            for m in range(s):
                if moved[m] < best[k - 1]:
                    place = k - 1
                    while place > 0 and best[place - 1] > moved[m]:
                        best[place] = best[place - 1]
                        place -= 1
                    best[place] = moved[m]
            nearest[i, j] = best[k - 1]
