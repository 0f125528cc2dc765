"""How anomaly maps are judged: the published protocol, and a stricter one.

Both flag what lies above a threshold. Both also give two oracles, which choose thresholds with the
labels in view and say how good a threshold could be, not how good one is:

dice_oracle
    One threshold for everything: the one with the highest mean Dice over the units.
dice_oracle_slice
    A threshold of its own for each slice with a lesion; the mean of their best Dice. It is the
    more generous of the two. Slices without a lesion are left out: flagging nothing, the best
    threshold would get a Dice of 1 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aberra.contract.members import Scores
from aberra.errors import DataError
from aberra.metrics import (
    auroc,
    average_precision,
    best_dice,
    dice,
    dice_curve,
    iou,
    precision,
    recall,
)

ANODDPM_THRESHOLD = 0.5
SIZES = ("small", "medium", "large")

Flags = NDArray[np.bool_]
Pixels = tuple[Flags, Scores]  # of one slice, or of all slices of a patient


@dataclass(frozen=True)
class Summary:
    """Mean and population standard deviation over the `n` units that have a value."""

    mean: float
    std: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.std:.3f}"


@dataclass(frozen=True)
class Evaluation:
    """What a protocol found.

    Attributes
    ----------
    metrics : dict of str to Summary
        One entry a metric, over the units; names with `oracle` looked at the labels.
    units : DataFrame
        The values behind the means, one row a unit: a slice or a patient.
    threshold, threshold_oracle : float
        The threshold that was used, and the one behind `dice_oracle`.
    by_size : DataFrame
        Means over slices with a small, medium and large lesion; empty if the protocol has none.
    false_alarms : dict of str to float
        On healthy slices; empty if none were given.
    """

    metrics: dict[str, Summary]
    units: pd.DataFrame
    threshold: float
    threshold_oracle: float
    by_size: pd.DataFrame = field(default_factory=pd.DataFrame)
    false_alarms: dict[str, float] = field(default_factory=dict)


def anoddpm(maps: ArrayLike, masks: ArrayLike) -> Evaluation:
    """Evaluate as AnoDDPM's public code does, which the ADDM paper follows.

    A pixel is flagged if its squared error exceeds 0.5, that is, if a reconstruction is off by
    more than 0.71 of the range of 2. Dice, IoU, precision, recall and pixel AUROC are taken per
    slice over all pixels, background included, and then averaged over slices; nothing is masked
    or filtered. The background is easy, so the AUROC flatters.

    Deviation: the public code has the names of precision and recall exchanged (it counts misses
    as false positives); here each has its right name, so compare crosswise with numbers from that
    code. It also gives an empty prediction on an empty mask an IoU of 0, here 1 like its Dice.

    Parameters
    ----------
    maps : array-like of shape (n, h, w)
        Squared error of images scaled to [-1, 1].
    masks : array-like of bool of shape (n, h, w)
        True where the lesion is.

    Returns
    -------
    Evaluation
        Units are slices. AUROC is averaged over slices that have a lesion.

    Examples
    --------
    >>> maps = [[[0.9, 0.6], [0.1, 0.0]]]
    >>> masks = [[[True, False], [False, False]]]
    >>> found = anoddpm(maps, masks)
    >>> found.metrics["precision"].mean, found.metrics["recall"].mean
    (0.5, 1.0)
    >>> print(found.metrics["dice_oracle"])
    1.000 ± 0.000
    """
    scores, truth = _maps(maps), _flags("masks", masks)
    _check_same_shape(maps=scores, masks=truth)
    slices = list(zip(truth, scores, strict=True))
    table = pd.DataFrame([_measure(*one, ANODDPM_THRESHOLD) for one in slices])
    return _evaluate(slices, slices, table.rename_axis("slice"), ANODDPM_THRESHOLD)


def standard(
    maps: ArrayLike,
    masks: ArrayLike,
    brain: ArrayLike,
    patients: ArrayLike,
    threshold: float,
    healthy_maps: ArrayLike | None = None,
    healthy_brain: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate inside the brain, per patient, at a threshold that was set without labels.

    Only pixels of the brain mask count. All slices of a patient are pooled, each metric is taken
    per patient and then averaged over patients, so one with many slices does not weigh more.

    Parameters
    ----------
    maps : array-like of shape (n, h, w)
        Anomaly maps, high = anomalous.
    masks, brain : array-like of bool of shape (n, h, w)
        True where the lesion is, and where the brain is. A lesion outside the brain mask is not
        counted; `lesion_outside` in `units` says how many pixels of it were lost.
    patients : array-like of shape (n,)
        Whose slice it is.
    threshold : float
        Taken from held-out healthy scans, never from these maps and masks.
    healthy_maps, healthy_brain : array-like of shape (m, h', w'), optional
        Maps and brain masks of healthy slices, to count false alarms; held out from training and
        from the choice of the threshold.

    Returns
    -------
    Evaluation
        Units are patients. AUROC and average precision are averaged over patients with a lesion.
        `by_size` splits the slices with a lesion at the terciles of its area, in pixels inside
        the brain. `false_alarms` has `pixels`, the share of healthy brain pixels that are
        flagged, and `slices`, the share of healthy slices with any flagged pixel.

    Examples
    --------
    >>> maps = [[[0.9, 0.6], [0.1, 0.0]]]
    >>> masks = [[[True, False], [False, False]]]
    >>> brain = [[[True, False], [True, True]]]
    >>> found = standard(maps, masks, brain, ["A"], threshold=0.5)
    >>> found.metrics["dice"]
    Summary(mean=1.0, std=0.0, n=1)
    """
    scores, truth, inside = _maps(maps), _flags("masks", masks), _flags("brain", brain)
    _check_same_shape(maps=scores, masks=truth, brain=inside)
    if not np.isfinite(threshold):
        raise ValueError(f"threshold must be a finite number, got {threshold}.")
    groups = _groups(patients, inside)
    slices = [(t[b], s[b]) for t, s, b in zip(truth, scores, inside, strict=True)]
    pooled = [_pool([slices[i] for i in own]) for own in groups.values()]
    rows = [
        {**_measure(*one, threshold), "average_precision": average_precision(*one)}
        for one in pooled
    ]
    table = pd.DataFrame(rows, index=pd.Index(list(groups), name="patient"))
    found = _evaluate(pooled, slices, table, threshold)
    areas = {
        "lesion": [int(t.sum()) for t, _ in pooled],
        "lesion_outside": [int((truth[own] & ~inside[own]).sum()) for own in groups.values()],
    }
    return replace(
        found,
        units=found.units.assign(**areas),
        by_size=_by_size(slices, threshold),
        false_alarms=_false_alarms(healthy_maps, healthy_brain, threshold),
    )


def _measure(truth: Flags, scores: Scores, threshold: float) -> dict[str, float]:
    flagged = scores > threshold
    return {
        "dice": dice(truth, flagged),
        "iou": iou(truth, flagged),
        "precision": precision(truth, flagged),
        "recall": recall(truth, flagged),
        "auroc": auroc(truth, scores),
    }


def _evaluate(
    units: Sequence[Pixels], slices: Sequence[Pixels], table: pd.DataFrame, threshold: float
) -> Evaluation:
    """Add the oracles to the table of the units, and sum up."""
    oracle = _best_common_threshold(units)
    full = table.assign(dice_oracle=[dice(truth, scores > oracle) for truth, scores in units])
    metrics = {str(name): _summary(full[name].to_numpy()) for name in full}
    own = [best_dice(truth, scores)[0] for truth, scores in slices if truth.any()]
    metrics["dice_oracle_slice"] = _summary(np.array(own))
    return Evaluation(metrics, full, threshold, oracle)


def _best_common_threshold(units: Sequence[Pixels]) -> float:
    """Return the threshold with the highest mean Dice over the units; the highest of the best."""
    curves = [dice_curve(truth, scores) for truth, scores in units]
    # The sum of the curves: it changes where the threshold falls below a score of some unit.
    at = np.concatenate([thresholds[:-1] for thresholds, _ in curves])
    change = np.concatenate([np.diff(curve) for _, curve in curves])
    order = np.argsort(-at)
    total = np.cumsum(np.concatenate([[0.0], change[order]]))
    distinct = np.flatnonzero(np.diff(at[order], prepend=np.inf, append=-np.inf))
    # Within rounding of the best, so that ties do not depend on the order of the units.
    best = distinct[np.flatnonzero(total[distinct] >= total[distinct].max() - 1e-9)[0]]
    return float(np.append(at[order], -np.inf)[best])


def _summary(values: NDArray[np.float64]) -> Summary:
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return Summary(float("nan"), float("nan"), 0)
    return Summary(float(known.mean()), float(known.std()), len(known))


def _by_size(slices: Sequence[Pixels], threshold: float) -> pd.DataFrame:
    """Return mean Dice, recall and AUROC of slices with a small, medium and large lesion."""
    seen = [one for one in slices if one[0].any()]
    if not seen:
        return pd.DataFrame()
    area = np.array([truth.sum() for truth, _ in seen])
    rows = pd.DataFrame([_measure(*one, threshold) for one in seen])
    # Equal areas stay together, so the ranges never overlap; a size may then have no slice.
    size = np.searchsorted(np.quantile(area, [1 / 3, 2 / 3]), area)
    grouped = rows.assign(size=[SIZES[i] for i in size], area=area).groupby("size")
    found = grouped.agg(
        n=("area", "size"),
        area_min=("area", "min"),
        area_max=("area", "max"),
        dice=("dice", "mean"),
        recall=("recall", "mean"),
        auroc=("auroc", "mean"),
    )
    return found.reindex([name for name in SIZES if name in found.index])


def _false_alarms(
    maps: ArrayLike | None, brain: ArrayLike | None, threshold: float
) -> dict[str, float]:
    if maps is None and brain is None:
        return {}
    if maps is None or brain is None:
        raise ValueError("healthy_maps and healthy_brain must be given together.")
    scores, inside = _maps(maps, "healthy_maps"), _flags("healthy_brain", brain)
    _check_same_shape(healthy_maps=scores, healthy_brain=inside)
    if not inside.any():
        raise DataError("healthy_brain is empty in every slice, so no pixel counts.")
    flagged = (scores > threshold) & inside
    return {
        "pixels": float(flagged.sum() / inside.sum()),
        "slices": float(flagged.any(axis=(1, 2)).mean()),
    }


def _groups(patients: ArrayLike, inside: Flags) -> dict[Any, NDArray[np.intp]]:
    """Return the slices of each patient."""
    owners = np.asarray(patients)
    if owners.shape != inside.shape[:1]:
        raise DataError(
            f"patients has shape {owners.shape}, brain has shape {inside.shape}: "
            f"name the patient of each of the {len(inside)} slices."
        )
    groups = {name: np.flatnonzero(owners == name) for name in np.unique(owners)}
    bare = [str(name) for name, own in groups.items() if not inside[own].any()]
    if bare:
        raise DataError(f"The brain mask is empty in every slice of patient {', '.join(bare)}.")
    return groups


def _pool(slices: Sequence[Pixels]) -> Pixels:
    truths, scores = zip(*slices, strict=True)
    return np.concatenate(truths), np.concatenate(scores)


def _maps(maps: ArrayLike, name: str = "maps") -> Scores:
    scores = np.asarray(maps, dtype=np.float64)
    if scores.ndim != 3 or scores.size == 0:
        raise DataError(f"{name} has shape {scores.shape}; it must be (slices, height, width).")
    if not np.isfinite(scores).all():
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=(1, 2)))
        raise DataError(f"{name} is not finite in slices {bad[:5].tolist()}.")
    return scores


def _flags(name: str, values: ArrayLike) -> Flags:
    flags = np.asarray(values)
    # A mask that was resized smoothly holds fractions, all of which would count as lesion.
    if flags.dtype != bool and not np.isin(flags, (0, 1)).all():
        raise DataError(f"{name} holds values other than 0 and 1; pass a boolean mask.")
    return flags.astype(bool)


def _check_same_shape(**arrays: NDArray[Any]) -> None:
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{name} has shape {array.shape}" for name, array in arrays.items())
        raise DataError(f"Arrays of different shapes: {shapes}.")
