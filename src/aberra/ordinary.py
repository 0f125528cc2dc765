"""Where ordinary scores lie, and which lie apart from them.

Trust and flags rest on this: ordinary scores follow one law, which is learnt from the lower and
middle scores, because dirt, being odd, scores high.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

SKEW = 0.4  # of ordinary scores
QUARTILE = 0.6744897501960817  # deviations between the median and a quartile of a normal
TENTH = 1.2815515655446004  # deviations between the median and the lowest tenth of a normal
STEP, WIDTH = 0.1, 0.35  # of the grid on which the density of deviates is counted and smoothed
GRID = np.arange(-40, 151) * STEP
SMOOTH = np.exp(-0.5 * np.square(np.arange(-15, 16) * STEP / WIDTH))
DEEP, LEAST_GROUP = 0.2, 0.03
FEWEST = 100  # scores among which a valley says something, half of them in the lower half
FAINT = 1e-6  # no hill at all
TINY = 1e-12
NO_SPREAD = 1e-13  # of the median: rounding, not a spread


@dataclass(frozen=True)
class Bulk:
    """Where ordinary scores lie, and how odd a score is by that measure.

    Ordinary scores are taken to be log-normal, shifted: s = middle + scale (exp(b z) - 1) / b for a
    standard normal z, with the same skew b = 0.4 for all detectors.

    Parameters
    ----------
    middle : float
        The median.
    scale : float
        The standard deviation that a normal law with the same slope at the median would have.
    """

    middle: float
    scale: float

    def deviates(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return every score as a normal deviate z, with the skew taken out."""
        with np.errstate(over="ignore"):
            x = 1 + SKEW * (scores - self.middle) / self.scale
        z: NDArray[np.float64] = np.log(np.maximum(x, TINY)) / SKEW
        return z

    def p_values(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the chance that an ordinary sample scores as high, or higher."""
        p: NDArray[np.float64] = ndtr(-self.deviates(scores))
        return p

    def score_of(self, p: float) -> float:
        """Return the score that an ordinary sample reaches with this chance."""
        return self.middle + self.scale * float(np.expm1(-SKEW * ndtri(p))) / SKEW


def bulk(scores: NDArray[np.float64]) -> Bulk:
    """Learn from the median and the upper quartile where ordinary scores lie.

    What lies above the upper quartile has no say, so up to a quarter of the samples may be
    anomalies. Scores on another scale, or shifted, give the same deviates.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.

    Returns
    -------
    Bulk
    """
    middle, spread = middle_and_upper_spread(scores)
    if not spread > 0:  # the bulk is one value: all the rest is its spread
        spread = float(np.ptp(scores)) or 1.0
    return Bulk(middle, float(SKEW * spread / np.expm1(SKEW * QUARTILE)))


def middle_and_upper_spread(scores: NDArray[np.float64]) -> tuple[float, float]:
    """Return the median and how far the upper quartile lies above it; 0 if all is one value."""
    low, middle, high = (float(q) for q in np.quantile(scores, (0.25, 0.5, 0.75)))
    spread = max(high - middle, 0.25 * (middle - low))
    return middle, spread if spread > NO_SPREAD * max(1.0, abs(middle)) else 0.0


def group_apart(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the scores that form a group of their own, beyond a deep valley above the bulk.

    A fifth of dirt raises the upper quartile so far that nothing lies beyond the bulk any more, but
    dirt of one kind then shows as a second hill in the density of the scores. It counts if the
    density in the valley is at most a fifth of that of the lower hill, and if at least 3 % and at
    most half of the samples lie beyond. Clean data have scores with one hill. Fewer than 100 scores
    show no hills, and neither do those whose lower half has fewer than 50 different ones: between
    the scores of a few combinations of codes there are valleys anyway.
    """
    nothing = np.zeros(len(scores), dtype=bool)
    low, middle = (float(q) for q in np.quantile(scores, (0.1, 0.5)))
    if len(scores) < FEWEST or not middle - low > NO_SPREAD * max(1.0, abs(middle)):
        return nothing
    z = Bulk(middle, (middle - low) / TENTH).deviates(scores)
    if len(np.unique(np.round(z[z <= 0], 5))) < FEWEST / 2:
        return nothing
    z = np.clip(z, GRID[0], GRID[-1])
    counted, _ = np.histogram(z, bins=len(GRID), range=(GRID[0] - STEP / 2, GRID[-1] + STEP / 2))
    density = np.convolve(counted, SMOOTH, "same")
    top = int(density[GRID <= 0].argmax())  # the bulk lies around the median, 0
    valley = np.minimum.accumulate(density[top:])
    hill = np.maximum.accumulate(density[top:][::-1])[::-1]  # the highest from here on
    depth = valley / np.maximum(np.minimum(hill, density[top]), TINY)
    deepest = int(np.argmin(np.where(hill > FAINT, depth, 1.0)))
    beyond = z > GRID[top + deepest]
    if depth[deepest] <= DEEP and LEAST_GROUP <= beyond.mean() <= 0.5:
        return beyond
    return nothing


def discoveries(p: NDArray[np.float64], rate: float) -> NDArray[np.bool_]:
    """Mark the p-values that stand if a share `rate` of those marked may be false alarms.

    Benjamini and Hochberg (1995): the k smallest, for the largest k whose k-th smallest is at most
    rate k / n.
    """
    ordered = np.sort(p)
    stands = np.flatnonzero(ordered <= rate * np.arange(1, len(p) + 1) / len(p))
    return p <= (ordered[stands[-1]] if len(stands) else -1.0)
