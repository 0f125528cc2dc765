"""Named public data sets: where they lie, how they get there, and their arrays.

A set is looked for in the data folder first, as a file prepared there by hand or as the original
that a download put there; what is missing is downloaded from its public source.

>>> from aberra.data.registry import load_table
>>> X, y = load_table("cardio")  # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aberra.data.archives import unpack
from aberra.data.catalogue import DATA_SETS
from aberra.data.data_set import DataSet
from aberra.data.download import fetch
from aberra.data.originals import (
    Images,
    Table,
    read_cifar10,
    read_image_arrays,
    read_mnist,
    read_table,
)
from aberra.data.transfer import Patience
from aberra.errors import DataError


@dataclass(frozen=True)
class Found:
    """Where a set lies.

    Parameters
    ----------
    path : Path
        A file or folder.
    whole : bool, default=True
        False for a file that holds a part of the set.
    """

    path: Path
    whole: bool = True


def data_dir(explicit: str | Path | None = None) -> Path:
    """Return the folder of data sets: the one given, else $ABERRA_DATA, else a cache folder.

    Examples
    --------
    >>> from aberra.data.registry import data_dir
    >>> data_dir("sets").name
    'sets'
    """
    if explicit is not None:
        return Path(explicit).expanduser()
    if named := os.environ.get("ABERRA_DATA"):
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "aberra"


def entry(name: str) -> DataSet:
    """Return what is known about a set.

    Examples
    --------
    >>> from aberra.data.registry import entry
    >>> entry("cardio").name
    'cardio'
    """
    try:
        return DATA_SETS[name]
    except KeyError:
        raise DataError(
            f"No data set is named {name!r}. These are: {', '.join(DATA_SETS)}."
        ) from None


def find(name: str, folder: str | Path | None = None) -> Found | None:
    """Return where a set lies in the data folder, or None."""
    known, root = entry(name), data_dir(folder)
    for place in known.prepared:
        if (root / place).exists():
            return Found(root / place)
    if known.original and all((root / file.path).exists() for file in known.files):
        path = root / known.original
        return Found(path) if path.exists() else None
    for place in known.reduced:
        if (root / place).exists():
            return Found(root / place, whole=False)
    return None


def get(name: str, folder: str | Path | None = None, patience: Patience | None = None) -> Found:
    """Return where a set lies, after downloading what is missing of the whole set.

    Public originals that are there already are compared with their checksums.

    Parameters
    ----------
    name : str
    folder : path, optional
        Default: $ABERRA_DATA, else a folder in the user's cache.
    patience : Patience, optional

    Returns
    -------
    found : Found

    Raises
    ------
    DataError
        It cannot be had; the message holds the address and the place where it belongs.
    """
    known, root = entry(name), data_dir(folder)
    found, original = find(name, root), root / known.original
    if found is not None and found.whole and (known.unpacking or found.path != original):
        return found  # prepared by hand, or unpacked: nothing to compare it with
    if not known.files:
        raise DataError(f"{name} is not there. {what_to_do(name, root)}")
    for file in known.files:
        fetch(file, root, patience, accept=_acceptance(known))
    if known.unpacking is not None:
        unpack(root / known.files[0].path, root, known.unpacking)
    return Found(original)


def what_to_do(name: str, folder: str | Path | None = None) -> str:
    """Say how a set that is not there gets to its place."""
    known, root = entry(name), data_dir(folder)
    if not known.files:
        return (
            f"No script may fetch it: see {known.page}, {known.by_hand} "
            f"{root / known.prepared[-1]}."
        )
    return (
        f"Run: aberra data get {name}. It downloads {known.files[0].addresses[0]} to "
        f"{root / known.files[0].path}; what you have may also lie at {root / known.prepared[0]}."
    )


def load_table(name: str, data_dir: str | Path | None = None) -> Table:
    """Load a table by name, downloading it if it is not there.

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
    known = _of_kind(name, "table")
    found = find(name, data_dir) or get(name, data_dir)
    return _checked_table(known, found.path)


def load_images(name: str, data_dir: str | Path | None = None) -> Images:
    """Load an image set by name, downloading it if it is not there.

    A file with a part of the set, such as images/cifar10_subset.npz, is taken when it lies in the
    data folder and the whole set does not; `find(name).whole` tells.

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
    known = _of_kind(name, "images")
    found = find(name, data_dir) or get(name, data_dir)
    read = read_image_arrays if found.path.suffix == ".npz" else _ORIGINALS[name]
    images = read(found.path)
    for part in (images[0], images[2]):
        if part.shape[1:] != known.shape[1:]:
            raise DataError(
                f"{found.path} holds images of shape {part.shape[1:]}, {name} has "
                f"{known.shape[1:]}. Another set lies at that place; move it away."
            )
    return images


_ORIGINALS: dict[str, Callable[[Path], Images]] = {"mnist": read_mnist, "cifar10": read_cifar10}


def _of_kind(name: str, kind: str) -> DataSet:
    known = entry(name)
    if known.kind != kind:
        raise DataError(f"{name} is not of kind {kind!r} but {known.kind!r}.")
    return known


def _checked_table(known: DataSet, path: Path) -> Table:
    X, y = read_table(path)
    if X.shape != known.shape or int(y.sum()) != known.anomalies:
        raise DataError(
            f"{path} has shape {X.shape} and {int(y.sum())} anomalies; {known.name} has "
            f"{known.shape} and {known.anomalies}. Another table lies at that place; move it away."
        )
    return X, y


def _acceptance(known: DataSet) -> Callable[[Path], object] | None:
    """Return what a download must stand before it gets its name, beyond its checksum."""
    if known.kind != "table":
        return None
    return lambda path: _checked_table(known, path)
