"""Anomaly maps: the score of a whole image, the height that flags a pixel, and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from aberra.errors import DataError

CALIBRATION_IMAGES = 128  # half a million pixels at 64 x 64 place a threshold well enough
BLACK = 0.05  # share of the range of intensities that is background
TOP_SHARE = 0.02  # an image's score is the mean over this share of its pixels, the oddest


def image_scores(maps: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean over the oddest pixels of each map (..., h, w)."""
    flat = maps.reshape(*maps.shape[:-2], -1)
    k = max(1, round(TOP_SHARE * flat.shape[-1]))
    top = np.partition(flat, flat.shape[-1] - k, axis=-1)[..., -k:]
    return top.mean(axis=-1, dtype=np.float64)


def upper_quantile(values: NDArray[np.float32], counts: NDArray[Any], share: float) -> float:
    """Return the smallest value that at most `share` of all counts lie above."""
    keep = counts.ravel() > 0
    v, c = values.ravel()[keep], counts.ravel()[keep].astype(np.float64)
    order = np.argsort(v)
    above = c.sum() - np.cumsum(c[order])
    return float(v[order][np.argmax(above <= share * c.sum())])


def foreground(images: NDArray[Any]) -> NDArray[np.bool_]:
    """Return what is not black background in images (n, c, h, w), holes included: (n, h, w).

    Background would make up most of a threshold's pixels and is never flagged, so a rate that
    counts it is exceeded where it matters. Images that are all background count in full.
    """
    brightest = images.max(axis=1).astype(np.float32)
    low, high = np.percentile(brightest, (0, 99), axis=(1, 2), keepdims=True)
    seen = brightest > low + BLACK * (high - low)
    filled = np.stack([ndimage.binary_fill_holes(one) for one in seen])
    return filled | ~filled.any(axis=(1, 2), keepdims=True)


def masked(maps: NDArray[Any], mask: ArrayLike | None) -> NDArray[Any]:
    """Return maps (n, h, w) with 0 outside the mask; without a mask, as they are."""
    if mask is None:
        return maps
    inside = np.asarray(mask)
    if inside.shape != maps.shape:
        raise DataError(f"The mask has shape {inside.shape}, but the maps have {maps.shape}.")
    return np.where(inside.astype(bool), maps, 0)
