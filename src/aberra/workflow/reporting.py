"""A page about a model and what it finds in a file or folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from aberra.data.sources import kind_of_path
from aberra.data.sources.staged import table_at
from aberra.data.sources.table_file import TableFile
from aberra.extras import need
from aberra.files import refuse_to_overwrite
from aberra.progress import advance
from aberra.recipe import Recipe
from aberra.report.findings import ImagesToReport, TableToReport
from aberra.scoring.odd_cells import told_chunks
from aberra.scoring.rows import RowAnswers, matched_columns
from aberra.scoring.table import CHUNK_ROWS
from aberra.workflow.opened import Opened, opened

if TYPE_CHECKING:
    from aberra.report.scans import ScansToReport


@dataclass(frozen=True)
class WrittenReport:
    """A report on disk.

    Parameters
    ----------
    path : Path
        The page, which any browser opens without a network.
    n_bytes : int
        Its size.
    """

    path: Path
    n_bytes: int


def report(
    model: Any,
    data: str | Path | None = None,
    output: str | Path = "report.html",
    *,
    title: str | None = None,
    pattern: str | None = None,
    top: int = 24,
) -> WrittenReport:
    """Write one HTML page about a model and what it finds: what `aberra report` does.

    Parameters
    ----------
    model : path, Fitted or estimator
        A model file, what `fit` returned, or any fitted model of Aberra.
    data : path, optional
        Data of the kind that the model was fitted on; the page lists what is odd in them and why.
        With the training data, it also shows how far each is trusted. By default the page
        is about the model alone.
    output : path, default="report.html"
        The page to write.
    title : str, optional
        Heading of the page. By default it names the model.
    pattern : str, optional
        Scans: which names in a folder are scans. By default the pattern that the model was fitted
        with.
    top : int, default=24
        How many anomalies to list.

    Returns
    -------
    written : WrittenReport
        Where the page is, and how large.

    Raises
    ------
    DataError
        If the data cannot be used, or the page could not be written.
    MissingExtraError
        If Jinja2 is not installed.

    See Also
    --------
    aberra.report.html : The page as a string, from data in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from aberra.workflow import fit, report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wine.csv"
    ...     load_wine(as_frame=True).data.to_csv(file, index=False)
    ...     written = report(fit(file), file, Path(folder) / "wine.html")
    ...     page = written.path.read_text("utf-8")
    >>> page.startswith("<!doctype html>"), written.n_bytes == len(page.encode())
    (True, True)
    """
    need("jinja2", "report", "A report")
    from aberra.report import html
    from aberra.report.writing import check_place, write

    target = Path(output)
    check_place(target)
    refuse_to_overwrite(target, *[Path(p) for p in (model, data) if isinstance(p, str | Path)])
    known = opened(model)
    found = None if data is None else data_at(Path(data), known, pattern)
    heading = title or f"Report on {known.name}"
    page = html(known.model, found, recipe=known.recipe, title=heading, top=top)
    return WrittenReport(target, write(target, page))


def data_at(
    path: Path, known: Opened, pattern: str | None = None
) -> TableToReport | ImagesToReport | ScansToReport:
    """Return what a path holds, ready for a report, to be read piece by piece.

    Parameters
    ----------
    path : Path
        A table, a folder of images, an array, a scan or a folder of scans.
    known : Opened
        The model, and its recipe.
    pattern : str, optional
        Which names in a folder are scans; the recipe's by default.

    Returns
    -------
    data : TableToReport, ImagesToReport or ScansToReport

    Raises
    ------
    DataError
        If the model was fitted on another kind of data.
    """
    kind = kind_of_path(path)
    # Without a recipe, nobody noted whether images were slices of scans.
    slices = known.recipe is None and (known.kind, kind) == ("images", "volumes")
    if not slices:
        known.check(kind, path)
    recipe = known.recipe or Recipe(known.kind, str(path), 0)
    if kind == "table":
        return _table(path, known.model, recipe)
    if kind == "volumes":
        return _scans(path, recipe, pattern)
    from aberra.workflow.image_source import image_source

    source = image_source(path, recipe.preparation, known.model.image_shape_)
    return ImagesToReport(source.names, source.read, path.name)


def _table(path: Path, model: Any, recipe: Recipe) -> TableToReport:
    file = table_at(path)
    named = recipe.id_column if recipe.id_column in file.columns else None
    columns, _ = matched_columns(model, file.columns, named)
    return TableToReport(_chunks(file, RowAnswers(model, columns, named)), path.name)


def _chunks(file: TableFile, rows: RowAnswers) -> Iterator[tuple[pd.DataFrame, Sequence[str]]]:
    for chunk in told_chunks(file, rows, CHUNK_ROWS):
        names = [f"row {chunk.start + k}" for k in range(len(chunk.frame))]
        if rows.id_column is not None:
            names = [str(value) for value in chunk.frame[rows.id_column]]
        yield chunk.frame[rows.columns], names
        advance("scoring rows", chunk.done)


def _scans(path: Path, recipe: Recipe, pattern: str | None) -> ScansToReport:
    from aberra.data.mri.files import find_volumes, read_volume
    from aberra.report.scans import ScansToReport

    root = path if path.is_dir() else path.parent
    paths = find_volumes(root, pattern or recipe.pattern) if path.is_dir() else [path]
    names = [p.name if p == root else p.relative_to(root).as_posix() for p in paths]
    return ScansToReport(
        names, lambda k: read_volume(paths[k], recipe.axes), recipe.scan_preparation(), path.name
    )
