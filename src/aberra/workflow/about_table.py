"""What was chosen for a table, and why: the lines of the summary after a fit."""

from __future__ import annotations

from typing import Any

import pandas as pd

from aberra.data.sources.columns import ColumnChoice, odd_cells
from aberra.data.sources.table_file import TableFile
from aberra.data.tables import kind_of
from aberra.recipe import Choices
from aberra.words import count
from aberra.workflow.about import about_ending, about_ensemble, about_method
from aberra.workflow.budget import Ending
from aberra.workflow.plan import Plan

NAMELESS = "the column without a name"


def data(file: TableFile, rows: pd.DataFrame, columns: ColumnChoice) -> Choices:
    """Say what was read, which columns are used, which are not and why."""
    comma = ", numbers with decimal comma" if file.decimal_comma else ""
    size = f"{len(rows):,} rows, {len(columns.used)} of {rows.shape[1]} columns{comma}"
    lines = [("data", size), ("columns used", ", ".join(columns.used))]
    why: dict[str, list[str]] = {}
    for name, reason in columns.dropped.items():
        why.setdefault(reason, []).append(name or NAMELESS)
    lines += [("left out", f"{', '.join(names)} ({reason})") for reason, names in why.items()]
    for name in columns.used:
        if kind_of(rows[name]) == "text" and (odd := odd_cells(rows[name], file.place_of)):
            lines.append(("mixed", f"{name} holds numbers but for {odd}, so it is used as text"))
    named = columns.id_column
    lines.append(("rows are named", "by position" if named is None else f"by {named or NAMELESS}"))
    return lines


def training(
    model: Any, used: pd.DataFrame, text: list[str], plan: Plan, ending: Ending
) -> Choices:
    """Say how the model was trained and where its threshold lies."""
    lines = [
        ("detector", about_method(plan)),
        ("robust training", about_ensemble(plan)),
        ("scaling", "by the detector, column by column: units do not matter"),
        ("missing values", _about_gaps(used, model.missing, model.sees_gaps)),
    ]
    if text:
        lines.append(("text", f"{', '.join(text)}: every value becomes how rare it is"))
    lines += about_ending(model, ending)
    share = f"{100 * model.contamination_:.1f} % of the training rows lie above it"
    lines.append(("threshold", f"{model.threshold_:.4g} by rule {model.threshold_rule_}: {share}"))
    lines.append(("seed", str(plan.seed)))
    return lines


def labels(column: str, odd: str) -> Choices:
    """Say which labels measured the result."""
    return [("labels", f"{column} (anomalous is {odd}): they measure the result, never train")]


def _about_gaps(used: pd.DataFrame, missing: str, seen: bool) -> str:
    gaps = used.isna().sum()
    n, where = int(gaps.sum()), int((gaps > 0).sum())
    if missing == "error":
        return "none here; a gap in later data is an error"
    if not n and seen:
        return "none here; gaps in later data make a row odd"
    if not n:
        return "none here; gaps in later data take the column's median"
    places = f"{count(n, 'gap')} in {count(where, 'column')}"
    if seen:
        return f"{places} take the column's median, and make a row odd where they are unusual"
    return f"{places} take the column's median (in text, a gap is a value of its own)"
