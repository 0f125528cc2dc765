"""Charts as inline SVG: numbers in, markup out; colours and dark mode are the page's own style.

Whatever colour tells is told a second time by a dash, a hatch or a label, so grey prints read.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.explain.charts import TrustBand, score_bins
from aberra.explain.scales import Numbers, Scale
from aberra.words import number

WIDE, NARROW, HEIGHT = 720.0, 480.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 16.0, 36.0, 48.0
MANY_ROUNDS = 16  # too many for a number on every bar
HATCH = (
    '<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<rect width="7" height="7"/><path d="M-2 2L2 -2M0 7L7 0M5 9L9 5"/></pattern></defs>'
)


@dataclass(frozen=True)
class Axis:
    """A scale on the page: from a number to a place in pixels.

    Parameters
    ----------
    scale : Scale
    start, end : float
        Where the ends of the scale lie on the page.
    """

    scale: Scale
    start: float
    end: float

    def places(self, values: Numbers | Sequence[float]) -> Numbers:
        """Return where numbers lie on the page."""
        return np.asarray(self.start + self.scale.places(values) * (self.end - self.start))

    def place(self, value: float) -> float:
        """Return where one number lies on the page."""
        return float(self.places([value])[0])

    def ticks(self, gap: float) -> list[float]:
        """Return round numbers at least `gap` apart on the page."""
        return self.scale.ticks(gap / abs(self.end - self.start))


def _upward(top: float) -> Axis:
    """Return an axis from 0 at the foot of a chart to a number at its top."""
    return Axis(Scale(0.0, top), HEIGHT - BOTTOM, TOP)


def histogram(
    scores: Numbers,
    threshold: float | None,
    compared: Numbers | None = None,
    thing: str = "samples",
) -> str:
    """Draw scores as bars, those above the threshold hatched; others, for comparison, as a line.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    threshold : float, optional
    compared : ndarray of shape (m,), optional
        Such as the training scores.
    thing : str, default="samples"
        What the scores belong to.

    Returns
    -------
    svg : str
    """
    bins = score_bins([scores] if compared is None else [scores, compared], threshold)
    shares = [bins.shares(k) for k in range(len(bins.counts))]
    x = Axis(bins.scale, LEFT, WIDE - RIGHT)
    y = _upward(max(float(s.max()) for s in shares) * 1.05)
    places = x.places(bins.edges)
    parts = [HATCH, _frame_of(x, y, "anomaly score", f"share of {thing}", percents=True)]
    parts += _bars(places, y, shares[0], bins.above)
    if compared is not None:
        parts.append(_steps(places, y, shares[1]))
    if threshold is not None:
        parts.append(_mark(x, threshold, f"threshold {number(threshold)}", "threshold"))
    n_above = int(bins.counts[0][bins.above].sum())
    above = "" if threshold is None else f" {n_above:,} lie above the threshold."
    return _svg(f"Histogram of {len(scores):,} anomaly scores.{above}", parts, WIDE)


def _bars(places: Numbers, y: Axis, shares: Numbers, above: NDArray[np.bool_]) -> list[str]:
    return [
        _rect(
            places[k] + 0.5,
            y.place(shares[k]),
            places[k + 1] - 0.5,
            HEIGHT - BOTTOM,
            "bar odd" if above[k] else "bar",
        )
        for k in np.flatnonzero(shares)
    ]


def _steps(places: Numbers, y: Axis, shares: Numbers) -> str:
    heights = y.places(shares)
    points = [f"M{places[0]:.1f} {HEIGHT - BOTTOM:.1f}"]
    for left, right, top in zip(places[:-1], places[1:], heights, strict=True):
        points.append(f"L{left:.1f} {top:.1f}L{right:.1f} {top:.1f}")
    return tag("path", "", d="".join(points), class_="compared")


def _mark(x: Axis, value: float, words: str, kind: str) -> str:
    """Draw a line across the chart, with words on the side where there is room."""
    place = x.place(value)
    anchor, shift = ("end", -6.0) if place > 0.7 * x.end else ("start", 6.0)
    line = _stroke(place, TOP - 14, place, HEIGHT - BOTTOM, kind)
    return line + _text(words, place + shift, TOP - 4, "mark", anchor)


def trust_chart(bands: Sequence[TrustBand], kept: int) -> str:
    """Draw the trust in groups of samples over the rounds; `kept` is an index."""
    n = len(bands[0].middle)
    x, y = _rounds_axis(n), _upward(1.0)
    parts = [_frame_of(x, y, "round", "trust", every=n), _mark(x, kept + 1, "round kept", "kept")]
    rounds = x.places(np.arange(1.0, n + 1))
    for band in bands:
        kind = " odd" if band.odd else ""
        low, high = band.half
        outline = [*zip(rounds, y.places(high), strict=True)]
        outline += [*zip(rounds, y.places(low), strict=True)][::-1]
        parts.append(tag("polygon", "", points=_points(outline), class_=f"band{kind}"))
        middle = [*zip(rounds, y.places(band.middle), strict=True)]
        parts.append(tag("polyline", "", points=_points(middle), class_=f"line{kind}"))
        parts += [_dot(px, py, f"dot{kind}") for px, py in middle]
    ends = "; ".join(f"{band.name}: {band.middle[kept]:.2f}" for band in bands)
    return _svg(f"Median trust over {n} rounds. In the round kept: {ends}.", parts, NARROW)


def crossings_chart(crossings: Sequence[int], kept: int) -> str:
    """Draw how many samples crossed over in each round, from the second on."""
    n = len(crossings) + 1
    x, y = _rounds_axis(n), _upward(max(1.0, max(crossings) * 1.2))
    parts = [_frame_of(x, y, "round", "crossings", every=n)]
    half = min(24.0, 0.32 * (x.end - x.start) / n)
    for t, h in enumerate(crossings, start=2):
        place, top, chosen = x.place(t), y.place(h), t == kept + 1
        kind = "bar chosen" if chosen else "bar"
        parts.append(_rect(place - half, top, place + half, HEIGHT - BOTTOM, kind))
        if chosen:
            parts.append(_text(f"{h}, kept", place, top - 6, "mark", "middle"))
        elif n <= MANY_ROUNDS:
            parts.append(_text(str(h), place, top - 6, "tick", "middle"))
    title = f"Crossings in rounds 2 to {n}: {', '.join(map(str, crossings))}."
    return _svg(title, parts, NARROW)


def _rounds_axis(n: int) -> Axis:
    return Axis(Scale(0.5, n + 0.5), LEFT, NARROW - RIGHT)


def _frame_of(
    x: Axis, y: Axis, x_name: str, y_name: str, percents: bool = False, every: int = 0
) -> str:
    """Draw axes with labels, names and faint lines; `every`: whole numbers from 1 to it."""
    floor = HEIGHT - BOTTOM
    parts = [_text(y_name, 2, 14, "name", "start")]
    for value in y.ticks(24.0):
        if y_name == "crossings" and value % 1:
            continue
        place = y.place(value)
        words = f"{100 * value:g} %" if percents else number(value)
        parts.append(_stroke(x.start, place, x.end, place, "grid"))
        parts.append(_text(words, x.start - 8, place + 4, "tick", "end"))
    for value in _whole(every) if every else x.ticks(60.0):
        place = x.place(value)
        parts.append(_stroke(place, floor, place, floor + 4, "axis"))
        parts.append(_text(number(value), place, floor + 18, "tick", "middle"))
    parts.append(_stroke(x.start, floor, x.end, floor, "axis"))
    parts.append(_text(x_name, (x.start + x.end) / 2, HEIGHT - 8, "name", "middle"))
    return "".join(parts)


def _whole(n: int) -> list[float]:
    step = max(1, round(n / 15))
    return [float(k) for k in range(1, n + 1, step)]


def _text(words: str, x: float, y: float, kind: str, anchor: str) -> str:
    return tag("text", words, x=x, y=y, class_=kind, text_anchor=anchor)


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{px:.1f},{py:.1f}" for px, py in pairs)


def _stroke(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return tag("line", "", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def _rect(left: float, top: float, right: float, bottom: float, kind: str) -> str:
    size = {"width": max(right - left, 0.2), "height": bottom - top}
    return tag("rect", "", x=left, y=top, class_=kind, **size)


def _dot(x: float, y: float, kind: str) -> str:
    if "odd" in kind:
        return tag("rect", "", x=x - 3.5, y=y - 3.5, width=7, height=7, class_=kind)
    return tag("circle", "", cx=x, cy=y, r=3.5, class_=kind)


def _svg(title: str, parts: Sequence[str], width: float) -> str:
    inside = tag("title", title) + "".join(parts)
    box = f"0 0 {width:.0f} {HEIGHT:.0f}"
    return f'<svg viewBox="{box}" role="img" class="chart">{inside}</svg>'


def tag(name: str, text: str, **attributes: str | float) -> str:
    """Return one element, its text and attributes escaped.

    A name that Python reserves ends in an underscore; other underscores become hyphens.
    """
    pairs = []
    for key, value in attributes.items():
        shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
        pairs.append(f' {key.rstrip("_").replace("_", "-")}="{html.escape(shown)}"')
    return f"<{name}{''.join(pairs)}>{html.escape(text)}</{name}>"
