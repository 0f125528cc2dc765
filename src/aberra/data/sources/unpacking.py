"""Files that are packed: zip, bz2, xz and zst, and gz where Arrow does not unpack it itself."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from aberra.errors import DataError
from aberra.files import reading

LARGE, MOST_EXPANSION = 1 << 30, 200  # bytes; how many times a file may grow beyond them
PIECE = 1 << 20
CSV_GZ = (".csv.gz", ".tsv.gz")  # read as they are


def _zst(path: Path) -> Any:
    return pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _zst,
    ".gz": gzip.open,
}
ENDINGS = (".zip", *OPENERS)


def is_packed(name: str) -> bool:
    """Say whether a file has to be unpacked before it can be read."""
    return name.endswith(ENDINGS) and not name.endswith(CSV_GZ)


def unpacked(path: Path, folder: Path) -> Path:
    """Unpack a file; return the file inside, or the folder if there are several."""
    advice = "Unpack it yourself to see what is wrong."
    with reading(path, advice):
        if path.name.lower().endswith(".zip"):
            return _unzipped(path, folder)
        target = folder / path.stem
        with OPENERS[path.suffix.lower()](path) as packed:
            _copied(packed, target, path)
        return target


def _unzipped(path: Path, folder: Path) -> Path:
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir() and not _is_hidden(m.filename)]
        if not members:
            raise DataError(f"There is no file in {path}.")
        targets = [folder / Path(member.filename).name for member in members]
        if len(set(targets)) < len(targets):
            raise DataError(f"{path} holds several files of one name. Unpack it first.")
        for member, target in zip(members, targets, strict=True):
            with archive.open(member) as packed:
                _copied(packed, target, path)
    return targets[0] if len(targets) == 1 else folder


def _is_hidden(name: str) -> bool:
    return name.startswith("__MACOSX") or Path(name).name.startswith(".")


def _copied(packed: Any, target: Path, source: Path) -> None:
    """Copy what is inside; stop before it fills the disk."""
    most, size = max(LARGE, MOST_EXPANSION * source.stat().st_size), 0
    with target.open("wb") as file:
        while piece := packed.read(PIECE):
            size += len(piece)
            if size > most:
                raise DataError(
                    f"{source} unpacks to more than {LARGE >> 30} GB and to more than "
                    f"{MOST_EXPANSION} times its size. Unpack it first if it is meant to be so."
                )
            file.write(piece)
