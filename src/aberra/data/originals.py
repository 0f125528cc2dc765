"""Public data files as they are distributed, turned into arrays. Nothing here unpickles anything.

A table is `(X, y)`: float64 of shape (n, d), and int8 of shape (n,) with 1 for an anomaly. Images
are uint8 of shape (n, channels, height, width).
"""

from __future__ import annotations

import gzip
import math
import struct
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from aberra.errors import DataError

Table = tuple[NDArray[np.float64], NDArray[np.int8]]
Pixels = NDArray[np.uint8]
Images = tuple[Pixels, Pixels, Pixels, Pixels]  # train images and labels, test images and labels

IMAGE_KEYS = ("x_train", "y_train", "x_test", "y_test")
MNIST_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)
IDX_LIMIT = 1 << 28  # bytes; MNIST's largest file holds 47 MB
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR_FOLDER = "cifar-10-batches-bin"
CIFAR_RECORD = 1 + 3 * 32 * 32  # a label, then red, green and blue planes
CIFAR_RECORDS = 10_000  # in each of six files


def read_table(path: Path) -> Table:
    """Read a table: an npz file with X and y, or one of ODDS' .mat files with the same names."""
    arrays = _mat_arrays(path) if path.suffix == ".mat" else _npz_arrays(path, ("X", "y"))
    X, y = arrays["X"], arrays["y"].reshape(-1)
    if X.ndim != 2 or len(X) != len(y):
        raise DataError(f"{path}: X has shape {X.shape}, y {y.shape}. Get the file again.")
    if not np.isin(y, (0, 1)).all():
        raise DataError(f"{path}: y holds something else than 0 and 1. Get the file again.")
    return np.ascontiguousarray(X, np.float64), y.astype(np.int8)


def read_image_arrays(path: Path) -> Images:
    """Read an npz file with x_train, y_train, x_test, y_test; colours come last in it."""
    arrays = _npz_arrays(path, IMAGE_KEYS)
    for name in IMAGE_KEYS:
        if arrays[name].dtype != np.uint8:
            raise DataError(f"{path}: {name} is {arrays[name].dtype}, not uint8.")
    x_train, y_train, x_test, y_test = (arrays[name] for name in IMAGE_KEYS)
    return (
        _channels_first(x_train),
        y_train.reshape(-1),
        _channels_first(x_test),
        y_test.reshape(-1),
    )


def read_mnist(folder: Path) -> Images:
    """Read the four original files of MNIST."""
    x_train, y_train, x_test, y_test = (read_idx(folder / name) for name in MNIST_FILES)
    return x_train[:, None], y_train, x_test[:, None], y_test


def read_idx(path: Path) -> Pixels:
    """Read an idx file of bytes, packed with gzip."""
    with _readable(path), gzip.open(path) as file:
        data = file.read(IDX_LIMIT + 1)
    if len(data) > IDX_LIMIT:
        raise DataError(f"{path} unpacks to more than {IDX_LIMIT} bytes: it is not MNIST.")
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise DataError(f"{path} is not an idx file of bytes. Get it again.")
    start = 4 + 4 * data[3]
    shape = struct.unpack(f">{data[3]}I", data[4:start].ljust(4 * data[3], b"\0"))
    if len(data) - start != math.prod(shape):
        raise DataError(f"{path} announces shape {shape}, but its length does not fit it.")
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()


def read_cifar10(path: Path) -> Images:
    """Read the binary archive of CIFAR-10 without unpacking it to the disk."""
    names = [f"data_batch_{k}.bin" for k in range(1, 6)] + ["test_batch.bin"]
    with _readable(path), tarfile.open(path, "r:gz") as archive:
        found = dict(_wanted_members(archive, {f"{CIFAR_FOLDER}/{name}" for name in names}, path))
    absent = [name for name in names if f"{CIFAR_FOLDER}/{name}" not in found]
    if absent:
        raise DataError(f"{path} has no {CIFAR_FOLDER}/{absent[0]}. Get it again.")
    batches = [found[f"{CIFAR_FOLDER}/{name}"] for name in names]
    records = np.frombuffer(b"".join(batches), np.uint8).reshape(-1, CIFAR_RECORD)
    labels, pixels = records[:, 0].copy(), records[:, 1:].reshape(-1, 3, 32, 32).copy()
    if labels.max() > 9:
        raise DataError(f"{path} holds a label above 9. Get it again.")
    n = 5 * CIFAR_RECORDS
    return pixels[:n], labels[:n], pixels[n:], labels[n:]


def _wanted_members(
    archive: tarfile.TarFile, names: set[str], path: Path
) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.name not in names:
            continue
        if not member.isreg() or member.size != CIFAR_RECORDS * CIFAR_RECORD:
            raise DataError(
                f"{path}: {member.name} is no file of {CIFAR_RECORDS * CIFAR_RECORD} bytes."
            )
        content = archive.extractfile(member)
        yield member.name, b"" if content is None else _exactly(content, member.size)


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError(f"{size - len(data)} bytes are missing")
    return data


def _channels_first(images: Pixels) -> Pixels:
    if images.ndim == 3:
        return images[:, None]
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


def _npz_arrays(path: Path, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    # numpy forgets to close a file that it opened itself and then cannot read
    with _readable(path), open(path, "rb") as opened:
        file = np.load(opened, allow_pickle=False)
        absent = [name for name in names if name not in file.files]
        if absent:
            raise DataError(f"{path} has no array {absent[0]}; it holds {file.files}.")
        return {name: file[name] for name in names}


def _mat_arrays(path: Path) -> dict[str, NDArray[Any]]:
    from scipy.io import loadmat

    with _readable(path):
        try:
            arrays = loadmat(path, variable_names=["X", "y"])
        except NotImplementedError:  # MATLAB's version 7.3, which is HDF5
            arrays = _hdf5_arrays(path)
    absent = [name for name in ("X", "y") if name not in arrays]
    if absent:
        raise DataError(f"{path} has no array {absent[0]}. Get it again.")
    return {name: np.asarray(arrays[name]) for name in ("X", "y")}


def _hdf5_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        h5py = import_module("h5py")
    except ImportError:
        raise DataError(
            f"{path} is of MATLAB's version 7.3, which needs h5py. Install it (pip install h5py), "
            f"or put an npz file with X and y at {path.with_suffix('.npz')}."
        ) from None
    with h5py.File(path) as file:  # MATLAB stores the transpose
        return {name: np.asarray(file[name]).T for name in ("X", "y") if name in file}


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what the readers of other libraries raise into one sentence about the file."""
    try:
        yield
    except DataError:
        raise
    except OSError as error:
        if error.errno is not None:  # the system's own words: no such file, no permission
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        raise DataError(f"{path} is damaged ({error}). Delete it and get it again.") from error
    except Exception as error:  # parsers of foreign formats raise whatever comes
        raise DataError(f"{path} is damaged ({error}). Delete it and get it again.") from error
