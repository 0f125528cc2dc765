"""Two distributions of a column in the same bins, ready to be drawn over each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.drift.distributions import Numbers
from aberra.data.drift.portrait import ColumnPortrait
from aberra.data.drift.sentences import shown

BINS = 24
FEW_VALUES = 10  # a column of numbers with no more of them is drawn value by value
MOST_BARS = 8


@dataclass(frozen=True)
class Overlay:
    """The share of rows in each bin, in training and now.

    Parameters
    ----------
    labels : list of str
        One for each bin where bins are values; the two ends of the axis otherwise.
    before, now : ndarray of shape (n_bins,)
    """

    labels: list[str]
    before: NDArray[np.float64]
    now: NDArray[np.float64]


def overlaid(before: ColumnPortrait, now: ColumnPortrait) -> Overlay | None:
    """Return both distributions of a column; None if there is nothing to draw."""
    if not (before.n and now.n):
        return None
    if before.categories is not None and now.categories is not None:
        labels = [*before.categories.labels[:MOST_BARS], "other"]
        return Overlay(labels, *(_top(c.shares) for c in (before.categories, now.categories)))
    if before.numbers is None or now.numbers is None:
        return None
    if len(before.numbers.points) <= FEW_VALUES:
        labels = [*(shown(point, before.kind) for point in before.numbers.points), "other"]
        return Overlay(labels, _of_values(before.numbers), _of_values(now.numbers))
    return _even(before.numbers, now.numbers, before.kind)


@dataclass(frozen=True)
class Outline:
    """What a column looked like in training, and where one value of it lies.

    Parameters
    ----------
    labels : list of str
        One for each bin where bins are values; the two ends of the axis otherwise.
    shares : list of float
        The share of training rows in each bin.
    at : float or None
        Where the value lies, from 0, the left end, to 1; None for a gap.
    beyond : bool
        Whether it lies outside of what is drawn.
    """

    labels: list[str]
    shares: list[float]
    at: float | None
    beyond: bool


def outlined(before: ColumnPortrait, cell: pd.Series[Any]) -> Outline | None:
    """Return the training distribution of a column, and the place of one cell in it.

    Parameters
    ----------
    before : ColumnPortrait
    cell : Series of length 1

    Returns
    -------
    outline : Outline or None
        None if there is nothing to draw.
    """
    now = before.count(cell)
    if not before.n:
        return None
    held, own = before.numbers, now.numbers
    if held is None or own is None or len(held.points) <= FEW_VALUES:
        drawn = overlaid(before, now if now.n else before)
        assert drawn is not None
        place = (int(np.argmax(drawn.now)) + 0.5) / len(drawn.now)
        return Outline(drawn.labels, drawn.before.tolist(), place if now.n else None, False)
    return _placed(held, before.kind, own.lowest if now.n else None)


def _placed(held: Numbers, kind: str, value: float | None) -> Outline:
    """Return even bins over the middle 96 % of a column, and the place of a value."""
    edges = _edges(held, held, 0.02)
    labels = [shown(float(end), kind) for end in (edges[0], edges[-1])]
    shares = _in_bins(held, edges).tolist()
    if value is None:
        return Outline(labels, shares, None, False)
    at = float((value - edges[0]) / (edges[-1] - edges[0]))
    return Outline(labels, shares, min(max(at, 0.0), 1.0), not 0 <= at <= 1)


def _top(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shares of the first labels, and of all others together."""
    kept = shares[:-1][:MOST_BARS]
    return np.append(kept, 1 - kept.sum())


def _of_values(held: Numbers) -> NDArray[np.float64]:
    shares = (held.upto - held.below) / held.n
    return np.append(shares, max(0.0, 1 - shares.sum()))


def _even(before: Numbers, now: Numbers, kind: str) -> Overlay:
    """Return even bins over the middle 98 % of both."""
    edges = _edges(before, now)
    ends = [shown(float(end), kind) for end in (edges[0], edges[-1])]
    return Overlay(ends, _in_bins(before, edges), _in_bins(now, edges))


def _edges(before: Numbers, now: Numbers, tail: float = 0.01) -> NDArray[np.float64]:
    low = min(before.quantile(tail), now.quantile(tail))
    high = max(before.quantile(1 - tail), now.quantile(1 - tail))
    return np.linspace(low, high if high > low else low + 1.0, BINS + 1)


def _in_bins(held: Numbers, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    places = np.concatenate([[held.lowest], held.points, [held.highest]])
    levels = np.concatenate([[0.0], held.shares[1], [1.0]])
    inside = (places >= held.lowest) & (places <= held.highest)
    return np.diff(np.interp(edges, places[inside], levels[inside], left=0.0, right=1.0))
