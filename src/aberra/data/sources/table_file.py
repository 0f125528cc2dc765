"""A table in a file, whole or in chunks of a fixed number of rows, with memory for one chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from aberra.data.sources.allowance import Allowance
from aberra.data.sources.arrays import ARRAYS, columns_beside, main_array
from aberra.data.sources.arrow_frames import check_numbers, kind_of_type, words_in
from aberra.data.sources.csv_cells import WHAT, CellReader, OddCell
from aberra.data.sources.csv_check import Called
from aberra.data.sources.csv_file import ADVICE, BLOCK, Chunk, CsvFile
from aberra.data.sources.parquet_rows import (
    PARQUET,
    parquet_chunks,
    row_groups,
    text_columns,
    whole_parquet,
)
from aberra.data.tables import kind_of
from aberra.errors import DataError
from aberra.files import fingerprint, reading

TABLES = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".parquet", ".pq")

LABELS = ("y", "label", "labels", "target")  # what arrays of labels tend to be called


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

    def read(
        self,
        kinds: Mapping[str, str] | None = None,
        *,
        unread: Collection[str] = (),
        hollow: bool = False,
    ) -> pd.DataFrame:
        """Return the whole table.

        Parameters
        ----------
        kinds : mapping, optional
            "number" or "text" for columns of a CSV file whose type is not to be guessed.
        unread : collection of str
            Columns that nobody needs: their cells may be anything.
        hollow : bool
            Whether columns that no frame takes, such as lists, become empty lists instead of an
            error.
        """
        names = self.columns
        with self._explained():
            if self._is_array:
                check_numbers(len(self._array), len(names), self._allowed)
                return self._array_frame(names, slice(None))
            if self._is_parquet:
                return whole_parquet(self._file, self._allowed, unread, hollow)
            return self._csv.read(kinds or {})

    def chunks(
        self,
        columns: Sequence[str],
        kinds: Mapping[str, str],
        size: int,
        start: int = 0,
        odd: list[OddCell] | None = None,
    ) -> Iterator[Chunk]:
        """Yield the rows from `start` on in their order, `size` at a time.

        Parameters
        ----------
        columns : sequence of str
            Those to read, in this order.
        kinds : mapping
            "number", "text" or "time" for each column.
        size : int
            Rows a chunk; the last one may have fewer.
        start : int
            Rows to pass over.
        odd : list, optional
            Gets the cells of each chunk that are no numbers or dates, which then are gaps. By
            default such a cell is refused.

        Yields
        ------
        chunk : Chunk
        """
        with self._explained():
            if self._is_array:
                yield from self._array_chunks(columns, size, start)
            elif self._is_parquet:
                text = [name for name in text_columns(self._file) if kinds.get(name) in WHAT]
                held = {name: kinds[name] for name in text if name in columns}
                cells = CellReader(held, False, True, self.path, self.place_of, odd)
                words = set(words_in(kinds)).intersection(columns)
                found = parquet_chunks(
                    self._file, columns, size, start, self._allowed, cells, words
                )
                yield from starmap(Chunk, found)
            else:
                yield from self._csv.chunks(columns, kinds, size, start, odd)

    def id_type(self, column: str) -> pa.DataType:
        """Return the type of identifiers in results: numbers only where the file has numbers."""
        if self._is_parquet:
            kind = pq.read_schema(self._file).field(column).type
            if kind == pa.uint64():
                return kind
            whole = pa.types.is_integer(kind)
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
            return self._csv.n_rows()

    def kinds(self) -> dict[str, str | None]:
        """Return what each column holds, as far as types tell, or the first rows of a CSV file."""
        if self._is_array:
            frame = self._array_frame(self.columns, slice(2))
            return {str(name): kind_of(column) for name, column in frame.items()}
        with self._explained():
            schema = pq.read_schema(self._file) if self._is_parquet else self._csv.guessed()
        return {field.name: kind_of_type(field.type) for field in schema}

    def identifiers(self, column: str) -> list[str]:
        """Return what a column calls the rows, as it is written: 007 is not 7."""
        found: list[str] = []
        for chunk in self.chunks([column], {column: "text"}, BLOCK >> 4):
            found += [str(value) for value in chunk.frame[column]]
        return found

    def place_of(self, row: int) -> str:
        """Say where a row is: its line in a CSV file, its position from 0 in others."""
        if not self.is_csv:
            return f"row {row}"
        return self._csv.place_of(row)

    def fingerprint(self) -> str:
        """Return a digest that changes with the file: size, time of change, and both ends."""
        return self.digest or fingerprint(self.path)

    @property
    def labels_beside(self) -> list[str]:
        """Arrays of an npz file that look like labels of the rows."""
        return [name for name in LABELS if self._is_array and name in self._beside]

    @property
    def is_csv(self) -> bool:
        """Whether cells are text, and their types a guess."""
        return not (self._is_parquet or self._is_array)

    @property
    def decimal_comma(self) -> bool:
        """Whether a CSV file writes numbers as 51,3."""
        return self.is_csv and self._csv.decimal_comma

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
        return self._csv.names

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

    @cached_property
    def _csv(self) -> CsvFile:
        return CsvFile(self._file, Called(self.path, self.added), self._allowed)

    def _explained(self) -> AbstractContextManager[None]:
        """Turn what Arrow says into an error that names the file."""
        return self._csv.explained() if self.is_csv else reading(self.path, ADVICE)
