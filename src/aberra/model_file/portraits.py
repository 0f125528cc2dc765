"""Whether the portrait of a training table that comes from a file can be compared with other rows.

Types and sizes of its arrays were checked while they were read; here it is what they say.
"""

from __future__ import annotations

import numpy as np

from aberra.data.drift.distributions import Categories, Numbers
from aberra.data.drift.portrait import ColumnPortrait, Portrait
from aberra.data.tables import KINDS
from aberra.data.written import means
from aberra.model_file.kinds import damaged

WHERE = "learnt.portrait_"
MOST = 1 << 53  # rows; shares of more could not be told apart


def check_portrait(portrait: Portrait, n: int) -> None:
    """Raise an error unless a portrait is one of n columns, and all that it counts adds up."""
    if len(portrait.columns) != n:
        damaged(f"{WHERE}.columns", f"{len(portrait.columns)} columns instead of {n}")
    if not 0 <= portrait.n_flagged <= portrait.n_rows < MOST:
        damaged(f"{WHERE}.n_flagged", f"{portrait.n_flagged} of {portrait.n_rows} rows")
    for j, column in enumerate(portrait.columns):
        _check_column(column, f"{WHERE}.columns.{j}")
    if portrait.scores is not None:
        _check_numbers(portrait.scores, f"{WHERE}.scores")


def _check_column(column: ColumnPortrait, where: str) -> None:
    if not 0 <= column.n_gaps < MOST:
        damaged(f"{where}.n_gaps", f"{column.n_gaps} gaps")
    text, numbers = column.categories, column.numbers
    if column.kind not in KINDS or (column.kind == "text") != (text is not None):
        damaged(f"{where}.kind", f"{column.kind!r} does not fit what is counted")
    if column.form is not None and means(column.form) != column.kind:
        damaged(f"{where}.form", f"{column.form!r} is no form of such a column")
    if (text is None) == (numbers is None):
        damaged(where, "a column holds either numbers or labels")
    if text is not None:
        _check_labels(text, where)
    if numbers is not None:
        _check_numbers(numbers, where)


def _check_labels(held: Categories, where: str) -> None:
    if len(held.labels) != len(held.counts) or len(set(held.labels)) != len(held.labels):
        damaged(f"{where}.categories", "not one count for each of different labels")
    counts = [held.n_others, *held.counts.tolist()]
    if min(counts) < 0 or sum(counts) >= MOST:
        damaged(f"{where}.categories", "a count is below zero, or beyond all rows")


def _check_numbers(held: Numbers, where: str) -> None:
    """Refuse points that do not rise, counts that fall, and ends in the wrong order."""
    counts = np.stack([held.below, held.upto], axis=1).ravel()
    if not 0 <= held.n < MOST or (np.diff(counts, prepend=0, append=held.n) < 0).any():
        damaged(f"{where}.numbers", f"these are not counts of {held.n} values")
    if not np.isfinite(held.points).all() or (np.diff(held.points) <= 0).any():
        damaged(f"{where}.numbers.points", "they do not rise")
    if held.n and not -np.inf < held.lowest <= held.highest < np.inf:
        damaged(f"{where}.numbers", f"values from {held.lowest} to {held.highest}")
