"""Fetch one public file: whole, the right one, or not at all.

What has arrived is kept in a hidden file beside the target, so a connection that breaks, a process
that is killed or a full disk costs only the rest. The final name appears when size and checksum
are right. Several processes may ask for the same file: one fetches it, the others wait.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from aberra.data.transfer import (
    BrokenOffError,
    Patience,
    RefusedError,
    RemoteFile,
    collect,
    discard,
    tag_of,
)
from aberra.errors import DataError
from aberra.files import put_in_place, write_atomically
from aberra.locks import only_one
from aberra.progress import advance

REJECTED = "the file is not the right one"


def fetch(
    file: RemoteFile,
    folder: Path,
    patience: Patience | None = None,
    accept: Callable[[Path], object] | None = None,
) -> Path:
    """Return the path of `file` below `folder`, downloading it unless it is there.

    Parameters
    ----------
    file : RemoteFile
    folder : Path
        The data folder; made if need be.
    patience : Patience, optional
    accept : callable, optional
        Called with the path of a complete download, whose suffix is that of `file`, before it gets
        its name. Raises `DataError` if the content is wrong.

    Returns
    -------
    path : Path

    Raises
    ------
    DataError
        The file cannot be had, or one is there that is not the right one; nothing that is
        incomplete or wrong ever has the final name. The message holds the addresses and the place.
    """
    target = folder / file.path
    if target.exists():
        check_file(target, file)
        _clear_up(target)
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        tell = partial(advance, target.name, 0.0, "waiting for another process")
        with only_one(target, meanwhile=tell):
            if target.exists():
                check_file(target, file)
            else:
                _download(file, target, patience or Patience(), accept)
    except OSError as error:
        raise DataError(
            f"{target.parent} cannot take {target.name}: {error.strerror or error}. Make room or "
            "choose another folder (--data-dir or $ABERRA_DATA); what has arrived is kept."
        ) from error
    return target


def check_file(path: Path, file: RemoteFile) -> None:
    """Refuse a file whose size or checksum is not the published one, or the one noted at first."""
    try:
        problem = _difference(path, file, kept_sha256(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    if problem:
        raise DataError(
            f"{path} is not the public file of that name: {problem}. Move it away and get it again."
        )


def kept_sha256(path: Path) -> str | None:
    """Return the sha256 noted beside a file that was downloaded without a published one."""
    note = _note_of(path)
    try:
        words = note.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None
    except ValueError:
        words = []
    if len(words) != 2 or len(words[0]) != 64:
        raise DataError(f"{note} holds no sha256. Delete it to trust the next download.")
    return words[0]


def _clear_up(target: Path) -> None:
    """Remove what a process left that was killed when its download was all but done."""
    left = [_part_of(target), tag_of(_part_of(target)), target.with_name(f".lock-{target.name}")]
    if not any(path.exists() for path in left):
        return
    with suppress(OSError), only_one(target):  # a folder may be for reading only
        for path in left[:2]:
            path.unlink(missing_ok=True)


def _note_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _part_of(target: Path) -> Path:
    return target.with_name(f".part-{target.name}")


def _download(
    file: RemoteFile,
    target: Path,
    patience: Patience,
    accept: Callable[[Path], object] | None,
) -> None:
    part, expected = _part_of(target), kept_sha256(target)
    reasons = []
    for address in file.addresses:
        try:
            collect(address, file, part, patience)
            if problem := _problem(part, file, expected, accept):
                discard(part)  # perhaps an old part was damaged: once more from the start
                collect(address, file, part, patience)
                problem = _problem(part, file, expected, accept)
            if not problem:
                break
            discard(part)
            reasons.append(f"{address}: {REJECTED} ({problem})")
        except (RefusedError, BrokenOffError) as error:
            reasons.append(f"{address}: {error}")
    else:
        raise DataError(_by_hand(target, reasons))
    if file.sha256 is None and expected is None:
        line = f"{_digest(part, 'sha256')}  {target.name}\n"
        write_atomically(_note_of(target), line.encode("ascii"))
    put_in_place(part, target)
    tag_of(part).unlink(missing_ok=True)


def _by_hand(target: Path, reasons: list[str]) -> str:
    return (
        f"{target.name} could not be downloaded ({'; '.join(reasons)}). Run again later, or get "
        f"the file elsewhere and put it at {target}."
    )


def _problem(
    part: Path, file: RemoteFile, expected: str | None, accept: Callable[[Path], object] | None
) -> str:
    """Say what is wrong with a complete download, or nothing."""
    problem = _difference(part, file, expected)
    if not problem and accept is not None:
        try:
            accept(part)
        except DataError as error:
            return str(error)
    return problem


def _difference(path: Path, file: RemoteFile, expected: str | None) -> str:
    """Say how a file differs from what was published, or from the first download."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{size} bytes instead of {file.size}"
    for kind, wanted in (("sha256", file.sha256 or expected), ("md5", file.md5)):
        if wanted is not None and (found := _digest(path, kind)) != wanted.lower():
            return f"its {kind} is {found}, not {wanted}"
    return ""


def _digest(path: Path, kind: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(kind, usedforsecurity=kind != "md5")
        ).hexdigest()
