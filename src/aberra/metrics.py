"""Measures of how well anomalies are found, and of how steady their scores are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import rankdata


def auroc(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the chance that an anomaly scores above a normal row; ties count half.

    Parameters
    ----------
    y : array-like of shape (n,)
        True (or 1) for anomalies.
    scores : array-like of shape (n,)
        High = anomalous.

    Returns
    -------
    float
        NaN where one of the two kinds is missing.

    Examples
    --------
    >>> auroc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    odd = np.asarray(y, dtype=bool)
    n_odd, n_normal = int(odd.sum()), int((~odd).sum())
    if n_odd == 0 or n_normal == 0:
        return float("nan")
    ranks = rankdata(np.asarray(scores, dtype=np.float64))
    return float((ranks[odd].sum() - n_odd * (n_odd + 1) / 2) / (n_odd * n_normal))


def average_precision(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the mean precision at the ranks of the anomalies (scikit-learn's definition)."""
    from sklearn.metrics import average_precision_score

    return float(average_precision_score(np.asarray(y, dtype=bool), np.asarray(scores)))


def anomaly_std(s: ArrayLike) -> NDArray[np.float64]:
    """Spread of each row's sigmoid score over trials [IADC-9].

    Parameters
    ----------
    s : array-like of shape (b, n)
        Scores of n rows in b trials.

    Returns
    -------
    ndarray of shape (n,)
        Standard deviations (the square root of the printed variance); their mean is the number
        in the paper's table.
    """
    return expit(np.asarray(s, dtype=np.float64)).std(axis=0)
