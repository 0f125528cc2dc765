"""Arrow tables as data frames of numbers, dates and text, whatever Arrow's types were."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from aberra.data.sources.allowance import COPIES, NUMBER_BYTES, SMALLER, Allowance
from aberra.errors import DataError
from aberra.words import count


def frame_of(
    table: pa.Table,
    is_csv: bool = False,
    allowance: Allowance | None = None,
    words: Collection[str] = (),
) -> pd.DataFrame:
    """Return a data frame of numbers, dates and text, whatever Arrow's types were.

    With `allowance`, text that a file holds once must not stand in too many rows. Whole numbers in
    the columns `words` become text with all their digits: beside a gap, a frame would round them.
    """
    if is_csv:
        odd = [field.name for field in table.schema if pa.types.is_binary(field.type)]
        if odd:
            raise DataError(
                f"Column {odd[0]!r} holds text that is not UTF-8. Save the file as CSV UTF-8."
            )
    else:
        check_cells(table)
    if allowance is not None:
        check_text(table, allowance)
    columns = {name: _plain(table.column(name), name) for name in table.column_names}
    columns |= {name: _digits(table.column(name), columns[name]) for name in words}
    return pa.table(columns).to_pandas(self_destruct=True, split_blocks=True)


def words_in(kinds: Mapping[str, str]) -> list[str]:
    """Return the columns that hold text, identifiers among them."""
    return [name for name, kind in kinds.items() if kind == "text"]


def _digits(column: pa.ChunkedArray, otherwise: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    whole = pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    return column.cast(kind).cast(pa.string()) if whole else otherwise


def check_cells(table: pa.Table) -> None:
    """Raise an error if cells lie outside of their column, or text is not UTF-8.

    What comes from a file of Arrow's own is used as it lies there, and nothing else looks.
    """
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        why = str(error).splitlines()[0]
        raise DataError(f"Some cells are damaged ({why}). Write the file again.") from error


def check_text(table: pa.Table, allowance: Allowance) -> None:
    """Refuse text that takes too much once it stands in every row, not once in a dictionary."""
    size = 0
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            size += COPIES * sum(_text_bytes(chunk) for chunk in column.chunks)
            allowance.check(size, SMALLER, f": text as that in the column {name!r}")


def _text_bytes(chunk: pa.DictionaryArray) -> int:
    """Return how long the text of all rows is together."""
    lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
    return int(pc.sum(lengths.take(chunk.indices)).as_py() or 0)


def is_text(kind: pa.DataType) -> bool:
    """Say whether cells of this type are text, which may be of any length."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def check_columns(schema: pa.Schema, n_rows: int, allowance: Allowance) -> None:
    """Refuse columns that no frame takes, and too many cells, before any of them is read."""
    for field in schema:
        _refuse_odd(field.type, field.name, f" of {allowance.called}")
    check_rows(schema, n_rows, allowance)


def check_rows(schema: pa.Schema, n_rows: int, allowance: Allowance) -> None:
    """Refuse too many cells."""
    _check_size(sum(_width(field.type) for field in schema), n_rows, len(schema), allowance)


def check_numbers(n_rows: int, n_columns: int, allowance: Allowance) -> None:
    """Refuse a table of numbers that takes too much memory if it is read whole."""
    _check_size(NUMBER_BYTES * n_columns, n_rows, n_columns, allowance)


def _check_size(row_bytes: int, n_rows: int, n_columns: int, allowance: Allowance) -> None:
    what = f": a table of about {count(n_rows, 'row')} and {count(n_columns, 'column')}"
    allowance.check(COPIES * row_bytes * n_rows, SMALLER, what)


def _width(kind: pa.DataType) -> int:
    """Return the bytes of a cell; the letters of text are counted by themselves."""
    try:
        return int(kind.byte_width)
    except ValueError:  # a bit, or of any length
        return 1 if pa.types.is_boolean(kind) else NUMBER_BYTES


def is_odd(kind: pa.DataType) -> bool:
    """Say whether cells of this type are no numbers, dates or text."""
    types = pa.types
    if types.is_dictionary(kind):
        return is_odd(kind.value_type)
    return bool(types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def _refuse_odd(kind: pa.DataType, name: str, where: str = "") -> None:
    if is_odd(kind):
        raise DataError(
            f"Column {name!r}{where} holds {kind}, not numbers, dates or text. Leave it out: "
            f"--drop {shlex.quote(name)}, in Python drop=[{name!r}]."
        )


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    kind = column.type
    types = pa.types
    _refuse_odd(kind, name)
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type), name)
    if types.is_boolean(kind):
        return column.cast(pa.int8())
    if types.is_decimal(kind) or types.is_null(kind):
        return column.cast(pa.float64())
    if types.is_date(kind):
        return column.cast(pa.timestamp("ms"))
    if types.is_time(kind):  # seconds since midnight
        per_second = {"s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        whole = column.cast(pa.int32() if types.is_time32(kind) else pa.int64())
        return pc.divide(whole.cast(pa.float64()), per_second)
    return column


def kind_of_type(kind: pa.DataType) -> str | None:
    """Return what a column of this type holds: "number", "time", "duration" or "text".

    A column that has a type only because it is empty may hold anything: None.
    """
    types = pa.types
    if types.is_dictionary(kind):
        return kind_of_type(kind.value_type)
    if types.is_null(kind):
        return None
    if types.is_date(kind) or types.is_timestamp(kind):
        return "time"
    if types.is_duration(kind):
        return "duration"
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return "number" if number or types.is_boolean(kind) or types.is_time(kind) else "text"


def rechunked(
    batches: Iterable[pa.RecordBatch], size: int, start: int, at: int
) -> Iterator[tuple[int, pa.Table]]:
    """Cut batches, the first of which begins at row `at`, into tables of `size` from `start` on."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        before = max(0, min(len(batch), start - at))
        at += len(batch)
        held.append(batch.slice(before))
        rows += len(batch) - before
        while rows >= size:
            table = pa.Table.from_batches(held)
            yield start, table.slice(0, size)
            held = table.slice(size).to_batches()
            start, rows = start + size, rows - size
    if rows:
        yield start, pa.Table.from_batches(held)
