"""Pictures of a fitted ensemble: how trust moved, and where the threshold lies.

Colours are safe for the colour-blind and differ in lightness, so that a grey print still reads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.robust.iadc import IADC

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

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = _axes(ax)
    rounds = np.arange(1, len(model.history_) + 1)
    trust = np.stack([model.history_.weights(t) for t in range(len(rounds))])
    for rows, name, colour, dash in _groups(y, trust.shape[1]):
        middle = np.median(trust[:, rows], axis=1)
        low, high = np.quantile(trust[:, rows], (0.25, 0.75), axis=1)
        ax.plot(rounds, middle, dash, color=colour, label=name)
        ax.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.axvline(model.history_.kept + 1, color=LINE, linestyle=":", label="round kept")
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
        Anomaly scores.
    threshold : float
        Where `predict` begins to say -1.
    y : array-like of shape (n,), optional
        True for known anomalies.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes
    """
    ax = _axes(ax)
    values = np.asarray(scores, dtype=np.float64)
    low, middle, high = values.min(), np.median(values), values.max()
    stretched = bool(low > 0 and high > 20 * middle)  # a long tail needs a logarithmic axis
    bins = np.geomspace(low, high, 41) if stretched else np.linspace(low, high, 41)
    for rows, name, colour, _ in _groups(y, len(values)):
        ax.hist(values[rows], bins, color=colour, alpha=0.6, label=name)
    if stretched:
        ax.set_xscale("log")
    ax.axvline(threshold, color=LINE, linestyle="--", label="threshold (no labels used)")
    ax.set(xlabel="anomaly score", ylabel="rows")
    ax.legend(frameon=False)
    return ax


def _groups(y: ArrayLike | None, n: int) -> list[tuple[NDArray[np.bool_], str, str, str]]:
    if y is None:
        return [(np.ones(n, dtype=bool), "training rows", NORMAL, "-o")]
    odd = np.asarray(y, dtype=bool)
    return [(~odd, "normal rows", NORMAL, "-o"), (odd, "anomalies", ODD, "--s")]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot()
