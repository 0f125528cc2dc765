"""Pictures of a fitted ensemble: how trust moved, and where the threshold lies.

Colours are safe for the colour-blind and differ in lightness, so that a grey print still reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.explain.charts import score_bins, trust_band
from aberra.explain.rounds import story_of
from aberra.robust.iadc import IADC
from aberra.words import number

NORMAL, ODD, LINE = "#0072B2", "#D55E00", "#444444"


def plot_trust(model: IADC, y: ArrayLike | None = None, ax: Any = None) -> Any:
    """Draw the trust in the training rows over the rounds.

    Parameters
    ----------
    model : IADC
        A fitted ensemble.
    y : array-like of shape (n,), optional
        True for known anomalies; splits the rows into two bands.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from aberra import IADC, OCSVM
    >>> from aberra.plots import plot_trust
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> ax = plot_trust(IADC(OCSVM(), max_rounds=1, random_state=0).fit(X))
    >>> ax.get_xlabel()
    'round'
    """
    ax, story = _given_or_new(ax), story_of(model)
    assert story is not None
    rounds = np.arange(1, len(story.trust) + 1)
    for rows, name, colour, dash in _groups_of_rows(y, story.trust.shape[1]):
        band = trust_band(story.trust, name, rows)
        ax.plot(rounds, band.middle, dash, color=colour, label=name)
        ax.fill_between(rounds, *band.half, color=colour, alpha=0.2, linewidth=0)
    ax.axvline(story.kept + 1, color=LINE, linestyle=":", label="round kept")
    ax.set(xlabel="round", ylabel="trust (median and quartiles)", ylim=(0, 1), xticks=rounds)
    ax.legend(frameon=False)
    return ax


def plot_scores(
    scores: ArrayLike, threshold: float, y: ArrayLike | None = None, ax: Any = None
) -> Any:
    """Draw the histogram of the scores with the threshold.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Anomaly scores. A few very large ones are drawn closer to the others than they are; the
        numbers below the axis tell.
    threshold : float
        Where `predict` begins to say -1.
    y, ax
        As in `plot_trust`.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from aberra.plots import plot_scores
    >>> ax = plot_scores([1.0, 1.1, 1.2, 1.3, 4.0], threshold=2.0)
    >>> ax.get_xlabel()
    'anomaly score'
    """
    ax, values = _given_or_new(ax), np.asarray(scores, dtype=np.float64)
    scale = (bins := score_bins([values], threshold)).scale
    for rows, name, colour, _ in _groups_of_rows(y, len(values)):
        counts, _ = np.histogram(values[rows], bins.edges)
        ax.stairs(counts, bins.edges, fill=True, color=colour, alpha=0.6, label=name)
    if scale.spread:
        ax.set_xscale("function", functions=(scale.bent, scale.unbent))
        ticks = scale.ticks()
        ax.set_xticks(ticks, [number(tick) for tick in ticks])
    ax.axvline(threshold, color=LINE, linestyle="--", label="threshold (no labels used)")
    ax.set(xlabel="anomaly score", ylabel="rows")
    ax.legend(frameon=False)
    return ax


def _groups_of_rows(y: ArrayLike | None, n: int) -> list[tuple[NDArray[np.bool_], str, str, str]]:
    if y is None:
        return [(np.ones(n, dtype=bool), "training rows", NORMAL, "-o")]
    odd = np.asarray(y, dtype=bool)
    return [(~odd, "normal rows", NORMAL, "-o"), (odd, "anomalies", ODD, "--s")]


def _given_or_new(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()
