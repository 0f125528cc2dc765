"""A table in a file, whole or in chunks of a fixed number of rows, with memory for one chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from aberra.data.sources.allowance import Allowance
from aberra.data.sources.arrays import ARRAYS, columns_beside, main_array
from aberra.data.sources.arrow_frames import check_numbers, frame_of, kind_of_type, rechunked
from aberra.data.sources.csv_check import Called, Looked, check_csv, header_of
from aberra.data.sources.csv_text import line_of_row, ragged_line
from aberra.data.sources.parquet_rows import PARQUET, parquet_chunks, row_groups, whole_parquet
from aberra.data.tables import kind_of
from aberra.errors import DataError
from aberra.files import fingerprint, reading
from aberra.words import count

TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".pq")

MORE_GAPS = ["?", "-", "--", "n.a.", "N.A.", "None", "none", "<NA>"]  # beside Arrow's own
NUMBER = r"^-?\d*,?\d+$"  # perhaps with a decimal comma
CLEARLY = r",(\d{1,2}|\d{4,})$"  # 1,234 may as well be a thousand and more
LABELS = ("y", "label", "labels", "target")  # what arrays of labels tend to be called
BLOCK = 1 << 22  # bytes of CSV that are parsed at a time

GAPS = [*pacsv.ConvertOptions().null_values, *MORE_GAPS]
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
    r"""A CSV, TSV, Parquet, npy or npz file of rows; `staged.table_at` makes one of other files.

    Parameters
    ----------
    path : Path
        What it is called, and where it is.
    copy : Path, optional
        A readable copy, where the file itself is of another kind. None by default.
    digest : str, default=""
        What tells this table from others, where there is no file to look at.
    added : int, default=0
        Lines that a copy in CSV has on top of the file: 1 if it got a header.
    allowance : Allowance, optional
        How much it may become. By default that of the file that is read.

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
    copy: Path | None = None
    digest: str = ""
    added: int = 0
    allowance: Allowance | None = None

    @property
    def _file(self) -> Path:
        """The file to read."""
        return self.copy or self.path

    @property
    def starts(self) -> list[int]:
        """Rows at which `chunks` may start without reading the rows before."""
        return row_groups(self._file) if self._is_parquet else [0]

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns; an array's are x0, x1, ..."""
        with self._explained():
            names = self._names()
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
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
                check_numbers(len(self._array), len(names), self._allowed)
                return self._array_frame(names, slice(None))
            if self._is_parquet:
                return whole_parquet(self._file, self._allowed)
            _, parse = self._dialect
            check_numbers(self._looked.most_rows(len(names)), len(names), self._allowed)
            convert = self._convert({name: ARROW[kind] for name, kind in (kinds or {}).items()})
            blocks = pacsv.ReadOptions(block_size=BLOCK)
            table = pacsv.read_csv(str(self._file), blocks, parse, convert)
            if table.column_names != names:
                raise DataError(
                    f"The header of {self.path} cannot be told from its rows. Check the quotes in "
                    "its first line, and give each column a name without line ends."
                )
            return frame_of(table, is_csv=True)

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
                found = parquet_chunks(self._file, columns, size, start, self._allowed)
                yield from starmap(Chunk, found)
            else:
                yield from self._csv_chunks(columns, kinds, size, start)

    def id_type(self, column: str) -> pa.DataType:
        """Return the type of identifiers in results: numbers only where the file has numbers."""
        if self._is_parquet:
            whole = pa.types.is_integer(pq.read_schema(self._file).field(column).type)
        else:
            whole = (
                self._is_array and self._array_frame([column], slice(1))[column].dtype.kind == "i"
            )
        return pa.int64() if whole else pa.string()

    def n_rows(self) -> int:
        """Return how many rows there are; a CSV file is read for it."""
        with self._explained():
            if self._is_array:
                return len(self._array)
            if self._is_parquet:
                return int(pq.read_metadata(self._file).num_rows)
            convert = self._convert({self.columns[0]: pa.string()}, self.columns[:1])
            with self._file.open("rb") as raw, self._opened(raw, self._dialect[1], convert) as rows:
                return sum(map(len, rows))

    def kinds(self) -> dict[str, str | None]:
        """Return what each column holds, as far as types tell, or the first rows of a CSV file."""
        if self._is_array:
            frame = self._array_frame(self.columns, slice(2))
            return {str(name): kind_of(column) for name, column in frame.items()}
        with self._explained():
            if self._is_parquet:
                schema = pq.read_schema(self._file)
            else:
                schema = self._first_block(self._convert({})).schema
        return {field.name: kind_of_type(field.type) for field in schema}

    def identifiers(self, column: str) -> list[str]:
        """Return what a column calls the rows, as it is written: 007 is not 7."""
        found: list[str] = []
        for chunk in self.chunks([column], {column: "text"}, BLOCK >> 4):
            found += [str(value) for value in chunk.frame[column]]
        return found

    def place_of(self, row: int) -> str:
        """Say where a row is: its line in a CSV file, its position from 0 in others."""
        if self._is_array or self._is_parquet:
            return f"row {row}"
        line = line_of_row(self._file, self._dialect[1].delimiter, row)
        return f"line {self._called.line(line)}"

    @property
    def _called(self) -> Called:
        return Called(self.path, self.added)

    def fingerprint(self) -> str:
        """Return a digest that changes with the file: size, time of change, and both ends."""
        return self.digest or fingerprint(self.path)

    @property
    def labels_beside(self) -> list[str]:
        """Arrays of an npz file that look like labels of the rows."""
        return [name for name in LABELS if self._is_array and name in self._beside]

    @cached_property
    def decimal_comma(self) -> bool:
        """Whether a CSV file writes numbers as 51,3."""
        if self._is_array or self._is_parquet or self._dialect[1].delimiter == ",":
            return False
        with self._explained():
            guessed = self._first_block(pacsv.ConvertOptions(null_values=GAPS))
        if any(pa.types.is_floating(kind) for kind in guessed.schema.types):
            return False
        texts = [column for column in guessed.columns if pa.types.is_string(column.type)]
        return any(map(_has_decimal_commas, texts))

    @property
    def is_csv(self) -> bool:
        """Whether cells are text, and their types a guess."""
        return not (self._is_parquet or self._is_array)

    @property
    def _is_parquet(self) -> bool:
        return self._file.name.lower().endswith(PARQUET)

    @property
    def _is_array(self) -> bool:
        return self._file.name.lower().endswith(ARRAYS)

    def _names(self) -> list[str]:
        if self._is_array:
            array = self._array
            width = 1 if array.ndim == 1 else array.shape[1]
            return [*(f"x{j}" for j in range(width)), *columns_beside(self._file, len(array))]
        if self._is_parquet:
            return [str(name) for name in pq.read_schema(self._file).names]
        return self._dialect[0]

    @cached_property
    def _array(self) -> Any:
        return main_array(self._file)

    @cached_property
    def _beside(self) -> dict[str, Any]:
        return columns_beside(self._file, len(self._array))

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

    @cached_property
    def _allowed(self) -> Allowance:
        return self.allowance or Allowance.of(self._file, self.path)

    def _csv_chunks(
        self, columns: Sequence[str], kinds: Mapping[str, str], size: int, start: int
    ) -> Iterator[Chunk]:
        _, parse = self._dialect
        guessed = self._first_block(self._convert({}, columns)).schema
        convert = self._convert(_types(kinds, guessed), columns)
        total = self._file.stat().st_size
        with self._file.open("rb") as raw, self._opened(raw, parse, convert) as reader:
            for at, table in rechunked(reader, size, start, 0):
                frame = frame_of(table, is_csv=True)[list(columns)]
                yield Chunk(at, frame, min(1.0, raw.tell() / total))

    def _opened(
        self, raw: Any, parse: pacsv.ParseOptions, convert: pacsv.ConvertOptions
    ) -> pacsv.CSVStreamingReader:
        stream: Any = pa.PythonFile(raw, mode="r")
        if self._file.name.lower().endswith(".gz"):
            stream = pa.CompressedInputStream(stream, "gzip")
        blocks = pacsv.ReadOptions(block_size=BLOCK, use_threads=False)
        return pacsv.open_csv(stream, blocks, parse, convert)

    def _first_block(self, convert: pacsv.ConvertOptions) -> pa.RecordBatch:
        """Return the first rows of a CSV file; their types are guessed."""
        _, parse = self._dialect
        with self._file.open("rb") as raw, self._opened(raw, parse, convert) as reader:
            return next(iter(reader), pa.RecordBatch.from_pylist([], reader.schema))

    def _convert(
        self, types: Mapping[str, pa.DataType], columns: Sequence[str] | None = None
    ) -> pacsv.ConvertOptions:
        """Say how CSV cells become values; what has no known type is guessed."""
        return pacsv.ConvertOptions(
            column_types=dict(types),
            null_values=GAPS,
            strings_can_be_null=True,
            decimal_point="," if self.decimal_comma else ".",
            include_columns=None if columns is None else list(columns),
        )

    @cached_property
    def _dialect(self) -> tuple[list[str], pacsv.ParseOptions]:
        """Return the header of a CSV file, and how to parse it, once its quotes are in order."""
        names, mark = self._header
        _ = self._looked
        return names, pacsv.ParseOptions(delimiter=mark, newlines_in_values=True)

    @cached_property
    def _header(self) -> tuple[list[str], str]:
        with self._explained():
            return header_of(self._file, self.path)

    @cached_property
    def _looked(self) -> Looked:
        with self._explained():
            return check_csv(self._file, self._header[1], self._called, self._allowed)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what Arrow says into an error that names the file."""
        advice = "Correct the file, or save it again as CSV (UTF-8) or Parquet."
        with reading(self.path, advice), self._ragged_lines():
            yield

    @contextmanager
    def _ragged_lines(self) -> Iterator[None]:
        """Name the line where Arrow only says that a row has too many or too few cells."""
        try:
            yield
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                advice = "Give a table with rows, or --no-header if that line is a row."
                raise DataError(f"{self.path} has nothing but its first line. {advice}") from error
            if "columns, got" not in str(error):
                raise
            names, parse = self._dialect
            found = ragged_line(self._file, parse.delimiter, len(names))
            if found is None:
                raise
            line, n = found
            raise DataError(
                f"{self.path}, line {self._called.line(line)}: {count(n, 'cell')}, but the "
                f"{'first line' if self.added else 'header'} has {len(names)}. Correct this "
                "line; a cell that holds the delimiter needs quotes."
            ) from error


def _types(kinds: Mapping[str, str], guessed: pa.Schema) -> dict[str, pa.DataType]:
    """Return the types of columns whose kind is known.

    Numbers may be written as True and False or as times of day, as they were for the fit.
    """
    types = {name: ARROW[kind] for name, kind in kinds.items() if kind in ARROW}
    for field in guessed:
        other = pa.types.is_boolean(field.type) or pa.types.is_time(field.type)
        if kinds.get(field.name) == "number" and other:
            types[field.name] = field.type
    return types


def _has_decimal_commas(column: pa.Array) -> bool:
    clearly = pc.any(pc.match_substring_regex(column, CLEARLY)).as_py()
    return bool(clearly) and bool(pc.all(pc.match_substring_regex(column, NUMBER)).as_py())
