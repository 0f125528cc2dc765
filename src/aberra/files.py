"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from aberra.errors import AberraError, DataError
from aberra.locks import NO_LINK, real, still_there, take

TEMPORARY = ".aberra-tmp-"  # how the names of files begin that are not finished yet
BINARY = getattr(os, "O_BINARY", 0)
LONGEST_REASON = 300  # letters of what a library says
PROBE = 1 << 20  # bytes at either end that enter a fingerprint
PROBE_OF_RESULT = 1 << 16  # the same for what a run wrote


def write_atomically(path: Path, data: bytes) -> None:
    """Put `data` at `path`, all or nothing, whatever happens meanwhile."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield an empty file to fill; it becomes `path` when the block ends well.

    It lies in the same folder and reaches the disk before its name is changed. A process that is
    killed may leave it behind, never half a file under the name of the whole one, and the next
    writer of the same path takes it over.
    """
    target = real(path)  # a link stays a link
    refuse_special(target)
    temporary, held = _workplace(target)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        if sys.platform == "win32":  # an open file keeps its name there
            held.close()
        put_in_place(temporary, target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    finally:
        held.close()


def _workplace(target: Path) -> tuple[Path, BinaryIO]:
    """Return a file of our own beside the target, open and locked.

    Its name follows from the target's, so that nothing piles up after a kill. Where somebody else
    is at work under that name, or something strange lies there, any other name will do.
    """
    digest = sha256(os.fsencode(target.name)).hexdigest()[:16]
    ending = "".join(target.suffixes[-2:])[-16:]  # libraries look at it to choose a format
    usual = target.with_name(f"{TEMPORARY}{digest}{ending}")
    with suppress(OSError):
        held = os.fdopen(os.open(usual, os.O_RDWR | os.O_CREAT | NO_LINK | BINARY, 0o666), "r+b")
        if _is_ours(held.fileno(), usual):
            held.truncate(0)
            return usual, held
        held.close()
    other = target.with_name(f"{TEMPORARY}{secrets.token_hex(8)}{ending}")
    return other, open(other, "x+b")


def _is_ours(handle: int, path: Path) -> bool:
    """Say whether the file is plain, has this one name, and nobody else writes it."""
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
        return False
    return take(handle) and still_there(handle, path)


@contextmanager
def reading(path: str | os.PathLike[str], advice: str) -> Iterator[None]:
    """Turn whatever a library says about a file into an error of ours that names the file.

    Libraries that parse foreign bytes raise nearly anything for damaged ones. So everything counts
    as the file's fault here, except what we say ourselves; the block holds calls to the library,
    and little else.

    Parameters
    ----------
    path : path
        The file.
    advice : str
        What to do about it, as a sentence.
    """
    try:
        yield
    except AberraError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        why = lines[0].rstrip(".")[:LONGEST_REASON]
        raise DataError(f"{os.fspath(path)} cannot be read: {why}. {advice}") from error


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
    digest.update(_ends(path, state.st_size, PROBE))
    return digest.hexdigest()


def result_mark(*paths: Path) -> str | None:
    """Return a digest of files that a run wrote, by which it knows them again; None if one is gone.

    Sizes and ends tell them from other files of these names: Parquet keeps statistics of every
    column at its end, and NPZ, PNG and whatever gzip packs a checksum of everything. Times have no
    part in it, so results that were copied elsewhere are still known.
    """
    digest = sha256()
    for path in paths:
        if not path.is_file():
            return None
        size = path.stat().st_size
        digest.update(repr(size).encode() + _ends(path, size, PROBE_OF_RESULT))
    return digest.hexdigest()


def _ends(path: Path, size: int, length: int) -> bytes:
    with path.open("rb") as opened:
        first = opened.read(length)
        opened.seek(max(0, size - length))
        return first + opened.read(length)


def starts_with(path: Path, first: bytes) -> bool:
    """Say whether a file begins with these bytes."""
    with path.open("rb") as opened:
        return opened.read(len(first)) == first


def check_folder_of(output: Path) -> None:
    """Raise an error if the folder that a result goes to is not there; a link is followed."""
    folder = real(output).parent if output.is_symlink() else output.parent
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}. Create it first.")


def refuse_special(path: Path) -> None:
    """Raise an error if there is something that is neither a file nor a folder: a device, a pipe.

    Reading one may never end, and writing would put a file in its place.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # there is nothing, or nothing that can be looked at: whoever opens it will say so
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(
            f"{path} is a device, a pipe or a socket. Give the name of a regular file or a folder."
        )


def check_file(path: Path) -> None:
    """Raise an error if a name leads nowhere, or to what is neither a file nor a folder."""
    refuse_special(path)
    if not path.exists():
        raise DataError(
            f"{path} is a link that leads nowhere. Bring back what it leads to, or remove the link."
        )


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
