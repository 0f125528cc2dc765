"""Whether a skops archive, and the detector in it, can be used without harm.

skops sees to it that nothing is run. It does not compare sizes, and scikit-learn hands some arrays
to C code that trusts them. So sizes are compared here, before and after skops.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator
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
        "Bytearray", "Bytes", "DType", "DefaultDict", "Dict", "Function", "Json",
        "List", "Loss", "MaskedArray", "Method", "NdArray", "Object", "OperatorFunc", "Partial",
        "RandomState", "Set", "Slice", "Tuple", "Type",
    )
)  # fmt: skip
VOID = "void"  # a scalar of NumPy: made of a number, which says how many bytes it takes
KERNELS = ("linear", "poly", "rbf", "sigmoid")
# What a detector may be made of: all that learns from rows alone, and scores or transforms rows in
# a way that is known to look at what it has learnt before C code does, or is checked below.
KNOWN = frozenset((
    # scores
    "BayesianGaussianMixture", "BernoulliRBM", "EllipticEnvelope", "FactorAnalysis",
    "GaussianMixture", "LocalOutlierFactor", "OneClassSVM", "PCA", "SGDOneClassSVM",
    # covariances
    "EmpiricalCovariance", "GraphicalLasso", "GraphicalLassoCV", "LedoitWolf", "MinCovDet", "OAS",
    "ShrunkCovariance",
    # transforms columns
    "Binarizer", "FunctionTransformer", "KBinsDiscretizer", "KNNImputer", "KernelCenterer",
    "MaxAbsScaler", "MinMaxScaler", "MissingIndicator", "Normalizer", "OneHotEncoder",
    "OrdinalEncoder", "PolynomialFeatures", "PowerTransformer", "QuantileTransformer",
    "RobustScaler", "SimpleImputer", "StandardScaler", "VarianceThreshold",
    # projects
    "AdditiveChi2Sampler", "DictionaryLearning", "FastICA", "GaussianRandomProjection",
    "IncrementalPCA", "Isomap", "KMeans", "KernelPCA", "LatentDirichletAllocation",
    "LocallyLinearEmbedding", "MiniBatchDictionaryLearning", "MiniBatchKMeans", "MiniBatchNMF",
    "MiniBatchSparsePCA", "NMF", "NearestNeighbors", "Nystroem", "PolynomialCountSketch",
    "RBFSampler", "SkewedChi2Sampler", "SparseCoder", "SparsePCA", "TruncatedSVD",
    # joins others
    "ColumnTransformer", "FeatureUnion", "FrozenEstimator", "Pipeline",
))  # fmt: skip

UNSAFE = (
    "so it cannot be loaded safely. Use one of Aberra's detectors, or one of scikit-learn's that "
    "consists of plain arrays, such as OneClassSVM, EllipticEnvelope or "
    "LocalOutlierFactor(novelty=True, algorithm='brute')"
)


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
        if any("__id__" in node and "__loader__" in node for node in _nodes(schema)):
            damaged(where, "parts of the skops archive can be used again and again")
        uses = [name for name in _named_files(schema) if name in sizes]
        if sum(sizes[name] for name in uses) > MOST_USES * len(data):
            damaged(where, "the skops archive asks for the same file again and again")
        for name in set(uses):
            _check_file(archive.read(name), where)


def strangers(schema: Node) -> list[str]:
    """Return the classes in a schema that come about in a way that is not known to be safe."""
    nodes = [node for node in _nodes(schema) if isinstance(node.get("__loader__"), str)]
    held = [(node.get("__class__"), node["__loader__"]) for node in nodes]
    return sorted({str(name) for name, made in held if made not in LOADERS or name == VOID})


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
    from sklearn.base import is_classifier, is_regressor

    for part in _parts(detector):
        if isinstance(part, np.random.RandomState):
            check_random_state(part, where)
        if not isinstance(part, BaseEstimator):
            continue
        name = type(part).__name__
        if is_classifier(part) or is_regressor(part):
            damaged(where, f"{name} learns from labels, so it is no detector")
        if name not in KNOWN:
            damaged(where, f"{name} is not known to be safe, {UNSAFE}")
        if name in CHECKS:
            CHECKS[name](vars(part), where)


def check_random_state(generator: np.random.RandomState, where: str) -> None:
    """Refuse a generator whose next number lies outside of its state; NumPy does not look."""
    state = generator.get_state(legacy=False)["state"]
    if not 0 <= state["pos"] <= len(state["key"]):
        damaged(where, "the random state is malformed")


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and all that it is made of, however deep, each once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting.extend(_inside(one))


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list | tuple | set | frozenset):
        return [*value]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist() if value.dtype.hasobject else []
    return [*getattr(value, "__dict__", {}).values()]


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
        and np.shape(held["effective_metric_params_"].get("VI", np.empty((d, d)))) == (d, d)
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


def _check_codes(held: dict[str, Any], where: str) -> None:
    """Refuse columns of zeros and ones of which a code would be another one than there are."""
    if "categories_" not in held:
        return
    values, grouped = held["categories_"], [None] * len(held["categories_"])
    if held["_infrequent_enabled"]:
        grouped, rare = held["_default_to_infrequent_mappings"], held["_infrequent_indices"]
        if [group is None for group in grouped] != [codes is None for codes in rare]:
            damaged(where, "the rare codes of a column are in no group")
    sizes = [_n_codes(own, group) for own, group in zip(values, grouped, strict=True)]
    dropped = held["_drop_idx_after_grouping"]
    left_out = [None] * len(sizes) if dropped is None else list(dropped)
    columns = list(zip(left_out, sizes, strict=True))
    fits = (
        all(n > 0 and (k is None or 0 <= k < n) for k, n in columns)
        and type(held["_n_features_outs"]) is list
        and held["_n_features_outs"] == [n - (k is not None) for k, n in columns]
    )
    if not fits:
        damaged(where, "the codes of the columns do not fit each other")


def _n_codes(values: Any, group: Any) -> int:
    """Return how many codes a column has; 0 if they are not in order, or in none of the groups."""
    numbers = values.dtype.kind in "biuf"
    known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
    if (numbers and (known[1:] <= known[:-1]).any()) or len(known) < len(values) - 1:
        return 0
    if group is None:
        return len(values)
    return int(group.max()) + 1 if group.shape == values.shape and group.min() >= 0 else 0


COVARIANCES = (
    "EllipticEnvelope", "EmpiricalCovariance", "GraphicalLasso", "GraphicalLassoCV", "LedoitWolf",
    "MinCovDet", "OAS", "ShrunkCovariance",
)  # fmt: skip
CHECKS: dict[str, Callable[[dict[str, Any], str], None]] = {
    "OneClassSVM": _check_machine,
    "LocalOutlierFactor": _check_neighbours,
    "NearestNeighbors": _check_neighbours,
    "OneHotEncoder": _check_codes,
    **dict.fromkeys(COVARIANCES, _check_covariance),
}
