"""Standard input as a file, whose type shows in its first bytes."""

from __future__ import annotations

import shutil
import sys
from functools import lru_cache
from pathlib import Path

from aberra.errors import DataError

STDIN = "-"  # what stands for standard input, and as an output for standard output
STARTS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ": ".csv.xz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"PK": ".xlsx",
    b"{": ".jsonl",
    b"[": ".json",
}


@lru_cache(maxsize=1)
def standard_input(folder: Path) -> Path:
    """Keep all that comes in, once, in a file whose name says what it is."""
    if sys.stdin is None:
        raise DataError("Standard input is closed. Give a file, or send the table through a pipe.")
    held = folder / "standard-input"
    with held.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with held.open("rb") as file:
        head = file.read(64)
    if not head:
        raise DataError("Nothing came in through standard input.")
    ending = next((e for start, e in STARTS.items() if head.startswith(start)), ".csv")
    named = held.with_name(f"standard-input{ending}")
    held.rename(named)
    return named
