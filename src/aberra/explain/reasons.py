"""Why a row is odd: the columns that its score comes from.

There is one rule for what counts as a reason, and `leading` is it: at most three columns, the
largest share first, each with at least 5 % of the score, and the largest one in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.contract.rows import RowScorer
from aberra.data.rarity import is_known
from aberra.words import number, percent

N_REASONS = 3
LEAST_SHARE = 0.05
LONGEST_TEXT = 40

Shares = NDArray[np.float64]  # (n, d): each column's share of the score, as `explain` returns it


class Reason(NamedTuple):
    """A column that a score comes from, and its share of the score; a pair in files."""

    column: str
    share: float


@dataclass(frozen=True)
class ReasonInWords:
    """A reason with the value that the row has there, and what is usual in the column."""

    column: str
    share: float
    value: str = ""
    usual: str = ""


def leading(shares: Shares) -> NDArray[np.int64]:
    """Return which columns are the reasons of each row.

    Parameters
    ----------
    shares : ndarray of shape (n, d)
        Each column's share of the score.

    Returns
    -------
    columns : ndarray of shape (n, 3)
        Positions of columns, the largest share first; -1 where there are fewer reasons.

    Examples
    --------
    >>> leading(np.array([[0.04, 0.9, 0.06], [0.0, 1.0, 0.0]]))
    array([[ 1,  2, -1],
           [ 1, -1, -1]])
    """
    found = np.full((len(shares), N_REASONS), -1, dtype=np.int64)
    order = np.argsort(-shares, axis=1, kind="stable")[:, :N_REASONS]
    held = np.take_along_axis(shares, order, axis=1)
    counts = held >= LEAST_SHARE
    counts[:, 0] = held[:, 0] > 0
    found[:, : order.shape[1]] = np.where(counts, order, -1)
    return found


def leading_names(shares: Shares, columns: Sequence[str]) -> NDArray[np.object_]:
    """Return the names of each row's reasons, for the columns of a table of scores.

    Parameters
    ----------
    shares : ndarray of shape (n, d)
    columns : sequence of str
        Names of the d columns.

    Returns
    -------
    names : ndarray of shape (3, n)
        First, second and third reason; None where there are fewer.
    """
    names = np.array([*columns, None], dtype=object)  # -1 leads to the last one
    return np.asarray(names[leading(shares).T])


def reasons(shares: Shares, columns: Sequence[str]) -> list[list[Reason]]:
    """Return the reasons of each row.

    Parameters
    ----------
    shares, columns
        As in `leading_names`.

    Returns
    -------
    reasons : list of list of Reason
        One list for each row, the largest share first.
    """
    return [
        [Reason(str(columns[j]), float(line[j])) for j in found if j >= 0]
        for line, found in zip(shares, leading(shares), strict=True)
    ]


def as_fitted(model: RowScorer, rows: pd.DataFrame) -> Any:
    """Return rows as the model saw them when it was fitted: with column names or without."""
    return rows if model.column_names() is not None else rows.to_numpy()


def reasons_in_words(model: RowScorer, rows: pd.DataFrame) -> list[tuple[ReasonInWords, ...]]:
    """Return the reasons of each row, with the row's value and what is usual in the column.

    Parameters
    ----------
    model : RowScorer
        Fitted on a table.
    rows : DataFrame
        The columns that the model takes, in its order.

    Returns
    -------
    reasons : list of tuple of ReasonInWords
    """
    shares = np.asarray(model.explain(as_fitted(model, rows)))
    worded = _worded(model, rows, shares)
    return [
        tuple(worded(i, int(j)) for j in found if j >= 0) for i, found in enumerate(leading(shares))
    ]


def columns_in_words(model: RowScorer, rows: pd.DataFrame) -> list[tuple[ReasonInWords, ...]]:
    """Return all columns of each row in words, the largest share of the score first.

    Parameters
    ----------
    model, rows
        As in `reasons_in_words`.

    Returns
    -------
    columns : list of tuple of ReasonInWords
    """
    shares = np.asarray(model.explain(as_fitted(model, rows)))
    worded, order = _worded(model, rows, shares), np.argsort(-shares, axis=1, kind="stable")
    return [tuple(worded(i, int(j)) for j in places) for i, places in enumerate(order)]


def _worded(
    model: RowScorer, rows: pd.DataFrame, shares: Shares
) -> Callable[[int, int], ReasonInWords]:
    """Return what puts a cell into words: its row and column in, its reason out."""
    names, usual = [str(name) for name in rows.columns], _Usual(model, rows)

    def worded(i: int, j: int) -> ReasonInWords:
        return ReasonInWords(
            names[j], float(shares[i, j]), shown_value(rows.iat[i, j]), usual(i, j)
        )

    return worded


class _Usual:
    """What is usual in a column, in words."""

    def __init__(self, model: RowScorer, rows: pd.DataFrame) -> None:
        self.quartiles = model.references_
        self.reader = model.reader_
        self.kinds = None if self.reader is None else self.reader.meanings()
        self.numbers = None if self.reader is None else self.reader.transform(rows)
        self.rows = rows
        # The number that a column became; dates, which become several, have no words here.
        owners = np.arange(rows.shape[1]) if self.reader is None else self.reader.owners()
        self.place = np.searchsorted(owners, np.arange(rows.shape[1]))
        self.left_out = set(range(rows.shape[1])) - set(owners.tolist())

    def __call__(self, i: int, j: int) -> str:
        """Say where the middle half of column j lies, or how many rows share row i's text."""
        if j in self.left_out:
            return ""
        kind = "number" if self.kinds is None else self.kinds[j]
        if kind == "number":
            low, high = (number(self.quartiles[q, self.place[j]], 3) for q in (0, 2))
            return f"usually {low}" if low == high else f"usually {low} to {high}"
        if kind != "text" or self.reader is None or self.numbers is None:
            return ""
        # The reader turns a text that n of N rows have into log(N + 1) - log(n + 1).
        if not is_known(self.rows.iat[i, j], self.reader.rarity[j]):
            return "never seen in training"
        seen = np.expm1(self.reader.unseen - self.numbers[i, self.place[j]])
        return f"in {percent(float(seen / np.expm1(self.reader.unseen)))} of the training rows"


def shown_value(value: Any) -> str:
    """Return a cell of a table as a person reads it.

    Examples
    --------
    >>> shown_value(1234.5), shown_value(float("nan")), shown_value("Rome")
    ('1,234', 'missing', 'Rome')
    """
    if pd.isna(value):
        return "missing"
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return number(float(value))
    text = str(value)
    if isinstance(value, pd.Timestamp):
        text = text.removesuffix(" 00:00:00")  # a day needs no hour
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
