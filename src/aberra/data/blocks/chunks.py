"""A table of many parts, read in chunks of a fixed number of rows as a single file is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from aberra.data.blocks.parts import FilePart, Part
from aberra.data.blocks.source import Blocks, PartError
from aberra.data.sources.csv_cells import OddCell
from aberra.data.sources.csv_file import Chunk
from aberra.errors import DataError


@dataclass(frozen=True)
class ChunkedTable:
    """What `scoring.table` asks of a file, answered by the parts of a table."""

    blocks: Blocks

    @property
    def path(self) -> str:
        """What to call it."""
        return self.blocks.name

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.blocks.columns

    def fingerprint(self) -> str:
        """Return a digest that changes when a part does, or the list of parts."""
        return self.blocks.fingerprint()

    def id_type(self, column: str) -> pa.DataType:
        """Return the type of identifiers in results: numbers only where all files have numbers."""
        kinds = {
            part.file.id_type(column)
            for part in self.blocks.parts
            if isinstance(part, FilePart) and column not in part.constants
        }
        return kinds.pop() if len(kinds) == 1 else pa.string()

    def place_of(self, row: int) -> str:
        """Say where a row is: in which line or row of which part."""
        k = int(np.searchsorted(self.blocks.starts, row, side="right")) - 1
        part, within = self.blocks.parts[k], row - self.blocks.starts[k]
        place = part.file.place_of(within) if isinstance(part, FilePart) else f"row {within}"
        return f"{place} of {part.name}"

    def chunks(
        self,
        columns: Sequence[str],
        kinds: Mapping[str, str],
        size: int,
        start: int = 0,
        odd: list[OddCell] | None = None,
    ) -> Iterator[Chunk]:
        """Yield the rows from `start` on in their order, `size` at a time, across all parts."""
        held: list[pd.DataFrame] = []
        rows, at, n = 0, start, self.blocks.n_rows
        for frame in self._frames(columns, kinds, start, odd):
            held.append(frame)
            rows += len(frame)
            while rows >= size:
                whole = pd.concat(held, ignore_index=True) if len(held) > 1 else held[0]
                yield Chunk(at, whole.iloc[:size].reset_index(drop=True), (at + size) / n)
                held, rows, at = [whole.iloc[size:]], rows - size, at + size
        if rows:
            yield Chunk(at, pd.concat(held, ignore_index=True), 1.0)

    def _frames(
        self,
        columns: Sequence[str],
        kinds: Mapping[str, str],
        start: int,
        odd: list[OddCell] | None,
    ) -> Iterator[pd.DataFrame]:
        for part, first in zip(self.blocks.parts, self.blocks.starts[:-1], strict=True):
            if first + part.n_rows <= start:
                continue
            begin = max([cut for cut in part.cuts if cut <= max(start - first, 0)])
            over = max(start - first, 0) - begin  # rows to pass over
            here: list[OddCell] | None = None if odd is None else []
            found = part.read(columns, kinds, begin, part.n_rows, here)
            for rows in _named_errors(part, found):
                if odd is not None and here:
                    moved = (cell._replace(row=first + cell.row) for cell in here)
                    odd.extend(cell for cell in moved if cell.row >= start)
                    here.clear()
                frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
                frame, over = frame.iloc[over:], max(over - len(frame), 0)
                if len(frame):
                    yield frame.set_axis(list(columns), axis=1)


def _named_errors(part: Part, rows: Iterator[Any]) -> Iterator[Any]:
    """Let an error say which part it is about."""
    try:
        yield from rows
    except DataError as error:
        raise PartError(part.name, str(error)) from error
