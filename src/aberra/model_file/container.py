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
import json
import struct
from pathlib import Path
from typing import Any

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


def pack(manifest: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the bytes of a model file; the same model gives the same bytes."""
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":")).encode("ascii")
    blob = save_arrays({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    body = LENGTHS.pack(len(text), len(blob)) + text + blob
    return HEAD.pack(MAGIC, FORMAT, hashlib.sha256(body).digest()) + body


def unpack(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return manifest and arrays of a file that is whole; say what is wrong with any other."""
    text, blob = _parts(data)
    del data  # large models: never more than two copies at a time
    manifest = _manifest(text)
    try:
        held = load_arrays(blob)
        del blob
        # Copies, so that arrays are writable and aligned as those of a fit are.
        return manifest, {name: held.pop(name).copy() for name in list(held)}
    except Exception as error:  # safetensors has its own errors, and NumPy its own
        raise ModelFileError(f"the arrays are not valid safetensors ({error})") from error


def unpack_manifest(data: bytes) -> dict[str, Any]:
    """Return the manifest of a file that is whole, and leave its arrays alone."""
    return _manifest(_parts(data)[0])


def _manifest(text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"the manifest is not JSON ({error})") from error
    if not isinstance(manifest, dict):
        raise ModelFileError("the manifest is not a JSON object")
    return manifest


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """Check the frame, outermost first; return manifest and arrays as bytes."""
    n_text = _check_head(data[:START], len(data))
    _, _, digest = HEAD.unpack_from(data)
    if hashlib.sha256(memoryview(data)[HEAD.size :]).digest() != digest:
        raise ModelFileError(
            "the checksum does not match: bytes were altered since it was saved. Take a sound "
            "copy, or save the model again"
        )
    return data[START : START + n_text], data[START + n_text :]


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


def read(path: Path) -> bytes:
    """Read a regular file whole, once its first bytes say that it is a model."""
    if path.exists() and not path.is_file():
        raise ModelFileError("it is not a regular file")
    with path.open("rb") as file:
        _check_head(file.read(START), path.stat().st_size)
        file.seek(0)
        return file.read()
