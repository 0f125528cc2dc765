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

from aberra.data.sources.allowance import UNPACK, Allowance
from aberra.errors import DataError
from aberra.files import reading

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


def unpacked(path: Path, folder: Path, allowance: Allowance | None = None) -> Path:
    """Unpack a file; return the file inside, or the folder if there are several."""
    known = allowance or Allowance.of(path)
    advice = "Unpack it yourself to see what is wrong."
    with reading(path, advice):
        if path.name.lower().endswith(".zip"):
            return _unzipped(path, folder, known)
        target = folder / path.stem
        with OPENERS[path.suffix.lower()](path) as packed:
            _copied(packed, target, known)
        return target


def _unzipped(path: Path, folder: Path, allowance: Allowance) -> Path:
    with zipfile.ZipFile(path) as archive:
        members = [m for m in archive.infolist() if not m.is_dir() and not _is_hidden(m.filename)]
        if not members:
            raise DataError(f"There is no file in {path}.")
        targets = [folder / Path(member.filename).name for member in members]
        if len(set(targets)) < len(targets):
            raise DataError(f"{path} holds several files of one name. Unpack it first.")
        size = 0
        for member, target in zip(members, targets, strict=True):
            with archive.open(member) as packed:
                size = _copied(packed, target, allowance, size)
    return targets[0] if len(targets) == 1 else folder


def _is_hidden(name: str) -> bool:
    return name.startswith("__MACOSX") or Path(name).name.startswith(".")


def _copied(packed: Any, target: Path, allowance: Allowance, size: int = 0) -> int:
    """Copy what is inside, after `size` bytes; stop before it fills the disk."""
    with target.open("wb") as file:
        while piece := packed.read(PIECE):
            size += len(piece)
            allowance.check(size, UNPACK)
            file.write(piece)
    return size
