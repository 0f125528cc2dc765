"""Which columns of a table a model learns from, and why the others are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from aberra.data.tables import kind_of
from aberra.data.written import form_of, two_ways
from aberra.errors import DataError
from aberra.words import count

NEARLY_ALL = 0.9  # share of distinct values above which text is a name, not a category

SHOWN = 20  # columns of which a message tells

COUNTER = "counts the rows"
NAMES = "text, every value different: names the rows"
TWO_WAYS = "can be read in two ways: write such numbers as 1234.5, and such dates as 2026-02-27"
IDENTIFY = (COUNTER, NAMES)


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that train, those that do not and why, and the one that names the rows."""

    used: list[str]
    dropped: dict[str, str]
    id_column: str | None


def choose_columns(
    table: pd.DataFrame,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    drop: Sequence[str] = (),
    labels: Sequence[str] = (),
    place: Callable[[int], str] = "row {}".format,
) -> ColumnChoice:
    """Choose the columns to learn from.

    Parameters
    ----------
    table : DataFrame
    id_column : str, optional
        The column that names the rows; without it, the first that counts or names them.
    label_column : str, optional
        Left out: labels measure the result, they never train.
    drop : sequence of str
        Columns to leave out.
    labels : sequence of str
        Columns that look like labels, left out unless they are named otherwise.
    place : callable, default="row {}".format
        Says where the row at a position is, for messages.

    Returns
    -------
    choice : ColumnChoice

    Examples
    --------
    >>> import pandas as pd
    >>> from aberra.data.sources.columns import choose_columns
    >>> table = pd.DataFrame({"who": ["Ada", "Bob", "Cy"], "age": [36, 41, 36], "unit": 1})
    >>> choose_columns(table)  # doctest: +NORMALIZE_WHITESPACE
    ColumnChoice(used=['age'], dropped={'who': 'text, every value different: names the rows',
    'unit': 'the same value everywhere'}, id_column='who')
    """
    asked = dict.fromkeys(
        labels, "labels beside the rows: --label-column measures the result by them"
    )
    asked |= dict.fromkeys(drop, "left out as asked")
    if label_column is not None:
        asked[label_column] = "label: measures the result, never trains"
    if id_column is not None:
        asked[id_column] = "names the rows"
    _check_present(list(asked), table)
    found = {str(name): why_not(table[name], place) for name in table.columns if name not in asked}
    dropped = {**asked, **{name: why for name, why in found.items() if why is not None}}
    used = [name for name, why in found.items() if why is None]
    if not used:
        shown = dict(list(dropped.items())[:SHOWN])
        more = f" and {len(dropped) - SHOWN:,} more" if len(dropped) > SHOWN else ""
        raise DataError(f"No column is left to learn from: {shown}{more}. Keep at least one.")
    if id_column is None:
        id_column = next((name for name, why in found.items() if why in IDENTIFY), None)
    return ColumnChoice(used, dropped, id_column)


def why_not(column: pd.Series[Any], place: Callable[[int], str] = "row {}".format) -> str | None:
    """Return why a column cannot help a detector, or None."""
    values = column.dropna()
    if values.empty:
        return "no value at all"
    distinct = values.nunique()
    text = kind_of(column) == "text"
    if distinct == 1 and (not text or len(values) == len(column)):
        return "the same value everywhere"
    if text:
        return _why_not_text(column, place)
    return COUNTER if _counts_rows(values, distinct) else None


def _why_not_text(column: pd.Series[Any], place: Callable[[int], str]) -> str | None:
    n, distinct = int(column.count()), column.nunique()
    if distinct <= NEARLY_ALL * n or distinct == 1 or form_of(column) is not None:
        return None
    if odd := odd_cells(column, place):
        return f"numbers but for {odd}: correct these cells to use the column"
    if two_ways(column):
        return TWO_WAYS
    return NAMES if distinct == n else "text, nearly every value different"


def odd_cells(column: pd.Series[Any], place: Callable[[int], str] = "row {}".format) -> str:
    """Return the few cells of a column of numbers that are none, or "" if it holds text."""
    odd = column.notna() & pd.to_numeric(column, errors="coerce").isna()
    n = int(odd.sum())
    if not 0 < n <= (1 - NEARLY_ALL) * int(column.notna().sum()):
        return ""
    shown = ", ".join(repr(str(value)) for value in column[odd].unique()[:3])
    first = "" if n == 1 else "first "
    return f"{shown} ({count(n, 'row')}) {first}in {place(int(odd.to_numpy().argmax()))}"


def _counts_rows(values: pd.Series[Any], distinct: int) -> bool:
    if not pd.api.types.is_integer_dtype(values.dtype) or distinct < len(values):
        return False
    return len(values) > 2 and int(values.max()) - int(values.min()) == len(values) - 1


def _check_present(names: Sequence[str], table: pd.DataFrame) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        known = ", ".join(str(name) for name in table.columns[:SHOWN])
        raise DataError(f"There is no column {missing[0]!r}. The columns are {known}.")
