"""A scan and where it lies: voxels, world coordinates (mm, right-anterior-superior), directions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.errors import DataError

Affine = NDArray[np.float64]

MOST_VOXELS = 1 << 29  # of one scan: 812 a side
FINEST, COARSEST = 1e-3, 1e3  # mm between voxels
FARTHEST = 1e6  # mm between a voxel and the origin

# World axis and sign of each direction; the world runs to the right, to the front, to the top.
DIRECTIONS = {"R": (0, 1), "L": (0, -1), "A": (1, 1), "P": (1, -1), "S": (2, 1), "I": (2, -1)}


@dataclass(frozen=True, eq=False)
class Volume:
    """A scan that can be used: one three-dimensional array of numbers and its place in the world.

    Parameters
    ----------
    array : ndarray of shape (i, j, k)
        Intensities. Empty, constant, NaN or infinite ones are refused.
    affine : ndarray of shape (4, 4)
        From voxel to world: millimetres to the right, to the front, to the top.
    source : Path, optional
        The file or folder it was read from; error messages name it.
    axes : str, optional
        Where the three array axes really point, such as "SPR", if the header is known to be wrong.
        Slices are then cut by `axes`; maps are still written with `affine`, so that they open on
        top of the scan.
    space : int, default=1
        NIfTI's code of the world (1: the scanner's, 2: aligned, 3: Talairach, 4: MNI).

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.data.mri.volume import Volume
    >>> scan = Volume(np.arange(24.0).reshape(2, 3, 4), np.diag([-1.0, 1.0, 3.0, 1.0]))
    >>> scan.directions, scan.spacing.tolist()
    ('LAS', [1.0, 1.0, 3.0])
    >>> scan.to_world([1, 2, 3]).tolist()
    [-1.0, 2.0, 9.0]
    """

    array: NDArray[Any]
    affine: Affine
    source: Path | None = None
    axes: str | None = None
    space: int = 1

    def __post_init__(self) -> None:
        check_scan(self.array, self.where)
        check_affine(self.affine, self.where)
        if self.axes is not None:
            direction_matrix(self.axes)

    @property
    def where(self) -> str:
        """The source, as error messages name it."""
        return "The scan" if self.source is None else str(self.source)

    @property
    def spacing(self) -> NDArray[np.float64]:
        """Distance of neighbouring voxels along each array axis, in mm."""
        return np.asarray(np.linalg.norm(self.affine[:3, :3], axis=0))

    @property
    def directions(self) -> str:
        """Where the array axes point, such as "LAS": as stated by `axes`, else by the header."""
        return direction_letters(nearest_directions(self.anatomy))

    @property
    def anatomy(self) -> Affine:
        """From voxel to right-anterior-superior, with a wrong header put right by `axes`.

        The correction turns the world by right angles, so that an oblique scan stays oblique.
        """
        if self.axes is None:
            return self.affine
        turn = np.eye(4)
        turn[:3, :3] = direction_matrix(self.axes) @ nearest_directions(self.affine).T
        return np.asarray(turn @ self.affine)

    def to_world(self, voxels: ArrayLike) -> NDArray[np.float64]:
        """Return the world coordinates of voxels, shape (..., 3), as the header places them."""
        return apply_affine(self.affine, voxels)

    def to_voxels(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the voxel coordinates of world points, shape (..., 3)."""
        return apply_affine(inverse(self.affine), points)


def apply_affine(affine: Affine, points: ArrayLike) -> NDArray[np.float64]:
    """Return points of shape (..., 3) moved by a 4 x 4 matrix."""
    return np.asarray(np.asarray(points, np.float64) @ affine[:3, :3].T + affine[:3, 3])


def inverse(affine: Affine) -> Affine:
    """Return the matrix that leads back."""
    return np.asarray(np.linalg.inv(affine), np.float64)


def nearest_directions(affine: Affine) -> NDArray[np.float64]:
    """Return the world axis closest to each array axis, as the columns of a signed permutation."""
    cosines = affine[:3, :3] / np.linalg.norm(affine[:3, :3], axis=0)
    best = max(permutations(range(3)), key=lambda p: sum(abs(cosines[p[k], k]) for k in range(3)))
    matrix = np.zeros((3, 3))
    for k, world in enumerate(best):
        matrix[world, k] = 1.0 if cosines[world, k] > 0 else -1.0
    return matrix


def direction_matrix(letters: str) -> NDArray[np.float64]:
    """Return three letters, such as "RAS" or "ras", as the columns of a signed permutation."""
    pairs = [DIRECTIONS.get(letter) for letter in letters.upper()]
    found = [pair for pair in pairs if pair is not None]
    if len(letters) != 3 or sorted(axis for axis, _ in found) != [0, 1, 2]:
        raise ValueError(
            f"axes={letters!r} does not name three directions. Use one of each pair L/R, P/A and "
            "I/S, such as 'RAS'."
        )
    matrix = np.zeros((3, 3))
    for k, (axis, sign) in enumerate(found):
        matrix[axis, k] = sign
    return matrix


def direction_letters(matrix: NDArray[np.float64]) -> str:
    """Return a signed permutation as letters."""
    names = {pair: letter for letter, pair in DIRECTIONS.items()}
    axes = np.abs(matrix).argmax(axis=0)
    return "".join(names[int(axes[k]), int(np.sign(matrix[axes[k], k]))] for k in range(3))


def reorient(volume: Volume, letters: str = "RAS") -> Volume:
    """Return the same scan with its array axes along other directions.

    Axes are swapped and flipped, never interpolated, and every voxel keeps its world coordinates;
    so going back to `volume.directions` gives the same array.

    Parameters
    ----------
    volume : Volume
    letters : str, default="RAS"
        Where the three array axes shall point.

    Returns
    -------
    reoriented : Volume
        A view of the same numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.data.mri.volume import Volume, reorient
    >>> scan = Volume(np.arange(24.0).reshape(2, 3, 4), np.diag([-1.0, 1.0, 3.0, 1.0]))
    >>> there = reorient(scan, "SRP")
    >>> there.array.shape, there.directions
    ((4, 2, 3), 'SRP')
    >>> back = reorient(there, scan.directions)
    >>> bool((back.array == scan.array).all() and (back.affine == scan.affine).all())
    True
    """
    # Rows are array axes as they are, columns as they shall be.
    swap = nearest_directions(volume.anatomy).T @ direction_matrix(letters)
    order = np.abs(swap).argmax(axis=0)
    flipped = swap[order, range(3)] < 0
    array = volume.array.transpose(order)[tuple(slice(None, None, -1 if f else 1) for f in flipped)]
    step = np.eye(4)
    step[:3, :3] = swap
    step[order[flipped], 3] = np.array(volume.array.shape)[order[flipped]] - 1
    axes = None if volume.axes is None else letters
    return replace(volume, array=array, affine=volume.affine @ step, axes=axes)


def check_scan(array: NDArray[Any], where: str) -> None:
    """Raise an error that says why an array is no scan."""
    check_kind(array.dtype, where)
    if array.ndim != 3:
        raise DataError(
            f"{where} has shape {array.shape}, which is not one three-dimensional scan. "
            "Save the time point, echo or direction that is meant as a file of its own."
        )
    if min(array.shape) < 2:
        raise DataError(
            f"{where} has shape {array.shape}: a single slice, not a volume. "
            "Give the slice to the model itself, as an image."
        )
    if array.dtype.kind == "f":
        odd = ~np.isfinite(array)
        if odd.any():
            first = tuple(int(i) for i in np.unravel_index(int(odd.argmax()), array.shape))
            raise DataError(
                f"{where} has {int(odd.sum())} voxels that are NaN or infinite, the first at "
                f"{first}. Replace them, by the value of the background for instance."
            )
    if array.min() == array.max():
        raise DataError(
            f"{where} holds the value {array.flat[0]} in every voxel: there is nothing to see. "
            "Check the export of this scan."
        )


def check_voxels(shape: tuple[int, ...], where: str) -> None:
    """Raise an error, before there is memory for it, if a scan has too many voxels."""
    if math.prod(int(side) for side in shape) > MOST_VOXELS:
        raise DataError(
            f"{where} has {' x '.join(str(side) for side in shape)} voxels, more than "
            f"{MOST_VOXELS:,}, which take 2 GB of memory. Reduce its resolution, or set "
            "aberra.data.mri.volume.MOST_VOXELS if you have the memory."
        )


def check_kind(dtype: np.dtype[Any], where: str) -> None:
    """Raise an error unless voxels are plain real numbers."""
    if dtype.kind not in "uif":
        kinds = {"c": "complex numbers", "V": "colours or records", "b": "true and false"}
        raise DataError(
            f"{where} holds {kinds.get(dtype.kind, f'values of type {dtype}')}, not one intensity "
            "per voxel. Save the magnitude or grey image; a mask goes in as mask."
        )


def check_affine(affine: Affine, where: str) -> None:
    """Raise an error if a matrix places no voxel anywhere."""
    if affine.shape != (4, 4) or not np.isfinite(affine).all():
        raise DataError(f"{where} has an affine that is not a 4 x 4 matrix of finite numbers.")
    lengths = np.linalg.norm(affine[:3, :3], axis=0)
    if lengths.max() > COARSEST or lengths.min() < FINEST or np.abs(affine).max() > FARTHEST:
        raise DataError(
            f"{where} has an affine with voxels of {lengths.tolist()} mm, up to "
            f"{np.abs(affine).max():.3g} mm away, which no head has. Repair the header."
        )
    if abs(np.linalg.det(affine[:3, :3] / lengths)) < 1e-3:
        raise DataError(
            f"{where} has an affine that squeezes the scan flat (voxel sizes "
            f"{lengths.round(4).tolist()} mm). Repair the header."
        )
