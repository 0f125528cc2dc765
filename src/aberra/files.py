"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from aberra.errors import DataError

PROBE = 1 << 20  # bytes at either end that enter a fingerprint


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


def fingerprint(path: Path) -> str:
    """Return a digest that changes with a file or folder: names, sizes, times, ends of a file."""
    digest = sha256()
    if path.is_dir():
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            state = file.stat()
            about = (file.relative_to(path).as_posix(), state.st_size, state.st_mtime_ns)
            digest.update(repr(about).encode())
        return digest.hexdigest()
    state = path.stat()
    digest.update(repr((state.st_size, state.st_mtime_ns)).encode())
    with path.open("rb") as opened:
        digest.update(opened.read(PROBE))
        opened.seek(max(0, state.st_size - PROBE))
        digest.update(opened.read(PROBE))
    return digest.hexdigest()


def starts_with(path: Path, first: bytes) -> bool:
    """Say whether a file begins with these bytes."""
    with path.open("rb") as opened:
        return opened.read(len(first)) == first


def refuse_to_overwrite(output: Path, *inputs: Path) -> None:
    """Raise an error if the result would replace what it is made from."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise DataError(f"{output} is the input itself. Choose another name for the result.")


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
