"""Parquet files, whole or in pieces, without more memory than their size speaks for.

Pages can stand for far more than they hold: a column of one value takes a few bytes, and a long
text that stands in every row is there once. So cells are counted before they are read, and text
stays in its dictionary until its length in all rows is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from aberra.data.sources.allowance import Allowance
from aberra.data.sources.arrow_frames import (
    check_columns,
    check_text,
    frame_of,
    is_odd,
    is_text,
    rechunked,
)
from aberra.data.sources.csv_cells import PROBED, CellReader

PARQUET = (".parquet", ".pq")
BUFFER = 1 << 22  # bytes of a column that are read at a time


def row_groups(path: Path) -> list[int]:
    """Return where the groups of rows begin."""
    return [int(n) for n in _ends(pq.read_metadata(path))[:-1]] or [0]


def whole_parquet(
    path: Path, allowance: Allowance, unread: Collection[str] = (), hollow: bool = False
) -> pd.DataFrame:
    """Return all rows.

    Parameters
    ----------
    path : Path
    allowance : Allowance
        How much they may become.
    unread : collection of str
        Columns to pass over; their cells are gaps.
    hollow : bool
        Whether columns that no frame takes, such as lists, become empty lists instead of an error.
    """
    schema, n = pq.read_schema(path), pq.read_metadata(path).num_rows
    empty = {field.name for field in schema if hollow and is_odd(field.type)}
    wanted = pa.schema([f for f in schema if f.name not in empty and f.name not in unread])
    check_columns(wanted, n, allowance)
    table = pq.read_table(path, columns=wanted.names, read_dictionary=_text(wanted))
    frame = frame_of(table, allowance=allowance)
    if len(wanted) == len(schema):
        return frame
    left = pd.DataFrame(index=range(n)) if frame.empty else frame
    for name in empty:
        left[name] = pd.Series([[]] * n, dtype=object)
    return left.reindex(columns=schema.names)


def parquet_chunks(
    path: Path,
    columns: Sequence[str],
    size: int,
    start: int,
    allowance: Allowance,
    cells: CellReader,
    words: Collection[str] = (),
) -> Iterator[tuple[int, pd.DataFrame, float]]:
    """Yield rows with the position of the first of them and the share of the file up to there.

    `cells` turns text into values in columns that should not hold text; in the columns `words`,
    whole numbers become text.
    """
    asked = pa.schema([field for field in pq.read_schema(path) if field.name in columns])
    # A buffer instead of whole column chunks: row groups may be larger than memory.
    with pq.ParquetFile(
        path, buffer_size=BUFFER, pre_buffer=False, read_dictionary=_text(asked)
    ) as file:
        n = file.metadata.num_rows
        check_columns(asked, min(size, n), allowance)
        if cells.kinds and n:
            names = list(cells.kinds)
            cells.probe(pa.Table.from_batches([next(file.iter_batches(PROBED, columns=names))]))
        ends = _ends(file.metadata)
        first = int(np.searchsorted(ends, start, side="right")) - 1
        groups = list(range(first, file.num_row_groups))
        batches = file.iter_batches(size, row_groups=groups, columns=list(columns))
        for at, table in rechunked(batches, size, start, int(ends[first])):
            if cells.kinds:
                check_text(table, allowance)
            rows = frame_of(cells(table, at), allowance=allowance, words=words)[list(columns)]
            yield at, rows, (at + len(table)) / n


def text_columns(path: Path) -> list[str]:
    """Return the columns that hold text."""
    schema = pq.read_schema(path)
    types = {f.name: f.type.value_type if _is_coded(f.type) else f.type for f in schema}
    return [name for name, kind in types.items() if is_text(kind)]


def _is_coded(kind: pa.DataType) -> bool:
    return bool(pa.types.is_dictionary(kind))


def _text(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if is_text(field.type)]


def _ends(about: pq.FileMetaData) -> list[int]:
    counts = [about.row_group(g).num_rows for g in range(about.num_row_groups)]
    return [int(n) for n in np.cumsum([0, *counts])]
