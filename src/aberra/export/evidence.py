"""What `MultiView` counts as evidence, as a graph: rare codes, pairs, copies, gaps, far cells."""

from __future__ import annotations

import numpy as np

from aberra.detectors.evidence import (
    FAR_WEIGHT,
    MORE_GAPS,
    WEIGHT,
    CodedColumn,
    CodePair,
    Evidence,
)
from aberra.detectors.far_cells import NOWHERE, FarCells
from aberra.export.graph import Graph


def evidence_nats(g: Graph, x: str, evidence: Evidence) -> str:
    """Return the evidence against every row of x (n, d), gaps as NaN."""
    parts = [
        gaps(g, x, evidence),
        broken_constants(g, x, evidence),
        g.op("Mul", far_nats(g, x, evidence.far), FAR_WEIGHT),
        g.op("Mul", rare_codes(g, x, evidence), WEIGHT),
        copies(g, x, evidence),
    ]
    return g.op("Sum", *parts)


def nothing(g: Graph, x: str) -> str:
    """Return 0 for every row."""
    first = g.op("Gather", g.cast(g.op("IsNaN", x), "float64"), np.array(0), axis=1)
    return g.op("Mul", first, 0.0)


def gaps(g: Graph, x: str, evidence: Evidence) -> str:
    """Return how much more or other gaps a row has than is usual."""
    each = g.op("Mul", g.cast(g.op("IsNaN", x), "float64"), evidence.gap_nats)
    rarest = g.reduced("Max", each, 1)
    more = g.op("Mul", g.op("Sub", g.reduced("Sum", each, 1), rarest), MORE_GAPS)
    total = g.op("Sub", g.op("Add", rarest, more), evidence.usual_gaps)
    return g.op("Max", total, 0.0)


def broken_constants(g: Graph, x: str, evidence: Evidence) -> str:
    """Return the nats of a column that never changed and now has."""
    if not len(evidence.constant):
        return nothing(g, x)
    now = g.columns(x, evidence.constant)
    kept = g.op("Or", g.op("Equal", now, evidence.values), g.op("IsNaN", now))
    broken = g.cast(g.op("Not", kept), "float64")
    return g.op("Mul", g.reduced("Max", broken, 1), evidence.constant_nats)


def far_nats(g: Graph, x: str, far: FarCells) -> str:
    """Return how rare and how far the most striking cell of each row is."""
    some = np.flatnonzero((far.edge < NOWHERE).any(axis=0))
    if not len(some):
        return nothing(g, x)
    away = g.op("Sub", g.columns(x, some), far.middle[some])
    sides = []
    for side, own in enumerate((away, g.op("Neg", away))):
        beyond = g.op("GreaterOrEqual", own, far.edge[side, some])
        inside = g.op("Where", beyond, own, far.reach[side, some])  # whose logarithm is 0
        nats = g.op("Log", g.op("Div", inside, far.reach[side, some]))
        found = g.op("Where", beyond, g.op("Add", nats, far.nats[side, some]), 0.0)
        sides.append(g.reduced("Max", found, 1))
    return g.op("Max", *sides, 0.0)


def rare_codes(g: Graph, x: str, evidence: Evidence) -> str:
    """Return the nats of the rarest code of each row, and of the pair that never meets."""
    if not evidence.coded:
        return nothing(g, x)
    places = [_code(g, x, column) for column in evidence.coded]
    rare = [
        _code_nats(g, column, *place) for column, place in zip(evidence.coded, places, strict=True)
    ]
    found = g.op("Max", *rare, 0.0)
    if not evidence.pairs:
        return found
    missed = [
        _pair_nats(g, pair, places[pair.first], places[pair.second]) for pair in evidence.pairs
    ]
    return g.op("Add", found, g.op("Max", *missed, 0.0))


Code = tuple[
    str, str, str
]  # the place of each row's value, whether it has one, whether it is a gap


def _code(g: Graph, x: str, column: CodedColumn) -> Code:
    cells = g.columns(x, np.array([column.column]))  # (n, 1)
    same = g.cast(g.op("Equal", cells, column.values), "float64")  # (n, q)
    place = g.op("ArgMax", same, axis=1, keepdims=0)
    known = g.cast(g.reduced("Max", same, 1), "bool")
    gap = g.op("IsNaN", g.op("Squeeze", cells, np.array([1])))
    return place, known, gap


def _code_nats(g: Graph, column: CodedColumn, place: str, known: str, gap: str) -> str:
    nats = g.op("Where", known, g.op("Gather", column.nats, place), column.unseen)
    return g.op("Where", gap, 0.0, nats)


def _pair_nats(g: Graph, pair: CodePair, first: Code, second: Code) -> str:
    width = np.array(pair.nats.shape[1], dtype=np.int64)
    cell = g.op("Add", g.op("Mul", first[0], width), second[0])
    both = g.op("And", first[1], second[1])
    return g.op("Where", both, g.op("Gather", pair.nats.ravel(), cell), 0.0)


def copies(g: Graph, x: str, evidence: Evidence) -> str:
    """Return the nats of rows that occurred again and again; a row is one of them or none."""
    if not len(evidence.copied):
        return nothing(g, x)
    same = g.op("Equal", g.unsqueezed(x, 1), evidence.copied)  # (n, copies, d)
    whole = g.reduced("Min", g.cast(same, "float64"), 2)
    return g.op("MatMul", whole, evidence.copied_nats)
