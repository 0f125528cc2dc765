"""A model from a table: which columns it learns from, how it is trained, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.blocks.extent import is_large
from aberra.data.blocks.opening import OnError
from aberra.data.sources.columns import ColumnChoice, choose_columns
from aberra.data.sources.staged import table_at
from aberra.data.sources.standard_input import STDIN
from aberra.data.sources.table_file import TableFile
from aberra.data.tables import kind_of
from aberra.errors import ArgumentError, DataError
from aberra.explain.doubts import doubts, trust_in
from aberra.explain.reasons import Reason, reasons
from aberra.ray_cluster import connect
from aberra.recipe import Choices, Recipe, score_quantiles
from aberra.words import count
from aberra.workflow import about_table, labels
from aberra.workflow.budget import fit_within
from aberra.workflow.choices import Missing, check_blockwise, check_choices
from aberra.workflow.from_blocks import Asked, learn_by_blocks
from aberra.workflow.outcome import Fitted, carried_out
from aberra.workflow.plan import Plan, flag_settings, plan_for
from aberra.workflow.reviewing import about_marks, learn_marks

FEWEST_ROWS = 10


def fit_table(
    path: str | Path,
    output: str | Path | None = None,
    *,
    detector: Any = None,
    robust: str = "iadc",
    id_column: str | None = None,
    label_column: str | None = None,
    drop: Sequence[str] = (),
    missing: Missing = "impute",
    sql: str | None = None,
    header: bool = True,
    marks: str | Path | None = None,
    threshold: str | None = None,
    contamination: float | None = None,
    fdr: float | None = None,
    seed: int = 0,
    time_budget: float | None = None,
    on_error: OnError | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> Fitted:
    """Learn what is normal in a table, which may contain anomalies and needs no labels.

    Columns that cannot help are left out: identifiers, row counters, columns with one value.
    Numbers, dates and text are used. The recipe of the result names every column and every
    decision.

    Parameters
    ----------
    path : path
        A CSV, TSV, Parquet, Feather, Excel, JSON, npy or npz file with at least ten rows, packed
        or not; a folder of such files with the same columns, or a pattern such as `big/*.parquet`;
        "-" for standard input; with `sql`, a database. More than about a million rows are read
        block by block: training sees a sample of 262,144 rows, and all rows place the threshold. If
        such a fit is stopped, the same call continues it.
    output : path, optional
        The model file to write. By default nothing is written.
    detector : str or estimator, optional
        Name of a method for tables, such as "deep-svdd" or "DeepSVDD", or an unfitted detector
        with settings of your own. By default "multiview".
    robust : {"iadc", "adc", "none"}, default="iadc"
        How to cope with rows that do not belong: an ensemble that learns in rounds how far to
        trust each row, an ensemble that trusts all rows, or the detector alone.
    id_column : str, optional
        The column that names the rows. By default the first column that counts or names them.
    label_column : str, optional
        A column with two values, one of which marks anomalies. It measures the result and is never
        used for training.
    drop : sequence of str, default=()
        Columns to leave out.
    missing : {"impute", "error"}, default="impute"
        Whether gaps take the median of their column or are refused.
    sql : str, optional
        A query whose result is the table. `path` is then an SQLite or DuckDB file, the address of
        another database as SQLAlchemy writes it, or a file of rows, which the query calls `data`.
    header : bool, default=True
        Whether the first line of a CSV file names the columns. Without, they are x0, x1, ...
    marks : path, optional
        What a reviewer decided about some of the rows: `aberra-marks.json`, or a CSV file with the
        columns `id` (or `row`) and `mark`. The rows train like all others; afterwards the scores
        take the marks into account, see `feedback`. None by default.
    threshold : str, optional
        The rule that decides which rows are flagged, a name in `aberra.thresholds.RULES`. By
        default "fdr": as many as can be if a share `fdr` of them may be false alarms.
    contamination : float, optional
        The share of the training rows to flag, instead of a rule.
    fdr : float, optional
        The share of the flagged rows that may be false alarms, for the rule "fdr". By default 0.1.
    seed : int, default=0
        The same seed and file give the same model.
    time_budget : float, optional
        Minutes that training may take. Only IADC can stop early, after any of its rounds; others
        train to their end. No limit by default.
    on_error : {"stop", "skip"}, optional
        What to do about files of a folder that cannot be read: name them and stop, the default, or
        leave them out. If given, the table is read block by block, whatever its length.
    engine : str, optional
        Where the passes over a long table run: "ray" for a Ray cluster, or a joblib backend such as
        "loky". By default in this process. If given, the table is read block by block.
    address : str, optional
        Where the Ray cluster is, such as "auto". By default Ray is started on this machine.

    Returns
    -------
    fitted : Fitted
        The model, its recipe, how long it took, and the path of the model file.

    Raises
    ------
    DataError
        If the file cannot be used, or the model could not be written to `output`.
    ArgumentError
        If an argument makes no sense.

    See Also
    --------
    fit : Choose between tables, images and scans by what a path holds.
    score : Score other files with the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from aberra.workflow import fit_table
    >>> table = load_wine(as_frame=True).data
    >>> table.loc[0, "ash"] = 40.0  # a misplaced decimal point
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wine.csv"
    ...     table.to_csv(file, index=False)
    ...     fitted = fit_table(file, Path(folder) / "wine.aberra")
    >>> fitted.recipe.doubts[0].name, fitted.recipe.doubts[0].reasons[0][0]
    ('row 0', 'ash')
    """
    target = None if output is None else Path(output)
    check_choices(missing=(missing, Missing), on_error=(on_error, OnError))
    plan = plan_for("table", detector, robust, seed, time_budget)
    plan = replace(plan, flags=flag_settings(threshold, contamination, fdr))

    blockwise = sql is None and str(path) != STDIN and header
    check_blockwise(blockwise, on_error, engine, address)
    if blockwise and (on_error or engine or is_large(str(path))):
        asked = Asked(id_column, label_column, drop, missing)
        return _by_blocks(str(path), target, plan, asked, marks, on_error, engine, address)

    def learn() -> tuple[Any, Recipe]:
        file = table_at(path, sql=sql, header=header)
        table = _read(file, id_column, label_column, drop)
        model, recipe = _learnt(table, plan, missing)
        return (model, recipe) if marks is None else _marked(model, recipe, table, Path(marks))

    return carried_out(learn, Path(path), target)


def _by_blocks(
    path: str,
    output: Path | None,
    plan: Plan,
    asked: Asked,
    marks: str | Path | None,
    on_error: OnError | None,
    engine: str | None,
    address: str | None,
) -> Fitted:
    """Fit a long table, or one whose files or workers need care."""
    if marks is not None:
        raise ArgumentError("marks", "A long table is fitted without marks: use feedback after it.")
    if engine == "ray":
        connect(address)

    def learn() -> tuple[Any, Recipe]:
        return learn_by_blocks(path, output, plan, asked, on_error or "stop", engine)

    return carried_out(learn, Path(path), output)


@dataclass(frozen=True)
class TrainingTable:
    """The rows of a file, and the columns that a model learns from."""

    file: TableFile
    rows: pd.DataFrame
    columns: ColumnChoice
    label_column: str | None

    @cached_property
    def used(self) -> pd.DataFrame:
        """The columns that train."""
        return self.rows[self.columns.used]

    @cached_property
    def text(self) -> list[str]:
        """The columns of text among them."""
        return [name for name in self.columns.used if kind_of(self.used[name]) == "text"]

    @cached_property
    def names(self) -> list[str]:
        """What each row is called: its identifier, or its position from 0."""
        if self.columns.id_column is None:
            return [f"row {k}" for k in range(len(self.rows))]
        return self.file.identifiers(self.columns.id_column)


def _read(
    file: TableFile, id_column: str | None, label_column: str | None, drop: Sequence[str]
) -> TrainingTable:
    """Read a table and choose its columns."""
    kinds = {id_column: "text"} if id_column in file.columns else None
    rows = file.read(kinds, unread=set(drop) - {id_column, label_column})
    if len(rows) < FEWEST_ROWS:
        raise DataError(f"{file.path} has {count(len(rows), 'row')}. Give at least {FEWEST_ROWS}.")
    columns = choose_columns(
        rows,
        id_column=id_column,
        label_column=label_column,
        drop=drop,
        labels=file.labels_beside if label_column is None else (),
        place=file.place_of,
    )
    if label_column is not None:
        labels.anomalies(rows[label_column].dropna())  # a bad label is said before the training
    return TrainingTable(file, rows, columns, label_column)


def _learnt(table: TrainingTable, plan: Plan, missing: Missing) -> tuple[Any, Recipe]:
    """Train on a table; return the model and its recipe."""
    model = plan.model(missing=missing, encode="auto" if table.text else "error")
    ending = fit_within(model, table.used, plan.minutes)
    scores = model.training_scores()
    if scores is None:
        scores = model.anomaly_score(table.used)
    metrics, evaluated = _measured(table, scores)
    choices = [
        *about_table.data(table.file, table.rows, table.columns),
        *about_table.training(
            model, table.used, table.used.isna().sum(), plan, ending, table.file.place_of
        ),
        *evaluated,
    ]
    return model, _recipe(table, model, scores, choices, metrics)


def _marked(model: Any, recipe: Recipe, table: TrainingTable, marks: Path) -> tuple[Any, Recipe]:
    """Let the model learn from a review of its training rows."""
    learn_marks(model, table.file, table.columns.id_column, marks)
    said = ("marks", about_marks(model, marks))
    return model, replace(recipe, choices=[*recipe.choices, said])


def _measured(
    table: TrainingTable, scores: NDArray[np.float64]
) -> tuple[dict[str, float], Choices]:
    """Measure the scores against the labels, if there are any."""
    if table.label_column is None:
        return {}, []
    column = table.rows[table.label_column]
    _, odd = labels.anomalies(column.dropna())
    return labels.measured(column, scores), about_table.labels(table.label_column, odd)


def _recipe(
    table: TrainingTable,
    model: Any,
    scores: NDArray[np.float64],
    choices: Choices,
    metrics: dict[str, float],
) -> Recipe:
    def reasons_of(rows: NDArray[np.int64]) -> list[list[Reason]]:
        return reasons(np.asarray(model.explain(table.used.iloc[rows])), table.columns.used)

    return Recipe(
        "table",
        str(table.file.path),
        len(table.rows),
        columns=table.columns.used,
        dropped=table.columns.dropped,
        id_column=table.columns.id_column,
        label_column=table.label_column,
        choices=choices,
        doubts=doubts(trust_in(model, scores), scores, table.names, reasons_of),
        metrics=metrics,
        quantiles=score_quantiles(scores),
    )
