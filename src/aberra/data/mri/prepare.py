"""What a model sees of a scan: which slices, how large, how bright."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.grid import SliceGrid, axial_grid, cut
from aberra.data.mri.volume import Affine, Volume, apply_affine
from aberra.errors import DataError

Select = Literal["below_top", "area"]
Normalise = Literal["volume", "slice"]

BRIGHTEST = 99.5  # percentile that stands for the maximum; vessels are brighter and mean nothing

# What a head has room for: more would only take memory.
LARGEST_SIDE = 4096  # pixels of a slice
FINEST = 0.1  # mm between slices
FARTHEST = 1000.0  # mm
HIGHEST = 1e6  # headroom above which a scan would be black


@dataclass(frozen=True)
class Preparation:
    """How scans become slices; training and scoring must share it.

    Parameters
    ----------
    size : int, default=64
        Height and width of a slice in pixels.
    field : float, default=208.0
        Height and width of a slice in mm: an adult's head with a narrow margin. A pixel is
        `field / size` mm.
    step : float, default=2.0
        Distance of the slices in mm.
    select : {"below_top", "area"}, default="below_top"
        Take the slices that lie `below_top` mm below the top of the brain, or those that cut
        through at least `min_area` of the brain's largest cross-section.
    below_top : tuple of two floats, default=(8.0, 78.0)
        First and last, in mm. Slices below the end of the brain are left out.
    min_area : float, default=0.5
    normalise : {"volume", "slice"}, default="volume"
        Whether black and white are found once for all slices of a scan, or for each. "slice" evens
        out a scanner that sees the top of the head darker than the middle.
    black : float, default=20.0
        Percentile of the slices that becomes 0.
    head : float, default=0.15
        The head is what exceeds this share of the brightest, counted from black.
    white : float, default=83.0
        Percentile of the head that becomes 1 (or 1 / `headroom`).
    headroom : float, default=1.0
        How many times as bright as `white` the brightest is that can still be told apart; what is
        brighter is cut off. With 1 a lesion that is brighter than white matter cannot be seen.
    across : float, default=4.0
        Width, as the deviation of a Gaussian in mm, over which the maps of neighbouring slices are
        averaged. Something odd is seldom one slice thick. With 0 each slice stands alone.

    Examples
    --------
    >>> from aberra.data.mri.prepare import Preparation
    >>> Preparation(size=104).pixel
    2.0
    """

    size: int = 64
    field: float = 208.0
    step: float = 2.0
    select: Select = "below_top"
    below_top: tuple[float, float] = (8.0, 78.0)
    min_area: float = 0.5
    normalise: Normalise = "volume"
    black: float = 20.0
    head: float = 0.15
    white: float = 83.0
    headroom: float = 1.0
    across: float = 4.0

    def __post_init__(self) -> None:
        whole = isinstance(self.size, Integral) and 8 <= self.size <= LARGEST_SIDE
        _check(whole, "size", self.size, f"be 8 to {LARGEST_SIDE} pixels")
        _check(0 < self.field <= FARTHEST, "field", self.field, f"be up to {FARTHEST:g} mm")
        _check(FINEST <= self.step <= FARTHEST, "step", self.step, f"be at least {FINEST} mm")
        _check(self.select in get_args(Select), "select", self.select, f"be in {get_args(Select)}")
        rules = get_args(Normalise)
        _check(self.normalise in rules, "normalise", self.normalise, f"be in {rules}")
        first, last = self.below_top
        rises = 0 <= first <= last <= FARTHEST
        _check(rises, "below_top", self.below_top, f"rise from 0 mm, up to {FARTHEST:g} mm")
        _check(0 < self.min_area <= 1, "min_area", self.min_area, "lie in (0, 1]")
        _check(0 <= self.black <= 100, "black", self.black, "be a percentile")
        _check(0 < self.white <= 100, "white", self.white, "be a percentile")
        _check(0 <= self.head < 1, "head", self.head, "lie in [0, 1)")
        bounded = 1 <= self.headroom <= HIGHEST
        _check(bounded, "headroom", self.headroom, f"be at least 1, up to {HIGHEST:g}")
        _check(0 <= self.across < 1000, "across", self.across, "be 0 mm or more, below 1000")

    @property
    def pixel(self) -> float:
        """Size of a pixel in mm."""
        return self.field / self.size


def prepare(
    volume: Volume, brain: NDArray[np.bool_], preparation: Preparation
) -> tuple[NDArray[np.float32], SliceGrid]:
    """Cut a scan into slices for a model.

    Parameters
    ----------
    volume : Volume
    brain : ndarray of bool, shape of the scan
        Says where the brain's top and middle are; what lies outside is not blanked.
    preparation : Preparation

    Returns
    -------
    images : ndarray of shape (n, 1, h, w), float32 in [0, 1]
    grid : SliceGrid
        Where the slices lie.
    """
    grid = place_slices(brain, volume.anatomy, preparation, volume.where)
    # Where the scan does not reach, its background goes on.
    fill = float(np.percentile(volume.array[::2, ::2, ::2], preparation.black))
    slices = cut(volume, grid, fill)
    return normalise(slices, preparation)[:, None], grid


def place_slices(
    brain: NDArray[np.bool_], affine: Affine, preparation: Preparation, where: str = "The scan"
) -> SliceGrid:
    """Choose slices by the brain, centred on it."""
    points = apply_affine(affine, np.argwhere(brain))
    top = float(points[:, 2].max())
    depths = top - points[:, 2]
    chosen = _choose(depths, preparation)
    if not len(chosen):
        raise DataError(
            f"{where}: no slice to look at. Its brain is {depths.max():.0f} mm high, and "
            f"slices were asked for {preparation.below_top[0]:g} mm below the top and further down."
        )
    half = preparation.step / 2.0
    slab = (depths >= chosen[0] - half) & (depths <= chosen[-1] + half)
    middle = points[slab, :2].mean(axis=0)
    return axial_grid(chosen, middle, top, preparation.step, preparation.field, preparation.size)


def _choose(depths: NDArray[np.float64], preparation: Preparation) -> NDArray[np.float64]:
    """Return the depths of the slices, in mm below the top of the brain."""
    step = preparation.step
    if preparation.select == "below_top":
        first, last = preparation.below_top
        chosen = np.arange(first, last + step / 1e3, step)
        return np.asarray(chosen[chosen <= depths.max() + step / 1e3])
    voxels = np.bincount(np.rint(depths / step).astype(int))
    large = np.flatnonzero(voxels >= preparation.min_area * voxels.max())
    return np.arange(large[0], large[-1] + 1) * step


def normalise(slices: NDArray[Any], preparation: Preparation) -> NDArray[np.float32]:
    """Scale the slices of one scan, shape (n, h, w), to [0, 1]."""
    values = np.asarray(slices, np.float32)
    if preparation.normalise == "volume":
        return _scaled(values, preparation)
    return np.stack([_scaled(image, preparation) for image in values])


def _scaled(values: NDArray[np.float32], preparation: Preparation) -> NDArray[np.float32]:
    values = values - np.float32(np.percentile(values, preparation.black))
    head = values[values > preparation.head * np.percentile(values, BRIGHTEST)]
    white = float(np.percentile(head, preparation.white)) if len(head) else 0.0
    if white <= 0.0:  # an empty slice stays black
        return np.zeros_like(values)
    return np.clip(values / np.float32(white * preparation.headroom), 0.0, 1.0)


def _check(fine: bool, name: str, value: object, must: str) -> None:
    if not fine:
        raise ValueError(f"{name}={value!r} must {must}.")
