"""Detectors of scikit-learn inside a model file, through skops.

Only types that skops trusts by default are written or read: public estimators of scikit-learn
whose state is made of plain values and of arrays. Reading imports nothing else and calls nothing
that the file names beyond these types.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from aberra.detectors.foreign import is_pyod
from aberra.errors import ModelFileError
from aberra.model_file.archives import (
    SCHEMA,
    UNSAFE,
    check_contents,
    check_detector,
    strangers,
)
from aberra.model_file.kinds import Node, Reader, Writer, damaged

TRUSTED: list[str] = []  # in addition to what skops trusts by default


class Foreign:
    """The kind of a scikit-learn estimator: a skops archive, as an array of bytes."""

    def encode(self, value: Any, out: Writer, where: str) -> Node:
        """Put the archive aside, unless it could not be read back safely."""
        return out.put(where, np.frombuffer(archive(value, where), dtype=np.uint8))

    def decode(self, node: Node, file: Reader, where: str) -> Any:
        """Read the archive."""
        array = file.take(where, node)
        if array.dtype != np.uint8 or array.ndim != 1:
            damaged(where, f"the archive has type {array.dtype} and shape {array.shape}")
        return from_archive(array, where)


def archive(detector: Any, where: str) -> bytes:
    """Return the skops archive of a detector; equal detectors give equal bytes."""
    from skops.io import dumps, get_untrusted_types

    name = type(detector).__name__
    if is_pyod(detector):
        damaged(where, f"{name} is a PyOD detector, and PyOD's can only be pickled, {UNSAFE}")
    try:
        data = dumps(detector)
        unknown = get_untrusted_types(data=data) or _not_kept(data)
    except Exception as error:  # whatever the foreign object raises when looked at
        damaged(where, f"skops cannot save {name} ({error})")
    if unknown:
        held = ", ".join(unknown)
        damaged(where, f"{name} holds {held}, which is not known to be safe, {UNSAFE}")
    check_detector(detector, where)
    return canonical(data)


def _not_kept(data: bytes) -> list[str]:
    with ZipFile(io.BytesIO(data)) as file:
        return strangers(json.loads(file.read(SCHEMA)))


def from_archive(array: NDArray[np.uint8], where: str) -> Any:
    """Rebuild a detector, from trusted types only."""
    from skops.io import loads

    data = array.tobytes()
    try:
        check_contents(data, where)
        detector = loads(data, trusted=TRUSTED)
        if not isinstance(detector, BaseEstimator):
            damaged(where, "the skops archive holds no estimator")
        check_detector(detector, where)
    except ModelFileError:
        raise
    except Exception as error:  # a hostile archive may raise anything
        damaged(where, f"the skops archive is refused ({error})")
    return detector


def canonical(data: bytes) -> bytes:
    """Rewrite an archive without what differs from run to run: addresses in memory and times.

    Files inside are named by their content, so that equal arrays are stored once.
    """
    with ZipFile(io.BytesIO(data)) as file:
        contents = {name: file.read(name) for name in file.namelist() if name != SCHEMA}
        schema = json.loads(file.read(SCHEMA))
    names = {name: _content_name(name, content) for name, content in contents.items()}
    files = {names[name]: content for name, content in contents.items()}
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as file:
        for name in sorted(files):
            file.writestr(ZipInfo(name), files[name])
        file.writestr(ZipInfo(SCHEMA), json.dumps(_cleaned(schema, names), separators=(",", ":")))
    return buffer.getvalue()


def _content_name(name: str, content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()}.{name.rpartition('.')[2]}"


def _cleaned(node: Node, names: dict[str, str]) -> Node:
    if isinstance(node, list):
        return [_cleaned(item, names) for item in node]
    if not isinstance(node, dict):
        return node
    cleaned = {key: _cleaned(item, names) for key, item in node.items()}
    if "__loader__" in node:  # an object, not the dictionary of somebody's attributes
        cleaned.pop("__id__", None)
        if isinstance(node.get("file"), str):
            cleaned["file"] = names[node["file"]]
    return cleaned
