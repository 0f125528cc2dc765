"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path`, all or nothing, whatever happens meanwhile."""
    with replacing(path) as temporary, open(temporary, "xb") as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a name to write a new file under; it becomes `path` when the block ends well.

    The file lies in the same folder and reaches the disk before its name is changed. A process
    that is killed may leave the temporary file behind, never half a file.
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = target.with_name(f".{secrets.token_hex(8)}.aberra-tmp")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        put_in_place(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def put_in_place(temporary: Path, target: Path) -> None:
    """Give a file that is on the disk its final name, in one step that survives a power cut."""
    os.replace(temporary, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can sync a folder at all."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
