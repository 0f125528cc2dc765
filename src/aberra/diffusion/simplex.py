"""OpenSimplex noise on a slice of its lattice, for many fields at once, by matrix products.

This is the form for any device; on processors `simplex_cpu` is faster (benchmarks/noise).

Notation (shapes): N fields (N, h, w); a cell is the length in pixels over which an octave varies.
A vertex is a point of the lattice, (i, j, k) in lattice coordinates; lengths are in lattice units,
one unit to a cell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

SMALLEST_TILE, LARGEST_TILE = 4, 32  # pixels; a unit or near it, but neither tiny nor huge
PIXELS_AT_ONCE = 2**20  # in one pass: more need so much memory that getting it takes over
FIELDS_AT_ONCE = 4  # at least, since gathers and products of few columns are slow
SCALE = 103  # of OpenSimplex in three dimensions, which brings its values into -1 ... 1
GRADIENTS = [
    [sign * (11 if axis == longest else 4) for axis, sign in enumerate((x, y, z))]
    for z, y, x in product((1, -1), (1, -1), (-1, 1))
    for longest in range(3)
]

# Variance of OpenSimplex noise at a random place (Campbell's theorem): the density of vertices,
# 1/2, times the integral of ((2 - r^2)^4 g.d)^2 over the ball r^2 < 2, where (g.d)^2 has the mean
# |g|^2 r^2 / 3. With r^2 = 2u the integral over r becomes a beta function.
_BETA = math.gamma(2.5) * math.gamma(9) / math.gamma(11.5)
SIMPLEX_STD = math.sqrt((11**2 + 2 * 4**2) / 3 / 2 * 4 * math.pi * 2**9.5 * _BETA) / SCALE


# How the sum over vertices becomes a matrix product. A value is a sum over the vertices v within
# sqrt(2), of (2 - |d|^2)^4 d . g(v), d the way from v to the pixel and g(v) the vertex's gradient:
# linear in the gradients, with weights that depend on d alone. In a slice z = constant the lattice
# repeats after (1, -1) and (6, 0) units. So cut the image into square tiles; tiles that such steps
# lead to from one another are of one kind and have the same weights. These are computed once, and
# all tiles of the kind, of all fields and of the octaves with this size of tile, are one product:
# (pixels of a tile, 3 vertices) times (3 vertices, tiles x fields).


@dataclass(frozen=True)
class _Tiling:
    """An image cut into tiles, in order of their kind."""

    cells: list[int]  # of the octaves
    height: int  # of a tile, in pixels
    width: int
    corners: NDArray[np.int64]  # (kinds, 3), of the first tile of each kind, in pixels
    counts: list[int]  # tiles of each kind
    moves: NDArray[np.int64]  # (2, tiles), from the kind's first tile, in pixels
    places: NDArray[np.int64]  # (h w,), of each pixel among the products' rows

    @property
    def n_values(self) -> int:
        """Number of rows of the products of all kinds."""
        return sum(self.counts) * self.height * self.width


@dataclass(frozen=True)
class _Products:
    """What the fields of a slice have in common on the tiles of one size."""

    n_values: int
    vertices: Tensor  # (3, vertices), i, j and k modulo 256, int32
    weights: list[Tensor]  # of each kind, (3 vertices, pixels of a tile)
    gathers: list[Tensor]  # of each kind, (3 vertices x tiles,), rows of the gradients, int32


def simplex_sum(
    permutations: Tensor,
    origin: NDArray[np.float64],
    octaves: dict[int, float],
    size: tuple[int, int],
    dtype: torch.dtype,
) -> Tensor:
    """Return (N, h, w), a sum of octaves {cell: amplitude}; pixel (0, 0) is at `origin`, in pixels.

    At amplitude 1 each is OpenSimplex noise with the tables `permutations` (N, 256).
    """
    device, (h, w) = permutations.device, size
    tilings, all_places = _tilings(h, w, tuple(octaves))
    parts = [_products(t, origin, octaves, device, dtype) for t in tilings]
    places = torch.from_numpy(all_places).to(device)
    fields = torch.empty((len(permutations), h * w), dtype=dtype, device=device)
    n = max(FIELDS_AT_ONCE, PIXELS_AT_ONCE // (h * w))
    for some, out in zip(permutations.split(n), fields.split(n), strict=True):
        # The values have no name, or they would still be there during the next pass.
        total = F.embedding_bag(places, _tile_values(parts, some), mode="sum")
        out.copy_(total.T)
    return fields.view(-1, h, w)


@lru_cache(maxsize=4)
def _tilings(h: int, w: int, cells: tuple[int, ...]) -> tuple[list[_Tiling], NDArray[np.int32]]:
    """Return the tilings, and the places (h w, tilings) of every pixel among all values."""
    sides = [min(max(cell, SMALLEST_TILE), LARGEST_TILE) for cell in cells]
    groups = {side: [c for c, s in zip(cells, sides, strict=True) if s == side] for side in sides}
    tilings = [_tiling(h, w, side, group) for side, group in groups.items()]
    starts = np.cumsum([0] + [t.n_values for t in tilings[:-1]])
    places = np.stack([t.places for t in tilings], axis=1) + starts
    return tilings, places.astype(np.int32)


def _tiling(h: int, w: int, side: int, cells: list[int]) -> _Tiling:
    height, width = min(side, h), min(side, w)
    b, a = np.indices((math.ceil(h / side), math.ceil(w / side)))
    # The steps (1, -1) and (6, 0), in tiles; those of the coarsest octave repeat all others.
    step, period = max(max(cells) // side, 1), 6 * max(cells) // side
    key = ((a % step) * period + (a + b) % period).ravel()
    _, first, kinds, counts = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(kinds, kind="stable")
    kind, slot = kinds.reshape(a.shape), np.empty_like(a)
    slot.flat[order] = np.arange(a.size)
    # The product of a kind has rows of pixels, each with the kind's tiles one after another.
    before = (np.cumsum(counts) - counts)[kind]  # tiles of earlier kinds
    start = before * height * width + slot - before
    pixel = np.arange(height * width).reshape(1, height, 1, width)
    places = start[:, None, :, None] + pixel * counts[kind][:, None, :, None]
    places = places.reshape(len(kind) * height, -1)[:h, :w].ravel()
    corner = side * np.stack([a, b, 0 * a]).reshape(3, -1).T
    moves = (corner - corner[first[kinds]])[order, :2].T
    return _Tiling(cells, height, width, corner[first], counts.tolist(), moves, places)


def _products(
    tiling: _Tiling,
    origin: NDArray[np.float64],
    octaves: dict[int, float],
    device: torch.device,
    dtype: torch.dtype,
) -> _Products:
    reach = [_vertices_in_reach(tiling, origin, cell) for cell in tiling.cells]
    vertices, rows = _rows_to_gather(tiling, reach)
    kinds = np.concatenate([r.kind for r in reach])
    position = np.concatenate([r.position for r in reach])
    scale = [np.full((len(r.kind), 2), [r.cell, octaves[r.cell] / SCALE]) for r in reach]
    order = np.argsort(kinds, kind="stable")
    weights = _weights(
        tiling,
        torch.from_numpy(position[order]).to(device, dtype),
        torch.from_numpy(np.concatenate(scale)[order]).to(device, dtype),
    )
    return _Products(
        tiling.n_values,
        torch.from_numpy((vertices & 255).astype(np.int32)).to(device),
        [part.flatten(0, 1).flatten(1) for part in weights.split(np.bincount(kinds).tolist())],
        [torch.from_numpy(r).to(device) for r in rows],
    )


def _to_space(vertices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the positions of lattice points (..., 3); x - sum(x) / 6 is the way back."""
    return vertices + vertices.sum(axis=-1, keepdims=True) / 3


# Lattice steps from the corner of a tile to all vertices that can be in reach of its pixels, which
# are at most 1.5 units away; sqrt(2) in space is 1.22 in a lattice coordinate.
BOX = np.array(list(product(range(-2, 4), range(-2, 4), range(-2, 3))), dtype=np.float64)


@dataclass(frozen=True)
class _Reach:
    """Vertices in reach of the first tile of each kind, in order of kind."""

    cell: int
    kind: NDArray[np.int64]  # (V,)
    vertices: NDArray[np.int64]  # (3, V)
    position: NDArray[np.float64]  # (V, 3), from the tile's first pixel


def _vertices_in_reach(tiling: _Tiling, origin: NDArray[np.float64], cell: int) -> _Reach:
    corner = (origin + tiling.corners) / cell
    base = np.floor(corner - corner.sum(axis=1, keepdims=True) / 6)
    position = (_to_space(base) - corner)[:, None] + _to_space(BOX)
    last_pixel = np.array([tiling.width - 1, tiling.height - 1, 0]) / cell
    gap = position - position.clip(0, last_pixel)
    kind, place = ((gap * gap).sum(axis=2) < 2).nonzero()
    vertices = (base[kind] + BOX[place]).astype(np.int64).T
    return _Reach(cell, kind, vertices, position[kind, place])


def _rows_to_gather(
    tiling: _Tiling, reach: list[_Reach]
) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """Return the vertices (3, v) of all tiles, and the rows of each kind in their gradients."""
    n, vertices, numbers = 0, [], []
    for octave in reach:
        of_kinds, distinct = _number(tiling, octave)
        numbers.append([n + of_kind for of_kind in of_kinds])
        vertices.append(distinct)
        n += distinct.shape[1]
    component = n * np.arange(3, dtype=np.int32)[:, None]
    rows = [(np.concatenate(v)[:, None] + component).ravel() for v in zip(*numbers, strict=True)]
    return np.concatenate(vertices, axis=1), rows


def _number(tiling: _Tiling, reach: _Reach) -> tuple[list[NDArray[np.int32]], NDArray[np.int64]]:
    """Give the vertices of all tiles a number each, since tiles share them.

    Returns the numbers of each kind (vertices, tiles), and the vertex (3, numbers) of each.
    """
    i, j, k = reach.vertices
    # Layers are parallel to the slice, a third of a unit apart, and few are in reach: there is no
    # smaller box around all vertices than one in (layer, k, i). To move by (x, y) in the slice is
    # to move m = (x + y) / 6 times by (6, 0), the vertex (5, -1, -1), and y times by (-1, 1).
    x, y = tiling.moves // reach.cell
    m = (x + y) // 6
    own, move = np.stack([i + j + 4 * k, k, i]), np.stack([0 * m, -m, 5 * m - y])
    low = own.min(axis=1) + move.min(axis=1)
    shape = own.max(axis=1) + move.max(axis=1) - low + 1
    stride = np.array([shape[1] * shape[2], shape[2], 1])
    owns = np.split(stride @ (own - low[:, None]), np.cumsum(np.bincount(reach.kind))[:-1])
    moves = np.split(stride @ move, np.cumsum(tiling.counts)[:-1])
    boxed = [a[:, None] + b for a, b in zip(owns, moves, strict=True)]
    used = np.zeros(shape.prod(), dtype=bool)
    for place in boxed:
        used[place] = True
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    layer, k, i = np.stack(np.unravel_index(used.nonzero()[0], shape)) + low[:, None]
    return [number.take(place) for place in boxed], np.stack([i, layer - 4 * k - i, k])


def _weights(tiling: _Tiling, position: Tensor, scale: Tensor) -> Tensor:
    """Return (V, 3, height, width): (2 - |d|^2)^4 d from vertices to pixels, times amplitude.

    `scale` (V, 2) holds cell and amplitude of each vertex's octave.
    """
    x, y, z = position[:, :, None].unbind(dim=1)
    cell, amplitude = scale[:, :, None].unbind(dim=1)
    dx = torch.arange(tiling.width, device=position.device) / cell - x
    dy = torch.arange(tiling.height, device=position.device) / cell - y
    weights = position.new_empty((len(position), 3, tiling.height, tiling.width))
    kernel = weights[:, 2]  # in place: the weights are the largest temporary of a call
    torch.sub((2 - z * z - dy * dy)[:, :, None], (dx * dx)[:, None, :], out=kernel)
    kernel.clamp_(min=0).square_().square_()
    torch.mul(kernel, (amplitude * dx)[:, None, :], out=weights[:, 0])
    torch.mul(kernel, (amplitude * dy)[:, :, None], out=weights[:, 1])
    kernel.mul_((-amplitude * z)[:, :, None])
    return weights


def _tile_values(parts: list[_Products], permutations: Tensor) -> Tensor:
    """Return (values, N): the products of all parts and kinds, one below the other."""
    n, device, dtype = len(permutations), permutations.device, parts[0].weights[0].dtype
    n_values = sum(part.n_values for part in parts)
    n_gathered = max(len(rows) for part in parts for rows in part.gathers)
    n_vertices = max(part.vertices.shape[1] for part in parts)
    # One allocation: the C library gives several large ones back to the system after each use,
    # and to get their pages anew took as long as the arithmetic.
    sizes = [n_values, n_gathered, 3 * n_vertices]
    work = torch.empty((sum(sizes), n), dtype=dtype, device=device)
    values, gathered, gradients = work.split(sizes)
    table = permutations.T.repeat(2, 1)  # twice, so that a sum of two bytes needs no modulo
    pointers = (table * n + torch.arange(n, device=device)).int()
    entries = torch.tensor(GRADIENTS, dtype=dtype, device=device).T[:, table % 24].flatten(1)
    done = 0
    for part in parts:
        own = gradients[: 3 * part.vertices.shape[1]]
        _hash(part.vertices, pointers, entries, own)
        for weights, rows in zip(part.weights, part.gathers, strict=True):
            tiles = torch.index_select(own, 0, rows, out=gathered[: len(rows)])
            tiles = tiles.view(len(weights), -1)  # (3 vertices, tiles x fields)
            end = done + weights.shape[1] * tiles.shape[1] // n
            torch.mm(weights.T, tiles, out=values[done:end].view(weights.shape[1], -1))
            done = end
    return values


def _hash(vertices: Tensor, pointers: Tensor, entries: Tensor, out: Tensor) -> None:
    """Write the gradients of vertices for every field, (3 vertices, N), component by component.

    `pointers` (512, N) holds the permutations as places in its own flat form: entry times N plus
    field. `entries` (3, 512 N) holds the gradients at these places.
    """
    i, j, k = vertices
    n = pointers.shape[1]
    pointer = pointers.index_select(0, i).add_((j * n)[:, None])
    pointer = pointers.view(-1).index_select(0, pointer.view(-1)).view(-1, n)
    pointer.add_((k * n)[:, None])
    for component, part in zip(entries, out.view(3, -1), strict=True):
        torch.index_select(component, 0, pointer.view(-1), out=part)
