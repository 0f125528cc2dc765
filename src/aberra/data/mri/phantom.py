"""A head made of ellipsoids, to try things on where no scan is at hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.data.mri.volume import Affine, Volume, apply_affine

# Half axes in mm (left-right, back-front, down-up) and brightness, from the outside to the inside.
SHELLS = (
    ((78.0, 98.0, 92.0), 110.0),  # scalp
    ((72.0, 92.0, 86.0), 4.0),  # bone and fluid
    ((64.0, 84.0, 78.0), 60.0),  # cortex
    ((58.0, 78.0, 72.0), 90.0),  # white matter
    ((14.0, 26.0, 10.0), 20.0),  # ventricles
)
BRAIN = 2  # the shells from here on


def head_phantom(
    affine: Affine | None = None,
    shape: tuple[int, int, int] = (56, 56, 56),
    lesion: ArrayLike | None = None,
    radius: float = 12.0,
) -> tuple[Volume, NDArray[np.bool_]]:
    """Return a head on any grid, centred on the world's origin, and the mask of its brain.

    Parameters
    ----------
    affine : ndarray of shape (4, 4), optional
        From voxel to world; 4 mm along the world's axes, centred, by default.
    shape : tuple of int, default=(56, 56, 56)
    lesion : array-like of shape (3,), optional
        World coordinates of a dark ball.
    radius : float, default=12.0
        Of the ball, in mm.

    Returns
    -------
    scan : Volume
    brain : ndarray of bool of the same shape

    Examples
    --------
    >>> from aberra.data.mri.phantom import head_phantom
    >>> scan, brain = head_phantom()
    >>> scan.array.shape, scan.directions
    ((56, 56, 56), 'RAS')
    """
    if affine is None:
        affine = np.diag([4.0, 4.0, 4.0, 1.0])
        affine[:3, 3] = -2.0 * (np.array(shape) - 1.0)
    points = apply_affine(affine, np.moveaxis(np.indices(shape), 0, -1))
    array = np.zeros(shape, np.float32)
    brain = np.zeros(shape, np.bool_)
    for k, (half_axes, value) in enumerate(SHELLS):
        inside = ((points / half_axes) ** 2).sum(axis=-1) < 1.0
        array[inside] = value
        if k == BRAIN:
            brain = inside
    if lesion is not None:
        array[((points - np.asarray(lesion)) ** 2).sum(axis=-1) < radius**2] = 15.0
    return Volume(array, np.asarray(affine, np.float64)), brain
