"""Data for a report from a path, read piece by piece as the model expects them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from aberra.cli.image_source import image_source
from aberra.data.mri.files import find_volumes, read_volume
from aberra.data.mri.prepare import Preparation
from aberra.data.sources import kind_of_path
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.progress import advance
from aberra.recipe import Recipe, Source
from aberra.report.findings import ImagesToReport, TableToReport
from aberra.report.scans import ScansToReport
from aberra.scoring.rows import RowScorer, matched_columns
from aberra.scoring.table import CHUNK_ROWS

HOLDS = {"table": "a table", "images": "images", "volumes": "scans"}


def data_at(
    path: Path, model: Any, noted: Recipe | None, pattern: str | None = None
) -> TableToReport | ImagesToReport | ScansToReport:
    """Return what a path holds, ready for a report.

    Parameters
    ----------
    path : Path
        A table, a folder of images, an array, a scan or a folder of scans.
    model : estimator
    noted : Recipe or None
        The model's recipe, if it has one.
    pattern : str, optional
        Which names in a folder are scans; the recipe's by default.

    Returns
    -------
    data : TableToReport, ImagesToReport or ScansToReport
    """
    kind = kind_of_path(path)
    fallback: Source = "table" if model.image_shape_ is None else "images"
    known = fallback if noted is None else noted.kind
    # Without a recipe, nobody noted whether images were slices of scans.
    if kind != known and not (noted is None and (known, kind) == ("images", "volumes")):
        raise DataError(
            f"{path} holds {HOLDS[kind]}, but the model was trained on {HOLDS[known]}. Give data "
            "of the same kind."
        )
    recipe = noted or Recipe(known, str(path), 0)
    if kind == "table":
        return _table(path, model, recipe)
    return _images(path, model, recipe) if kind == "images" else _scans(path, recipe, pattern)


def _table(path: Path, model: Any, recipe: Recipe) -> TableToReport:
    file = TableFile(path)
    named = recipe.id_column if recipe.id_column in file.columns else None
    columns, _ = matched_columns(model, file.columns, named)
    return TableToReport(_chunks(file, RowScorer(model, columns, named)), path.name)


def _chunks(file: TableFile, plan: RowScorer) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    for chunk in file.chunks(plan.wanted, plan.kinds, CHUNK_ROWS):
        names = [f"row {chunk.start + k}" for k in range(len(chunk.frame))]
        if plan.id_column is not None:
            names = [str(value) for value in chunk.frame[plan.id_column]]
        yield chunk.frame[plan.columns], names
        advance("scoring rows", chunk.done)


def _images(path: Path, model: Any, recipe: Recipe) -> ImagesToReport:
    source = image_source(path, recipe, model.image_shape_)
    return ImagesToReport(source.names, source.read, path.name)


def _scans(path: Path, recipe: Recipe, pattern: str | None) -> ScansToReport:
    settings = dict(recipe.preparation)
    if "below_top" in settings:
        settings["below_top"] = tuple(settings["below_top"])
    root = path if path.is_dir() else path.parent
    paths = find_volumes(root, pattern or recipe.pattern) if path.is_dir() else [path]
    names = [p.name if p == root else p.relative_to(root).as_posix() for p in paths]
    return ScansToReport(
        names, lambda k: read_volume(paths[k], recipe.axes), Preparation(**settings), path.name
    )
