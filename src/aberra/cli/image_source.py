"""Images to score: pictures in a folder, or an array in a file."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.cli.fit_images import as_images
from aberra.data.sources.arrays import ARRAYS, main_array
from aberra.data.sources.images import ImageShape, find_images, read_images, size_of
from aberra.files import fingerprint
from aberra.recipe import Recipe
from aberra.scoring.pictures import ImageSource


def image_source(data: Path, recipe: Recipe, image_shape: tuple[int, int, int]) -> ImageSource:
    """Return the images of a path, in the shape that the model was fitted on."""
    if data.name.lower().endswith(ARRAYS):
        array = as_images(main_array(data))
        names = [f"image_{k:06d}" for k in range(len(array))]
        return ImageSource(
            names,
            lambda some: array[some],
            lambda _: array.shape[2:],
            lambda k: sha256(np.ascontiguousarray(array[k]).data).hexdigest(),
        )
    channels, height, width = image_shape
    given = recipe.preparation or {"height": height, "width": width, "channels": channels}
    shape, paths = ImageShape(**given), find_images(data)
    root = data if data.is_dir() else data.parent

    def read(some: Sequence[int]) -> NDArray[Any]:
        return read_images([paths[k] for k in some], shape)

    names = [path.relative_to(root).as_posix() for path in paths]
    return ImageSource(names, read, lambda k: size_of(paths[k]), lambda k: fingerprint(paths[k]))
