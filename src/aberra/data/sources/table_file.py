"""A table in a file, whole or in chunks of a fixed number of rows, with memory for one chunk."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from aberra.data.sources.arrays import ARRAYS, columns_beside, main_array
from aberra.errors import DataError

TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".pq")
PARQUET = (".parquet", ".pq")

DELIMITERS = ",;\t|"
MORE_GAPS = ["?", "None", "none", "<NA>"]  # beside what Arrow takes for a missing value
BLOCK = 1 << 22  # bytes of CSV that are parsed at a time
HEAD = 1 << 16  # bytes in which the delimiter and the header are looked for
PROBE = 1 << 20  # bytes at either end that enter the fingerprint

ARROW = {"number": pa.float64(), "text": pa.string()}


@dataclass(frozen=True)
class Chunk:
    """Some rows of a file.

    Parameters
    ----------
    start : int
        Position of the first row in the file.
    frame : DataFrame
    done : float
        Share of the file that has been read with these rows.
    """

    start: int
    frame: pd.DataFrame
    done: float


@dataclass(frozen=True)
class TableFile:
    r"""A CSV, TSV, Parquet, npy or npz file of rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aberra.data.sources.table_file import TableFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text("name;height\nAda;1.7\nBob;\n")
    ...     table = TableFile(path)
    ...     table.columns, len(table.read())
    (['name', 'height'], 2)
    """

    path: Path

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns; an array's are x0, x1, ..."""
        with self._explained():
            names = self._names()
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(f"{self.path} has several columns {twice[:5]}. Rename them.")
        return names

    def read(self, kinds: Mapping[str, str] | None = None) -> pd.DataFrame:
        """Return the whole table.

        Parameters
        ----------
        kinds : mapping, optional
            "number" or "text" for columns of a CSV file whose type is not to be guessed.
        """
        names = self.columns
        with self._explained():
            if self._is_array:
                return self._array_frame(names, slice(None))
            if self._is_parquet:
                return _frame(pq.read_table(self.path))
            _, parse = self._dialect
            return _frame(
                pacsv.read_csv(
                    str(self.path), pacsv.ReadOptions(block_size=BLOCK), parse, _convert(kinds)
                )
            )

    def chunks(
        self, columns: Sequence[str], kinds: Mapping[str, str], size: int, start: int = 0
    ) -> Iterator[Chunk]:
        """Yield the rows from `start` on in their order, `size` at a time.

        Parameters
        ----------
        columns : sequence of str
            Those to read, in this order.
        kinds : mapping
            "number", "text" or "time" for each column; a CSV file's cells must fit.
        size : int
            Rows a chunk; the last one may have fewer.
        start : int
            Rows to pass over.

        Yields
        ------
        chunk : Chunk
        """
        with self._explained():
            if self._is_array:
                yield from self._array_chunks(columns, size, start)
            elif self._is_parquet:
                yield from self._parquet_chunks(columns, size, start)
            else:
                yield from self._csv_chunks(columns, kinds, size, start)

    def id_type(self, column: str) -> pa.DataType:
        """Return the type of identifiers in results: numbers only where the file has numbers."""
        if self._is_parquet:
            whole = pa.types.is_integer(pq.read_schema(self.path).field(column).type)
        else:
            whole = (
                self._is_array and self._array_frame([column], slice(1))[column].dtype.kind == "i"
            )
        return pa.int64() if whole else pa.string()

    def fingerprint(self) -> str:
        """Return a digest that changes with the file: size, time of change, and both ends."""
        state = self.path.stat()
        digest = sha256(repr((state.st_size, state.st_mtime_ns)).encode())
        with self.path.open("rb") as file:
            digest.update(file.read(PROBE))
            file.seek(max(0, state.st_size - PROBE))
            digest.update(file.read(PROBE))
        return digest.hexdigest()

    @property
    def _is_parquet(self) -> bool:
        return self.path.name.lower().endswith(PARQUET)

    @property
    def _is_array(self) -> bool:
        return self.path.name.lower().endswith(ARRAYS)

    def _names(self) -> list[str]:
        if self._is_array:
            array = self._array
            width = 1 if array.ndim == 1 else array.shape[1]
            return [*(f"x{j}" for j in range(width)), *columns_beside(self.path, len(array))]
        if self._is_parquet:
            return [str(name) for name in pq.read_schema(self.path).names]
        return self._dialect[0]

    @cached_property
    def _array(self) -> Any:
        return main_array(self.path)

    @cached_property
    def _beside(self) -> dict[str, Any]:
        return columns_beside(self.path, len(self._array))

    def _array_frame(self, columns: Sequence[str], rows: slice) -> pd.DataFrame:
        held: dict[str, Any] = {}
        array = self._array if self._array.ndim == 2 else self._array[:, None]
        for name in columns:
            if name in self._beside:
                held[name] = self._beside[name][rows]
            else:
                held[name] = np.asarray(array[rows, int(name[1:])])
        return pd.DataFrame(held)

    def _array_chunks(self, columns: Sequence[str], size: int, start: int) -> Iterator[Chunk]:
        n = len(self._array)
        for first in range(start, n, size):
            frame = self._array_frame(columns, slice(first, first + size))
            yield Chunk(first, frame, min(1.0, (first + size) / n))

    def _parquet_chunks(self, columns: Sequence[str], size: int, start: int) -> Iterator[Chunk]:
        # A buffer instead of whole column chunks: row groups may be larger than memory.
        with pq.ParquetFile(self.path, buffer_size=BLOCK, pre_buffer=False) as file:
            counts = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            ends = np.cumsum([0, *counts])
            first = int(np.searchsorted(ends, start, side="right")) - 1
            groups = list(range(first, len(counts)))
            batches = file.iter_batches(size, row_groups=groups, columns=list(columns))
            n = file.metadata.num_rows
            for at, table in _rechunked(batches, size, start, int(ends[first])):
                yield Chunk(at, _frame(table)[list(columns)], (at + len(table)) / n)

    def _csv_chunks(
        self, columns: Sequence[str], kinds: Mapping[str, str], size: int, start: int
    ) -> Iterator[Chunk]:
        _, parse = self._dialect
        convert = _convert(kinds, columns)
        total = self.path.stat().st_size
        with self.path.open("rb") as raw:
            stream: Any = pa.PythonFile(raw, mode="r")
            if self.path.name.lower().endswith(".gz"):
                stream = pa.CompressedInputStream(stream, "gzip")
            reading = pacsv.ReadOptions(block_size=BLOCK, use_threads=False)
            with pacsv.open_csv(stream, reading, parse, convert) as reader:
                for at, table in _rechunked(reader, size, start, 0):
                    yield Chunk(at, _frame(table)[list(columns)], min(1.0, raw.tell() / total))

    @cached_property
    def _dialect(self) -> tuple[list[str], pacsv.ParseOptions]:
        """Return the header of a CSV file, and how to parse it."""
        with pa.input_stream(str(self.path), compression="detect") as stream:
            head = stream.read(HEAD).decode("utf-8-sig", "replace")
        if not head.strip():
            raise DataError(f"{self.path} is empty.")
        first = head.splitlines()[0]
        # The delimiter is the one that cuts the header into most pieces, quotes respected.
        rows = {mark: next(csv.reader([first], delimiter=mark)) for mark in DELIMITERS}
        mark = max(DELIMITERS, key=lambda m: len(rows[m]))
        return rows[mark], pacsv.ParseOptions(delimiter=mark, newlines_in_values=True)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what Arrow says into an error that names the file."""
        try:
            yield
        except DataError:
            raise
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).strip().rstrip(".")
            raise DataError(
                f"{self.path} cannot be read: {reason}. Correct the file, or save it again as CSV "
                "(UTF-8) or Parquet."
            ) from error


def _convert(
    kinds: Mapping[str, str] | None, columns: Sequence[str] | None = None
) -> pacsv.ConvertOptions:
    """Say how CSV cells become values; what has no known kind is guessed."""
    types = {name: ARROW[kind] for name, kind in (kinds or {}).items() if kind in ARROW}
    gaps = [*pacsv.ConvertOptions().null_values, *MORE_GAPS]
    return pacsv.ConvertOptions(
        column_types=types,
        null_values=gaps,
        strings_can_be_null=True,
        include_columns=None if columns is None else list(columns),
    )


def _rechunked(
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


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a data frame of numbers, dates and text, whatever Arrow's types were."""
    columns = {name: _plain(table.column(name), name) for name in table.column_names}
    return pa.table(columns).to_pandas(self_destruct=True, split_blocks=True)


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    kind = column.type
    types = pa.types
    if types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type), name)
    if types.is_boolean(kind):
        return column.cast(pa.int8())
    if types.is_decimal(kind) or types.is_null(kind):
        return column.cast(pa.float64())
    if types.is_date(kind):
        return column.cast(pa.timestamp("ms"))
    if types.is_time(kind):
        return column.cast(pa.string())
    if types.is_nested(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        raise DataError(
            f"Column {name!r} holds {kind}, not numbers, dates or text. Leave it out of the file."
        )
    return column
