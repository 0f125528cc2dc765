"""A table as a list of parts, each row with its position in the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from aberra.data.blocks.keys import Positions
from aberra.data.blocks.parts import BLOCK_ROWS, Part
from aberra.data.blocks.sample import Rows
from aberra.errors import DataError

TASK_ROWS = 1 << 20  # rows of a task at least, where its part can be cut
SAMPLE_ROWS = 1 << 18  # rows of a long table that training sees
BASE_BYTES = 350 << 20  # of Python and its libraries
COPIES = 8  # of the sample's numbers while it trains, and of a block's while it is scored


class PartError(DataError):
    """A part of a table cannot be read.

    Parameters
    ----------
    part : str
        Its name.
    why : str
        What is wrong with it.
    """

    def __init__(self, part: str, why: str) -> None:
        super().__init__(part, why)
        self.part, self.why = part, why

    def __str__(self) -> str:
        return self.why


class Task(NamedTuple):
    """Rows of one part that one worker reads in one go."""

    part: int
    start: int  # within the part
    stop: int
    position: int  # of the first row in the whole table

    @property
    def n_rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start


class Block(NamedTuple):
    """Some rows, and the position of the first of them in the whole table."""

    position: int
    rows: Rows


@dataclass(frozen=True)
class Blocks:
    """A table that is read block by block; `blocks_of` makes one of paths, arrays and datasets.

    Parameters
    ----------
    name : str
        What to call it.
    parts : tuple of Part
        In the order of the rows.
    kinds : dict
        "number", "text", "time" or "duration" for each column.
    named : bool, default True
        Whether the columns have names of their own; blocks are data frames then, else arrays.
    skipped : dict, default {}
        Parts that could not be read and were left out, and why.
    sample_rows : int, default 262,144
        Rows that training sees; a table of no more rows is seen whole.
    unread : tuple of str, default ()
        Columns that nobody needs.
    """

    name: str
    parts: tuple[Part, ...] = field(repr=False)
    kinds: dict[str, str]
    named: bool = True
    skipped: dict[str, str] = field(default_factory=dict)
    sample_rows: int = SAMPLE_ROWS
    unread: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are read; those of an array are x0, x1, ..."""
        return [name for name in self.kinds if name not in self.unread]

    @cached_property
    def starts(self) -> list[int]:
        """The position of each part's first row, and at the end the number of rows."""
        return list(accumulate((part.n_rows for part in self.parts), initial=0))

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.starts[-1]

    def tasks(self, rows: int = TASK_ROWS) -> list[Task]:
        """Cut the table into tasks of about so many rows, where its parts can be cut."""
        found = []
        for k, part in enumerate(self.parts):
            edges = [*_thinned(part.cuts, rows), part.n_rows]
            for a, b in pairwise(edges):
                if b > a:
                    found.append(Task(k, a, b, self.starts[k] + a))
        return found

    def read(self, task: Task, columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the rows of a task, a block at a time, numbers in double precision.

        Raises
        ------
        PartError
            If the part cannot be read, or does not have the rows that it had.
        """
        part, wanted, at = self.parts[task.part], list(columns or self.columns), task.position
        try:
            for rows in part.read(wanted, self.kinds, task.start, task.stop):
                yield Block(at, _steady(rows, self.kinds))
                at += len(rows)
        except PartError:
            raise
        except DataError as error:
            raise PartError(part.name, str(error)) from error
        if at - task.position != task.n_rows:
            raise PartError(part.name, f"{part.name} has changed since the work began.")

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> Rows:
        """Return single rows by their positions, in this order; for a few rows."""
        found: dict[int, Any] = {}
        for task in self.tasks():
            here = [p for p in positions.tolist() if 0 <= p - task.position < task.n_rows]
            if not here:
                continue
            for block in self.read(task, columns):
                inside = [p for p in here if 0 <= p - block.position < len(block.rows)]
                for p in inside:
                    at = slice(p - block.position, p - block.position + 1)
                    found[p] = block.rows[at]  # slices rows of a frame and of an array alike
        rows = [found[p] for p in positions.tolist()]
        return pd.concat(rows, ignore_index=True) if self.named else np.concatenate(rows)

    def without(self, bad: dict[str, str]) -> Self:
        """Return the table without some parts, which are named among those left out."""
        left = tuple(part for part in self.parts if part.name not in bad)
        if not left:
            name, why = next(iter(bad.items()))
            raise DataError(f"No part of {self.name} can be read. {name}: {why}")
        return replace(self, parts=left, skipped={**self.skipped, **bad})

    def fingerprint(self) -> str:
        """Return a digest that changes when a part does, or the list of parts."""
        marks = [(part.name, part.n_rows, part.mark()) for part in self.parts]
        settled = (marks, sorted(self.kinds.items()), self.sample_rows)
        return sha256(repr(settled).encode()).hexdigest()

    def memory(self) -> int:
        """Return about how many bytes fitting or scoring takes, whatever the number of rows."""
        sample = min(self.n_rows, self.sample_rows) * len(self.kinds) * 8
        return BASE_BYTES + COPIES * (sample + BLOCK_ROWS * len(self.kinds) * 8)


def _thinned(cuts: list[int], rows: int) -> list[int]:
    """Return some of the places to cut at, so that pieces have `rows` rows or more."""
    kept = [cuts[0]]
    for cut in cuts[1:]:
        if cut - kept[-1] >= rows:
            kept.append(cut)
    return kept


def _steady(rows: Rows, kinds: dict[str, str]) -> Rows:
    """Return rows whose types do not depend on whether a block happens to have gaps."""
    if isinstance(rows, np.ndarray):
        return rows.astype(np.float64, copy=False) if rows.dtype.kind in "biuf" else rows
    held = {
        name: column.astype(np.float64) if kinds.get(str(name)) == "number" else column
        for name, column in rows.items()
    }
    return pd.DataFrame(held, copy=False).reset_index(drop=True)
