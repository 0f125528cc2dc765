"""How high a map is, measured by what healthy scans show at the same depth and place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

# Shares of the healthy pixels that lie below the heights that are kept.
SHARES = np.array([0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.0])
DEEP = 10.0  # mm from one plane of places to the next
SIDE = 4  # places along a side of a slice
FEWEST = 200  # pixels that tell what is usual at a place; with fewer the whole plane tells
LEAST = 0.25  # of the usual deviation: calmer places do not make everything else odd

Maps = NDArray[np.float32]  # (n, h, w), one for each slice


@dataclass(frozen=True, eq=False)
class SliceMaps:
    """The map of one scan on its slices.

    Parameters
    ----------
    maps : ndarray of shape (n, h, w)
    brain : ndarray of bool, shape (n, h, w)
    below_top : ndarray of shape (n,)
        Millimetres below the top of the brain.
    """

    maps: Maps
    brain: NDArray[np.bool_]
    below_top: NDArray[np.float64]


@dataclass(frozen=True)
class HealthyHeights:
    """What is usual in healthy scans, place by place.

    Places lie on planes 10 mm apart, four by four on each; in between it is interpolated.

    Parameters
    ----------
    first : float
        Depth of the first plane, in mm below the top of the brain.
    table : nested list of shape (n_planes, 4, 4, 2 + 13)
        For each place the mean, the deviation and the heights below which `SHARES` of the healthy
        pixels around it lie.
    """

    first: float
    table: list[list[list[list[float]]]]

    @classmethod
    def of(cls, scans: Sequence[SliceMaps]) -> HealthyHeights:
        """Sum up the maps of healthy scans."""
        everything = np.concatenate([one.maps[one.brain] for one in scans])
        depths = np.concatenate([one.below_top for one in scans])
        planes = np.arange(depths.min(), depths.max() + DEEP, DEEP)
        table = np.array([_plane(scans, depth, everything) for depth in planes])
        usual = LEAST * np.median(table[..., 1])
        table[..., 1] = np.maximum(table[..., 1], max(usual, np.finfo(np.float32).tiny))
        return cls(float(planes[0]), table.tolist())

    def relative(self, maps: Maps, below_top: NDArray[np.float64]) -> tuple[Maps, Maps]:
        """Return maps as percentiles of healthy pixels at the same place, and as deviations.

        Parameters
        ----------
        maps : ndarray of shape (n, h, w)
        below_top : ndarray of shape (n,)
            Depth of each slice in mm.

        Returns
        -------
        percentile : ndarray of shape (n, h, w)
            100 means above everything that healthy scans show there.
        z : ndarray of shape (n, h, w)
            Height above the healthy mean, in healthy deviations.
        """
        at = self._at(maps.shape, below_top)
        mean, deviation, *levels = (
            ndimage.map_coordinates(values, at, np.float32, order=1, mode="nearest")
            for values in np.moveaxis(np.array(self.table), -1, 0)
        )
        return _percentiles(maps, np.stack(levels)), (maps - mean) / deviation

    def _at(
        self, shape: tuple[int, ...], below_top: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], ...]:
        """Return where each pixel lies on the lattice of places."""
        along = [(np.arange(n) + 0.5) / n * SIDE - 0.5 for n in shape[1:]]
        return tuple(np.meshgrid((below_top - self.first) / DEEP, *along, indexing="ij"))


def _plane(
    scans: Sequence[SliceMaps], depth: float, everything: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Return what is usual at the places of one plane: (4, 4, 15)."""
    near = [(one, np.abs(one.below_top - depth) < DEEP) for one in scans]
    pool = np.concatenate([one.maps[k][one.brain[k]] for one, k in near])
    spare = _usual(pool if len(pool) >= FEWEST else everything)
    places = np.empty((SIDE, SIDE, len(spare)))
    for row in range(SIDE):
        for column in range(SIDE):
            own = np.concatenate([_around(one, k, row, column) for one, k in near])
            places[row, column] = _usual(own) if len(own) >= FEWEST else spare
    return places


def _around(
    one: SliceMaps, slices: NDArray[np.bool_], row: int, column: int
) -> NDArray[np.float32]:
    """Return the brain's pixels at a place and half-way into its neighbours."""
    h, w = one.maps.shape[1:]
    window = (
        slices,
        slice(max(0, (2 * row - 1) * h // (2 * SIDE)), (2 * row + 3) * h // (2 * SIDE)),
        slice(max(0, (2 * column - 1) * w // (2 * SIDE)), (2 * column + 3) * w // (2 * SIDE)),
    )
    return np.asarray(one.maps[window][one.brain[window]])


def _usual(values: NDArray[np.float32]) -> NDArray[np.float64]:
    heights = np.quantile(values.astype(np.float64), SHARES)
    return np.concatenate([[values.mean(dtype=np.float64), values.std(dtype=np.float64)], heights])


def _percentiles(maps: Maps, levels: NDArray[np.float32]) -> Maps:
    """Return where heights lie among levels (13, n, h, w), in per cent."""
    k = np.clip((levels <= maps).sum(axis=0) - 1, 0, len(SHARES) - 2)
    low, high = (np.take_along_axis(levels, k[None] + up, axis=0)[0] for up in (0, 1))
    part = np.clip((maps - low) / np.maximum(high - low, np.finfo(np.float32).tiny), 0, 1)
    return np.asarray(100 * (SHARES[k] + part * np.diff(SHARES)[k]), np.float32)
