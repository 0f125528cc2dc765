"""Rows that lie together: a file of a folder, a fragment of a dataset, an array.

A part knows how many rows it has before they are read, and where reading may begin. Every kind of
source is a list of parts; nothing else has to know what kind it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from aberra.data.blocks.sample import Rows
from aberra.data.sources.arrow_frames import frame_of, words_in
from aberra.data.sources.csv_cells import OddCell
from aberra.data.sources.table_file import TableFile
from aberra.files import fingerprint, reading

BLOCK_ROWS = 1 << 16  # rows that are in memory at a time
ADVICE = "Write it again, or leave it out."

Kinds = Mapping[str, str]
Odd = list[OddCell] | None


@dataclass(frozen=True)
class Part(ABC):
    """Rows that lie together.

    Parameters
    ----------
    name : str
        What to call it in messages.
    n_rows : int
    kinds : dict
        "number", "text", "time" or "duration" for each column; None for one without any value.
    constants : dict, default {}
        What the names of folders say about all rows: columns of one value.
    """

    name: str
    n_rows: int
    kinds: dict[str, str | None]
    constants: dict[str, Any] = field(default_factory=dict, kw_only=True)

    def read(
        self,
        columns: Sequence[str],
        kinds: Kinds,
        start: int,
        stop: int,
        odd: Odd = None,
    ) -> Iterator[Rows]:
        """Yield the rows from `start` to `stop`, a block at a time.

        Parameters
        ----------
        columns : sequence of str
            Those to read, in this order.
        kinds : mapping
            What each of them holds.
        start, stop : int
            Rows of this part; `start` is one of `cuts`.
        odd : list, optional
            Gets the cells of each block that are no numbers or dates, which then are gaps. By
            default such a cell is refused.
        """
        own = [name for name in columns if name not in self.constants]
        some = own or [name for name in self.kinds if name not in self.constants][:1]
        for rows in self._read(some, kinds, start, stop, odd):
            if isinstance(rows, pd.DataFrame) and self.constants:
                yield rows.assign(**self.constants)[list(columns)]
            else:
                yield rows

    @abstractmethod
    def _read(
        self, columns: Sequence[str], kinds: Kinds, start: int, stop: int, odd: Odd
    ) -> Iterator[Rows]:
        """Yield what the part itself holds."""

    @property
    def cuts(self) -> list[int]:
        """Rows at which reading may begin without reading those before."""
        return [0]

    @abstractmethod
    def mark(self) -> str:
        """Return what changes when the rows do."""


@dataclass(frozen=True)
class FilePart(Part):
    """A file of a folder."""

    file: TableFile

    def _read(
        self, columns: Sequence[str], kinds: Kinds, start: int, stop: int, odd: Odd
    ) -> Iterator[Rows]:
        wanted = {name: kinds[name] for name in columns}
        for chunk in self.file.chunks(columns, wanted, BLOCK_ROWS, start, odd):
            frame = chunk.frame.iloc[: stop - chunk.start]
            if len(frame):
                yield frame
            if chunk.start + len(chunk.frame) >= stop:
                return

    @property
    def cuts(self) -> list[int]:
        """The beginnings of a Parquet file's groups of rows; other files are read in one go."""
        return self.file.starts

    def mark(self) -> str:
        """Return a digest of the file's size, time of change, and both ends."""
        return fingerprint(Path(self.file.path))


@dataclass(frozen=True)
class FragmentPart(Part):
    """A fragment of an Arrow dataset: a file, or a part of one, wherever it lies."""

    fragment: Any
    schema: pa.Schema

    def _read(
        self, columns: Sequence[str], kinds: Kinds, start: int, stop: int, odd: Odd
    ) -> Iterator[Rows]:
        with reading(self.name, ADVICE):
            batches = self.fragment.to_batches(
                schema=self.schema, columns=list(columns), batch_size=BLOCK_ROWS, use_threads=False
            )
            for batch in batches:
                if len(batch):
                    table = pa.Table.from_batches([batch])
                    yield _framed(table, columns, kinds)

    def mark(self) -> str:
        """Return the name and the number of rows: what is known wherever the fragment lies."""
        return f"{self.name} {self.n_rows}"


@dataclass(frozen=True)
class ArrowPart(Part):
    """A table in memory, or one that workers keep for us and hand out when asked."""

    held: Any  # a table, or a reference that `fetch` turns into one
    fetch: Any = None

    def _read(
        self, columns: Sequence[str], kinds: Kinds, start: int, stop: int, odd: Odd
    ) -> Iterator[Rows]:
        table = self.held if self.fetch is None else self.fetch(self.held)
        for at in range(start, stop, BLOCK_ROWS):
            some = table.select(list(columns)).slice(at, min(BLOCK_ROWS, stop - at))
            yield _framed(some, columns, kinds)

    def mark(self) -> str:
        """Return the number of rows; nobody else can see this table."""
        return f"{self.name} {self.n_rows}"


def _framed(table: pa.Table, columns: Sequence[str], kinds: Kinds) -> pd.DataFrame:
    words = set(words_in(kinds)).intersection(columns)
    return frame_of(table, words=words)[list(columns)]


@dataclass(frozen=True)
class MemoryPart(Part):
    """An array, a memory map or a data frame."""

    rows: Any = field(repr=False)

    def _read(
        self, columns: Sequence[str], kinds: Kinds, start: int, stop: int, odd: Odd
    ) -> Iterator[Rows]:
        for at in range(start, stop, BLOCK_ROWS):
            some = slice(at, min(at + BLOCK_ROWS, stop))
            if isinstance(self.rows, pd.DataFrame):
                yield self.rows.iloc[some][list(columns)]
            else:
                yield np.asarray(self.rows[some])[:, [int(name[1:]) for name in columns]]

    @property
    def cuts(self) -> list[int]:
        """Any block of the array."""
        return list(range(0, self.n_rows, BLOCK_ROWS)) or [0]

    def mark(self) -> str:
        """Return the shape: nobody else can see these rows."""
        return repr(np.shape(self.rows))
