"""Images of a path, a few at a time: pictures in a folder, or an array in a file."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.data.sources.arrays import ARRAYS, main_array
from aberra.data.sources.images import ImageShape, find_images, read_images, size_of
from aberra.errors import ModelFileError
from aberra.files import fingerprint
from aberra.scoring.pictures import ImageSource


def image_source(
    data: Path, preparation: dict[str, Any], image_shape: tuple[int, int, int]
) -> ImageSource:
    """Return the images of a path, in the shape that a model was fitted on.

    Parameters
    ----------
    data : Path
        A folder of pictures, one picture, or an npy or npz file.
    preparation : dict
        Keywords of `ImageShape`, as a recipe keeps them; empty for the model's own shape.
    image_shape : tuple of three int
        Channels, height and width that the model takes.

    Returns
    -------
    source : ImageSource
    """
    if data.name.lower().endswith(ARRAYS):
        return _of_array(as_images(main_array(data)))
    channels, height, width = image_shape
    given = preparation or {"height": height, "width": width, "channels": channels}
    try:
        shape = ImageShape(**given)
    except TypeError as error:
        raise ModelFileError(f"The recipe's preparation of pictures is wrong: {error}.") from error
    return _of_pictures(data, shape)


def as_images(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of images (n, h, w) or (n, c, h, w) with its axis of channels."""
    if array.ndim == 4 and array.shape[1] not in (1, 3) and array.shape[3] in (1, 3):
        return np.moveaxis(array, 3, 1)
    return array[:, None] if array.ndim == 3 else array


def _of_array(array: NDArray[Any]) -> ImageSource:
    return ImageSource(
        [f"image_{k:06d}" for k in range(len(array))],
        lambda some: array[some],
        lambda _: array.shape[2:],
        lambda k: sha256(np.ascontiguousarray(array[k]).data).hexdigest(),
    )


def _of_pictures(data: Path, shape: ImageShape) -> ImageSource:
    paths, root = find_images(data), data if data.is_dir() else data.parent

    def read(some: Sequence[int]) -> NDArray[Any]:
        return read_images([paths[k] for k in some], shape)

    names = [path.relative_to(root).as_posix() for path in paths]
    return ImageSource(names, read, lambda k: size_of(paths[k]), lambda k: fingerprint(paths[k]))
