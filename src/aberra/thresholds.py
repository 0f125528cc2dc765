"""Thresholds on the anomaly score that need no labels.

A rule maps the scores of the training rows to one number; rows with a higher score are anomalies.
Every rule moves with the scores (of a * s + b, a > 0, it is a times the rule of s, plus b), ignores
the order of the rows, and as it stands in `RULES` never flags more than half of them.

A new rule is one function here: `@described` gives it a name and the words that reports use for it.

>>> scores = np.append(np.random.default_rng(0).lognormal(0, 0.4, 200), [9.0, 12.0])  # two are odd
>>> {name: int((scores > rule(scores)).sum()) for name, rule in RULES.items()}
{'fdr': 2, 'robust_z': 4, 'knee': 4, 'mixture': 2, 'tail': 2, 'target_rate': 11, 'consensus': 4}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.errors import DataError
from aberra.ordinary import bulk, discoveries, group_apart, middle_and_upper_spread

Rule = Callable[..., float]  # of the scores, and of settings that have a default

DEFAULT = "knee"
RULES: dict[str, Rule] = {}
# Where each rule puts the threshold, as the end of the sentence "The threshold was placed ...".
WHERE = {"share": "so that the share of training samples that was asked for scores above it"}

# Scores further than this many robust deviations from the median count as this far. It only keeps
# one extreme row from setting the scale for all others.
REACH = 20.0
MIXTURE_ROWS = 1000  # quantiles that stand for larger data
MIXTURE_ROUNDS = 200
MIXTURE_FLOOR = 0.01  # least variance of a component, in squared robust deviations

Described = TypeVar("Described", bound=Rule)


def described(where: str) -> Callable[[Described], Described]:
    """Add a rule to `RULES`; `where` says in words where it puts the threshold."""

    def add(rule: Described) -> Described:
        RULES[rule.__name__], WHERE[rule.__name__] = rule, where
        return rule

    return add


@described("so that about one in ten flagged training samples is a false alarm")
def fdr(scores: NDArray[np.float64], rate: float = 0.1) -> float:
    """Return the score above which a share `rate` of the samples is expected to be false alarms.

    How likely an ordinary sample reaches a score follows from the bulk of all scores
    (`aberra.ordinary.bulk`); Benjamini and Hochberg's rule decides how many of the highest are more
    than chance. A group of scores apart from all others (`aberra.ordinary.group_apart`) is flagged
    as well. Of clean data hardly any sample is flagged.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.
    rate : float in (0, 1), default 0.1
        Share of the flagged samples that may be false alarms.

    Returns
    -------
    float
        Where nothing stands out, the score that one of n clean samples reaches with the chance
        `rate`. Where half of the scores are one value, the threshold of `robust_z`.
    """
    if not middle_and_upper_spread(scores)[1] > 0:
        return robust_z(scores)
    ordinary = bulk(scores)
    flagged = discoveries(ordinary.p_values(scores), rate) | group_apart(scores)
    lowest = max(ordinary.score_of(rate / len(scores)), float(scores.max()))
    if not flagged.any():
        return lowest
    return float(scores[~flagged].max(initial=ordinary.middle))


@described("three robust standard deviations above the median of the training scores")
def robust_z(scores: NDArray[np.float64], z: float = 3.0) -> float:
    """Return the score that lies `z` robust standard deviations above the median.

    The spread is taken from the lower half (median minus lower quartile), which contamination,
    being odd and so high, cannot widen.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.
    z : float, default 3
        Robust standard deviations between the median and the threshold.

    Returns
    -------
    float
        The median itself where the lower half is all ties.
    """
    middle, spread = _middle_and_spread(scores)
    return middle + z * spread


@described("at the knee of the sorted training scores, where they begin to rise steeply")
def knee(scores: NDArray[np.float64]) -> float:
    """Return the knee of the sorted scores above the median.

    Over the upper half, let x be the rank and y the score, both scaled to run from 0 to 1. The knee
    is where x - y is largest, that is, where the curve of the sorted scores is furthest below its
    chord. There the density of the scores falls below the average density of the upper half: before
    the knee scores are crowded, behind it they are scattered.

    Any curve that bends has a knee: of clean, normally distributed scores this flags about 8 % of
    1,000 rows, and fewer the more rows there are. Where false alarms are dear, use `tail` or
    `target_rate`.

    Without a knee (evenly spaced scores, or none above the median) this is `robust_z`.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.

    Returns
    -------
    float
        A score of the upper half, or the threshold of `robust_z`.
    """
    middle, spread = _middle_and_spread(scores)
    upper = np.sort(scores)[len(scores) // 2 :]
    seen = np.minimum(upper, middle + REACH * spread) if spread > 0 else upper
    height = seen[-1] - seen[0]
    if not height > 0:
        return robust_z(scores)
    below_chord = np.linspace(0.0, 1.0, len(seen)) - (seen - seen[0]) / height
    deepest = below_chord.max()
    if deepest < 1e-9:  # rounding, not a knee
        return robust_z(scores)
    return float(max(upper[np.flatnonzero(below_chord > deepest - 1e-9)[-1]], middle))


@described("where a separate group of high scores takes over from the ordinary ones")
def mixture(scores: NDArray[np.float64]) -> float:
    """Return where the highest of three normal components takes over.

    The components start as the lower half, the upper half up to its last fifth, and the top tenth,
    and are fitted by expectation maximisation to the scores in robust deviations from the median.
    Two of them describe normal rows, whose scores are skewed; the third describes anomalies. The
    threshold is the highest score below the first that belongs more likely than not to the third.

    Of fewer than 10 rows, where the lower half is all ties, or where nothing belongs to the third,
    this is `robust_z`.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous. Of more than 1,000 scores, 1,000 evenly spaced quantiles are fitted.

    Returns
    -------
    float
        A score of the upper half, or the threshold of `robust_z`.
    """
    middle, spread = _middle_and_spread(scores)
    if not spread > 0 or len(scores) < 10:
        return robust_z(scores)
    ordered = np.sort(scores)
    if len(ordered) > MIXTURE_ROWS:
        ordered = np.quantile(ordered, (np.arange(MIXTURE_ROWS) + 0.5) / MIXTURE_ROWS)
    reach = REACH * spread
    share = _top_component((np.clip(ordered, middle - reach, middle + reach) - middle) / spread)
    odd = np.flatnonzero((share > 0.5 + 1e-6) & (ordered > middle))
    return max(float(ordered[odd[0] - 1]), middle) if len(odd) else robust_z(scores)


@described("so that an ordinary sample would score above it with a chance of 5 %")
def tail(scores: NDArray[np.float64], rate: float = 0.05) -> float:
    """Return the score that a normal row exceeds with probability `rate`.

    Above the median, scores are taken to follow a generalised Pareto law. Its shape and scale come
    in closed form from the quantiles Q that a half, a quarter and an eighth of the rows exceed
    (Pickands 1975), so the top eighth of the rows, where anomalies are, has no say::

        shape = log2((Q(1/8) - Q(1/4)) / (Q(1/4) - Q(1/2))), kept within -1 and 1
        threshold = Q(1/2) + (Q(1/4) - Q(1/2)) * ((0.5 / rate) ** shape - 1) / (2 ** shape - 1)

    Where two of the quantiles are equal this is `robust_z`.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.
    rate : float in (0, 0.5), default 0.05
        Probability of a false alarm.

    Returns
    -------
    float
    """
    half, quarter, eighth = (float(q) for q in np.quantile(scores, [0.5, 0.75, 0.875]))
    if not half < quarter < eighth:
        return robust_z(scores)
    shape = float(np.clip(np.log2(eighth - quarter) - np.log2(quarter - half), -1.0, 1.0))
    steps = np.log2(0.5 / rate)  # halvings of the tail between the median and the threshold
    if shape != 0:
        steps = np.expm1(shape * steps * np.log(2)) / np.expm1(shape * np.log(2))
    return half + (quarter - half) * float(steps)


@described("so that 5 % of the training samples score above it")
def target_rate(scores: NDArray[np.float64], rate: float = 0.05) -> float:
    """Return the quantile that a share `rate` of the rows exceeds.

    On clean data this is the false-alarm rate. On contaminated data it flags the same share.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.
    rate : float in (0, 1), default 0.05
        Share of the rows to flag; ties at the threshold are not flagged.

    Returns
    -------
    float
    """
    return float(np.quantile(scores, 1.0 - rate))


@described("midway between the knee of the sorted scores and the start of a separate high group")
def consensus(scores: NDArray[np.float64]) -> float:
    """Return the midpoint between `knee` and `mixture`, each with its own way out.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        High = anomalous.

    Returns
    -------
    float
    """
    low, high = sorted((knee(scores), mixture(scores)))
    return low + (high - low) / 2


def threshold(
    scores: ArrayLike, rule: str | float = "auto", rate: float = 0.1
) -> tuple[float, str]:
    """Return the threshold on the scores, and the name of the rule that set it.

    Parameters
    ----------
    scores : array-like of shape (n,)
        High = anomalous.
    rule : {"auto", a name in RULES} or float in (0, 1), default "auto"
        "auto" means `DEFAULT`; a number flags that share of the rows.
    rate : float in (0, 1), default 0.1
        The share of false alarms among the flagged rows that the rule "fdr" aims at.

    Returns
    -------
    threshold : float
        Rows with a higher score are anomalies.
    name : str
        A name in `RULES`, or "share" where `rule` is a number.

    Examples
    --------
    >>> threshold([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0])
    (1.5, 'knee')
    >>> threshold([1.0, 2.0, 3.0, 4.0, 5.0], rule=0.25)
    (4.0, 'share')
    """
    checked = np.asarray(scores, dtype=np.float64)
    if checked.ndim != 1 or not len(checked) or not np.isfinite(checked).all():
        raise DataError(
            f"Scores must be one finite number per row, but have shape {checked.shape} "
            "or contain NaN or infinity. Check the rows they came from."
        )
    if isinstance(rule, str):
        name = DEFAULT if rule == "auto" else rule
        if name not in RULES:
            raise ValueError(f"Unknown rule {rule!r}. Use 'auto', a number or one of {[*RULES]}.")
        return (fdr(checked, rate) if name == "fdr" else RULES[name](checked)), name
    if not 0 < rule < 1:
        raise ValueError(f"A share of rows lies between 0 and 1, but got {rule!r}.")
    return target_rate(checked, rule), "share"


def _middle_and_spread(scores: NDArray[np.float64]) -> tuple[float, float]:
    """Return the median and the robust standard deviation of the lower half."""
    middle = float(np.median(scores))
    return middle, (middle - float(np.quantile(scores, 0.25))) / 0.6745


def _top_component(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the chance that each of the sorted values belongs to the highest component."""
    n = len(u)
    part = np.searchsorted([n // 2, (9 * n) // 10], np.arange(n), side="right")
    shares = (part == np.arange(3)[:, None]).astype(np.float64)  # (3, n)
    for _ in range(MIXTURE_ROUNDS):
        mass = np.maximum(shares.sum(axis=1), 1e-12)
        mean = shares @ u / mass
        distance = (u - mean[:, None]) ** 2  # (3, n)
        variance = (shares * distance).sum(axis=1) / mass + MIXTURE_FLOOR
        log_density = np.log(mass / np.sqrt(variance))[:, None] - distance / (2 * variance[:, None])
        shares = np.exp(np.maximum(log_density - log_density.max(axis=0), -700.0))
        shares /= shares.sum(axis=0)
    # Components can merge: rounding must not tell them apart.
    top: NDArray[np.float64] = shares[np.flatnonzero(mean > mean.max() - 1e-6)].max(axis=0)
    return top
