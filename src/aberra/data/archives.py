"""Unpack a tar archive that somebody else made, trusting nothing that its members say."""

from __future__ import annotations

import fnmatch
import os
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from aberra.errors import DataError
from aberra.locks import only_one
from aberra.progress import advance


@dataclass(frozen=True)
class Unpacking:
    """What to take out of an archive.

    Parameters
    ----------
    folder : str
        Where the members belong, below the data folder; it appears when all of them are there.
    pattern : str
        Of the names of the members to take; the others stay.
    strip : int, default=0
        Leading folders to leave out of the names.
    most_files, most_bytes : int
        Above which the archive is refused.
    """

    folder: str
    pattern: str
    strip: int = 0
    most_files: int = 5_000
    most_bytes: int = 1 << 35


def unpack(archive: Path, data_folder: Path, recipe: Unpacking) -> Path:
    """Unpack `archive` below `data_folder`, whole or not at all; return the new folder.

    Links, devices, names that lead out of the folder, names that come twice, and more files or
    bytes than the recipe allows are refused.
    """
    target = data_folder / recipe.folder
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        tell = partial(advance, target.name, 0.0, "waiting for another process")
        with only_one(target, meanwhile=tell):
            if not target.exists():
                _unpack(archive, target, recipe)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise DataError(f"{archive} is damaged ({error}). Delete it and get it again.") from error
    except OSError as error:
        raise DataError(
            f"{archive} cannot be unpacked to {target}: {error.strerror or error}."
        ) from error
    return target


def _unpack(archive: Path, target: Path, recipe: Unpacking) -> None:
    temporary = target.with_name(f".unpacking-{target.name}")
    shutil.rmtree(temporary, ignore_errors=True)  # of a run that was killed
    try:
        temporary.mkdir()
        with tarfile.open(archive) as tar:
            _copy_members(tar, archive, temporary, recipe)
        os.rename(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _copy_members(tar: tarfile.TarFile, archive: Path, folder: Path, recipe: Unpacking) -> None:
    length = archive.stat().st_size
    taken = 0
    for member, name in wanted_members(tar, archive, recipe):
        source = tar.extractfile(member)
        if source is None:
            raise DataError(f"{archive}: {member.name} has no content.")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with source, open(path, "xb") as out:
            shutil.copyfileobj(source, out)
        if path.stat().st_size != member.size:
            raise EOFError(f"{member.name} is cut short")
        taken += 1
        advance(archive.name, min(member.offset_data / length, 0.999), f"{taken} files unpacked")
    advance(archive.name, 1.0)
    if not taken:
        raise DataError(f"{archive} has no member {recipe.pattern}. Is it the right archive?")


def wanted_members(
    tar: tarfile.TarFile, archive: Path, recipe: Unpacking
) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    """Yield the members that match, each with its checked name below the folder."""
    names: set[PurePosixPath] = set()
    size = 0
    for member in tar:
        if member.isdir() or not fnmatch.fnmatchcase(member.name, recipe.pattern):
            continue
        name = _safe_name(member, archive, recipe.strip)
        size += member.size
        if name in names:
            raise DataError(f"{archive}: {member.name} comes twice. It was not unpacked.")
        if len(names) >= recipe.most_files or size > recipe.most_bytes:
            raise DataError(f"{archive} holds more than it should. It was not unpacked.")
        names.add(name)
        yield member, name


def _safe_name(member: tarfile.TarInfo, archive: Path, strip: int) -> PurePosixPath:
    path = PurePosixPath(member.name)
    parts = [part for part in path.parts if part != "."][strip:]
    odd = any(part == ".." or "\\" in part or ":" in part or "\0" in part for part in parts)
    if not member.isreg() or path.is_absolute() or odd or not parts:
        raise DataError(f"{archive}: member {member.name!r} is not safe. It was not unpacked.")
    return PurePosixPath(*parts)
