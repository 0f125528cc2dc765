"""How large JSON becomes as a table: every object has a cell for every name that any of them has.

Objects that all have names of their own make a table whose size is the square of the file's. So
objects and names are counted before the table is made.
"""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aberra.data.sources.allowance import SMALLER, Allowance
from aberra.words import count

CELL = 24  # bytes of a cell while objects become a table
PIECE = 1 << 22
# Bytes in memory for what begins with these letters: a value, a name, an object, a list.
COSTS = {b",": 32, b":": 40, b"{": 64, b"[": 56}
TEXT = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
# Values are gone through as well: what stands inside of one is no name.
NAME = re.compile(rb'"(%b)"\s*+:|"%b"' % (TEXT, TEXT), re.DOTALL)
FEW = 32  # names that are quickly told from others


def objects_in(path: Path, allowance: Allowance) -> Any:
    """Return what a JSON file holds, unless that takes more memory than it may."""
    data = path.read_bytes()
    cost = len(data) + sum(data.count(mark) * each for mark, each in COSTS.items())
    allowance.check(cost, SMALLER)
    return json.loads(data)


def check_objects(rows: list[dict[str, Any]], allowance: Allowance) -> None:
    """Refuse objects with so many different names that their table would be too large."""
    names: set[str] = set()
    for row in rows:
        names.update(row)
    _check(len(rows), len(names), allowance)


def check_lines(path: Path, allowance: Allowance) -> None:
    """Refuse a file of one object a line whose table would be too large."""
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        objects = sum(data[at : at + PIECE].count(b"{") for at in range(0, len(data), PIECE))
        names: set[bytes] = set()
        for start, end in _lines(data):
            if not _all_known(names, data, start, end):
                names.update(NAME.findall(data, start, end))
            _check(objects, len(names), allowance)


def _all_known(names: set[bytes], data: mmap.mmap, start: int, end: int) -> bool:
    """Say whether a piece has no other names; in half the time that listing them takes."""
    if not 0 < len(names) <= FEW:
        return False
    known = b"|".join(map(re.escape, sorted(names)))
    tokens = rb'(?:[^"]*+(?:"(?:%b)"\s*+:|"%b"(?!\s*+:)))*+[^"]*+' % (known, TEXT)
    found = re.compile(tokens, re.DOTALL).match(data, start, end)
    return found is not None and found.end() == min(end, len(data))


def _lines(data: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Yield where pieces of whole lines begin and end; lines that Arrow refuses are cut."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + PIECE, start + 2 * PIECE) + 1 or start + 2 * PIECE
        yield start, end
        start = end


def _check(objects: int, names: int, allowance: Allowance) -> None:
    what = f": a table of {count(objects, 'object')} with {count(names, 'name')}"
    allowance.check(objects * max(names, 1) * CELL, SMALLER, what)
