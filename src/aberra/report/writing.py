"""A page on disk: there whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from aberra.errors import DataError
from aberra.files import refuse_special, write_atomically


def check_place(path: Path) -> None:
    """Raise an error, before long work, if a page could not be written there."""
    refuse_special(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder. Give the name of a file, such as report.html.")
    folder = path.parent
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}. Create it, or choose another place.")
    if not os.access(folder, os.W_OK):
        raise DataError(f"The folder {folder} cannot be written to. Choose another place.")


def write(path: Path, page: str) -> int:
    """Write a page and return its size in bytes."""
    data = page.encode("utf-8", "backslashreplace")  # names that are not UTF-8
    try:
        write_atomically(path, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(
            f"{path} cannot be written: {reason}. Choose another place, or make room there."
        ) from error
    return len(data)
