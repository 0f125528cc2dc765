"""Numbers and dates as people write them: in which form a column of text is, and what it says.

A form is an example: the number 1234.56, or the afternoon of 27 February 2026, as the column writes
it ("1.234,56 €", "12 kg" as "1234 kg", "27.02.2026 16:05"). It is found from the values alone, and
reading needs nothing but the form: a cell means the same in any company.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aberra.data import written_dates, written_numbers
from aberra.data.date_parts import EPOCH

NEARLY_ALL = 0.95  # of the cells of a column have to be in its form
LOOKED_AT = 1000  # cells that have to make a form likely, before all are looked at
LIKELY = 0.8

Floats = NDArray[np.float64]


def form_of(column: pd.Series[Any]) -> str | None:
    """Return the form in which nearly all values of a text column are written, if there is one.

    Plain whole numbers have none, for they may be postcodes, and neither has a column in which
    `1,234` or `03/04/2026` can be read in two ways, or all cells say the same.

    Examples
    --------
    >>> import pandas as pd
    >>> form_of(pd.Series(["3,50 €", "1.200,00 €"])), form_of(pd.Series(["A12", "B7"]))
    ('1.234,56 €', None)
    """
    form, values = _found(column)
    return form if len(values) and np.ptp(values) > 0 else None


def read_as(column: pd.Series[Any], form: str) -> Floats:
    """Return the numbers of a column, or its dates in seconds since 1970 (UTC).

    NaN stands where a cell is not in that form. Cells that are numbers or dates already, and no
    text, are what they are.

    Examples
    --------
    >>> import pandas as pd
    >>> read_as(pd.Series(["3,50 €", "1.200 €", "12 $", None]), "1.234,56 €")
    array([   3.5, 1200. ,    nan,    nan])
    """
    dates = means(form) == "time"
    if dates and pd.api.types.is_datetime64_any_dtype(column.dtype):
        return _seconds(column)
    if not dates and pd.api.types.is_numeric_dtype(column.dtype):
        return np.asarray(column.to_numpy(np.float64, na_value=np.nan), np.float64)
    encoded = _texts(column).dictionary_encode()
    kind = written_dates if dates else written_numbers
    values = np.append(kind.read(encoded.dictionary, form), np.nan)
    places = pc.fill_null(encoded.indices, len(values) - 1)
    return np.asarray(values[np.asarray(places)], np.float64)


def dates_of(column: pd.Series[Any]) -> Floats:
    """Return new cells of a column of dates in seconds since 1970 (UTC).

    Text is read as ISO dates, or in the form that all of it has.

    Raises
    ------
    ValueError
        If that leaves open which dates are meant, as numbers and `03/04/2026` do.
    """
    if pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
        raise ValueError(f"numbers, which may count anything ({column.dropna().iloc[0]})")
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return _seconds(column)
    try:
        return _seconds(pd.to_datetime(column, utc=True, format="ISO8601"))
    except ValueError as error:
        form, _ = _found(column)
        if form is not None and means(form) == "time" and not len(odd_places(column, form)):
            return read_as(column, form)
        read = pd.to_datetime(column, utc=True, format="ISO8601", errors="coerce")
        first = str(column[read.isna() & column.notna()].iloc[0])
        why = "can be read in two ways" if two_ways(column) else "is no date, or not as the others"
        raise ValueError(f"{first!r} {why}. Write dates as 2026-02-27") from error


def means(form: str) -> str | None:
    """Return what a form writes, "number" or "time"; None for what is no form."""
    if written_dates.is_form(form):
        return "time"
    return "number" if written_numbers.is_form(form) else None


def two_ways(column: pd.Series[Any]) -> bool:
    """Say whether a column has no form because most cells can be read in two ways.

    Examples
    --------
    >>> import pandas as pd
    >>> two_ways(pd.Series(["1,234", "5,678"])), two_ways(pd.Series(["1,234", "5,678.50"]))
    (True, False)
    """
    held = column.dropna()
    some = _distinct(held.iloc[:: -(-len(held) // LOOKED_AT) or 1])
    return any(
        some.n and some.counts[kind.contested(some.cells)].sum() >= LIKELY * some.n
        for kind in (written_dates, written_numbers)
    ) and (form_of(column) is None)


def odd_places(column: pd.Series[Any], form: str) -> NDArray[np.int64]:
    """Return where a column has a cell that is not in its form; gaps are none."""
    return np.flatnonzero(np.isnan(read_as(column, form)) & np.asarray(column.notna()))


def _found(column: pd.Series[Any]) -> tuple[str | None, Floats]:
    """Return the form of nearly all cells, even if they all say the same, and what they say."""
    held = column.dropna()
    some = _distinct(held.iloc[:: -(-len(held) // LOOKED_AT) or 1])
    for kind in (written_dates, written_numbers):
        if not some.n or some.counts[kind.likely(some.cells)].sum() < LIKELY * some.n:
            continue
        found = some if len(held) <= LOOKED_AT else _distinct(held)
        form = kind.form_of(found.cells, found.counts)
        values = np.empty(0) if form is None else kind.read(found.cells, form)
        known = ~np.isnan(values)
        if not known.any() or found.counts[known].sum() < NEARLY_ALL * found.n:
            break
        return form, values[known]
    return None, np.empty(0)


def _seconds(dates: pd.Series[Any]) -> Floats:
    since = pd.to_datetime(dates, utc=True) - EPOCH
    return np.asarray(since.dt.total_seconds(), np.float64)


@dataclass(frozen=True)
class _Distinct:
    """The different texts of a column, how often each occurs, and the number of all cells."""

    cells: pa.Array
    counts: NDArray[np.int64]
    n: int


def _distinct(column: pd.Series[Any]) -> _Distinct:
    texts = _texts(column)
    blank = pc.fill_null(pc.match_substring_regex(texts, r"^[\s\p{Zs}]*$"), False)
    n = len(texts) - int(pc.sum(blank).as_py() or 0)  # a blank cell is a gap
    found = pc.value_counts(texts.filter(pc.invert(blank)).drop_null())
    return _Distinct(found.field("values"), np.asarray(found.field("counts"), np.int64), n)


def _texts(column: pd.Series[Any]) -> pa.Array:
    """Return the cells that are text, and dates that Python keeps as objects; others are null."""
    cells = column.astype(object).to_numpy()
    try:
        found = pa.array(cells, pa.string(), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):  # other things, or what is not UTF-8
        found = pa.array([_text(cell) for cell in cells], pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _text(cell: Any) -> str | None:
    if isinstance(cell, date) and cell is not pd.NaT:
        return str(cell)
    return cell if isinstance(cell, str) and _is_utf8(cell) else None


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
