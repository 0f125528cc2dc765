"""Where the brain is, when nobody says: a simple mask for T1-weighted scans.

Brain tissue is about as bright as its surroundings on average, hangs together, and is parted from
the scalp by bone and fluid, which are dark. So: even out the brightness, keep what is neither dark
nor glaring, peel off a layer until the brain comes loose, keep the largest piece, grow it back, and
close what is left open. The last step spans 20 mm or more, so that most of a dark lesion at the
surface stays inside. Measured figures stand in results/volumes.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from aberra.data.mri.grid import resample
from aberra.data.mri.volume import Volume, inverse
from aberra.errors import DataError

GRID = 2.0  # mm; finer costs time and brings nothing
LARGEST_BRAIN = 2200.0  # ml, fluid included; more means that the neck hangs on
EVEN_OUT = 20.0  # mm over which brightness is compared
DARK, GLARING = 0.3, 1.6  # limits of what the mask may grow into, of the local mean
SMOOTH = 3.0  # mm
SCALP = 5.0  # mm that are never brain
MOST_COARSE = 1 << 24  # voxels of the coarse grid: half a metre a side


@dataclass(frozen=True)
class Peel:
    """How the brain is made to come loose."""

    tissue: float  # darkest tissue that counts before peeling, of the local mean
    depth: float  # mm peeled off
    share: float  # pieces smaller than this share of the largest are dropped
    close: float  # mm across which gaps are closed in the end


# Stricter ones are tried as long as the neck hangs on.
VOLUME_PEELS = tuple(Peel(tissue, 4.0, 1.0, 20.0) for tissue in (0.6, 0.65, 0.7, 0.8))
# A slice shows the halves of the brain apart from each other, and no neck; its outline is rounder.
SLICE_PEEL = Peel(0.45, 3.0, 0.1, 40.0)

Mask = NDArray[np.bool_]


def brain_mask(volume: Volume) -> Mask:
    """Return a mask of the brain on the grid of the scan.

    For T1-weighted scans of whole heads. It does not look at directions, so that a wrong header
    does no harm.

    Parameters
    ----------
    volume : Volume

    Returns
    -------
    mask : ndarray of bool, shape of the scan

    Examples
    --------
    >>> from aberra.data.mri.brain import brain_mask
    >>> from aberra.data.mri.phantom import head_phantom
    >>> scan, brain = head_phantom()
    >>> found = brain_mask(scan)
    >>> bool(2 * (found & brain).sum() / (found.sum() + brain.sum()) > 0.95)
    True
    """
    scale = np.eye(4)
    scale[range(3), range(3)] = GRID / volume.spacing
    shape = tuple(int(n) for n in np.ceil(np.array(volume.array.shape) / np.diag(scale)[:3]))
    if math.prod(shape) > MOST_COARSE:
        sides = " x ".join(f"{n * GRID:,.0f}" for n in shape)
        raise DataError(
            f"{volume.where} is {sides} mm large, more than any head. Repair its header."
        )
    coarse = resample(volume.array, scale, shape, mode="nearest")
    bright = brightness(coarse, GRID)
    for peel in VOLUME_PEELS:
        mask = _grow_back(bright, _core(bright, peel), peel, GRID)
        if 0.0 < mask.sum() * GRID**3 / 1000.0 <= LARGEST_BRAIN:
            fine = resample(mask, inverse(scale), volume.array.shape, mode="nearest")
            return np.asarray(fine > 0.5)
    raise DataError(
        f"{volume.where}: no brain was found by itself. The automatic mask is made for T1-weighted "
        "scans of whole heads; give a mask for this one (in Python), or leave it out (--pattern)."
    )


def slice_brain_mask(image: NDArray[Any], pixel: float) -> Mask:
    """Return a mask of the brain on one axial slice.

    A slice alone says less than a volume; this is for data sets that come as slices.

    Parameters
    ----------
    image : ndarray of shape (h, w)
        Whole head, background near zero.
    pixel : float
        Size of a pixel in mm.

    Returns
    -------
    mask : ndarray of bool, shape (h, w); empty if nothing looks like a brain
    """
    bright = brightness(np.asarray(image, np.float32), pixel)
    head = ndimage.binary_fill_holes(_largest(_closed(bright > 0, SCALP, pixel)))
    depth = ndimage.distance_transform_edt(head, sampling=pixel)
    core = _core(bright, SLICE_PEEL, pixel, depth)
    return np.asarray(_grow_back(bright, core, SLICE_PEEL, pixel) & (depth > SCALP))


def brightness(array: NDArray[np.float32], spacing: float) -> NDArray[np.float32]:
    """Return intensities relative to their surroundings, background 0."""
    clipped = np.clip(array - np.percentile(array, 20.0), 0.0, None)
    np.minimum(clipped, np.percentile(clipped, 99.5), out=clipped)
    head = clipped > 0.6 * otsu(clipped)
    sigma = EVEN_OUT / spacing
    total = ndimage.gaussian_filter(np.where(head, clipped, np.float32(0.0)), sigma)
    share = ndimage.gaussian_filter(head.astype(np.float32), sigma)
    return np.asarray(np.where(head, clipped * share / np.maximum(total, 1e-12), 0.0), np.float32)


def otsu(values: NDArray[Any]) -> float:
    """Return the threshold that parts values into the two groups that lie furthest apart."""
    counts, edges = np.histogram(values, 256)
    centres = (edges[1:] + edges[:-1]) / 2.0
    below = np.cumsum(counts)
    above = below[-1] - below
    sums = np.cumsum(counts * centres)
    apart = sums / np.maximum(below, 1) - (sums[-1] - sums) / np.maximum(above, 1)
    return float(centres[np.argmax(below * above * apart**2)])


def _core(
    bright: NDArray[np.float32],
    peel: Peel,
    spacing: float = GRID,
    depth: NDArray[np.float64] | None = None,
) -> Mask:
    """Return the pieces of brain that are left after peeling; with `depth`, no piece of scalp."""
    labels, n = ndimage.label(
        _eroded((bright > peel.tissue) & (bright < GLARING), peel.depth, spacing)
    )
    sizes = np.bincount(labels.ravel(), minlength=n + 1)
    sizes[0] = 0
    if depth is not None and n:
        sizes[1:][ndimage.maximum(depth, labels, np.arange(1, n + 1)) < 3.0 * SCALP] = 0
    return np.asarray(((sizes > 0) & (sizes >= peel.share * sizes.max()))[labels])


def _grow_back(bright: NDArray[np.float32], core: Mask, peel: Peel, spacing: float) -> Mask:
    mask = np.zeros_like(core)
    if not core.any():
        return mask
    box = _box(core, int(np.ceil((peel.depth + 2.0) / spacing)) + 1)  # nothing grows beyond it
    near = _grown(core[box], peel.depth + 2.0, spacing)
    grown = _closed(near & (bright[box] > DARK) & (bright[box] < GLARING), peel.close, spacing)
    loose = _eroded(ndimage.binary_fill_holes(grown), SMOOTH, spacing)
    if loose.any():
        mask[box] = _largest(_grown(loose, SMOOTH, spacing))
    return mask


def _box(mask: Mask, margin: int) -> tuple[slice, ...]:
    """Return the smallest box around a mask, with room on each side."""
    found = ndimage.find_objects(mask.astype(np.int8))[0]
    return tuple(slice(max(s.start - margin, 0), s.stop + margin) for s in found)


def _eroded(mask: Mask, radius: float, spacing: float) -> Mask:
    return ~_grown(~mask, radius, spacing)


def _grown(mask: Mask, radius: float, spacing: float) -> Mask:
    from aberra.data.mri.compiled_balls import within

    most = int((radius / spacing) ** 2 * (1 + 1e-12))  # whole numbers, so nothing is rounded
    deep = np.ascontiguousarray(mask if mask.ndim == 3 else mask[None])
    return within(deep, most).reshape(mask.shape)


def _closed(mask: Mask, radius: float, spacing: float) -> Mask:
    # Room around the array, or what is grown would be cut off at its faces before it shrinks.
    margin = int(np.ceil(radius / spacing)) + 1
    grown = _grown(np.pad(mask, margin), radius, spacing)
    return _eroded(grown, radius, spacing)[(slice(margin, -margin),) * mask.ndim]


def _largest(mask: Mask) -> Mask:
    labels, _ = ndimage.label(mask)
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    return np.asarray(labels == sizes.argmax()) & mask
