"""What reviewers marked, given back to a model: rejected rows rise, accepted ones fall."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from aberra.data.sources.staged import table_at
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.scoring.odd_cells import told_chunks
from aberra.scoring.rows import RowAnswers, matched_columns
from aberra.scoring.table import CHUNK_ROWS
from aberra.viewer.marks import marks_in
from aberra.words import count, listed
from aberra.workflow.opened import Opened, opened
from aberra.workflow.outcome import check_model_place, save_with_recipe

NAMES = ("id", "row", "name")
MARKS = ("mark", "label")
Named = dict[str, Any]  # from the name of a row to its mark


@dataclass(frozen=True)
class Reviewed:
    """A model that learnt from marks.

    Parameters
    ----------
    model : estimator
        The model, with other scores.
    n_rejected, n_accepted : int
        All marks that it knows now, those of earlier reviews included.
    path : Path or None
        The model file, if one was written.
    """

    model: Any
    n_rejected: int
    n_accepted: int
    path: Path | None = None


def feedback(
    model: Any,
    data: str | Path,
    marks: str | Path,
    output: str | Path | None = None,
    *,
    id_column: str | None = None,
    sql: str | None = None,
    header: bool = True,
) -> Reviewed:
    r"""Let a model learn from what a reviewer marked: what `aberra feedback` does.

    Parameters
    ----------
    model : path, Fitted or estimator
        A model of a table. The marks change its scores; nothing is trained again.
    data : path
        The table that was scored and reviewed.
    marks : path
        What the reviewer decided: `aberra-marks.json`, which the viewer writes, or a CSV file with
        the columns `id` (or `row`, from 0) and `mark` ("reject" or "accept", or 1 and 0).
    output : path, optional
        The model file to write, with all marks so far. By default nothing is written.
    id_column : str, optional
        The column that names the rows. By default the one that the model was fitted with.
    sql : str, optional
        A query whose result is the table; `data` is then a database.
    header : bool, default=True
        Whether the first line of a CSV file names the columns.

    Returns
    -------
    reviewed : Reviewed

    Raises
    ------
    DataError
        If the marks cannot be read, or name rows that the table does not have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from aberra.workflow import feedback, fit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file, marks = Path(folder) / "wine.csv", Path(folder) / "marks.csv"
    ...     load_wine(as_frame=True).data.to_csv(file, index=False)
    ...     _ = marks.write_text("row,mark\n3,reject\n8,accept\n")
    ...     reviewed = feedback(fit(file), file, marks)
    >>> reviewed.n_rejected, reviewed.n_accepted
    (1, 1)
    """
    known = opened(model)
    known.check("table", Path(data))
    target = None if output is None else Path(output)
    if target is not None:
        check_model_place(target, Path(data))
    file = table_at(data, sql=sql, header=header)
    learn_marks(known.model, file, _id_column(known, file, id_column), Path(marks))
    if target is not None:
        save_with_recipe(known.model, known.recipe, target)
    return replace(reviewed(known.model), path=target)


def reviewed(model: Any) -> Reviewed:
    """Return how many marks a model knows."""
    held = model.review_marks()
    n = 0 if held is None else int(held.labels.sum())
    return Reviewed(model, n, 0 if held is None else len(held.labels) - n)


def learn_marks(model: Any, file: TableFile, id_column: str | None, marks: Path) -> None:
    """Give the marked rows of a table back to a model."""
    named = read_marks(marks)
    columns, _ = matched_columns(model, file.columns, id_column)
    answers, found = RowAnswers(model, columns, id_column), []
    for chunk in told_chunks(file, answers, CHUNK_ROWS):
        names = pd.Series(range(chunk.start, chunk.start + len(chunk.frame))).astype(str)
        if id_column is not None:
            names = chunk.frame[id_column].astype(str).reset_index(drop=True)
        here = names.isin(list(named)).to_numpy()
        found.append(chunk.frame[columns][here].assign(**{MARKED: names[here].to_numpy()}))
    rows = pd.concat(found)
    missing = sorted(set(named) - set(rows[MARKED]))
    if missing:
        by = "by position" if id_column is None else f"by {id_column}"
        raise DataError(
            f"{marks} marks {listed([repr(name) for name in missing], 5)}, but {file.path} has no "
            f"such {'row' if len(missing) == 1 else 'rows'} ({by}). Give the table that was "
            "reviewed."
        )
    given = rows[columns] if model.column_names() is not None else rows[columns].to_numpy()
    model.feedback(given, [named[name] for name in rows[MARKED]])


MARKED = "\0marked"  # no column has this name


def read_marks(path: Path) -> Named:
    """Return the marks in a file of the viewer, or in a CSV file."""
    if path.name.lower().endswith(".json"):
        groups = marks_in(path)
        held: Named = {name: mark for marks in groups.values() for name, mark in marks.items()}
    else:
        held = _from_table(path)
    if not held:
        raise DataError(f"There is no mark in {path}.")
    return held


def _from_table(path: Path) -> Named:
    file = table_at(path)
    names = next((name for name in NAMES if name in file.columns), None)
    marks = next((name for name in MARKS if name in file.columns), None)
    if names is None or marks is None:
        raise DataError(f"{path} needs the columns id (or row) and mark, not {file.columns[:5]}.")
    rows = file.read({names: "text"})
    marked = rows[rows[marks].notna()]
    nameless = marked[names].isna().to_numpy()
    if nameless.any():
        place = file.place_of(int(marked.index.to_numpy()[nameless.argmax()]))
        raise DataError(
            f"{path}, {place}: there is a mark, but no {names} to say which row it is for. Fill it "
            "in, or delete the line."
        )
    return dict(zip(marked[names].astype(str), marked[marks].tolist(), strict=True))


def _id_column(known: Opened, file: TableFile, asked: str | None) -> str | None:
    if asked is not None and asked not in file.columns:
        raise DataError(f"{file.path} has no column {asked!r} to name the rows by.")
    named = asked or (None if known.recipe is None else known.recipe.id_column)
    return named if named in file.columns else None


def about_marks(model: Any, marks: Path) -> str:
    """Say how many rows a reviewer marked, for the summary of a fit."""
    known = reviewed(model)
    return f"{count(known.n_rejected, 'row')} rejected, {known.n_accepted:,} accepted ({marks})"
