"""Whether an array holds images that a localiser can use; if not, what to do about it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.data.images import PART
from aberra.data.tables import plain
from aberra.errors import DataError


def checked_images(
    images: ArrayLike, name: str, fitted: tuple[int, int, int] | None
) -> NDArray[Any]:
    """Return images (n, c, h, w) as an array, or say what is wrong with them.

    Parameters
    ----------
    images : array-like
        What the user gave.
    name : str
        Who asks, for the message.
    fitted : tuple of int or None
        Channels, height and width that they must have; None accepts any.
    """
    data = np.asarray(plain(images))
    if data.ndim != 4 or data.shape[1] not in (1, 3):
        raise DataError(
            f"{name} takes images of shape (n, channels, height, width) with 1 or 3 channels, "
            f"but got {data.shape}. One grey image (height, width) is image[None, None]."
        )
    if data.dtype.kind not in "fiub" or data.size == 0:
        raise DataError(f"{name} takes numbers, but got {data.dtype} of shape {data.shape}.")
    if data.dtype.kind == "f" and len(bad := not_finite(data)):
        raise DataError(
            f"{len(bad)} of {len(data)} images hold NaN or infinity, the first is image "
            f"{bad[0]}. Replace these pixels or leave the images out."
        )
    if fitted is not None and data.shape[1:] != fitted:
        shape = tuple(int(side) for side in data.shape[1:])
        raise DataError(
            f"{name} was fitted on images {fitted} (channels, height, width), but got {shape}."
        )
    return data


def not_finite(images: NDArray[Any]) -> NDArray[np.int64]:
    """Return which images hold NaN or infinity, a few looked at at a time."""
    found = [
        start + np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(axis=1))
        for start in range(0, len(images), PART)
        for part in [images[start : start + PART]]
    ]
    return np.concatenate(found)
