"""Cells that lie beyond a gap: a few values of a column with nothing between them and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

Array = NDArray[np.float64]

GAP = 0.75  # of the distance from the median to where it begins
MOST_BEYOND = 0.1  # of the rows; a larger group is a kind of its own
FEWEST_VALUES = 30  # in a column of fewer, every value lies beyond a gap
NOWHERE = 1e300
CELLS = 1 << 16  # looked at together


@dataclass(frozen=True)
class FarCells:
    """Where in each column the gap ends, on either side; the first line is above, the second below.

    On both sides values are counted away from the median.
    """

    middle: Annotated[Array, Shape("D")]
    edge: Annotated[Array, Shape(2, "D")]  # first value beyond the gap; NOWHERE in a constant
    reach: Annotated[Array, Shape(2, "D")]  # last value before the gap
    nats: Annotated[Array, Shape(2, "D")]  # minus log of the share of rows beyond, less 1

    def __post_init__(self) -> None:
        if (self.reach <= 0).any():
            raise ValueError("a gap begins at the median")

    def evidence(self, rows: NDArray[Any]) -> Array:
        """Return how rare and how far the most striking cell of each row is, in nats."""
        found = np.zeros(len(rows))
        width = max(1, CELLS // max(1, len(rows)))
        for start in range(0, rows.shape[1], width):
            some = slice(start, start + width)
            away = rows[:, some].astype(np.float64) - self.middle[some]
            for x, edge, reach, nats in (
                (away, self.edge[0, some], self.reach[0, some], self.nats[0, some]),
                (-away, self.edge[1, some], self.reach[1, some], self.nats[1, some]),
            ):
                row, j = np.nonzero(x >= edge)  # a gap in the data is not
                with np.errstate(over="ignore"):  # of a column that hardly varies
                    times = np.minimum(x[row, j] / reach[j], NOWHERE)
                np.maximum.at(found, row, nats[j] + np.log(times))
        return found


def far_cells(rows: NDArray[Any]) -> FarCells:
    """Look for gaps in every column: the innermost that leaves at most a tenth of the rows beyond.

    A gap is three quarters as wide as the distance from the median to its beginning, and begins
    beyond the quartile. No law of the tails is assumed: of heavy tails only a row or two lie
    beyond such a gap. Where there is none, a new row can still lie that far beyond all others.
    """
    d = rows.shape[1]
    middle, nats = np.zeros(d), np.zeros((2, d))
    edge, reach = np.full((2, d), NOWHERE), np.ones((2, d))
    for j in range(d):
        x = rows[:, j].astype(np.float64)
        x = np.sort(x[~np.isnan(x)])
        if not len(x):
            continue
        middle[j] = np.median(x)
        fine = np.count_nonzero(np.diff(x)) + 1 >= FEWEST_VALUES
        for side, away in enumerate((x - middle[j], (middle[j] - x)[::-1])):
            found = (_gap(away) if fine else None) or _outside(away)
            edge[side, j], reach[side, j], nats[side, j] = found
    return FarCells(middle, edge, reach, nats)


def _outside(away: Array) -> tuple[float, float, float]:
    """Return where a value would lie beyond a gap behind all others."""
    last = float(away[-1])
    if not last > 0:
        return NOWHERE, 1.0, 0.0
    return (1 + GAP) * last, last, max(float(np.log(len(away))) - 1.0, 0.0)


def _gap(away: Array) -> tuple[float, float, float] | None:
    """Return the end and the beginning of the innermost gap, and the nats of lying beyond."""
    n = len(away)
    outer = away[int((1 - MOST_BEYOND) * n) :]
    before, after = outer[:-1], outer[1:]
    quartile = max(float(away[(3 * n) // 4]), 0.0)
    gaps = np.flatnonzero((after - before >= GAP * before) & (before >= quartile))
    if not len(gaps) or not quartile > 0:
        return None
    beyond = len(after) - int(gaps[0])
    nats = max(float(np.log(n / beyond)) - 1.0, 0.0)
    return float(after[gaps[0]]), float(before[gaps[0]]), nats
