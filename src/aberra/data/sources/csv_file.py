"""A CSV file, whole or in chunks of a fixed number of rows, with memory for one chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv

from aberra.data.sources.allowance import Allowance
from aberra.data.sources.arrow_frames import check_numbers, frame_of, rechunked
from aberra.data.sources.csv_cells import (
    ARROW,
    GAPS,
    CellReader,
    OddCell,
    has_decimal_commas,
    has_decimal_points,
    misfits,
    no_dates,
    to_be_settled,
    types_of,
)
from aberra.data.sources.csv_check import Called, Looked, check_csv, header_of
from aberra.data.sources.csv_text import line_of_row, ragged_line, rows_in_a_cell
from aberra.errors import DataError
from aberra.files import reading
from aberra.words import count

BLOCK = 1 << 22  # bytes that are parsed at a time
ADVICE = "Correct the file, or save it again as CSV (UTF-8) or Parquet."


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
class CsvFile:
    """A CSV file in UTF-8 with a header.

    Parameters
    ----------
    file : Path
        What to read; its name ends in .gz if it is packed.
    called : Called
        What messages call it.
    allowance : Allowance
        How much it may become.
    """

    file: Path
    called: Called
    allowance: Allowance

    @property
    def names(self) -> list[str]:
        """The names in the first line."""
        return self._dialect[0]

    def read(self, kinds: Mapping[str, str]) -> pd.DataFrame:
        """Return the whole table; types are guessed where `kinds` does not say them."""
        names, parse = self._dialect
        check_numbers(self._looked.most_rows(len(names)), len(names), self.allowance)
        convert = self._convert({name: ARROW[kind] for name, kind in kinds.items()})
        blocks = pacsv.ReadOptions(block_size=BLOCK)
        table = pacsv.read_csv(str(self.file), blocks, parse, convert)
        if table.column_names != names:
            raise DataError(
                f"The header of {self.called.path} cannot be told from its rows. Check the quotes "
                "in its first line, and give each column a name without line ends."
            )
        return frame_of(table, is_csv=True)

    def n_rows(self) -> int:
        """Return how many rows there are; the file is read for it."""
        names, parse = self._dialect
        convert = self._convert({names[0]: pa.string()}, names[:1])
        with self.file.open("rb") as raw, self._opened(raw, parse, convert) as rows:
            return sum(map(len, rows))

    def guessed(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Return the types of columns, as far as the first rows tell."""
        return self._first_block(self._convert({}, columns)).schema

    def place_of(self, row: int) -> str:
        """Say in which line a row is."""
        line = line_of_row(self.file, self._dialect[1].delimiter, row)
        return f"line {self.called.line(line)}"

    @cached_property
    def decimal_comma(self) -> bool:
        """Whether numbers are written as 51,3; 2.500 beside them is no small number."""
        if self._dialect[1].delimiter == ",":
            return False
        options = pacsv.ConvertOptions(null_values=GAPS, strings_can_be_null=True)
        with self.explained():
            guessed = self._first_block(options)
            pointed = [field.name for field in guessed.schema if pa.types.is_floating(field.type)]
            options.column_types = dict.fromkeys(pointed, pa.string())
            plain = self._first_block(options) if pointed else guessed
        if any(has_decimal_points(plain.column(name)) for name in pointed):
            return False
        texts = [column for column in guessed.columns if pa.types.is_string(column.type)]
        return any(map(has_decimal_commas, texts))

    def chunks(
        self,
        columns: Sequence[str],
        kinds: Mapping[str, str],
        size: int,
        start: int,
        odd: list[OddCell] | None,
    ) -> Iterator[Chunk]:
        """Yield rows as `TableFile.chunks` does.

        Types are those of the kinds as long as all cells fit. From the first that does not, the
        columns are read as text, and each cell by itself.
        """
        guessed = self.guessed(columns)
        found: list[pa.ArrowInvalid] = []
        if not no_dates(kinds, guessed):
            with misfits(found):
                for chunk in self._rows(columns, types_of(kinds, guessed), size, start):
                    yield chunk
                    start += len(chunk.frame)
            if not found:
                return
        yield from self._cell_by_cell(columns, kinds, size, start, odd)

    def _rows(
        self,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType],
        size: int,
        start: int,
        settle: Callable[[pa.Table, int], pa.Table] = lambda table, _: table,
    ) -> Iterator[Chunk]:
        """Yield rows of a CSV file; `settle` turns what was read as text into values."""
        convert, total = self._convert(types, columns), self.file.stat().st_size
        with self.file.open("rb") as raw, self._opened(raw, self._dialect[1], convert) as reader:
            for at, table in rechunked(reader, size, start, 0):
                frame = frame_of(settle(table, at), is_csv=True)[list(columns)]
                yield Chunk(at, frame, min(1.0, raw.tell() / total))

    def _cell_by_cell(
        self,
        columns: Sequence[str],
        kinds: Mapping[str, str],
        size: int,
        start: int,
        odd: list[OddCell] | None,
    ) -> Iterator[Chunk]:
        """Yield rows of a CSV file in which some cells are not of the type of their column."""
        guessed = self.guessed(columns)
        names = to_be_settled(kinds, guessed)
        types = types_of(kinds, guessed) | dict.fromkeys(names, pa.string())
        held = {name: kinds[name] for name in names}
        comma = self._dialect[1].delimiter != ","
        cells = CellReader(
            held, comma, not self.decimal_comma, self.called.path, self.place_of, odd
        )
        cells.probe(pa.Table.from_batches([self._first_block(self._convert(types, columns))]))
        yield from self._rows(columns, types, size, start, cells)

    def _opened(
        self, raw: Any, parse: pacsv.ParseOptions, convert: pacsv.ConvertOptions
    ) -> pacsv.CSVStreamingReader:
        stream: Any = pa.PythonFile(raw, mode="r")
        if self.file.name.lower().endswith(".gz"):
            stream = pa.CompressedInputStream(stream, "gzip")
        blocks = pacsv.ReadOptions(block_size=BLOCK, use_threads=False)
        return pacsv.open_csv(stream, blocks, parse, convert)

    def _first_block(self, convert: pacsv.ConvertOptions) -> pa.RecordBatch:
        """Return the first rows of a CSV file; their types are guessed."""
        _, parse = self._dialect
        with self.file.open("rb") as raw, self._opened(raw, parse, convert) as reader:
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
        with self.explained():
            return header_of(self.file, self.called.path)

    @cached_property
    def _looked(self) -> Looked:
        with self.explained():
            looked = check_csv(self.file, self._header[1], self.called, self.allowance)
            if looked.spans:
                self._refuse_rows_in_a_cell()
        return looked

    def _refuse_rows_in_a_cell(self) -> None:
        names, mark = self._header
        if (lost := rows_in_a_cell(self.file, mark, len(names))) is None:
            return
        first, last = map(self.called.line, lost)
        raise DataError(
            f"{self.called.path}: the quote that opens a cell in line {first} meets another one "
            f"only in line {last}. Each of these lines looks like a row, so "
            f"{count(lost[1] - lost[0], 'row')} would be lost. Close or remove quotes that have no "
            "partner. If the cell is meant to be so, save the table as Parquet."
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what Arrow says into an error that names the file."""
        with reading(self.called.path, ADVICE), self._ragged_lines():
            yield

    @contextmanager
    def _ragged_lines(self) -> Iterator[None]:
        """Name the line where Arrow only says that a row has too many or too few cells."""
        try:
            yield
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                advice = "Give a table with rows, or --no-header if that line is a row."
                raise DataError(
                    f"{self.called.path} has nothing but its first line. {advice}"
                ) from error
            if "straddl" in str(error):
                raise DataError(
                    f"{self.called.path} has a row of more than {BLOCK >> 20} MB. Check that its "
                    "lines end where rows end; save a table of such rows as Parquet."
                ) from error
            if "columns, got" not in str(error):
                raise
            names, parse = self._dialect
            found = ragged_line(self.file, parse.delimiter, len(names))
            if found is None:
                raise
            line, n = found
            raise DataError(
                f"{self.called.path}, line {self.called.line(line)}: {count(n, 'cell')}, but the "
                f"{'first line' if self.called.added else 'header'} has {len(names)}. Correct this "
                "line; a cell that holds the delimiter needs quotes."
            ) from error
