"""How long a table is, roughly, without reading it: whether it is to be read block by block."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from aberra.data.blocks.given import LARGE_ROWS
from aberra.data.sources import GLOB
from aberra.data.sources.arrays import main_array
from aberra.data.sources.formats import FEATHER, files_of_table
from aberra.data.sources.table_file import PARQUET
from aberra.errors import DataError

HEAD = 1 << 18  # bytes in which lines are counted
PACKED, LINE = 5, 100  # times that a packed file grows; bytes of a line in it


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
    return sum(rough_rows(file) for file in files) > LARGE_ROWS


def rough_rows(file: Path) -> int:
    """Return about how many rows a file has; 0 if it cannot be told without reading it."""
    name = file.name.lower()
    try:
        if name.endswith(PARQUET):
            with file.open("rb") as opened:  # Arrow takes no name that is not UTF-8
                return int(pq.read_metadata(opened).num_rows)
        if name.endswith(".npy"):
            return len(main_array(file))
        if name.endswith(FEATHER):
            with file.open("rb") as source, pa.ipc.open_file(source) as held:
                first = held.get_batch(0).num_rows if held.num_record_batches else 0
                return int(first * held.num_record_batches)
        return _lines(file) if name.endswith((".csv", ".tsv", ".txt", ".csv.gz")) else 0
    except (OSError, pa.ArrowException, DataError):
        return 0  # whoever reads it will say what is wrong


def _lines(file: Path) -> int:
    size = file.stat().st_size
    if file.name.lower().endswith(".gz"):  # what is inside cannot be seen from outside
        return PACKED * size // LINE
    with file.open("rb") as opened:
        head = opened.read(HEAD)
    return size * head.count(b"\n") // max(len(head), 1)
