"""What a model says about other files: tables, images and scans, scored piece by piece."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from aberra import __version__
from aberra.data.blocks.extent import is_large
from aberra.data.sources import kind_of_path
from aberra.data.sources.staged import table_at
from aberra.data.sources.standard_input import STDIN
from aberra.data.sources.table_file import TableFile
from aberra.errors import ArgumentError, DataError
from aberra.explain.subject import Subject
from aberra.files import refuse_to_overwrite
from aberra.recipe import Source
from aberra.scoring import Reasons
from aberra.scoring.folder import Line, ResultFolder
from aberra.scoring.parts import OUTPUTS
from aberra.scoring.rows import TEXT, RowAnswers, matched_columns
from aberra.scoring.table import Table, score_table
from aberra.workflow.choices import OnError, check_blockwise, check_choices, checked_axes
from aberra.workflow.opened import Opened, opened
from aberra.workflow.scored import Scored, ScoredImages, ScoredScans, ScoredTable

N_SHOWN = 10


def score(
    model: Any,
    data: str | Path,
    output: str | Path,
    *,
    reasons: Reasons = "flagged",
    id_column: str | None = None,
    sql: str | None = None,
    header: bool = True,
    top: int | None = None,
    sort: bool = False,
    pattern: str | None = None,
    neutralise: bool = False,
    axes: str | None = None,
    relative: bool = False,
    on_error: OnError | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> Scored:
    """Score a file or folder of any size with little memory: what `aberra score` does.

    The data are scored piece by piece. If the work is interrupted, the same call continues it and
    writes the same bytes.

    Parameters
    ----------
    model : path, Fitted or estimator
        A model file, the name of a model that comes with Aberra ("brain-t1"), what `fit` returned,
        or any fitted model of Aberra.
    data : path
        Data of the kind that the model was fitted on; "-" for a table from standard input; a
        pattern such as `big/*.parquet` for a table in many files.
    output : path
        For a table, the file of scores to write, ending in .parquet or .csv; for a table in many
        files also a folder, which gets a file of scores for each of them. For images and scans, the
        folder for maps and `scores.csv`.
    reasons : {"flagged", "all", "none"}, default="flagged"
        Tables: which rows get reasons. Reasons for a row cost about as much as scoring it three
        times for each column.
    id_column : str, optional
        Tables: the column that names the rows. By default the one that the model was fitted with.
    sql : str, optional
        Tables: a query whose result is the table; `data` is then a database.
    header : bool, default=True
        Tables: whether the first line of a CSV file names the columns.
    top : int, optional
        Tables: write only so many rows, those with the highest scores, the highest first. By
        default all rows are written in their order.
    sort : bool, default=False
        Tables: whether all rows are written with the highest scores first. The result then has to
        fit into memory.
    pattern : str, optional
        Scans: which names in a folder are scans. By default the pattern that the model was fitted
        with.
    neutralise : bool, default=False
        Tables, into a CSV file: put an apostrophe before text that begins with = + - or @, such as
        an identifier, so that a spreadsheet does not take it for a formula.
    axes : str, optional
        Scans: where the axes of the arrays really point, such as "SPR", if headers are wrong. By
        default what the model was fitted with.
    relative : bool, default=False
        Scans: whether each map is also written as percentiles of healthy scans at the same place
        (`NAME_percentile.nii.gz`) and as deviations from them (`NAME_z.nii.gz`).
    on_error : {"stop", "skip"}, optional
        Tables in many files: what to do about files that cannot be read: name them and stop, the
        default, or leave them out.
    engine, address : str, optional
        Tables in many files, into a folder: where files are scored, such as "ray" or "loky", and
        where the Ray cluster is. By default in this process.

    Returns
    -------
    scored : ScoredTable, ScoredImages or ScoredScans
        Where the results are, how many there are, what is oddest, and what could not be scored.

    Raises
    ------
    DataError
        If the data cannot be used, or nothing could be written to `output`.
    ModelFileError
        If the model cannot be loaded.

    See Also
    --------
    fit : Make a model.
    report : Write a page about the model and what it finds.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from aberra.workflow import fit, score
    >>> table = load_wine(as_frame=True).data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, new = Path(folder) / "old.csv", Path(folder) / "new.csv"
    ...     table.to_csv(old, index=False)
    ...     table[:20].assign(ash=40.0).to_csv(new, index=False)
    ...     scored = score(fit(old), new, Path(folder) / "scores.csv")
    >>> scored.n_rows, scored.n_flagged, scored.oddest[0]["reason_1"]
    (20, 20, 'ash')
    """
    check_choices(reasons=(reasons, Reasons), on_error=(on_error, OnError))
    source, target = Path(data), Path(output)
    refuse_to_overwrite(target, *[Path(p) for p in (model, data) if isinstance(p, str | Path)])
    kind: Source = "table" if sql is not None else kind_of_path(data)
    known = opened(model)
    known.check(kind, source)
    for_tables = {"id_column": id_column is not None, "top": top is not None, "sort": sort}
    _check_kind(kind, "table", for_tables, "tables")
    for_scans = {"pattern": pattern is not None, "axes": axes is not None, "relative": relative}
    _check_kind(kind, "volumes", for_scans, "scans")
    if top is not None and top < 1:
        raise ArgumentError("top", "top is at least 1.")
    written = {"top": top, "sort": sort, "neutralise": neutralise}
    plain = kind == "table" and sql is None and header and str(data) != STDIN
    check_blockwise(plain, on_error, engine, address)
    if plain and (engine or on_error or _in_many_files(str(data), target)):
        from aberra.workflow.score_blocks import score_blocks

        return score_blocks(
            known, str(data), target, reasons=reasons, id_column=id_column, written=written,
            on_error=on_error or "stop", engine=engine, address=address,
        )  # fmt: skip
    if kind == "table":
        file = table_at(data, sql=sql, header=header)
        return _score_table(known, file, target, reasons, id_column, written)
    if kind == "images":
        return _score_images(known, source, target)
    return _score_scans(known, source, target, pattern, axes and checked_axes(axes), relative)


def _check_kind(kind: Source, wanted: Source, given: dict[str, bool], what: str) -> None:
    """Refuse options that are for another kind of data."""
    for name, was_given in given.items():
        if was_given and kind != wanted:
            raise ArgumentError(name, f"{name} is for {what}.")


# Tables


def _in_many_files(data: str, output: Path) -> bool:
    """Say whether a table is long or is to be scored file by file."""
    into_folder = not output.name.lower().endswith(OUTPUTS)
    return is_large(data) or (Path(data).is_dir() and into_folder)


def _score_table(
    known: Opened,
    file: TableFile,
    output: Path,
    reasons: Reasons,
    id_column: str | None,
    written: dict[str, Any],
) -> ScoredTable:
    started = time.perf_counter()
    scorer, ignored, remarks = answers_for(known, file, reasons, id_column)
    named = scorer.id_column
    found = score_table(scorer, file, output, known.digest(), **written)
    counts = (found.n_rows, found.n_flagged, found.n_resumed)
    seconds = time.perf_counter() - started
    return ScoredTable(
        output, *counts, found.oddest, named, ignored, seconds, remarks, found.drift,
        odd_cells=found.odd,
    )  # fmt: skip


def answers_for(
    known: Opened, file: Table, reasons: Reasons, id_column: str | None
) -> tuple[RowAnswers, list[str], list[str]]:
    """Return how rows of a file are answered, the columns that are not used, and remarks."""
    named, remarks = _row_names(known, file, id_column)
    columns, surplus = matched_columns(known.model, file.columns, named)
    ignored = [name for name in surplus if name != named]
    if ignored:
        more = " ..." if len(ignored) > 8 else ""
        remarks.append(f"The model does not use {', '.join(ignored[:8])}{more}.")
    scorer = RowAnswers(
        known.model,
        columns,
        named,
        TEXT if named is None else file.id_type(named),
        Subject(known.model, known.recipe).reference,
        reasons,
    )
    return scorer, ignored, remarks


def _row_names(known: Opened, file: Table, asked: str | None) -> tuple[str | None, list[str]]:
    """Return the column that names the rows, if there is one, and what is to be said about it."""
    if asked is not None and asked not in file.columns:
        raise DataError(f"{file.path} has no column {asked!r} to name the rows by.")
    named = asked or (None if known.recipe is None else known.recipe.id_column)
    if named is None or named in file.columns:
        return named, []
    return None, [f"{file.path} has no column {named!r}, so rows are named by their position."]


# Images and scans; what these need is loaded only for them


def _score_images(known: Opened, data: Path, output: Path) -> ScoredImages:
    from aberra.scoring import pictures
    from aberra.workflow.image_source import image_source

    started, subject = time.perf_counter(), Subject(known.model, known.recipe)
    if subject.map_threshold is None:
        raise DataError(
            f"{known.name} tells which images are odd, but not where. To get maps, fit a "
            "localiser, such as ADDM."
        )
    rule = pictures.ImageRule(subject.map_threshold, known.model.threshold_, subject.reference)
    preparation = {} if known.recipe is None else known.recipe.preparation
    source = image_source(data, preparation, known.model.image_shape_)
    results = ResultFolder(output, known.digest(), pictures.COLUMNS)
    every, now, errors = _all_scored(
        results, source.names, lambda: pictures.score_images(known.model, source, results, rule)
    )
    flagged = sum(line["flag"] == "true" for line in every)
    return ScoredImages(
        output,
        len(every),
        flagged,
        now - len(errors),
        len(every) - now,
        _oddest(every),
        errors,
        time.perf_counter() - started,
    )


def _score_scans(
    known: Opened,
    data: Path,
    output: Path,
    pattern: str | None,
    axes: str | None,
    relative: bool,
) -> ScoredScans:
    from aberra.data.mri.files import find_volumes
    from aberra.scoring import scans

    started, recipe = time.perf_counter(), known.recipe
    if recipe is None or recipe.map_threshold is None:
        raise DataError(f"{known.name} does not say how high a map is odd. Fit it with aberra fit.")
    paths = find_volumes(data, pattern or recipe.pattern) if data.is_dir() else [data]
    root = data.parent if paths == [data] else data  # one file, or the folder of one series
    healthy = recipe.healthy_scans()
    if relative and (healthy is None or healthy.heights is None):
        raise ArgumentError(
            "relative",
            f"{known.name} does not say how high the maps of healthy scans are, so none can be "
            "relative to them. Fit it again, with enough scans that some can be held out.",
        )
    way = scans.ScanScoring(
        recipe.scan_preparation(),
        recipe.map_threshold,
        axes or recipe.axes,
        recipe.training_looks(),
        healthy,
        relative,
    )
    done_with = known.digest() + (axes or "") + ("relative" if relative else "")
    results = ResultFolder(output, done_with, scans.COLUMNS)
    names = [path.relative_to(root).as_posix() for path in paths]
    every, now, errors = _all_scored(
        results, names, lambda: scans.score_scans(known.model, paths, root, results, way)
    )
    scans.describe_derivatives(root, output, __version__)
    return ScoredScans(
        output,
        root,
        len(every),
        now - len(errors),
        len(every) - now,
        _oddest(every),
        errors,
        time.perf_counter() - started,
    )


def _all_scored(
    results: ResultFolder, names: Sequence[str], work: Callable[[], Iterable[Line]]
) -> tuple[list[Line], int, dict[str, str]]:
    """Score what has no result yet; return all lines, how many are new, and what failed.

    Raises
    ------
    DataError
        If nothing at all could be scored.
    """
    with results.held():
        results.begin()
        now = sum(1 for _ in work())
        results.write(names)
    every = [results.lines[name] for name in names]
    errors = {line[results.columns[0]]: line["error"] for line in every if line["error"]}
    if len(errors) == len(every):
        name, why = next(iter(errors.items()))
        raise DataError(f"None of {len(every)} could be scored. {name}: {why}")
    return every, now, errors


def _oddest(lines: Sequence[Line]) -> list[Line]:
    fine = [line for line in lines if not line["error"]]
    return sorted(fine, key=lambda line: -float(line["score"]))[:N_SHOWN]
