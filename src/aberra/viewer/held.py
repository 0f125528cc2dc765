"""A file that may be shown: inside its folder when listed, and again when opened."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from aberra.errors import DataError

LARGEST_FILE = 1 << 30  # a browser holds no larger volume in one piece


@dataclass(frozen=True)
class Held:
    """A file or a DICOM folder below a root.

    Parameters
    ----------
    path : Path
        Where it was found; links on the way are allowed as long as they end below the root.
    root : Path
        The folder that was given, without links.
    """

    path: Path
    root: Path

    @property
    def inside(self) -> bool:
        """Whether the path, all links followed, still lies below the root."""
        return self.path.resolve().is_relative_to(self.root)

    def real(self) -> Path:
        """Return the path without links, or refuse."""
        found = self.path.resolve()
        if not found.is_relative_to(self.root):
            raise DataError(f"{self.path.name} leads out of the folder. Copy the file into it.")
        return found

    def _is_inside(self, status: os.stat_result) -> bool:
        """Say whether an open file is the one that lies below the root now.

        A folder on the way may have been swapped for a link between looking and opening.
        """
        try:
            return os.path.samestat(status, os.stat(self.real(), follow_symlinks=False))
        except (OSError, DataError):
            return False

    def open(self) -> tuple[BinaryIO, int]:
        """Return the open file and its size; refuse what is not a regular file, or too large."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            handle = os.open(self.real(), flags | getattr(os, "O_BINARY", 0))
        except OSError as error:
            why = error.strerror or str(error)
            raise DataError(f"{self.path.name} cannot be opened: {why}.") from error
        file = os.fdopen(handle, "rb")
        status = os.fstat(handle)
        if not self._is_inside(status):
            file.close()
            raise DataError(f"{self.path.name} leads out of the folder. Copy the file into it.")
        if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_FILE:
            return file, status.st_size
        file.close()
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{self.path.name} is not a regular file. Copy the data into one.")
        raise DataError(
            f"{self.path.name} has {status.st_size >> 20} MB; the viewer shows files up to "
            f"{LARGEST_FILE >> 20} MB. Reduce the resolution of the scan."
        )
