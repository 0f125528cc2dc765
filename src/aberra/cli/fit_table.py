"""A model from a table: what is learnt from, how, and what came out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.cli.budget import fit_in_rounds
from aberra.cli.wishes import Budget, Missing, Robust, Wishes, table_model
from aberra.data.sources.columns import ColumnChoice, choose_columns
from aberra.data.sources.table_file import TableFile
from aberra.data.tables import kind_of
from aberra.errors import DataError
from aberra.explain.doubts import doubts, trust_in
from aberra.explain.reasons import Reason, reasons
from aberra.explain.rounds import story_of
from aberra.metrics import auroc, average_precision
from aberra.recipe import Recipe, score_quantiles
from aberra.words import count

FEWEST_ROWS = 10
NAMELESS = "the column without a name"
Choices = list[tuple[str, str]]

WHY_ROBUST = {
    Robust.iadc: "IADC: rows may be dirty, so trust in each is learnt in rounds",
    Robust.adc: "ADC: an ensemble on resampled rows, all fully trusted",
    Robust.none: "none: one detector, all rows fully trusted",
}


def fit_table(wishes: Wishes) -> tuple[Any, Recipe]:
    """Fit a model on a table; return it with its recipe."""
    named = wishes.id_column
    file = TableFile(wishes.data)
    table = file.read({named: "text"} if named in file.columns else None)
    if len(table) < FEWEST_ROWS:
        raise DataError(
            f"{wishes.data} has {count(len(table), 'row')}. Give at least {FEWEST_ROWS}."
        )
    columns = choose_columns(
        table,
        id_column=named,
        label_column=wishes.label_column,
        drop=wishes.drop,
        labels=file.labels_beside if wishes.label_column is None else (),
    )
    if wishes.label_column is not None:
        anomalies(table[wishes.label_column].dropna())  # said now, not after the training
    X = table[columns.used]
    text = [name for name in columns.used if kind_of(X[name]) == "text"]
    model = table_model(wishes, "auto" if text else "error")
    ended = _fit(model, X, wishes)
    scores = model.training_scores()
    if scores is None:
        scores = model.anomaly_score(X)
    names = row_names(file, columns.id_column, len(table))
    comma = ", numbers with decimal comma" if file.decimal_comma else ""
    choices = [
        ("data", f"{len(X):,} rows, {len(columns.used)} of {table.shape[1]} columns{comma}"),
        *_column_choices(columns),
        *_training_choices(model, X, text, wishes, ended),
    ]
    metrics, evaluated = _evaluation(table, wishes.label_column, scores)
    recipe = Recipe(
        "table",
        str(wishes.data),
        len(X),
        columns=columns.used,
        dropped=columns.dropped,
        id_column=columns.id_column,
        label_column=wishes.label_column,
        choices=[*choices, *evaluated],
        doubts=doubts(trust_in(model, scores), scores, names, lambda k: _reasons(model, X.iloc[k])),
        metrics=metrics,
        quantiles=score_quantiles(scores),
    )
    return model, recipe


def _fit(model: Any, X: pd.DataFrame, wishes: Wishes) -> bool:
    if wishes.minutes is not None and wishes.robust_for("table") is Robust.iadc:
        return fit_in_rounds(model, X, Budget(wishes.minutes))
    model.fit(X)
    return False


def row_names(file: TableFile, id_column: str | None, n_rows: int) -> list[str]:
    """Return what each row is called: its identifier, or its position from 0."""
    if id_column is None:
        return [f"row {k}" for k in range(n_rows)]
    return file.identifiers(id_column)


def _reasons(model: Any, rows: pd.DataFrame) -> list[list[Reason]]:
    return reasons(np.asarray(model.explain(rows)), [str(name) for name in rows.columns])


def _column_choices(columns: ColumnChoice) -> Choices:
    lines = [("columns used", ", ".join(columns.used))]
    why: dict[str, list[str]] = {}
    for name, reason in columns.dropped.items():
        why.setdefault(reason, []).append(name)
    for reason, names in why.items():
        lines.append(("left out", f"{', '.join(name or NAMELESS for name in names)} ({reason})"))
    named = columns.id_column
    lines.append(("rows are named", "by position" if named is None else f"by {named or NAMELESS}"))
    return lines


def _training_choices(
    model: Any, X: pd.DataFrame, text: list[str], wishes: Wishes, ended: bool
) -> Choices:
    robust = wishes.robust_for("table")
    detector = model if robust is Robust.none else model.detector
    default = ", the default for tables" if wishes.detector is None else ", as asked"
    lines = [
        ("detector", f"{type(detector).__name__}{default}"),
        ("robust training", WHY_ROBUST[robust]),
        ("scaling", "by the detector, column by column: units do not matter"),
        ("missing values", _about_gaps(X, wishes.missing)),
    ]
    if text:
        lines.append(("text", f"{', '.join(text)}: every value becomes how rare it is"))
    if robust is Robust.iadc:
        lines.append(("rounds", _about_rounds(model, wishes, ended)))
    elif wishes.minutes is not None:
        lines.append(("time budget", "not used: only IADC trains in rounds that can stop early"))
    share = f"{100 * model.contamination_:.1f} % of the training rows lie above it"
    lines.append(("threshold", f"{model.threshold_:.4g} by rule {model.threshold_rule_}: {share}"))
    lines.append(("seed", str(wishes.seed)))
    return lines


def _about_gaps(X: pd.DataFrame, missing: Missing) -> str:
    gaps = X.isna().sum()
    n, where = int(gaps.sum()), int((gaps > 0).sum())
    if missing is Missing.error:
        return "none here; a gap in later data is an error"
    if not n:
        return "none here; later ones take the column's median"
    places = f"{count(n, 'gap')} in {count(where, 'column')}"
    return f"{places} take the column's median (text: a value of its own)"


def _about_rounds(model: Any, wishes: Wishes, ended: bool) -> str:
    because = f"the time budget of {wishes.minutes:g} min was used" if ended else ""
    story = story_of(model, because)
    assert story is not None
    return story.in_short()


def _evaluation(
    table: pd.DataFrame, label_column: str | None, scores: NDArray[np.float64]
) -> tuple[dict[str, float], Choices]:
    """Measure the scores against labels, which nothing was trained on."""
    if label_column is None:
        return {}, []
    known = table[label_column].notna().to_numpy()
    y, meaning = anomalies(table[label_column][known])
    metrics = {"auroc": auroc(y, scores[known]), "ap": average_precision(y, scores[known])}
    return metrics, [("labels", f"{label_column} ({meaning}): they evaluate, never train")]


def anomalies(labels: pd.Series[Any]) -> tuple[NDArray[np.bool_], str]:
    """Return which labels mean an anomaly, and what was taken for one."""
    kinds = labels.unique()
    if len(kinds) != 2:
        raise DataError(
            f"The label column {labels.name!r} holds {len(kinds)} different values. It must hold "
            "two: normal and anomalous."
        )
    if kind_of(labels) == "number" and {*map(float, kinds)} in ({0.0, 1.0}, {-1.0, 1.0}):
        odd = 1 if 0 in kinds else -1
    else:
        odd = labels.value_counts(ascending=True).index[0]
    return (labels == odd).to_numpy(bool), f"anomalous is {odd}"
