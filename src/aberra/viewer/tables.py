"""Pages of a table of scores: sorted and filtered here, so that a million rows stay here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray
from pyarrow.types import is_boolean, is_floating, is_integer, is_string

from aberra.errors import DataError
from aberra.explain.neighbours import Neighbours
from aberra.viewer.held import Held
from aberra.viewer.rows import Range, ScoredRows

REASON_COLUMNS = ("reason_1", "reason_2", "reason_3")
IDS = ("id", "row", "image")  # what aberra score calls the first column
SHOWN_COLUMNS = ("id", "score", "percentile", "flag", *REASON_COLUMNS)
RowNumbers = NDArray[np.int64]
CURVE = 160  # points of the curve of sorted scores


@dataclass(frozen=True)
class Query:
    """What a page of the table shall show.

    Parameters
    ----------
    sort : str
        One of the table's columns.
    descending : bool
    find : str
        Part of an identifier or of a reason, in any case; empty for all.
    flagged : bool
        Only rows that the model flags.
    marked : {"", "accept", "reject"}
        Only rows with that mark.
    reason : str
        Only rows that have this column among their reasons; empty for all.
    where : Range, optional
        Only rows whose own value fulfils a condition; needs the table that was scored.
    offset, limit : int
        Which of the matching rows.
    """

    sort: str = "score"
    descending: bool = True
    find: str = ""
    flagged: bool = False
    marked: Literal["", "accept", "reject"] = ""
    reason: str = ""
    where: Range | None = None
    offset: int = 0
    limit: int = 100


class ScoreTable:
    """A table that `aberra score` wrote, held in memory by columns.

    Parameters
    ----------
    held : Held
        A CSV or Parquet file with a column `score`.
    behind : ScoredRows, optional
        The table that was scored and its model, where they were given.
    """

    def __init__(self, held: Held, behind: ScoredRows | None = None) -> None:
        self.behind = behind
        self.table = _with_all_columns(_read_table(held), held)
        self.columns = [name for name in SHOWN_COLUMNS if name in self.table.column_names]
        self._order = lru_cache(maxsize=4)(self._sorted)
        self._matches = lru_cache(maxsize=4)(self._matching)
        self._within = lru_cache(maxsize=4)(self._fulfilling)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def name(self, row: int) -> str:
        """Return the identifier of a row, under which its mark is kept."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        return str(self.table["id"][row].as_py())

    def page(self, query: Query, marks: dict[str, str]) -> dict[str, Any]:
        """Return the rows that a query asks for, each with its position and its mark."""
        rows = self._order(query.sort, query.descending)
        keep = self._matches(query.find.casefold(), query.flagged)
        if keep is not None:
            rows = rows[keep[rows]]
        if query.reason:
            rows = rows[self._has_reason(query.reason)[rows]]
        if query.where is not None:
            rows = rows[self._within(query.where)[rows]]
        if query.marked:
            names = [name for name, mark in marks.items() if mark == query.marked]
            rows = rows[self._named(names)[rows]]
        shown = rows[query.offset : query.offset + query.limit]
        held = self.table.take(pa.array(shown)).to_pylist()
        lines = [
            {"row": int(row), "mark": marks.get(str(line["id"])), **_as_json(line)}
            for row, line in zip(shown, held, strict=True)
        ]
        return {
            "columns": self.columns,
            "total": len(self),
            "matching": len(rows),
            "offset": query.offset,
            "rows": lines,
        }

    @cached_property
    def places(self) -> RowNumbers:
        """Where each row is in the table that was scored; -1 where it is not."""
        return self._behind().positions(self.table["id"].to_pandas())

    @cached_property
    def _neighbours(self) -> Neighbours:
        flags = self.table["flag"] if "flag" in self.columns else None
        scores = np.asarray(self.table["score"])
        odd = scores > np.median(scores) if flags is None else np.asarray(flags, dtype=bool)
        places = self.places[~odd]
        return self._behind().neighbours(np.sort(places[places >= 0]))

    def about(self, row: int) -> dict[str, Any]:
        """Return what lies behind the score of a row."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        place = int(self.places[row])
        if place < 0:
            raise DataError(
                f"The table that was given with --data has no row {self.name(row)}. Give the one "
                "that was scored."
            )
        return self._behind().about(place, self._neighbours)

    def overview(self) -> dict[str, Any]:
        """Return what can be asked: reasons, columns, and the scores from high to low."""
        held = [self.table[name] for name in REASON_COLUMNS if name in self.columns]
        reasons = {str(one) for column in held for one in pc.unique(column).to_pylist() if one}
        scores = np.sort(np.asarray(self.table["score"]))[::-1]
        ranks = np.unique(np.geomspace(1, max(len(scores), 1), CURVE).astype(np.int64)) - 1
        curve = [
            [int(k) + 1, float(scores[k])] for k in ranks if np.isfinite(scores[k : k + 1]).any()
        ]
        kinds = {} if self.behind is None else self.behind.kinds
        columns = [] if self.behind is None else self.behind.columns
        return {
            "reasons": sorted(reasons),
            "columns": [{"name": name, "kind": kinds[name]} for name in columns],
            "curve": curve,
            "flagged": None if "flag" not in self.columns else pc.sum(self.table["flag"]).as_py(),
        }

    def marked(self, marks: dict[str, str]) -> pd.DataFrame:
        """Return the marked rows, with their values where the table that was scored is there."""
        rows = np.flatnonzero(self._named(list(marks)))
        table = self.table.take(pa.array(rows)).to_pandas()
        table.insert(1, "mark", [marks[str(name)] for name in table["id"]])
        if self.behind is None:
            return table
        places = self.places[rows]
        values = self.behind.table[self.behind.columns].iloc[places].reset_index(drop=True)
        values[places < 0] = None
        twice = {name: f"{name} (value)" for name in values if name in table}
        return pd.concat([table, values.rename(columns=twice)], axis=1)

    def _behind(self) -> ScoredRows:
        if self.behind is None:
            raise DataError(
                "The values of the rows are not known here. Start aberra view with --model and "
                "--data, the model and the table that were scored."
            )
        return self.behind

    def _fulfilling(self, condition: Range) -> NDArray[np.bool_]:
        keep = self._behind().matching(condition)
        return (self.places >= 0) & keep[self.places]

    def _has_reason(self, name: str) -> NDArray[np.bool_]:
        keep = np.zeros(len(self), dtype=bool)
        for column in REASON_COLUMNS:
            if column in self.columns:
                found = pc.equal(self.table[column].cast(pa.string()), name)
                keep |= np.asarray(pc.fill_null(found, False))
        return keep

    def _sorted(self, column: str, descending: bool) -> RowNumbers:
        if column not in self.columns:
            raise DataError(f"There is no column {column!r}. The table has {self.columns}.")
        direction = "descending" if descending else "ascending"
        values = self.table[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(pa.string())
        keys = pa.table({"by": values})
        return np.asarray(pc.sort_indices(keys, [("by", direction)])).astype(np.int64)

    def _matching(self, find: str, flagged: bool) -> NDArray[np.bool_] | None:
        keep = None
        if find:
            keep = self._contains("id", find)
            for column in REASON_COLUMNS:
                if column in self.columns:
                    keep = keep | self._contains(column, find)
        if flagged and "flag" in self.columns:
            odd = np.asarray(self.table["flag"], dtype=bool)
            keep = odd if keep is None else keep & odd
        return keep

    def _contains(self, column: str, text: str) -> NDArray[np.bool_]:
        """Say which cells contain a text; repeated texts are looked at once."""
        cells = self.table[column]
        if not pa.types.is_dictionary(cells.type):
            found = pc.match_substring(cells.cast(pa.string()), text, ignore_case=True)
            return np.asarray(pc.fill_null(found, False))
        pieces = [
            pc.take(
                pc.match_substring(chunk.dictionary, text, ignore_case=True),
                chunk.indices,
            )
            for chunk in cells.chunks
        ]
        if not pieces:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(pc.fill_null(pa.chunked_array(pieces), False))

    def _named(self, names: list[str]) -> NDArray[np.bool_]:
        """Say which rows have one of the names; marks may hold some that no table can have."""
        known = [name for name in names if _is_unicode(name)]
        wanted = pa.array(known, pa.string())
        return np.asarray(pc.is_in(self.table["id"].cast(pa.string()), value_set=wanted))


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_table(held: Held) -> pa.Table:
    file, _ = held.open()
    texts = {name: pa.dictionary(pa.int32(), pa.string()) for name in REASON_COLUMNS}
    texts |= {"id": pa.string(), "image": pa.string()}  # 007 is not 7
    with file:
        try:
            if held.path.name.endswith(".parquet"):
                names = _wanted(pa.parquet.ParquetFile(file).schema_arrow.names, held)
                table = pa.parquet.read_table(
                    file, columns=names, read_dictionary=list(REASON_COLUMNS)
                )
                table.validate(full=True)  # nothing else looks whether text is UTF-8
                return table
            options = pa.csv.ConvertOptions(column_types=texts)
            table = pa.csv.read_csv(file, convert_options=options)
            return _whole_ids(table.select(_wanted(table.column_names, held)))
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{held.path.name} cannot be read as a table: {str(error).splitlines()[0]}. "
                "Write it again with aberra score."
            ) from error


def _whole_ids(table: pa.Table) -> pa.Table:
    """Make identifiers numbers, which sort as such, if they are written as numbers are."""
    if "id" not in table.column_names:
        return table
    try:
        whole = table["id"].cast(pa.int64())
    except pa.ArrowInvalid:
        return table
    if not whole.cast(pa.string()).equals(table["id"]):
        return table
    return table.set_column(table.column_names.index("id"), "id", whole)


def _wanted(names: list[str], held: Held) -> list[str]:
    first = [name for name in IDS if name in names][:1]
    wanted = first + [name for name in SHOWN_COLUMNS[1:] if name in names]
    for name in wanted:
        if names.count(name) > 1:
            raise DataError(f"{held.path.name} has several columns {name!r}. Rename all but one.")
    return wanted


def _with_all_columns(table: pa.Table, held: Held) -> pa.Table:
    """Check the scores, and fill in the columns that a shorter table lacks."""
    try:
        if "score" not in table.column_names:
            raise DataError(
                f"{held.path.name} has no column score. Give a table that aberra score wrote."
            )
        scores = table["score"].cast(pa.float64())
        table = table.set_column(table.column_names.index("score"), "score", scores)
        table = _with_ids(table)
        if "flag" in table.column_names:
            flags = pc.fill_null(table["flag"].cast(pa.bool_()), False)
            table = table.set_column(table.column_names.index("flag"), "flag", flags)
        for j, name in enumerate(table.column_names):
            table = table.set_column(j, name, _shown(table[name]))
    except pa.ArrowException as error:
        raise DataError(
            f"{held.path.name} has a column of the wrong type: {str(error).splitlines()[0]}. Write "
            "it again with aberra score."
        ) from error
    return table


def _shown(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers and text as they are, and anything else as text that can be shown."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if any(test(kind) for test in (is_integer, is_floating, is_boolean, is_string)):
        return column
    return column.cast(pa.string())


def _with_ids(table: pa.Table) -> pa.Table:
    """Return the table with a column `id`: its own, the row's number or the image's name."""
    given = next((name for name in IDS if name in table.column_names), None)
    if given is None:
        return table.add_column(0, "id", pa.array(np.arange(table.num_rows)))
    return table.rename_columns(["id" if n == given else n for n in table.column_names])


def _as_json(line: dict[str, Any]) -> dict[str, Any]:
    """Return a row as JSON can hold it."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in line.items()
    }
