"""Cells of new data that are no numbers or dates, kept with the answers until they are told."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import pyarrow as pa

from aberra.data.sources.csv_cells import FEW, WHAT, OddCell
from aberra.data.sources.csv_file import Chunk
from aberra.data.sources.table_file import TableFile
from aberra.data.written import means, odd_places
from aberra.errors import DataError
from aberra.progress import remark
from aberra.scoring.rows import RowAnswers
from aberra.words import count

KEPT = b"aberra.odd_cells"  # where a table of answers keeps them
SHOWN = 5  # columns whose first such cell is looked up


class Placed(Protocol):
    """A table that can say where a row is."""

    def place_of(self, row: int) -> str:
        """Return the line or the position of a row."""


@dataclass(frozen=True)
class OddColumn:
    """Cells of a column that are no numbers or dates.

    Parameters
    ----------
    column : str
    kind : {"number", "time"}
        What its cells should be.
    n_cells : int
    row : int
        Where the first of them is.
    text : str
        What the first of them says.
    place : str, default=""
        Its line in the file, where that was looked up.
    form : str, default=""
        In which they should be written, if the column holds text.
    """

    column: str
    kind: str
    n_cells: int
    row: int
    text: str
    place: str = ""
    form: str = ""

    def __str__(self) -> str:
        """Return a sentence."""
        where = f"{self.text!r} in {self.place}" if self.place else repr(self.text)
        written = f"not written as {self.form!r}" if self.form else ""
        what = WHAT[self.kind]
        if self.n_cells == 1:
            told = f"1 cell is {written or f'no {what}'}"
            return f"{self.column}: {told} ({where}); it counts as a gap."
        told = f"{count(self.n_cells, 'cell')} are {written or f'no {what}s'}"
        return f"{self.column}: {told} ({where}, ...); they count as gaps."


def counted(cells: Iterable[OddCell]) -> list[OddColumn]:
    """Return cells, in the order of their rows, column by column."""
    return added_up(
        OddColumn(cell.column, cell.kind, 1, cell.row, cell.text, form=cell.form) for cell in cells
    )


def added_up(columns: Iterable[OddColumn]) -> list[OddColumn]:
    """Return one entry for each column; what comes first of it is shown."""
    found: dict[str, OddColumn] = {}
    for one in columns:
        known = found.get(one.column)
        more = one if known is None else replace(known, n_cells=known.n_cells + one.n_cells)
        found[one.column] = more
    return list(found.values())


def placed(columns: Iterable[OddColumn], table: Placed) -> list[OddColumn]:
    """Return the columns with the place of the first cell of some of them."""
    return [
        one if k >= SHOWN else replace(one, place=table.place_of(one.row))
        for k, one in enumerate(columns)
    ]


def sentences(columns: list[OddColumn]) -> list[str]:
    """Say what is odd about the first columns, and how many more there are."""
    left = len(columns) - SHOWN
    more = [f"{count(left, 'more column')} with such cells."] if left > 0 else []
    return [*map(str, columns[:SHOWN]), *more]


def told_chunks(file: TableFile, answers: RowAnswers, size: int) -> Iterator[Chunk]:
    """Yield the rows of a file for a model, and say at the end which cells count as gaps."""
    odd: list[OddCell] | None = [] if answers.takes_gaps else None
    others: list[OddCell] = []
    for chunk in file.chunks(answers.wanted, answers.kinds, size, odd=odd):
        others += written_otherwise(answers, chunk)
        yield chunk
    for sentence in sentences(placed(counted([*(odd or []), *others]), file)):
        remark(sentence)


def written_otherwise(answers: RowAnswers, chunk: Chunk) -> Iterator[OddCell]:
    """Yield the cells that are not in the form of their column, and so are gaps for the model."""
    for name, form in answers.forms.items() if answers.takes_gaps else ():
        column, kind = chunk.frame[name], str(means(form))
        places = odd_places(column, form)
        for row, cell in zip(places.tolist(), column.iloc[places], strict=True):
            if text := str(cell).strip():
                yield OddCell(name, kind, chunk.start + row, text, form)


def taken(odd: list[OddCell], stop: int) -> list[OddCell]:
    """Take the cells of the rows before `stop` out of a list."""
    mine = [cell for cell in odd if cell.row < stop]
    odd[:] = [cell for cell in odd if cell.row >= stop]
    return mine


def kept(answers: pa.Table, cells: list[OddCell]) -> pa.Table:
    """Return answers that know which cells of their rows were odd."""
    if not cells:
        return answers
    said = json.dumps(as_dicts(counted(cells))).encode()
    return answers.replace_schema_metadata({**(answers.schema.metadata or {}), KEPT: said})


def known(answers: pa.Table) -> Iterator[OddColumn]:
    """Yield what answers know of odd cells."""
    held = (answers.schema.metadata or {}).get(KEPT)
    yield from () if held is None else from_dicts(json.loads(held))


def as_dicts(columns: Iterable[OddColumn]) -> list[dict[str, Any]]:
    """Return the columns for a file in JSON."""
    return [asdict(one) for one in columns]


def from_dicts(held: Iterable[Mapping[str, Any]]) -> list[OddColumn]:
    """Return the columns that a file in JSON holds."""
    return [OddColumn(**one) for one in held]


def refuse_other_columns(columns: Iterable[OddColumn], n_rows: int, name: str) -> None:
    """Raise an error about a column most of whose cells are something else."""
    for one in columns:
        if 2 * one.n_cells > n_rows > FEW:
            held = f"was written as {one.form!r}" if one.form else f"held {WHAT[one.kind]}s"
            cells = f"{one.n_cells:,} of {count(n_rows, 'cell')}"
            raise DataError(
                f"{name}: the column {one.column!r} {held} when the model was fitted, but {cells} "
                f"now are {'not' if one.form else 'none'}, such as {one.text!r}. Give it the "
                "column that it was fitted on, or fit a model on this table."
            )
