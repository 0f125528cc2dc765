"""NumPy files: the rows or images they hold, and labels beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from aberra.errors import DataError

ARRAYS = (".npy", ".npz")
USUAL = ("X", "x", "data", "images", "arr_0")  # names that the main array of an npz tends to have


def array_dimensions(path: Path) -> int:
    """Return how many axes the main array has; of an npz without reading the numbers."""
    if path.name.lower().endswith(".npy"):
        return main_array(path).ndim
    shapes = _shapes(path)
    return len(shapes[_main(shapes, path)])


def main_array(path: Path) -> NDArray[Any]:
    """Return the rows or images of an npy file (mapped, not read) or of an npz file."""
    try:
        if path.name.lower().endswith(".npy"):
            return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
        with np.load(path, allow_pickle=False) as file:
            return np.asarray(file[_main(_shapes(path), path)])
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        _unreadable(path, error)


def columns_beside(path: Path, n_rows: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of an npz that hold one value a row, such as labels or identifiers."""
    if path.name.lower().endswith(".npy"):
        return {}
    names = [name for name, shape in _shapes(path).items() if shape == (n_rows,)]
    with np.load(path, allow_pickle=False) as file:
        return {name: np.asarray(file[name]) for name in names}


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    shapes = {}
    try:
        with ZipFile(path) as archive:
            for entry in archive.namelist():
                with archive.open(entry) as file:
                    version = np.lib.format.read_magic(file)
                    first = version == (1, 0)
                    read = np.lib.format.read_array_header_1_0 if first else _header_2
                    shapes[entry.removesuffix(".npy")] = read(file)[0]
    except (ValueError, OSError, BadZipFile) as error:
        _unreadable(path, error)
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


def _unreadable(path: Path, error: Exception) -> NoReturn:
    raise DataError(
        f"{path} cannot be read as a NumPy file: {error}. Save plain arrays with numpy.save or "
        "numpy.savez."
    ) from error
