"""Whether new rows are like the training rows: sentences, and small charts of what moved."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from aberra.data.drift.overlay import Overlay, overlaid
from aberra.data.drift.verdict import ColumnDrift, Drift
from aberra.report.charts import tag
from aberra.report.contents import DriftChart, DriftSection
from aberra.words import percent

MOST_CHARTS = 12
SMALL, LOW = 220.0, 96.0  # width and height of a small chart
FLOOR, INSET = 78.0, 4.0
LETTER = 7.5  # its width, a gap between two labels included


def drift_section(drift: Drift | None) -> DriftSection | None:
    """Return what the page says about drift; charts only of columns that are not steady."""
    if drift is None:
        return None
    moved = [column for column in drift.columns if column.verdict != "steady"]
    charts = [_chart(column) for column in moved[:MOST_CHARTS]]
    return DriftSection(drift.verdict, drift.why, charts, len(drift.columns) - len(moved))


def _chart(column: ColumnDrift) -> DriftChart:
    found = overlaid(column.before, column.now)
    drawn = "" if found is None else overlay_chart(column.name, found)
    return DriftChart(column.name, column.verdict, percent(column.effect), column.why, drawn)


def overlay_chart(name: str, found: Overlay) -> str:
    """Draw what is now as bars, and the training rows as an outline over them."""
    edges = np.linspace(INSET, SMALL - INSET, len(found.now) + 1).tolist()
    top = max(float(found.now.max()), float(found.before.max()), 1e-9)
    heights = [(FLOOR - (FLOOR - 6) * one / top).tolist() for one in (found.now, found.before)]
    parts = [tag("title", f"{name}: bars show the new rows, the outline the training rows.")]
    parts += [_bar(edges[k], edges[k + 1], y) for k, y in enumerate(heights[0]) if found.now[k] > 0]
    parts.append(_outline(edges, heights[1]))
    parts += _labels(found.labels, edges)
    box = f"0 0 {SMALL:.0f} {LOW:.0f}"
    return f'<svg viewBox="{box}" role="img" class="chart small">{"".join(parts)}</svg>'


def _bar(left: float, right: float, top: float) -> str:
    size = {"width": max(right - left - 1, 0.5), "height": FLOOR - top}
    return tag("rect", "", x=left + 0.5, y=top, class_="bar", **size)


def _outline(edges: Sequence[float], heights: Sequence[float]) -> str:
    points = [f"M{edges[0]:.1f} {FLOOR:.1f}"]
    for (left, right), top in zip(pairwise(edges), heights, strict=True):
        points.append(f"L{left:.1f} {top:.1f}L{right:.1f} {top:.1f}")
    return tag("path", "", d="".join([*points, f"L{edges[-1]:.1f} {FLOOR:.1f}"]), class_="compared")


def _labels(labels: Sequence[str], edges: Sequence[float]) -> list[str]:
    if len(labels) == 2 and len(edges) > 4:  # the ends of an even axis
        return [
            tag("text", labels[0], x=INSET, y=LOW - 4, class_="tick", text_anchor="start"),
            tag("text", labels[1], x=SMALL - INSET, y=LOW - 4, class_="tick", text_anchor="end"),
        ]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    room = max(2, int((SMALL - 2 * INSET) / len(labels) / LETTER))
    shown = [label if len(label) <= room else f"{label[: room - 1]}…" for label in labels]
    return [
        tag("text", label, x=x, y=LOW - 4, class_="tick", text_anchor="middle")
        for label, x in zip(shown, middles, strict=True)
    ]
