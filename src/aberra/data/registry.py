"""Named public data sets: what they are, where they come from, where they lie, and their arrays.

A set is looked for in the data folder first, as a file prepared there by hand or as the original
that a download put there. Downloads come from the public source alone, see `aberra.data.download`.
"""

from __future__ import annotations

import os
from pathlib import Path

from aberra.data.originals import (
    MNIST_FILES,
    Images,
    Table,
    read_cifar10,
    read_image_arrays,
    read_mnist,
    read_table,
)
from aberra.errors import DataError


def data_dir(explicit: str | Path | None = None) -> Path:
    """Return the folder of data sets: the one given, else $ABERRA_DATA, else a cache folder."""
    if explicit is not None:
        return Path(explicit)
    if named := os.environ.get("ABERRA_DATA"):
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "aberra"


def load_table(name: str, data_dir: str | Path | None = None) -> Table:
    """Load a table by name.

    Parameters
    ----------
    name : str
        Such as "cardio"; `aberra data list` shows all of them.
    data_dir : path, optional
        Default: $ABERRA_DATA, else a folder in the user's cache.

    Returns
    -------
    X : ndarray of shape (n, d), float64
    y : ndarray of shape (n,), int8
        1 is an anomaly.
    """
    for group in ("odds", "odds_extra"):
        for suffix in (".npz", ".mat"):
            path = _folder(data_dir) / group / f"{name}{suffix}"
            if path.exists():
                return read_table(path)
    raise DataError(f"No {name}.npz below {_folder(data_dir)}.")


def load_images(name: str, data_dir: str | Path | None = None) -> Images:
    """Load an image set by name.

    Parameters
    ----------
    name : {"mnist", "cifar10"}
    data_dir : path, optional
        Default: $ABERRA_DATA, else a folder in the user's cache.

    Returns
    -------
    train_images, train_labels, test_images, test_labels : ndarrays of uint8
        Images of shape (n, channels, height, width), labels of shape (n,).
    """
    folder = _folder(data_dir) / "images"
    for path in (folder / f"{name}.npz", folder / f"{name}_subset.npz"):
        if path.exists():
            return read_image_arrays(path)
    if name == "mnist" and (folder / name / MNIST_FILES[0]).exists():
        return read_mnist(folder / name)
    if name == "cifar10" and (folder / "cifar-10-binary.tar.gz").exists():
        return read_cifar10(folder / "cifar-10-binary.tar.gz")
    raise DataError(f"No {name}.npz below {folder}.")


_folder = data_dir  # loaders have a parameter of that name
