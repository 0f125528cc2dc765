"""From a model of rows to the whole graph: preparation, members, reviewers' marks, flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from aberra.contract.feedback import DIRECTION, NEAR, Feedback
from aberra.contract.members import Members
from aberra.detectors.autoencoder import Reconstructors
from aberra.detectors.dagpr import Regressions
from aberra.detectors.deep_svdd import Spheres
from aberra.detectors.hybrid import CodeExpansions
from aberra.detectors.multiview import Views
from aberra.detectors.ocsvm import Expansions
from aberra.detectors.rsrae import Subspaces
from aberra.errors import DataError
from aberra.export import networks
from aberra.export.graph import Graph
from aberra.export.views import multiview
from aberra.robust.committee import Committee

GRAPHS: dict[type, Callable[[Graph, str, Any], str]] = {
    Views: multiview,
    Reconstructors: networks.autoencoder,
    Subspaces: networks.subspaces,
    Spheres: networks.spheres,
    Regressions: networks.regressions,
    CodeExpansions: networks.code_machines,
    Expansions: networks.machines,
}

INPUT, SCORES, FLAGS = "X", "scores", "flags"
# The rule for flags often puts the threshold on the score of a row that is not flagged. Sums in
# another order may lift this row by a hair, and it would be flagged. Networks of images compute in
# single precision.
HAIR, HAIR_OF_IMAGES = 1e-6, 1e-4


def row_graph(model: Any) -> Graph:
    """Return the graph of a model: X, rows (n, d) or images, in; scores and flags (n,) out."""
    g = Graph()
    x = filled(g, INPUT, model)
    if model.image_shape_ is not None:
        x = g.op("Flatten", x, axis=1)
    score = g.reduced("Mean", member_scores(g, x, model.members_), 0)
    marks = model.review_marks()
    if marks is not None:
        score = adjusted(g, score, x, marks)
    g.named(score, SCORES)
    g.named(g.op("Greater", score, cut(model)), FLAGS)
    return g


def cut(model: Any) -> float:
    """Return the score above which the graph flags a row: the threshold and a hair."""
    hair = HAIR if model.image_shape_ is None else HAIR_OF_IMAGES
    return float(model.threshold_ + hair * max(abs(model.threshold_), model.bulk_.scale))


def filled(g: Graph, x: str, model: Any) -> str:
    """Fill gaps with the median of their column, where the model does."""
    reader = model.reader_
    if reader is None or reader.missing != "impute" or model.sees_gaps:
        return x
    return g.op("Where", g.op("IsNaN", x), np.array(reader.medians), x)


def member_scores(g: Graph, x: str, members: Members) -> str:
    """Return the scores (m, n) of all members."""
    if isinstance(members, Committee):
        parts = [member_scores(g, x, part) for part in members.parts]
        return g.op("Concat", *parts, axis=0)
    if type(members) not in GRAPHS:
        raise DataError(
            f"{type(members).__name__} cannot be written as ONNX, only Aberra's own detectors, "
            "alone or in ADC and IADC."
        )
    return GRAPHS[type(members)](g, x, members)


def adjusted(g: Graph, score: str, x: str, marks: Feedback) -> str:
    """Return scores in the light of what reviewers said (`Feedback.adjusted`)."""
    known, directions, pulls = marks.weights()
    off = g.op("Div", g.op("Sub", x, marks.middle), marks.spread)
    places = g.asinh(g.op("Where", g.op("IsNaN", off), 0.0, off))
    apart = g.op("Sub", networks.square_sum(g, places, keep=True), _cross(g, places, 2 * known))
    apart = g.op("Max", g.op("Add", apart, np.square(known).sum(axis=1)), 0.0)
    near = g.op("Exp", g.op("Div", apart, -2 * NEAR * known.shape[1]))
    up, down = g.op("Max", places, 0.0), g.op("Max", g.op("Neg", places), 0.0)
    both = g.op("Concat", up, down, axis=1)
    length = g.op("Sqrt", networks.square_sum(g, both, keep=True))
    alike = _cross(g, g.op("Div", both, g.op("Max", length, 1e-9)), DIRECTION * directions)
    pull = g.op("MatMul", g.op("Add", near, alike), pulls)
    usual, unit = float(marks.usual[0]), marks.unit
    bent = g.asinh(g.op("Div", g.op("Sub", score, usual), unit))
    moved = g.sinh(g.op("Add", bent, pull))
    return g.op("Add", g.op("Mul", moved, unit), usual)


def _cross(g: Graph, rows: str, others: Any) -> str:
    return g.op("MatMul", rows, others.T)
