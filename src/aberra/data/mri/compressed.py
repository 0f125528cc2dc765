"""Decompressing DICOM pictures with imagecodecs: JPEG Lossless, JPEG-LS, JPEG 2000 and 12-bit JPEG.

A plug-in of pydicom, which by itself reads RLE and, with Pillow, 8-bit JPEG. pydicom asks for the
three names below: `DECODER_DEPENDENCIES`, `is_available` and a function that decodes a frame.
"""

from __future__ import annotations

import struct
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from aberra.extras import need

NEEDS = ("imagecodecs",)
CODECS = {
    "1.2.840.10008.1.2.4.50": "jpeg8",  # baseline
    "1.2.840.10008.1.2.4.51": "jpeg8",  # extended, 12 bits
    "1.2.840.10008.1.2.4.57": "ljpeg",
    "1.2.840.10008.1.2.4.70": "ljpeg",  # first-order prediction
    "1.2.840.10008.1.2.4.80": "jpegls",
    "1.2.840.10008.1.2.4.81": "jpegls",  # nearly lossless
    "1.2.840.10008.1.2.4.90": "jpeg2k",
    "1.2.840.10008.1.2.4.91": "jpeg2k",  # lossy
}
DECODER_DEPENDENCIES = dict.fromkeys(CODECS, NEEDS)
J2K_START = b"\xff\x4f\xff\x51"  # of a JPEG 2000 code stream: start, then its size
JP2_START = b"\x00\x00\x00\x0cjP  "  # of boxes, one of which holds such a code stream
NO_FRAME = (0xC4, 0xC8, 0xCC)  # markers among those of frames that are none
JPEG_LS_FRAME = 0xF7
FILL, BARE = 0xFF, (0x01, *range(0xD0, 0xD8))  # a byte that may precede a marker; markers alone


def is_available(uid: str) -> bool:
    """Say whether a transfer syntax can be decoded."""
    return uid in CODECS and find_spec(NEEDS[0]) is not None


@cache
def register() -> None:
    """Tell pydicom about this module, once."""
    decoders = need("pydicom.pixels", "mri", "Reading scans")
    for uid in CODECS:
        decoders.get_decoder(uid).add_plugin("aberra", (__name__, "decode_frame"))


def unreadable(uid: Any) -> str | None:
    """Return the name of a compression that nothing which is installed can undo; else None."""
    register()
    if not uid.is_transfer_syntax or not uid.is_compressed:
        return None
    decoders = need("pydicom.pixels", "mri", "Reading scans")
    return None if decoders.get_decoder(uid).is_available else str(uid.name)


def decode_frame(source: bytes, runner: Any) -> bytearray:
    """Return the pixels of one compressed frame.

    Raises
    ------
    ValueError
        If the frame says that it is of another size than the header of the file: a decoder would
        take memory for whatever a damaged frame claims.
    """
    codecs = need("imagecodecs", "dicom", "Reading compressed DICOM files")
    _check_size(source, (runner.rows, runner.columns))
    decode = getattr(codecs, f"{CODECS[runner.transfer_syntax]}_decode")
    pixels = np.asarray(decode(source))
    runner.set_option("bits_allocated", 8 * pixels.dtype.itemsize)
    return bytearray(pixels.astype(pixels.dtype.newbyteorder("<"), copy=False).tobytes())


def check_frames(data: Any) -> None:
    """Refuse a file whose compressed frames say that they are of another size than its header.

    It is asked before pydicom sees a frame: pydicom looks for the precision of JPEG 2000 by itself,
    and in boxes without a length it looks for ever.

    Parameters
    ----------
    data : pydicom.Dataset
        A whole file.

    Raises
    ------
    ValueError
        If a frame is of another size, or does not say.
    """
    uids = need("pydicom.uid", "mri", "Reading scans")
    encapsulated = need("pydicom.encaps", "mri", "Reading scans")
    jpeg = (uids.JPEGTransferSyntaxes, uids.JPEGLSTransferSyntaxes, uids.JPEG2000TransferSyntaxes)
    if not any(data.file_meta.TransferSyntaxUID in syntaxes for syntaxes in jpeg):
        return
    table = [data.get(f"ExtendedOffsetTable{part}") for part in ("", "Lengths")]
    frames = encapsulated.generate_frames(
        data.PixelData,
        number_of_frames=int(data.get("NumberOfFrames", 1) or 1),
        extended_offsets=None if None in table else tuple(table),
    )
    for frame in frames:
        _check_size(frame, (int(data.Rows), int(data.Columns)))


def _check_size(source: bytes, stated: tuple[int, int]) -> None:
    claimed = frame_shape(source)
    if claimed is None:
        raise ValueError("a frame does not say how large it is, so it is no JPEG picture")
    if claimed != stated:
        raise ValueError(f"a frame is of {claimed} pixels where the header says {stated}")


def frame_shape(source: bytes) -> tuple[int, int] | None:
    """Return rows and columns that a compressed frame claims to have; None if it does not say."""
    start = _code_stream(source)
    if source.startswith(J2K_START, start) and len(source) >= start + 24:
        right, bottom, left, top = struct.unpack_from(">4I", source, start + 8)
        return bottom - top, right - left
    at = 2
    while at + 9 <= len(source) and source[at] == 0xFF:
        marker = source[at + 1]
        if (0xC0 <= marker <= 0xCF and marker not in NO_FRAME) or marker == JPEG_LS_FRAME:
            rows, columns = struct.unpack_from(">2H", source, at + 5)
            return rows, columns
        if marker == FILL:
            at += 1
        else:
            at += 2 + (0 if marker in BARE else int.from_bytes(source[at + 2 : at + 4], "big"))
    return None


def _code_stream(source: bytes) -> int:
    """Return where a JPEG 2000 code stream begins: after the boxes around it, if there are any."""
    at = 0
    while source.startswith(JP2_START):
        length, kind = int.from_bytes(source[at : at + 4], "big"), source[at + 4 : at + 8]
        if kind == b"jp2c":
            return at + 8
        if length < 8:
            return len(source)  # boxes that lead nowhere
        at += length
    return at
