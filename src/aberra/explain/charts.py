"""The numbers behind the charts: trust over the rounds, and histograms of scores.

Report, viewer and `aberra.plots` draw from these, each in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from aberra.explain.scales import Numbers, Scale, score_scale, within_reach

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
FEWEST_BINS, MOST_BINS = 8, 40


@dataclass(frozen=True)
class TrustBand:
    """The trust in a group of samples after each round.

    Parameters
    ----------
    name : str
        What the group is called.
    odd : bool
        Whether the group is to stand out.
    quantiles : ndarray of shape (n_rounds, 5)
        Trust at the quantiles 0.05, 0.25, 0.5, 0.75 and 0.95 of the group.
    """

    name: str
    odd: bool
    quantiles: Numbers

    @property
    def middle(self) -> Numbers:
        """The median, round by round."""
        return self.quantiles[:, 2]

    @property
    def half(self) -> tuple[Numbers, Numbers]:
        """Lower and upper end of the middle half, round by round."""
        return self.quantiles[:, 1], self.quantiles[:, 3]


def trust_band(
    trust: Numbers, name: str, rows: NDArray[np.bool_] | None = None, odd: bool = False
) -> TrustBand:
    """Return the trust in a group of samples after each round.

    Parameters
    ----------
    trust : ndarray of shape (n_rounds, n)
    name : str
        What the group is called.
    rows : ndarray of bool of shape (n,), optional
        The samples of the group; all by default.
    odd : bool, default=False
        Whether the group is to stand out.

    Returns
    -------
    band : TrustBand
    """
    chosen = trust if rows is None else trust[:, rows]
    return TrustBand(name, odd, np.quantile(chosen, QUANTILES, axis=1).T)


@dataclass(frozen=True)
class ScoreBins:
    """A histogram of one or more groups of scores over the same bins.

    Parameters
    ----------
    scale : Scale
        On which the bins are equally wide, but for those beside the threshold.
    edges : ndarray of shape (k + 1,)
        One of them lies at the threshold, so that every bin is on one side of it.
    counts : list of ndarray of shape (k,)
        Scores in each bin, one array a group.
    threshold : float or None
    """

    scale: Scale
    edges: Numbers
    counts: list[NDArray[np.int64]]
    threshold: float | None

    @property
    def above(self) -> NDArray[np.bool_]:
        """Which bins lie above the threshold."""
        cut = np.inf if self.threshold is None else self.threshold
        return np.asarray(self.edges[:-1] >= cut)

    def shares(self, group: int = 0) -> Numbers:
        """Return the share of a group's scores in each bin."""
        held = self.counts[group]
        return held / held.sum()


def score_bins(groups: Sequence[Numbers], threshold: float | None = None) -> ScoreBins:
    """Sort scores into bins.

    Parameters
    ----------
    groups : sequence of ndarray
        The scores; the size of the first group decides how many bins there are.
    threshold : float, optional

    Returns
    -------
    bins : ScoreBins
    """
    marks = [] if threshold is None else [np.array([threshold])]
    n_bins = int(np.clip(2 * np.sqrt(len(groups[0])), FEWEST_BINS, MOST_BINS))
    scale = _with_room(score_scale(*groups, *marks), n_bins, threshold)
    edges = _cut_at(scale, scale.edges(n_bins), threshold)
    shown = [within_reach(group) for group in groups]
    counts = [np.histogram(group, edges)[0].astype(np.int64) for group in shown]
    return ScoreBins(scale, edges, counts, threshold)


def _with_room(scale: Scale, n_bins: int, threshold: float | None) -> Scale:
    """Return the scale with room for a bar on either side of the threshold."""
    if threshold is None:
        return scale
    low, high, cut = (float(x) for x in scale.bent([scale.low, scale.high, threshold]))
    width = (high - low) / n_bins
    if cut - width < low:
        scale = replace(scale, low=float(scale.unbent(np.array(cut - width))))
    if scale.high > threshold and cut + width > high:
        scale = replace(scale, high=float(scale.unbent(np.array(cut + width))))
    return scale


def _cut_at(scale: Scale, edges: Numbers, threshold: float | None) -> Numbers:
    """Move the nearest edge but the first to the threshold, so that no bin lies on both sides."""
    if threshold is None:
        return edges
    nearest = 1 + int(np.abs(scale.places(edges[1:]) - scale.place(threshold)).argmin())
    # Just above it: a score that equals the threshold is not flagged, and belongs to the left.
    edges[nearest] = np.nextafter(threshold, np.inf)
    return np.maximum.accumulate(edges)  # where the numbers lie too close, bins are empty
