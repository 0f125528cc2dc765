"""Whether a skops archive, and the detector in it, can be used without harm.

skops sees to it that nothing is run. It does not compare sizes, and scikit-learn hands some arrays
to C code that trusts them. So sizes are compared here, before and after skops.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator

from aberra.model_file.kinds import Node, damaged

SCHEMA = "schema.json"
MOST_USES = 16  # how many times the size of an archive its files may be asked for
MOST_UNPACKED = 1 << 28  # bytes of a packed file inside, such as a sparse matrix
# What skops may make of a part. Not sparse matrices, whose indices C code trusts, nor generators of
# random numbers, whose making takes as long as the file says; and nothing of which it is unknown.
LOADERS = frozenset(
    f"{name}Node"
    for name in (
        "Bytearray", "Bytes", "Cached", "DType", "DefaultDict", "Dict", "Function", "Json",
        "List", "Loss", "MaskedArray", "Method", "NdArray", "Object", "OperatorFunc", "Partial",
        "RandomState", "Set", "Slice", "Tuple", "Type",
    )
)  # fmt: skip
KERNELS = ("linear", "poly", "rbf", "sigmoid")


def check_contents(data: bytes, where: str) -> None:
    """Refuse an archive that would take more memory than its size tells."""
    with ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != ZIP_STORED for entry in entries):
            damaged(where, "the skops archive is compressed")
        sizes = {entry.filename: entry.file_size for entry in entries}
        if sum(entry.file_size for entry in entries) > len(data):
            damaged(where, "files of the skops archive overlap")
        schema = json.loads(archive.read(SCHEMA))
        if strange := strangers(schema):
            damaged(where, f"the skops archive holds {', '.join(strange)}, which is not safe")
        uses = [name for name in _named_files(schema) if name in sizes]
        if sum(sizes[name] for name in uses) > MOST_USES * len(data):
            damaged(where, "the skops archive asks for the same file again and again")
        for name in set(uses):
            _check_file(archive.read(name), where)


def strangers(schema: Node) -> list[str]:
    """Return the classes in a schema that come about in a way that is not known to be safe."""
    nodes = [node for node in _nodes(schema) if isinstance(node.get("__loader__"), str)]
    found = (node.get("__class__") for node in nodes if node["__loader__"] not in LOADERS)
    return sorted({str(name) for name in found})


def _nodes(node: Node) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for item in _items(node):
        yield from _nodes(item)


def _items(node: Node) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _named_files(node: Node) -> Iterator[str]:
    """Yield the name of a file as often as a schema asks for it."""
    return (own["file"] for own in _nodes(node) if isinstance(own.get("file"), str))


def _check_file(content: bytes, where: str) -> None:
    """Refuse a file whose header promises more than it holds."""
    if content.startswith(b"PK"):
        with ZipFile(io.BytesIO(content)) as inner:
            if sum(entry.file_size for entry in inner.infolist()) > MOST_UNPACKED:
                damaged(where, "a packed file in the skops archive is too large")
    elif content.startswith(np.lib.format.MAGIC_PREFIX):
        file = io.BytesIO(content)
        first = np.lib.format.read_magic(file) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if dtype.hasobject or file.tell() + math.prod(shape) * dtype.itemsize != len(content):
            damaged(where, "an array in the skops archive is not as long as it says")


def check_detector(detector: Any, where: str) -> None:
    """Refuse a detector, or a part of one, whose arrays do not fit each other.

    Support vector machines and neighbours are computed by C code that does not look; a covariance
    of another shape would be found out only when somebody scores.
    """
    from sklearn.covariance import EmpiricalCovariance  # slow to import
    from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

    for part in _estimators(detector, 0):
        if isinstance(part, SVC | SVR | NuSVC | NuSVR):
            damaged(where, f"{type(part).__name__} learns from labels, so it is no detector")
        if isinstance(part, OneClassSVM):
            _check_machine(vars(part), where)
        elif isinstance(part, LocalOutlierFactor | NearestNeighbors):
            _check_neighbours(vars(part), where)
        elif isinstance(part, EmpiricalCovariance):  # EllipticEnvelope among them
            _check_covariance(vars(part), where)


def _estimators(value: Any, depth: int) -> Iterator[Any]:
    """Yield an estimator and all that it is made of."""
    if depth > 20:
        return
    if isinstance(value, BaseEstimator):
        yield value
        items: Any = list(vars(value).values())
    else:
        items = value.values() if isinstance(value, dict) else value
    if isinstance(items, list | tuple | type({}.values())):
        for item in items:
            yield from _estimators(item, depth + 1)


def _check_machine(held: dict[str, Any], where: str) -> None:
    if "support_vectors_" not in held:
        return  # not fitted: a template
    n, d = held["support_vectors_"].shape
    counts = held["_n_support"]
    fits = (
        held["_sparse"] is False
        and held["kernel"] in KERNELS
        and held["n_features_in_"] == d
        and held["support_"].shape == (n,)
        and held["dual_coef_"].shape == held["_dual_coef_"].shape == (1, n)
        and held["intercept_"].shape == held["_intercept_"].shape == (1,)
        and held["_probA"].shape == held["_probB"].shape == (0,)
        and counts.shape == (2,)
        and counts.dtype.kind == "i"
        and counts[0] == n  # the second one means nothing, as there is one class
        and n > 0
    )
    if not fits:
        damaged(where, "the arrays of the support vector machine do not fit each other")


def _check_neighbours(held: dict[str, Any], where: str) -> None:
    if "_fit_X" not in held:
        return
    n, d = held["_fit_X"].shape
    k = held.get("n_neighbors_", 1)
    fits = (
        held["_fit_method"] == "brute"
        and held["_tree"] is None
        and held["n_features_in_"] == d
        and held["n_samples_fit_"] == n
        and type(k) is int
        and 1 <= k <= n
        and np.shape(held.get("_lrd", np.empty(n))) == (n,)
        and np.shape(held.get("_distances_fit_X_", np.empty((n, k)))) == (n, k)
    )
    if not fits:
        damaged(where, "the arrays of the nearest neighbours do not fit each other")


def _check_covariance(held: dict[str, Any], where: str) -> None:
    if "location_" not in held:
        return
    d = held["n_features_in_"]
    square = [held[name] for name in ("covariance_", "precision_") if held.get(name) is not None]
    numbers = [held["location_"], *square, np.asarray(held.get("offset_", 0.0))]
    fits = (
        held["location_"].shape == (d,)
        and len(square) > 0
        and all(array.shape == (d, d) for array in square)
        and all(array.dtype.kind == "f" and np.isfinite(array).all() for array in numbers)
    )
    if not fits:
        damaged(where, "the arrays of the covariance do not fit each other")
