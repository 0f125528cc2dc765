"""The file itself: magic, format, checksum, lengths, JSON manifest, arrays; written atomically.

::

    8 bytes   magic
    4 bytes   format version
    32 bytes  SHA-256 of everything below
    8 bytes   length of the manifest
    8 bytes   length of the arrays
    ...       manifest (JSON, ASCII)
    ...       arrays (safetensors)

The checksum finds damage. It is no signature: whoever can write a file can write its checksum.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from aberra.errors import ModelFileError

Arrays = dict[str, NDArray[Any]]

MAGIC = b"\x89ABERRA\n"
FORMAT = 3  # 2: localisers had one threshold, rounds held in-bag scores; 1: before that
HEAD = struct.Struct("<8sI32s")
LENGTHS = struct.Struct("<QQ")
START = HEAD.size + LENGTHS.size  # where the manifest begins
MOST_TEXT = 1 << 28  # bytes of a manifest: some million names
PIECE = 1 << 20  # bytes that are read at once where they are only counted


def pack(manifest: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the bytes of a model file; the same model gives the same bytes."""
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > MOST_TEXT:
        raise ModelFileError(
            f"names and notes of {len(text)} bytes, where {MOST_TEXT} are the most that is read"
        )
    blob = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    body = LENGTHS.pack(len(text), len(blob)) + text + blob
    return HEAD.pack(MAGIC, FORMAT, hashlib.sha256(body).digest()) + body


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return manifest and arrays of a file that is whole; say what is wrong with any other."""
    return _model(io.BytesIO(data), len(data))


def read_model(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return manifest and arrays of a file, in no more than twice its size."""
    with _opened(path) as file:
        return _model(file, path.stat().st_size)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a file that is whole, without holding its arrays."""
    with _opened(path) as file:
        head = file.read(START)
        text = file.read(_check_head(head, path.stat().st_size))
        _check_sum(head, chain([text], iter(lambda: file.read(PIECE), b"")))
    return _manifest(text)


def _model(file: BinaryIO, size: int) -> tuple[dict[str, Any], Arrays]:
    head = file.read(START)
    text = file.read(_check_head(head, size))
    blob = file.read(size - START - len(text))  # without a size, Python joins it from pieces
    _check_sum(head, (text, blob))
    manifest = _manifest(text)
    try:
        held = load_arrays(blob)
        del blob  # large models: never more than two copies at a time
        # Copies, so that arrays are writable and aligned as those of a fit are.
        return manifest, {name: held.pop(name).copy() for name in list(held)}
    except Exception as error:  # safetensors has its own errors, and NumPy its own
        raise ModelFileError(f"the arrays are not valid safetensors ({error})") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file():
        raise ModelFileError("it is not a regular file")
    with path.open("rb") as file:
        yield file


def _manifest(text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the manifest is not JSON ({error})") from error
    if not isinstance(manifest, dict):
        raise ModelFileError("the manifest is not a JSON object")
    return manifest


def _check_sum(head: bytes, parts: Iterable[bytes]) -> None:
    """Compare what follows the header with the checksum in it."""
    _, _, digest = HEAD.unpack_from(head)
    found = hashlib.sha256(head[HEAD.size :])
    for part in parts:
        found.update(part)
    if found.digest() != digest:
        raise ModelFileError(
            "the checksum does not match: bytes were altered since it was saved. Take a sound "
            "copy, or save the model again"
        )


def _check_head(head: bytes, size: int) -> int:
    """Check what the first bytes say about a file of this size; return the manifest's length."""
    if head[: len(MAGIC)] != MAGIC:
        raise ModelFileError("it is not an Aberra model file (the first bytes are others)")
    if len(head) < START:
        raise ModelFileError(f"the file is cut off in its header, after {len(head)} bytes")
    _, version, _ = HEAD.unpack_from(head)
    _check_format(version)
    n_text, n_blob = LENGTHS.unpack_from(head, HEAD.size)
    if size != START + n_text + n_blob:
        raise ModelFileError(
            f"the file has {size} bytes instead of the {START + n_text + n_blob} its header "
            "announces: it is cut off, extended, or its header is damaged. Save the model again"
        )
    if n_text > MOST_TEXT:
        raise ModelFileError(f"a manifest of {n_text} bytes, where {MOST_TEXT} are the most")
    return int(n_text)


def _check_format(version: int) -> None:
    if version > FORMAT:
        raise ModelFileError(
            f"the file has format {version}, newer than format {FORMAT}, the latest this version "
            "of Aberra reads. Update Aberra (pip install -U aberra), or save the model again "
            "with this version"
        )
    if version < 1:
        raise ModelFileError(f"the header is damaged: there is no format {version}")
    if version < FORMAT:
        raise ModelFileError(
            f"the file has format {version}, of a version before the first release, which is not "
            f"read any more (this one writes format {FORMAT}). Fit the model again"
        )
