"""Measures of how well anomalies are found, and of how steady their scores are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from aberra.errors import DataError


def auroc(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the chance that an anomaly scores above a normal row; ties count half.

    Parameters
    ----------
    y : array-like of any shape
        True (or 1) for anomalies: rows, or pixels of masks.
    scores : array-like of the shape of `y`
        High = anomalous.

    Returns
    -------
    float
        NaN where one of the two kinds is missing, or a score is NaN.

    Examples
    --------
    >>> auroc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    odd, values = _flat(y, scores)
    if odd.all() or not odd.any() or np.isnan(values).any():
        return float("nan")
    normal, found = np.sort(values[~odd]), np.sort(values[odd])
    below = np.searchsorted(normal, found, side="left").sum()
    below_or_tied = np.searchsorted(normal, found, side="right").sum()
    return float((below + below_or_tied) / 2 / (len(found) * len(normal)))


def average_precision(y: ArrayLike, scores: ArrayLike) -> float:
    """Return the mean precision at the ranks of the anomalies (scikit-learn's definition).

    Arrays of any shape; NaN where there is no anomaly.

    Examples
    --------
    >>> average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.8333333333333333
    """
    from sklearn.metrics import average_precision_score

    odd, values = _flat(y, scores)
    return float(average_precision_score(odd, values)) if odd.any() else float("nan")


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

    Examples
    --------
    >>> anomaly_std([[0.0, 1.0], [0.0, 3.0]]).round(3).tolist()
    [0.0, 0.111]
    """
    return expit(np.asarray(s, dtype=np.float64)).std(axis=0)


def rank_std(s: ArrayLike) -> NDArray[np.float64]:
    """Spread of each row's rank over trials, in shares of the rows: the same for any scale.

    Parameters
    ----------
    s : array-like of shape (b, n)
        Scores of n rows in b trials.

    Returns
    -------
    ndarray of shape (n,)
        Standard deviations.

    Examples
    --------
    >>> rank_std([[0.1, 0.2, 0.3], [10.0, 30.0, 20.0]]).round(3).tolist()
    [0.0, 0.167, 0.167]
    """
    from scipy.stats import rankdata  # slow to import

    scores = np.asarray(s, dtype=np.float64)
    return (rankdata(scores, axis=1) / scores.shape[1]).std(axis=0)


# The overlap of a true mask and a predicted one. Where a ratio is 0 / 0 it is 1 if both are empty,
# for then they agree, and 0 if only one is. So every pair has a value, the plain mean over slices
# is the rule, silence on a lesion earns nothing, and IoU <= min(precision, recall) and
# Dice <= (precision + recall) / 2 hold for each pair and hence for the means.


def dice(mask: ArrayLike, predicted: ArrayLike) -> float:
    """Return twice the overlap over the sum of both areas.

    Parameters
    ----------
    mask, predicted : array-like of bool, of one shape
        The truth and what was flagged.

    Returns
    -------
    float
        Between 0 and 1; 1 if both are empty, 0 if only one is.

    Examples
    --------
    >>> dice([[1, 1], [0, 0]], [[1, 0], [1, 0]])
    0.5
    """
    hits, n_mask, n_predicted = _areas(mask, predicted)
    return 2 * hits / (n_mask + n_predicted) if n_mask + n_predicted else 1.0


def iou(mask: ArrayLike, predicted: ArrayLike) -> float:
    """Return the overlap over the union of both areas; 1 if both are empty, 0 if only one is.

    Examples
    --------
    >>> iou([1, 1, 0, 0], [1, 1, 1, 1])
    0.5
    """
    hits, n_mask, n_predicted = _areas(mask, predicted)
    union = n_mask + n_predicted - hits
    return hits / union if union else 1.0


def precision(mask: ArrayLike, predicted: ArrayLike) -> float:
    """Return the share of `predicted` that lies in `mask`.

    If nothing is predicted: 1 where there is nothing to find, 0 where there is.

    Examples
    --------
    >>> precision([1, 1, 0, 0], [1, 1, 1, 1])
    0.5
    >>> precision([1, 1, 0, 0], [0, 0, 0, 0]), precision([0, 0], [0, 0])
    (0.0, 1.0)
    """
    hits, n_mask, n_predicted = _areas(mask, predicted)
    return hits / n_predicted if n_predicted else float(n_mask == 0)


def recall(mask: ArrayLike, predicted: ArrayLike) -> float:
    """Return the share of `mask` that was predicted.

    If the mask is empty: 1 where nothing is predicted, 0 where something is.

    Examples
    --------
    >>> recall([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """
    hits, n_mask, n_predicted = _areas(mask, predicted)
    return hits / n_mask if n_mask else float(n_predicted == 0)


def dice_curve(
    mask: ArrayLike, scores: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return every threshold that changes what is flagged, and the Dice at each.

    Parameters
    ----------
    mask : array-like of bool
    scores : array-like of the shape of `mask`
        Finite; what lies above a threshold is flagged.

    Returns
    -------
    thresholds : ndarray of shape (k + 1,)
        The k distinct scores, falling, and -inf: from nothing flagged to everything.
    dice : ndarray of shape (k + 1,)

    Examples
    --------
    >>> thresholds, dice = dice_curve([0, 1, 1], [0.2, 0.9, 0.5])
    >>> thresholds.tolist(), dice.round(2).tolist()
    ([0.9, 0.5, 0.2, -inf], [0.0, 0.67, 1.0, 0.8])
    """
    odd, values = _flat(mask, scores)
    order = np.argsort(-values)
    ordered = values[order]
    hits = np.concatenate([[0], np.cumsum(odd[order])])
    # Tied scores are flagged together, so only the first of each run is a threshold.
    flagged = np.flatnonzero(np.diff(ordered, prepend=np.inf, append=-np.inf))
    n_odd = hits[-1]
    curve = 2 * hits[flagged] / np.maximum(flagged + n_odd, 1)
    if n_odd == 0:
        curve[0] = 1.0
    return np.append(ordered, -np.inf)[flagged], curve


def best_dice(mask: ArrayLike, scores: ArrayLike) -> tuple[float, float]:
    """Return the highest Dice that any threshold on the scores gives, and that threshold.

    An oracle: it looks at the labels, so it says how good a threshold could be, not how good one
    is. Never report it without that word.

    Parameters
    ----------
    mask : array-like of bool
    scores : array-like of the shape of `mask`
        Finite; what lies above the threshold is flagged.

    Returns
    -------
    dice : float
    threshold : float
        The highest of the best ones: a score, or -inf where it is best to flag everything.

    Examples
    --------
    >>> best_dice([0, 1, 0, 1], [0.1, 0.9, 0.5, 0.7])
    (1.0, 0.5)
    """
    thresholds, curve = dice_curve(mask, scores)
    best = int(np.argmax(curve))
    return float(curve[best]), float(thresholds[best])


def _flat(y: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    odd, values = _as_bool(y), np.asarray(scores, dtype=np.float64)
    _check_shapes(odd, values)
    return odd.ravel(), values.ravel()


def _areas(mask: ArrayLike, predicted: ArrayLike) -> tuple[int, int, int]:
    """Return the sizes of the overlap, of the mask and of the prediction."""
    true, flagged = _as_bool(mask), _as_bool(predicted)
    _check_shapes(true, flagged)
    return int((true & flagged).sum()), int(true.sum()), int(flagged.sum())


def _as_bool(values: ArrayLike) -> NDArray[np.bool_]:
    """Return labels as booleans; -1, which `predict` says of anomalies, is not taken for one."""
    given = np.asarray(values)
    if given.dtype == bool:
        return given
    if not np.isin(given, (0, 1)).all():
        raise DataError(
            f"Labels must be 0 and 1, or booleans (1: anomalous), but got {np.unique(given)[:4]}. "
            "What `predict` returns is turned into them by `== -1`."
        )
    return given.astype(bool)


def _check_shapes(truth: NDArray[np.bool_], other: NDArray[Any]) -> None:
    if truth.shape != other.shape:  # NumPy would stretch one over the other and give a number
        raise DataError(
            f"The truth has shape {truth.shape}, what it is compared with {other.shape}."
        )
