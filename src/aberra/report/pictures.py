"""Pictures inside the page: arrays in, PNG data URIs out."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

PngPixels = NDArray[np.uint8]  # (h, w) grey or (h, w, 3) colour

LARGEST_SIDE = 192  # so that a full gallery of colour images stays below 15 MB
# From nothing to much, darker to lighter without a turn, so that it reads in grey and whatever
# colours an eye can tell apart.
HEAT = ((0, 0, 0), (64, 22, 90), (160, 40, 88), (228, 98, 40), (250, 180, 60), (255, 250, 200))


def png(pixels: PngPixels) -> bytes:
    """Return a PNG file of 8-bit grey (h, w) or colour (h, w, 3) pixels."""
    height, width = pixels.shape[:2]
    kind = 0 if pixels.ndim == 2 else 2
    # Each line is stored as the differences from the line above (filter 2), which packs better.
    lines = np.ascontiguousarray(pixels).reshape(height, -1)
    differences = np.diff(lines, axis=0, prepend=np.zeros_like(lines[:1]))
    marked = np.concatenate([np.full((height, 1), 2, np.uint8), differences], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    body = zlib.compress(marked.tobytes(), 9)
    chunks = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def data_uri(pixels: PngPixels) -> str:
    """Return pixels as the address of an image that needs no file."""
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def grey(image: NDArray[Any], low: float, high: float) -> PngPixels:
    """Return an image (channels, h, w) with 1 or 3 channels as pixels; `low` is black."""
    shown = reduced(np.asarray(image, np.float64))
    levels = np.clip((shown - low) / max(high - low, 1e-12), 0.0, 1.0)
    pixels = np.rint(255 * levels).astype(np.uint8)
    return pixels[0] if len(pixels) == 1 else np.moveaxis(pixels, 0, -1)


def heat(values: NDArray[Any], top: float) -> PngPixels:
    """Return a map (h, w) in the colours of `HEAT`; `top` and more is the lightest."""
    levels = np.clip(reduced(np.asarray(values, np.float64)[None])[0] / max(top, 1e-12), 0.0, 1.0)
    return heat_table()[np.rint(255 * levels).astype(np.uint8)]


def heat_table() -> PngPixels:
    """Return the 256 colours of a map, (256, 3)."""
    stops = np.linspace(0.0, 1.0, len(HEAT))
    levels = np.linspace(0.0, 1.0, 256)
    channels = [np.interp(levels, stops, channel) for channel in zip(*HEAT, strict=True)]
    return np.rint(np.stack(channels, axis=1)).astype(np.uint8)


def reduced(image: NDArray[np.float64], side: int = LARGEST_SIDE) -> NDArray[np.float64]:
    """Return an image (c, h, w) whose sides are at most `side`: the means of square blocks."""
    block = min(-(-max(image.shape[1:]) // side), *image.shape[1:])
    if block == 1:
        return image
    height, width = (n - n % block for n in image.shape[1:])
    blocks = image[:, :height, :width].reshape(
        len(image), height // block, block, width // block, block
    )
    return np.asarray(blocks.mean(axis=(2, 4)))
