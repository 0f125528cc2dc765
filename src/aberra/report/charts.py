"""Charts as inline SVG: numbers in, markup out; colours and dark mode are the page's own style.

Whatever colour tells is told a second time by a dash, a hatch or a label, so grey prints read.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.words import number

Values = NDArray[np.float64]

WIDE, NARROW, HEIGHT = 720.0, 480.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 16.0, 36.0, 48.0
FEWEST_BINS, MOST_BINS = 8, 40
MANY_ROUNDS = 16  # too many for a number on every bar
HATCH = (
    '<defs><pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse">'
    '<rect width="7" height="7"/><path d="M-2 2L2 -2M0 7L7 0M5 9L9 5"/></pattern></defs>'
)
LONG_TAIL = 8.0  # times the distance from the middle to where nine of ten scores lie


@dataclass(frozen=True)
class Axis:
    """From a number to a place on the page; with a `spread`, far numbers are squeezed together.

    Parameters
    ----------
    low, high : float
        Ends of the axis, in its own units.
    start, end : float
        Ends of the axis on the page.
    middle, spread : float
        Numbers much further than `spread` from `middle` are placed by their logarithm, on both
        sides; a spread of 0 is a plain axis.
    """

    low: float
    high: float
    start: float
    end: float
    middle: float = 0.0
    spread: float = 0.0

    def _bent(self, values: Values) -> Values:
        if not self.spread:
            return values
        return np.asarray(np.arcsinh((values - self.middle) / self.spread))

    def places(self, values: Values | Sequence[float]) -> Values:
        """Return where numbers lie on the page."""
        bent = self._bent(np.asarray(values, np.float64))
        low, high = self._bent(np.array([self.low, self.high]))
        return np.asarray(self.start + (bent - low) / (high - low) * (self.end - self.start))

    def place(self, value: float) -> float:
        """Return where one number lies on the page."""
        return float(self.places([value])[0])

    def edges(self, n: int) -> Values:
        """Return the edges of n bins that are equally wide on the page."""
        low, high = self._bent(np.array([self.low, self.high]))
        bent = np.linspace(low, high, n + 1)
        edges = self.middle + self.spread * np.sinh(bent) if self.spread else bent
        edges[0], edges[-1] = self.low, self.high
        return np.asarray(edges)

    def ticks(self, gap: float) -> list[float]:
        """Return round numbers at least `gap` apart on the page, the roundest first chosen."""
        chosen: list[float] = []
        for value in self._round_numbers():
            place = self.place(value)
            if all(abs(place - self.place(other)) >= gap for other in chosen):
                chosen.append(value)
        return sorted(chosen)

    def _round_numbers(self) -> list[float]:
        if not self.spread:
            return nice_steps(self.low, self.high)
        top = int(np.ceil(np.log10(max(abs(self.low), abs(self.high)))))
        powers = [10.0**k for k in range(top, top - 7, -1)]
        sizes = [step * power for step in (1, 2, 5) for power in powers]
        return [v for v in (0.0, *sizes, *(-s for s in sizes)) if self.low <= v <= self.high]


def nice_steps(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most `most` + 1 evenly spaced round numbers from `low` to `high`."""
    rough = (high - low) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(next(power * k for k in (1, 2, 5, 10) if power * k >= rough * (1 - 1e-9)))
    first = int(np.ceil(low / step - 1e-9))
    return [k * step for k in range(first, int(np.floor(high / step + 1e-9)) + 1)]


def score_axis(*groups: Values) -> Axis:
    """Return an axis for scores, bent where a few of them lie far out."""
    values = np.concatenate(groups)
    low, high = float(values.min()), float(values.max())
    if high == low:
        margin = max(abs(high), 1.0) * 0.05
        return Axis(low - margin, high + margin, LEFT, WIDE - RIGHT)
    middle, nine = (float(q) for q in np.quantile(values, (0.5, 0.9)))
    bent = nine > middle and high - middle > LONG_TAIL * (nine - middle)
    return Axis(low, high, LEFT, WIDE - RIGHT, middle, nine - middle if bent else 0.0)


def histogram(
    scores: Values, threshold: float | None, compared: Values | None = None, thing: str = "samples"
) -> str:
    """Draw scores as bars, those above the threshold hatched; others, for comparison, as a line.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    threshold : float, optional
    compared : ndarray of shape (m,), optional
        Such as the training scores.
    thing : str
        What the scores belong to.

    Returns
    -------
    svg : str
    """
    groups = (scores,) if compared is None else (scores, compared)
    marks = () if threshold is None else (np.array([threshold]),)
    x = score_axis(*groups, *marks)
    n_bins = int(np.clip(2 * np.sqrt(len(scores)), FEWEST_BINS, MOST_BINS))
    edges = _cut_at(x, x.edges(n_bins), threshold)
    shares = [np.histogram(group, edges)[0] / len(group) for group in groups]
    y = Axis(0.0, max(float(s.max()) for s in shares) * 1.05, HEIGHT - BOTTOM, TOP)
    parts = [HATCH, _frame(x, y, "anomaly score", f"share of {thing}", percents=True)]
    parts += _bars(x.places(edges), y, shares[0], edges, threshold)
    if compared is not None:
        parts.append(_steps(x.places(edges), y, shares[1]))
    if threshold is not None:
        words = f"threshold {number(threshold)}"
        parts.append(_mark(x, threshold, words, "threshold"))
    above = "" if threshold is None else f" {int((scores > threshold).sum())} lie above it."
    title = f"Histogram of {len(scores):,} anomaly scores.{above}"
    return _svg(title, parts, WIDE)


def _cut_at(x: Axis, edges: Values, threshold: float | None) -> Values:
    """Move the nearest inner edge to the threshold, so that no bar lies on both sides."""
    if threshold is None:
        return edges
    nearest = 1 + int(np.abs(x.places(edges[1:-1]) - x.place(threshold)).argmin())
    # Just above it: a score that equals the threshold is not flagged, and belongs to the left.
    edges[nearest] = np.nextafter(threshold, np.inf)
    return edges


def _bars(
    places: Values, y: Axis, shares: Values, edges: Values, threshold: float | None
) -> list[str]:
    cut = np.inf if threshold is None else threshold
    return [
        _rect(
            places[k] + 0.5,
            y.place(shares[k]),
            places[k + 1] - 0.5,
            HEIGHT - BOTTOM,
            "bar odd" if edges[k] >= cut else "bar",
        )
        for k in np.flatnonzero(shares)
    ]


def _steps(places: Values, y: Axis, shares: Values) -> str:
    heights = y.places(shares)
    points = [f"M{places[0]:.1f} {HEIGHT - BOTTOM:.1f}"]
    for left, right, top in zip(places[:-1], places[1:], heights, strict=True):
        points.append(f"L{left:.1f} {top:.1f}L{right:.1f} {top:.1f}")
    return tag("path", "", d="".join(points), class_="compared")


def _mark(x: Axis, value: float, words: str, kind: str) -> str:
    """Draw a line across the chart, with words on the side where there is room."""
    place = x.place(value)
    anchor, shift = ("end", -6.0) if place > 0.7 * x.end else ("start", 6.0)
    line = _line(place, TOP - 14, place, HEIGHT - BOTTOM, kind)
    return line + _text(words, place + shift, TOP - 4, "mark", anchor)


@dataclass(frozen=True)
class Band:
    """The middle half of a group of samples over the rounds."""

    name: str
    low: Values
    middle: Values
    high: Values
    odd: bool


def trust_chart(bands: Sequence[Band], kept: int) -> str:
    """Draw the trust in groups of samples over the rounds; `kept` is an index."""
    n = len(bands[0].middle)
    x, y = _rounds_axis(n), Axis(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    parts = [_frame(x, y, "round", "trust", every=n), _mark(x, kept + 1, "round kept", "kept")]
    rounds = x.places(np.arange(1.0, n + 1))
    for band in bands:
        kind = " odd" if band.odd else ""
        outline = [*zip(rounds, y.places(band.high), strict=True)]
        outline += [*zip(rounds, y.places(band.low), strict=True)][::-1]
        parts.append(tag("polygon", "", points=_points(outline), class_=f"band{kind}"))
        middle = [*zip(rounds, y.places(band.middle), strict=True)]
        parts.append(tag("polyline", "", points=_points(middle), class_=f"line{kind}"))
        parts += [_dot(px, py, f"dot{kind}") for px, py in middle]
    ends = "; ".join(f"{band.name}: {band.middle[kept]:.2f}" for band in bands)
    return _svg(f"Median trust over {n} rounds. At the round kept: {ends}.", parts, NARROW)


def crossings_chart(crossings: Sequence[int], kept: int) -> str:
    """Draw how many samples changed sides in each round, from the second on."""
    n = len(crossings) + 1
    x, y = _rounds_axis(n), Axis(0.0, max(1.0, max(crossings) * 1.2), HEIGHT - BOTTOM, TOP)
    parts = [_frame(x, y, "round", "samples", every=n)]
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
    return Axis(0.5, n + 0.5, LEFT, NARROW - RIGHT)


def _frame(
    x: Axis, y: Axis, x_name: str, y_name: str, percents: bool = False, every: int = 0
) -> str:
    """Draw axes with labels, names and faint lines; `every`: whole numbers from 1 to it."""
    floor = HEIGHT - BOTTOM
    parts = [_text(y_name, 2, 14, "name", "start")]
    for value in y.ticks(24.0):
        if y_name.startswith("samples") and value % 1:
            continue
        place = y.place(value)
        words = f"{100 * value:g} %" if percents else number(value)
        parts.append(_line(x.start, place, x.end, place, "grid"))
        parts.append(_text(words, x.start - 8, place + 4, "tick", "end"))
    for value in _whole(every) if every else x.ticks(60.0):
        place = x.place(value)
        parts.append(_line(place, floor, place, floor + 4, "axis"))
        parts.append(_text(number(value), place, floor + 18, "tick", "middle"))
    parts.append(_line(x.start, floor, x.end, floor, "axis"))
    parts.append(_text(x_name, (x.start + x.end) / 2, HEIGHT - 8, "name", "middle"))
    return "".join(parts)


def _whole(n: int) -> list[float]:
    step = max(1, round(n / 15))
    return [float(k) for k in range(1, n + 1, step)]


def _text(words: str, x: float, y: float, kind: str, anchor: str) -> str:
    return tag("text", words, x=x, y=y, class_=kind, text_anchor=anchor)


def _points(pairs: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{px:.1f},{py:.1f}" for px, py in pairs)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
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
