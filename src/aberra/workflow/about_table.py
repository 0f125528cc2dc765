"""What was chosen for a table, and why: the lines of the summary after a fit."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection
from typing import Any

import pandas as pd

from aberra.data.blocks.source import Blocks
from aberra.data.sources.columns import TWO_WAYS, ColumnChoice, odd_cells
from aberra.data.sources.table_file import TableFile
from aberra.data.tables import kind_of
from aberra.data.written import form_of, means, odd_places, two_ways
from aberra.recipe import Choices
from aberra.words import count
from aberra.workflow.about import (
    about_ending,
    about_ensemble,
    about_method,
    flagged_in_training,
)
from aberra.workflow.budget import Ending
from aberra.workflow.plan import Plan

FEWEST_RISES = 20  # rows, so that a column hardly rises all the way by chance
RISES = "rises from row to row: if it only numbers or dates the rows, leave it out with --drop"
MEDIAN = "take the column's median"
NAMELESS = "the column without a name"


def data(file: TableFile, rows: pd.DataFrame, columns: ColumnChoice) -> Choices:
    """Say what was read, which columns are used, which are not and why."""
    comma = ", numbers with decimal comma" if file.decimal_comma else ""
    size = f"{len(rows):,} rows, {len(columns.used)} of {rows.shape[1]} columns{comma}"
    lines = [("data", size), *_about_columns(columns)]
    for name in columns.used:
        if kind_of(rows[name]) == "number" and _rises(rows[name]):
            lines.append(("in order", f"{name or NAMELESS} {RISES} {shlex.quote(name)}"))
        if kind_of(rows[name]) != "text":
            continue
        if two_ways(rows[name]):
            lines.append(("mixed", f"{name} {TWO_WAYS}; it is used as text"))
        elif (odd := odd_cells(rows[name], file.place_of)) and not form_of(rows[name]):
            lines.append(("mixed", f"{name} holds numbers but for {odd}, so it is used as text"))
    return [*lines, _about_names(columns)]


def _rises(column: pd.Series[Any]) -> bool:
    long_enough = len(column) >= FEWEST_RISES
    return bool(long_enough and column.is_monotonic_increasing and column.is_unique)


def long_data(blocks: Blocks, n_seen: int, columns: ColumnChoice) -> Choices:
    """Say the same of a table that was read block by block."""
    files = "" if len(blocks.parts) == 1 else f" in {len(blocks.parts):,} files"
    used = f"{len(columns.used)} of {len(blocks.kinds)} columns"
    lines = [("data", f"{blocks.n_rows:,} rows{files}, {used}")]
    if n_seen < blocks.n_rows:
        lines.append(("sample", f"training saw {n_seen:,} rows; all rows placed the threshold"))
    lines += [("file left out", f"{name}: {why}") for name, why in blocks.skipped.items()]
    return [*lines, *_about_columns(columns), _about_names(columns)]


def _about_columns(columns: ColumnChoice) -> Choices:
    why: dict[str, list[str]] = {}
    for name, reason in columns.dropped.items():
        why.setdefault(reason, []).append(name or NAMELESS)
    left_out = [("left out", f"{', '.join(names)} ({reason})") for reason, names in why.items()]
    return [("columns used", ", ".join(columns.used)), *left_out]


def _about_names(columns: ColumnChoice) -> tuple[str, str]:
    named = columns.id_column
    return "rows are named", "by position" if named is None else f"by {named or NAMELESS}"


def training(
    model: Any,
    rows: pd.DataFrame,
    gaps: pd.Series[Any],
    plan: Plan,
    ending: Ending,
    place: Callable[[int], str],
) -> Choices:
    """Say how the model was trained and where its threshold lies.

    `rows` are those that it saw, and `place` says where one is. `gaps` says how many each of the
    columns has.
    """
    forms = _forms(model, rows)
    odd = {name: odd_places(rows[name], form) for name, form in forms.items()}
    others = pd.Series({name: len(places) for name, places in odd.items()}, dtype=float)
    gaps = gaps.add(others, fill_value=0)
    text = [str(name) for name in rows if kind_of(rows[name]) == "text" and name not in forms]
    lines = [
        ("detector", about_method(plan)),
        ("robust training", about_ensemble(plan)),
        ("scaling", "by the detector, column by column: units do not matter"),
        ("missing values", _about_gaps(gaps, text, model.missing, model.sees_gaps)),
    ]
    for name, form in forms.items():
        kind = "dates" if means(form) == "time" else "numbers"
        but = _about_others(rows[name], odd[name], place)
        lines.append((kind, f"{name or NAMELESS}: written as {form!r}{but}"))
    if text:
        lines.append(("text", f"{', '.join(text)}: every value becomes how rare it is"))
    lines += about_ending(model, ending)
    return [*lines, threshold(model), ("seed", str(plan.seed))]


def _forms(model: Any, rows: pd.DataFrame) -> dict[str, str]:
    """Return how numbers and dates are written in columns of text, by name."""
    forms = (None if model.reader_ is None else model.reader_.forms) or {}
    return {str(rows.columns[j]): form for j, form in forms.items()}


def _about_others(column: pd.Series[Any], odd: Any, place: Callable[[int], str]) -> str:
    """Say which cells are not written like the others."""
    if not len(odd):
        return ""
    shown, where = repr(str(column.iloc[odd[0]])), place(int(odd[0]))
    if len(odd) == 1:
        return f"; {shown} in {where} is not, and counts as a gap"
    return f"; {count(len(odd), 'cell')} are not and count as gaps, the first {shown} in {where}"


def threshold(model: Any) -> tuple[str, str]:
    """Say where the threshold lies."""
    share = f"{flagged_in_training(model)} lie above it"
    return "threshold", f"{model.threshold_:.4g} by rule {model.threshold_rule_}: {share}"


def labels(column: str, odd: str, n_seen: int | None = None) -> Choices:
    """Say which labels measured the result, and on how many sampled rows."""
    where = "" if n_seen is None else f" on {count(n_seen, 'sampled row')}"
    told = f"{column} (anomalous is {odd}): they measure the result{where}, never train"
    return [("labels", told)]


def _about_gaps(gaps: pd.Series[Any], text: Collection[str], missing: str, seen: bool) -> str:
    """Say what becomes of gaps, those of numbers and dates and those of text."""
    if missing == "error":
        return "none here; a gap in later data is an error"
    if not gaps.sum():
        return f"none here; gaps in later data {'make a row odd' if seen else MEDIAN}"
    in_text = gaps.index.isin(list(text))
    said, n, n_text = [], int(gaps[~in_text].sum()), int(gaps[in_text].sum())
    if n:
        places = f"{count(n, 'gap')} in {count(int((gaps[~in_text] > 0).sum()), 'column')}"
        if n == 1:
            odd = ", and makes a row odd where it is unusual"
            said.append(f"{places} takes the column's median{odd if seen else ''}")
        else:
            odd = ", and make a row odd where they are unusual"
            said.append(f"{places} {MEDIAN}{odd if seen else ''}")
    if n_text:
        counts = "counts as a value of its own" if n_text == 1 else "count as a value of their own"
        said.append(f"{count(n_text, 'gap')} in text {counts}")
    return "; ".join(said)
