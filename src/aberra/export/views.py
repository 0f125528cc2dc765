"""`MultiView` as a graph: its views of a row, and the evidence.

Notation (shapes): n rows, d columns that vary, t trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aberra.detectors.column_tails import N_BINS, ColumnTails
from aberra.detectors.compiled_views import OUTSIDE
from aberra.detectors.gain_forest import Forest
from aberra.detectors.inverse_covariance import InverseCovariance
from aberra.detectors.landmarks import NEIGHBOUR, Landmarks
from aberra.detectors.multiview import (
    COUNTS,
    FARTHEST,
    LIFTS,
    Lens,
    View,
    Views,
    surprises,
)
from aberra.detectors.robust_covariance import Ellipse
from aberra.export.evidence import evidence_nats
from aberra.export.graph import Graph
from aberra.export.networks import scaled, square_sum
from aberra.ordinary import SKEW, TENTH


class Looked:
    """Rows as all members see them: `Seen`, as names of the graph."""

    def __init__(self, g: Graph, x: str, lens: Lens) -> None:
        own = scaled(g, g.columns(x, lens.used), lens.robust)
        own = g.op("Where", g.op("IsNaN", own), 0.0, own)
        own = in_place(g, g.op("Clip", own, -FARTHEST, FARTHEST), lens)
        self.precise = g.op("Div", g.asinh(own), lens.spread)
        self.raw = g.cast(own, "float32")
        self.tamed = g.cast(self.precise, "float32")


def in_place(g: Graph, own: str, lens: Lens) -> str:
    """Return the scaled columns with those of few values where a normal has them."""
    if not lens.lumps:
        return own
    moved = np.array([lump.column for lump in lens.lumps], dtype=np.int64)
    rest = np.setdiff1d(np.arange(len(lens.used)), moved)
    # Every column has as many values as the one that has most: its last one again and again.
    q = max(len(lump.values) for lump in lens.lumps)
    held = [np.minimum(np.arange(q), len(lump.values) - 1) for lump in lens.lumps]
    pairs = zip(lens.lumps, held, strict=True)
    values, places = np.stack([(u.values[k], u.places[k]) for u, k in pairs], axis=1)
    slope = np.array([lump.slope for lump in lens.lumps])
    x = g.columns(own, moved)
    inside = g.op("Min", g.op("Max", x, values[:, 0]), values[:, -1])
    y = g.op("Add", g.op("Mul", g.op("Sub", x, inside), slope), places[:, 0])
    for k in range(q - 1):
        step = values[:, k + 1] - values[:, k]
        rise = np.divide(np.diff(places)[:, k], step, out=np.zeros_like(step), where=step > 0)
        part = g.op("Min", g.op("Max", g.op("Sub", inside, values[:, k]), 0.0), step)
        y = g.op("Add", y, g.op("Mul", part, rise))
    for k in range(q):  # exactly there, as a last digit may decide on which side of a cut it lies
        y = g.op("Where", g.op("Equal", x, values[:, k]), places[:, k], y)
    joined = g.op("Concat", g.columns(own, rest), y, axis=1) if len(rest) else y
    return g.columns(joined, np.argsort(np.concatenate([rest, moved])))


def multiview(g: Graph, x: str, members: Views) -> str:
    """Return the scores (m, n) of all members."""
    seen = Looked(g, x, members.lens)
    every = members.members
    raw = forests(g, seen.raw, [f for one in every for f in (one.tight, one.parted)])
    tamed = forests(g, seen.tamed, [one.tight_tamed for one in every])
    scores = []
    for k, one in enumerate(every):
        views = [
            raw[2 * k],
            tamed[k],
            raw[2 * k + 1],
            mahalanobis(g, seen.precise, one.ellipse),
            surprise_of_cells(g, seen.tamed, one.tails),
            distance_to_neighbours(g, seen.tamed, one.crowd),
        ]
        stacked = g.op("Concat", *(g.unsqueezed(view, 0) for view in views), axis=0)
        scores.append(pooled(g, nats_of(g, stacked, one)))
    evidence = evidence_nats(g, x, members.lens.evidence)
    return g.op("Add", g.op("Concat", *scores, axis=0), evidence)


def forests(g: Graph, rows: str, every: Sequence[Forest]) -> list[str]:
    """Walk rows down the trees of several forests at once; return minus the mean depths of each."""
    sizes = np.cumsum([0, *(len(forest.left) for forest in every)])
    joined = _Nodes(every, sizes[:-1])
    depths = _walked(g, rows, joined)  # (n, t)
    found, first = [], 0
    for forest in every:
        own = np.arange(first, first + len(forest.roots))
        mean = g.reduced("Mean", g.columns(depths, own), 1)
        found.append(g.op("Neg", mean))
        first += len(own)
    return found


class _Nodes:
    """The nodes of several forests in a row."""

    def __init__(self, every: Sequence[Forest], starts: np.ndarray[Any, Any]) -> None:
        moved = list(zip(every, starts.tolist(), strict=True))
        self.columns = np.concatenate([f.columns for f in every]).astype(np.int64)
        self.planes = np.concatenate([f.planes for f in every])
        self.depths = np.concatenate([f.depths for f in every]).astype(np.float64)
        self.left = np.concatenate([f.left.astype(np.int64) + start for f, start in moved])
        self.roots = np.concatenate([f.roots.astype(np.int64) + start for f, start in moved])
        self.steps = max(forest.steps for forest in every)  # a leaf leads to itself


def _walked(g: Graph, rows: str, nodes: _Nodes) -> str:
    """Return the depth of the leaf that each row ends in, in each tree."""
    parts = [g.constant(nodes.columns[:, k]) for k in (0, 1)]
    planes = [g.constant(nodes.planes[:, k]) for k in (0, 1, 2)]
    left = g.constant(nodes.left)
    n = g.op("Gather", g.op("Shape", rows), np.array([0]))
    shape = g.op("Concat", n, np.array([len(nodes.roots)]), axis=0)
    node = g.op("Expand", nodes.roots, shape)
    for _ in range(nodes.steps):
        slopes = [g.op("Gather", plane, node) for plane in planes]
        cells = [
            g.op("GatherElements", rows, g.op("Gather", column, node), axis=1) for column in parts
        ]
        place = _fused(g, slopes[0], cells[0], g.op("Mul", slopes[1], cells[1]))
        above = g.cast(g.op("Greater", place, slopes[2]), "int64")
        node = g.op("Add", g.op("Gather", left, node), above)
    return g.op("Gather", nodes.depths, node)


def _fused(g: Graph, a: str, b: str, c: str) -> str:
    """Return a b + c of single numbers, rounded once, as the library's compiled loop does.

    A cut often runs through a value that many rows share, so the last bit decides. In double
    precision the product of two single numbers is exact.
    """
    product = g.op("Mul", g.cast(a, "float64"), g.cast(b, "float64"))
    return g.cast(g.op("Add", product, g.cast(c, "float64")), "float32")


def mahalanobis(g: Graph, rows: str, ellipse: Ellipse) -> str:
    """Return the distance of every row by the robust covariance."""
    apart = g.op("Sub", rows, ellipse.centre)
    precision = ellipse.precision
    if isinstance(precision, InverseCovariance):
        product = g.op("Mul", g.op("MatMul", apart, precision.matrix), apart)
        squares = g.reduced("Sum", product, 1)
    else:
        inside = square_sum(g, g.op("MatMul", apart, precision.basis.T))
        outside = g.op("Max", g.op("Sub", square_sum(g, apart), inside), 0.0)
        squares = g.op("Div", outside, precision.level)
    return g.op("Sqrt", g.op("Max", squares, 0.0))


def surprise_of_cells(g: Graph, rows: str, tails: ColumnTails) -> str:
    """Return the mean surprise of a row's cells; places of bins are found in single precision."""
    place = g.op("Mul", g.op("Sub", rows, tails.start), tails.per_unit)
    inside = g.op("Clip", place, np.array(0, np.float32), np.array(N_BINS - 1, np.float32))
    bins = g.op("Add", g.cast(inside, "int64"), np.array(1))
    above = g.op("Greater", g.cast(place, "float64"), N_BINS * OUTSIDE)
    higher = g.op("And", g.op("Greater", rows, tails.start), tails.per_unit == 0)
    bins = g.op("Where", g.op("Or", above, higher), np.array(N_BINS + 1), bins)
    below = g.op(
        "Or", g.op("Less", place, np.array(0, np.float32)), g.op("Less", rows, tails.start)
    )
    bins = g.op("Where", below, np.array(0), bins)
    cells = g.op("Add", bins, np.arange(len(tails.start)) * (N_BINS + 2))
    nats = g.op("Gather", tails.nats.astype(np.float64).ravel(), cells)
    return g.reduced("Mean", nats, 1)


def distance_to_neighbours(g: Graph, rows: str, crowd: Landmarks) -> str:
    """Return the distance of every row to its third landmark."""
    precise, marks = g.cast(rows, "float64"), crowd.rows.astype(np.float64)
    squares = g.op("Add", g.op("MatMul", precise, -2 * marks.T), np.square(marks).sum(axis=1))
    n = np.array([min(NEIGHBOUR, len(marks))])
    near = g.op("TopK", squares, n, axis=1, largest=0, n_outputs=2)
    values = near.rpartition("_")[0] + "_0"
    farthest = g.op("Add", g.reduced("Max", values, 1), square_sum(g, precise))
    return g.op("Sqrt", g.op("Max", farthest, 0.0))


def nats_of(g: Graph, views: str, member: View) -> str:
    """Return how surprising each of the views (6, n) is, by a table of 64 entries a unit."""
    table = surprises()
    scale = (member.middle - member.low) / TENTH
    x = g.op("Div", g.op("Mul", g.op("Sub", views, member.middle[:, None]), SKEW), scale[:, None])
    logarithm = g.op("Log", g.op("Max", g.op("Add", x, 1.0), 1e-12))
    place = g.op("Mul", g.op("Add", g.op("Div", logarithm, SKEW), 8.0), 64.0)
    place = g.op("Clip", place, 0.0, float(len(table) - 2))
    k = g.cast(place, "int64")
    low = g.op("Gather", table, k)
    rise = g.op("Gather", np.diff(table), k)
    return g.op("Add", low, g.op("Mul", g.op("Sub", place, g.cast(k, "float64")), rise))


def pooled(g: Graph, nats: str) -> str:
    """Return (1, n): the mean over the views, lifted by those that may lift it."""
    mean = g.reduced("Sum", g.op("Mul", nats, COUNTS[:, None]), 0, keep=True)
    above = g.op("Max", g.op("Sub", nats, mean), 0.0)
    lift = g.reduced("Sum", g.op("Mul", above, LIFTS[:, None]), 0, keep=True)
    return g.op("Add", mean, lift)
