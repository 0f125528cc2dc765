"""Data for a report from a path, read as the model expects them, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.sources import kind_of_path
from aberra.data.sources.arrays import ARRAYS, main_array
from aberra.data.sources.images import ImageShape, find_images, read_images
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.progress import advance
from aberra.recipe import Recipe
from aberra.report.findings import Images, Table, check_columns
from aberra.report.scans import Scans
from aberra.report.training import column_names

CHUNK = 65_536
TRAINED_ON = {"table": "a table", "images": "images", "volumes": "scans"}


def data_at(path: Path, model: Any, recipe: Recipe | None) -> Table | Images | Scans:
    """Return what a path holds, ready for a report about the model.

    Parameters
    ----------
    path : Path
        A table, a folder of images, an array, a scan or a folder of scans.
    model : estimator
    recipe : Recipe, optional

    Returns
    -------
    data : Table, Images or Scans
    """
    kind = kind_of_path(path)
    known = recipe.kind if recipe else ("table" if model.image_shape_ is None else "images")
    fits = kind == known or (recipe is None and known == "images" and kind == "volumes")
    if not fits:
        raise DataError(
            f"{path} holds {TRAINED_ON[kind]}, but the model was trained on {TRAINED_ON[known]}. "
            "Give data of the same kind."
        )
    if kind == "table":
        return _table(path, model, recipe)
    return _images(path, model, recipe) if kind == "images" else _scans(path, recipe)


def _table(path: Path, model: Any, recipe: Recipe | None) -> Table:
    file = TableFile(path)
    wanted = column_names(model, recipe) or file.columns
    check_columns(file.columns, wanted, str(path))
    names = recipe.id_column if recipe and recipe.id_column in file.columns else None
    return Table(_chunks(file, model, wanted, names), path.name)


def _chunks(
    file: TableFile, model: Any, wanted: Sequence[str], names: str | None
) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    reader = getattr(model, "reader_", None)
    kinds = ["number"] * len(wanted) if reader is None else reader.kinds
    extra = [names] if names is not None and names not in wanted else []
    typed = dict(zip(wanted, kinds, strict=False))
    for chunk in file.chunks([*wanted, *extra], typed, CHUNK):
        frame = chunk.frame
        labels: Sequence[str] = (
            [f"row {chunk.start + k}" for k in range(len(frame))]
            if names is None
            else [str(value) for value in frame[names]]
        )
        yield frame[list(wanted)], labels
        advance("scoring rows", chunk.done)


def _images(path: Path, model: Any, recipe: Recipe | None) -> Images:
    if path.name.lower().endswith(ARRAYS):
        array = main_array(path)
        images: NDArray[Any] = array[:, None] if array.ndim == 3 else array
        return Images(images, [f"image {k}" for k in range(len(images))], path.name)
    channels, height, width = model.image_shape_
    shape = ImageShape(height, width, channels)
    if recipe is not None and recipe.preparation:
        shape = ImageShape(**recipe.preparation)
    paths = find_images(path)
    root = path if path.is_dir() else path.parent
    names = [str(found.relative_to(root)) for found in paths]
    return Images(np.asarray(read_images(paths, shape)), names, path.name)


def _scans(path: Path, recipe: Recipe | None) -> Scans:
    from aberra.data.mri.files import find_volumes, read_volume
    from aberra.data.mri.prepare import Preparation

    settings = dict(recipe.preparation) if recipe else {}
    if "below_top" in settings:
        settings["below_top"] = tuple(settings["below_top"])
    paths = find_volumes(path) if path.is_dir() else [path]

    def scans() -> Iterator[tuple[Any, str]]:
        for k, found in enumerate(paths):
            yield read_volume(found), found.name if found == path else str(found.relative_to(path))
            advance("scoring scans", (k + 1) / len(paths))

    return Scans(scans(), Preparation(**settings), path.name)
