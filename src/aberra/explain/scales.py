"""Scales for charts: plain, or bent where a few numbers lie far from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

FARTHEST = 1e100  # of what a chart has room for; further numbers are drawn here
LONG_TAIL = 20.0  # times the distance from the median to the upper quartile


@dataclass(frozen=True)
class Scale:
    """From a number to its place between 0 and 1; with a `spread`, far numbers move closer.

    Parameters
    ----------
    low, high : float
        The numbers that lie at 0 and at 1.
    middle : float, default=0
        Where a bent scale is least bent.
    spread : float, default=0
        Numbers much further than this from `middle` are placed by their logarithm, on both sides.
        0 is a plain scale.
    """

    low: float
    high: float
    middle: float = 0.0
    spread: float = 0.0

    def bent(self, values: Numbers | Sequence[float]) -> Numbers:
        """Return the numbers in units that are even on the page."""
        given = np.asarray(values, np.float64)
        return np.asarray(np.arcsinh((given - self.middle) / self.spread)) if self.spread else given

    def unbent(self, values: Numbers) -> Numbers:
        """Return the numbers that `bent` came from."""
        return self.middle + self.spread * np.sinh(values) if self.spread else np.asarray(values)

    def places(self, values: Numbers | Sequence[float]) -> Numbers:
        """Return where numbers lie: 0 for `low`, 1 for `high`."""
        low, high = self.bent([self.low, self.high])
        return np.asarray((self.bent(values) - low) / (high - low))

    def place(self, value: float) -> float:
        """Return where one number lies."""
        return float(self.places([value])[0])

    def edges(self, n: int) -> Numbers:
        """Return the edges of n bins that are equally wide on the page."""
        low, high = self.bent([self.low, self.high])
        edges = self.unbent(np.linspace(low, high, n + 1))
        edges[0], edges[-1] = self.low, self.high
        return edges

    def ticks(self, gap: float = 0.1) -> list[float]:
        """Return round numbers whose places are at least `gap` apart, the roundest first chosen."""
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


def within_reach(values: Numbers) -> Numbers:
    """Return numbers as a chart shows them: none so large that differences overflow."""
    return np.clip(values, -FARTHEST, FARTHEST)


def score_scale(*groups: Numbers) -> Scale:
    """Return a scale for groups of scores, bent if a few of them lie far out."""
    values = within_reach(np.concatenate(groups))
    low, high = float(values.min()), float(values.max())
    if high == low:
        margin = max(abs(high), 1.0) * 0.05
        return Scale(low - margin, high + margin)
    lower, middle, upper = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
    if not 0 < LONG_TAIL * (upper - middle) < high - middle:
        return Scale(low, high)
    # The narrower side decides, so that neither is squeezed into a few bars; ties have no width.
    return Scale(low, high, middle, min(upper - middle, middle - lower) or upper - middle)
