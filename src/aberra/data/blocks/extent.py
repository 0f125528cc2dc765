"""How long a table is, roughly, without reading it: whether it is to be read block by block."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from aberra.data.blocks.given import LARGE_ROWS
from aberra.data.sources import GLOB
from aberra.data.sources.allowance import Allowance
from aberra.data.sources.arrays import main_array
from aberra.data.sources.formats import FEATHER, files_of_table
from aberra.data.sources.parquet_rows import PARQUET
from aberra.data.sources.staged import readable, within_reach
from aberra.data.sources.unpacking import CSV_GZ, is_packed
from aberra.errors import DataError

HEAD = 1 << 18  # bytes in which lines are counted
CSV = (".csv", ".tsv", ".txt")
PIECE = 1 << 22


def is_pattern(place: str) -> bool:
    """Say whether a path is a pattern such as "big/*.parquet"."""
    return any(mark in place for mark in GLOB) and not Path(place).exists()


def is_large(place: str) -> bool:
    """Say whether a file or folder has about a million rows or more, or is a pattern of paths."""
    path = Path(place)
    if is_pattern(place):
        return True
    if not path.exists():
        return False
    files = files_of_table(path) if path.is_dir() else [path]
    return any(rows > LARGE_ROWS for rows in accumulate(map(rough_rows, files)))


def rough_rows(file: Path) -> int:
    """Return about how many rows a file has; 0 if it cannot be told without reading it."""
    if not file.is_file():
        return 0
    try:
        # What is packed is unpacked once, for whoever reads it afterwards.
        return _rows(readable(file) if is_packed(file.name.lower()) else file)
    except (OSError, pa.ArrowException, DataError):
        return 0  # whoever reads it will say what is wrong


def _rows(file: Path) -> int:
    name = file.name.lower()
    if name.endswith(PARQUET):
        with file.open("rb") as opened:  # Arrow takes no name that is not UTF-8
            return int(pq.read_metadata(opened).num_rows)
    if name.endswith(".npy"):
        return len(main_array(file))
    if name.endswith(FEATHER):
        with file.open("rb") as source, pa.ipc.open_file(source) as held:
            first = held.get_batch(0).num_rows if held.num_record_batches else 0
            return int(first * held.num_record_batches)
    if name.endswith(CSV_GZ):
        return _packed_lines(file)
    return _lines(file) if name.endswith(CSV) else 0


def _lines(file: Path) -> int:
    size = file.stat().st_size
    with file.open("rb") as opened:
        head = opened.read(HEAD)
    return size * head.count(b"\n") // max(len(head), 1)


def _packed_lines(file: Path) -> int:
    """Count the lines of packed CSV, as far as it matters: from outside they cannot be seen."""
    lines, size, most = 0, 0, Allowance.of(file).most
    with pa.input_stream(str(within_reach(file)), compression="gzip") as stream:
        while lines <= LARGE_ROWS and size <= most and (piece := stream.read(PIECE)):
            lines, size = lines + piece.count(b"\n"), size + len(piece)
    return lines
