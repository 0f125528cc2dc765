"""The loop behind growing a mask by a ball: exact, and much faster than a map of all distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled

Mask = NDArray[np.bool_]


@compiled
def within(mask: Mask, most: int) -> Mask:
    """Return which voxels lie within a distance of a mask's, whose square is `most` voxels.

    Squared distances are sums over the axes, so they are found along one axis after the other
    (Saito and Toriwaki, 1994); here only as far as the ball reaches.
    """
    reach = int(np.sqrt(most))
    along = np.full(mask.shape, most + 1, np.int32)
    for x in range(mask.shape[0]):
        for y in range(mask.shape[1]):
            _along_a_line(mask[x, y], reach, along[x, y])
    across = np.ascontiguousarray(_across(along, reach).transpose(1, 0, 2))
    return _across(across, reach).transpose(1, 0, 2) <= most


@compiled
def _across(squares: NDArray[np.int32], reach: int) -> NDArray[np.int32]:
    """Return squared distances that may go by way of another line along the second axis."""
    lowest = squares.copy()
    for x in range(squares.shape[0]):
        for y in range(squares.shape[1]):
            for j in range(max(0, y - reach), min(squares.shape[1], y + reach + 1)):
                _lower(lowest[x, y], squares[x, j], (j - y) ** 2)
    return lowest


@compiled
def _along_a_line(line: Mask, reach: int, squares: NDArray[np.int32]) -> None:
    """Write the squared steps to the next voxel of the mask in this line, where one is in reach."""
    n = len(line)
    last = -n - reach
    for z in range(n):
        if line[z]:
            last = z
        if z - last <= reach:
            squares[z] = (z - last) ** 2
    last = 2 * n + reach
    for z in range(n - 1, -1, -1):
        if line[z]:
            last = z
        if last - z <= reach:
            squares[z] = min(squares[z], (last - z) ** 2)


@compiled
def _lower(lowest: NDArray[np.int32], other: NDArray[np.int32], steps: int) -> None:
    """Lower squared distances to those by way of a line so many steps squared away."""
    for z in range(len(lowest)):
        lowest[z] = min(lowest[z], other[z] + np.int32(steps))
