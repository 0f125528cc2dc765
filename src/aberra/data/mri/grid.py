"""From the grid of a scan to that of a model's slices, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from aberra.data.mri.volume import Affine, Volume, inverse

FWHM = 2.0 * np.sqrt(2.0 * np.log(2.0))  # width of a Gaussian at half its height, in sigmas


@dataclass(frozen=True, eq=False)
class SliceGrid:
    """Where the slices of one scan lie.

    Slices are axial: the first is the topmost, rows run from front to back, columns from left to
    right.

    Parameters
    ----------
    affine : ndarray of shape (4, 4)
        From (slice, row, column) to millimetres right, front, top.
    shape : tuple (n, h, w)
    below_top : ndarray of shape (n,)
        Millimetres below the top of the brain.
    """

    affine: Affine
    shape: tuple[int, int, int]
    below_top: NDArray[np.float64]


def axial_grid(
    below_top: NDArray[np.float64],
    middle: NDArray[np.float64],
    top: float,
    step: float,
    field: float,
    size: int,
) -> SliceGrid:
    """Return slices `step` apart, `size` pixels on `field` mm, centred on `middle`."""
    pixel = field / size
    affine = np.zeros((4, 4))
    affine[2, 0], affine[1, 1], affine[0, 2] = -step, -pixel, pixel
    half = pixel * (size - 1) / 2.0
    affine[:, 3] = middle[0] - half, middle[1] + half, top - below_top[0], 1.0
    return SliceGrid(affine, (len(below_top), size, size), below_top)


def resample(
    array: NDArray[Any],
    to_array: Affine,
    shape: tuple[int, ...],
    mode: Literal["constant", "nearest"] = "constant",
    fill: float = 0.0,
) -> NDArray[np.float32]:
    """Sample an array on another grid, linearly.

    Where the other grid is coarser, the array is blurred first to its voxel size, so that thin
    things are averaged and not skipped.

    Parameters
    ----------
    array : ndarray of three dimensions
    to_array : ndarray of shape (4, 4)
        From an index of the other grid to an index of `array`.
    shape : tuple of int
        Of the other grid.
    mode : {"constant", "nearest"}
        What lies beyond the array: `fill`, or the values at its faces.
    fill : float, default=0.0

    Returns
    -------
    sampled : ndarray of shape `shape`, float32
    """
    steps = np.abs(to_array[:3, :3]).max(axis=1)  # voxels of `array` per step of the other grid
    sigmas = np.sqrt(np.maximum(steps**2 - 1.0, 0.0)) / FWHM
    source = np.asarray(array, np.float32)
    if sigmas.max() > 0.05:
        source = ndimage.gaussian_filter(source, sigmas, mode="nearest", truncate=3.0)
    return np.asarray(
        ndimage.affine_transform(
            source,
            to_array[:3, :3],
            to_array[:3, 3],
            output_shape=shape,
            order=1,
            mode="grid-constant" if mode == "constant" else mode,
            cval=fill,
        )
    )


def cut(volume: Volume, grid: SliceGrid, fill: float) -> NDArray[np.float32]:
    """Return the slices of a scan, shape (n, h, w), in its own intensities."""
    return resample(volume.array, inverse(volume.anatomy) @ grid.affine, grid.shape, fill=fill)


def put_back(maps: NDArray[Any], grid: SliceGrid, volume: Volume) -> NDArray[np.float32]:
    """Return values on slices, shape (n, h, w), as values on the voxels of the scan.

    Voxels between slices are interpolated; voxels outside the slices get 0.
    """
    to_grid = inverse(grid.affine) @ volume.anatomy
    values = resample(maps, to_grid, volume.array.shape, mode="nearest")
    values[~_covered(to_grid, grid.shape, volume.array.shape)] = 0.0
    return values


def covered(grid: SliceGrid, volume: Volume) -> NDArray[np.bool_]:
    """Say for each voxel of a scan whether it lies on a slice, or within half a step of one."""
    return _covered(inverse(grid.affine) @ volume.anatomy, grid.shape, volume.array.shape)


def _covered(
    to_grid: Affine, grid: tuple[int, int, int], shape: tuple[int, ...]
) -> NDArray[np.bool_]:
    i, j, k = np.ogrid[tuple(slice(n) for n in shape)]
    inside = np.ones(shape, dtype=np.bool_)
    for row, n in zip(to_grid.astype(np.float32), grid, strict=False):  # the fourth row is 0 0 0 1
        index = row[0] * i + row[1] * j + (row[2] * k + row[3])
        inside &= (index >= -0.5) & (index <= n - 0.5)
    return inside
