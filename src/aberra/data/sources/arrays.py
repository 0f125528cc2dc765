"""NumPy files: the rows or images they hold, and labels beside them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from aberra.data.sources.allowance import Allowance
from aberra.errors import DataError
from aberra.files import reading

ARRAYS = (".npy", ".npz")
KINDS = "biufcMmUS"  # of numbers, dates and text
ADVICE = "Save plain arrays with numpy.save or numpy.savez."
AS_NPY = "Save it with numpy.save if it is meant to be so."
USUAL = ("X", "x", "data", "images", "arr_0")  # names that the main array of an npz tends to have


def array_dimensions(path: Path) -> int:
    """Return how many axes the main array has; of an npz without reading the numbers."""
    if path.name.lower().endswith(".npy"):
        return main_array(path).ndim
    shapes = _shapes(path)
    return len(shapes[_main(shapes, path)])


def main_array(path: Path) -> NDArray[Any]:
    """Return the rows or images of an npy file (mapped, not read) or of an npz file."""
    if path.name.lower().endswith(".npy"):
        with reading(path, ADVICE):
            return _usable(np.load(path, mmap_mode="r", allow_pickle=False), path)
    return _from_npz(path, _main(_shapes(path), path))


def _usable(array: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return an array of numbers, dates or words in the byte order of this machine."""
    if array.ndim == 0 or array.dtype.kind not in KINDS:
        raise DataError(
            f"{path} holds {array.dtype} of shape {array.shape}, not rows of numbers, dates or "
            f"text. {ADVICE}"
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.asanyarray(array)


def _from_npz(path: Path, name: str) -> NDArray[Any]:
    with reading(path, ADVICE), np.load(path, allow_pickle=False) as file:
        return _usable(np.asarray(file[name]), path)


def columns_beside(path: Path, n_rows: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz that hold one value a row, such as labels or identifiers."""
    if path.name.lower().endswith(".npy"):
        return {}
    names = [name for name, shape in _shapes(path).items() if shape == (n_rows,)]
    return {name: _from_npz(path, name) for name in names}


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays, once their sizes are known to be true."""
    shapes = {}
    with reading(path, ADVICE), ZipFile(path) as archive:
        for entry in archive.infolist():
            with archive.open(entry) as file:
                first = np.lib.format.read_magic(file) == (1, 0)
                read = np.lib.format.read_array_header_1_0 if first else _header_2
                shape, _, dtype = read(file)
                size = file.tell() + math.prod(shape) * dtype.itemsize
            if entry.file_size != size and not dtype.hasobject:
                told = f"{path}: the array {entry.filename!r} does not have the size it tells."
                raise DataError(f"{told} {ADVICE}")
            known = Allowance(path, entry.compress_size)
            known.check(size, AS_NPY, f": the array {entry.filename!r}")
            shapes[entry.filename.removesuffix(".npy")] = shape
    return shapes


def _header_2(file: Any) -> Any:
    return np.lib.format.read_array_header_2_0(file)


def _main(shapes: dict[str, tuple[int, ...]], path: Path) -> str:
    """Choose the array that holds the samples."""
    large = [name for name, shape in shapes.items() if len(shape) >= 2]
    usual = [name for name in USUAL if name in large]
    if usual or len(large) == 1:
        return (usual or large)[0]
    raise DataError(
        f"{path} holds the arrays {shapes}, and it is not clear which one to take. Save the one "
        "that is meant under the name X."
    )
