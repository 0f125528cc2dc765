"""OpenSimplex noise on a slice of its lattice, for many fields at once: compiled, for processors.

Notation (shapes): N fields; a vertex v = (i, j, k) of the lattice stands at v + (i + j + k) / 3, in
units; a pixel is 1 / cell units. A field is the sum over vertices within sqrt(2) of
(2 - |d|^2)^4 d . g(v), d the way from vertex to pixel and g(v) the vertex's gradient.

Sixteen fields at a time share all but the gradients, so the kernel is computed once for them, and
they are the lanes of the vector instructions that do the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled, compiled_for
from aberra.diffusion.simplex import GRADIENTS, SCALE

Single = NDArray[np.float32]
Double = NDArray[np.float64]
Bytes = NDArray[np.uint8]

LANES = 16
ROWS = 16  # of the image at once: they stay in the cache while all octaves are added
REACH = 2.0**0.5


def simplex_fields(
    permutations: NDArray[np.int64],
    origin: Double,
    octaves: dict[int, float],
    size: tuple[int, int],
) -> Single:
    """Return (N, h, w), as `simplex_sum`, of permutations (N, 256)."""
    n, (h, w) = len(permutations), size
    fields = np.empty((n, h, w), dtype=np.float32)
    cells, amplitudes = np.array([*octaves], dtype=np.int64), np.array([*octaves.values()])
    for start in range(0, n, LANES):
        tables = np.zeros((256, LANES), dtype=np.uint8)
        lanes = permutations[start : start + LANES]
        tables[:, : len(lanes)] = lanes.T
        directions = np.array(GRADIENTS, dtype=np.float32)[tables % len(GRADIENTS)]
        gradients = np.ascontiguousarray(directions.transpose(2, 0, 1))  # (3, 256, lanes)
        part = fields[start : start + LANES]
        _write(tables, gradients, origin, cells, amplitudes / SCALE, part)
    return fields


@compiled
def _hash(tables: Bytes, gradients: Single, i: int, j: int, k: int, g: Single) -> None:
    """Write the gradients (3, lanes) of one vertex."""
    for f in range(LANES):
        place = tables[(j + tables[i & 255, f]) & 255, f]
        place = (k + place) & 255
        g[0, f] = gradients[0, place, f]
        g[1, f] = gradients[1, place, f]
        g[2, f] = gradients[2, place, f]


@compiled
def _add_eight(
    row: Single, a: int, f: int, k: np.float32, d: np.float32, r: Single, g: Single
) -> None:
    """Add k r + d g to eight lanes of a pixel: read all, then write all, or they may overlap."""
    v0 = row[a, f] + (k * r[f] + d * g[f])
    v1 = row[a, f + 1] + (k * r[f + 1] + d * g[f + 1])
    v2 = row[a, f + 2] + (k * r[f + 2] + d * g[f + 2])
    v3 = row[a, f + 3] + (k * r[f + 3] + d * g[f + 3])
    v4 = row[a, f + 4] + (k * r[f + 4] + d * g[f + 4])
    v5 = row[a, f + 5] + (k * r[f + 5] + d * g[f + 5])
    v6 = row[a, f + 6] + (k * r[f + 6] + d * g[f + 6])
    v7 = row[a, f + 7] + (k * r[f + 7] + d * g[f + 7])
    row[a, f] = v0
    row[a, f + 1] = v1
    row[a, f + 2] = v2
    row[a, f + 3] = v3
    row[a, f + 4] = v4
    row[a, f + 5] = v5
    row[a, f + 6] = v6
    row[a, f + 7] = v7


@compiled
def _add_vertex(
    band: Single, x: float, y: float, z: float, cell: int, amplitude: float, g: Single, work: Single
) -> None:
    """Add one vertex to the pixels of a band (h, w, lanes), the first of which is (x, y, z) off."""
    n_rows, n_columns, _ = band.shape
    kernel, along, rest = work[0], work[1], work[2]
    plane, unit = max(2.0 - z * z, 0.0), 1.0 / cell
    half = np.sqrt(plane)
    first = max(0, int(np.ceil((-half - y) * cell)))
    last = min(n_rows - 1, int(np.floor((half - y) * cell)))
    for b in range(first, last + 1):
        dy = y + b * unit
        line = max(plane - dy * dy, 0.0)
        half = np.sqrt(line)
        left = max(0, int(np.ceil((-half - x) * cell)))
        right = min(n_columns - 1, int(np.floor((half - x) * cell)))
        for a in range(left, right + 1):
            dx = np.float32(x + a * unit)
            near = np.float32(line) - dx * dx
            power = np.float32(amplitude) * (near * near) * (near * near)
            kernel[a] = power
            along[a] = power * dx
        for f in range(LANES):
            rest[f] = np.float32(dy) * g[1, f] + np.float32(z) * g[2, f]
        for a in range(left, right + 1):
            _add_eight(band[b], a, 0, kernel[a], along[a], rest, g[0])
            _add_eight(band[b], a, 8, kernel[a], along[a], rest, g[0])


@compiled
def _add_octave(
    band: Single,
    tables: Bytes,
    gradients: Single,
    corner: Double,
    cell: int,
    amplitude: float,
    work: Single,
) -> None:
    """Add an octave to a band whose first pixel is at `corner`, in units."""
    x, y, z = corner
    x_end, y_end = x + (band.shape[1] - 1) / cell, y + (band.shape[0] - 1) / cell
    g = np.empty((3, LANES), np.float32)
    # The coordinates of a vertex sum to twice the sum of i, j and k.
    least = int(np.ceil((x + y + z - 3 * REACH) / 2))
    most = int(np.floor((x_end + y_end + z + 3 * REACH) / 2))
    for total in range(least, most + 1):
        shift = total / 3
        for k in range(int(np.ceil(z - REACH - shift)), int(np.floor(z + REACH - shift)) + 1):
            # j = total - i - k, so the bounds of y are bounds of i as well.
            low = max(x - REACH - shift, total - k + shift - y_end - REACH)
            high = min(x_end + REACH - shift, total - k + shift - y + REACH)
            for i in range(int(np.ceil(low)), int(np.floor(high)) + 1):
                j = total - i - k
                _hash(tables, gradients, i, j, k, g)
                _add_vertex(
                    band, x - i - shift, y - j - shift, z - k - shift, cell, amplitude, g, work
                )


@compiled_for(
    "void(uint8[:,::1], float32[:,:,::1], float64[::1], int64[::1], float64[::1], float32[:,:,::1])"
)
def _write(
    tables: Bytes,
    gradients: Single,
    origin: Double,
    cells: NDArray[np.int64],
    amplitudes: Double,
    fields: Single,
) -> None:
    """Write sums of octaves to at most `LANES` fields."""
    n, height, width = fields.shape
    work = np.empty((3, max(width, LANES)), np.float32)
    for start in range(0, height, ROWS):
        band = np.zeros((min(ROWS, height - start), width, LANES), np.float32)
        for octave in range(len(cells)):
            cell = cells[octave]
            corner = np.array([origin[0], origin[1] + start, origin[2]]) / cell
            _add_octave(band, tables, gradients, corner, cell, amplitudes[octave], work)
        for f in range(n):
            for b in range(len(band)):
                for a in range(width):
                    fields[f, start + b, a] = band[b, a, f]
