"""How much a file may become: the one limit for everything that grows when it is read.

A few kilobytes can stand for gigabytes: packed zeros, a spreadsheet with one cell far out, objects
that all have names of their own. So whoever unpacks a file, or puts all its cells into memory,
counts what comes out before it is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aberra.errors import DataError

LARGE, MOST_EXPANSION = 1 << 30, 200  # bytes; how many times a file may grow beyond them
COPIES = 2  # of a table that is read whole: what the file gives, and the frame
NUMBER_BYTES = 8
UNPACK = "Unpack it first if it is meant to be so."
SMALLER = "Leave out rows or columns, or save it as CSV without packing it."


@dataclass(frozen=True)
class Allowance:
    """How many bytes a file may take when it is read.

    Parameters
    ----------
    called : Path
        The file in messages.
    size : int
        Bytes of the file as the user has it.
    """

    called: Path
    size: int

    @classmethod
    def of(cls, path: Path, called: Path | None = None) -> Allowance:
        """Return that of a file, or of all files in a folder."""
        files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
        return cls(called or path, sum(file.stat().st_size for file in files))

    @property
    def most(self) -> int:
        """The bytes that it may become."""
        return max(LARGE, MOST_EXPANSION * self.size)

    def check(self, n_bytes: int, advice: str, what: str = "") -> None:
        """Raise an error if it becomes more; `what` says which part of the file."""
        if n_bytes > self.most:
            raise DataError(
                f"{self.called}{what} unpacks to more than {LARGE >> 30} GB and to more than "
                f"{MOST_EXPANSION} times its size. {advice}"
            )
