"""How far each training row is trusted, and how many rows still move in the ranking.

There are two rules for the trust: `importance_weights` is the papers', `apart_weights` is ours. The
supplement of the ADC/IADC paper uses both quantities without giving their formulas, and we
could not find the paper itself. The formulas here are those of IAD (Kim et al., IEEE TNNLS 2024,
arXiv 2309.09436), a method of the same group that trains in rounds but has no ensemble.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from aberra.contract.members import Scores
from aberra.ordinary import bulk, group_apart, middle_and_upper_spread

LOST_TRUST = 0.25  # below it a row has lost its trust
FARTHEST_ORDINARY = 3.0  # deviations from the median, however few the rows
SOFTNESS = 0.35  # deviations over which trust falls from 0.73 to 0.27


def importance_weights(s: Scores, temperature: float = 0.5) -> Scores:
    """Trust in each row: a sigmoid that falls with the score, centred on the median [IAD-w].

    w = 1 / (1 + exp(alpha (s - beta))) with beta the median of s and
    alpha = 1 / (temperature * min(beta - min s, max s - beta)).

    The weight is 0.5 at the median and goes to 0 for rows far above it. Scores on another scale,
    or shifted, give the same weights. Where the median equals the smallest or the largest score,
    alpha is not defined, and the larger of the two distances is used instead. If all rows have
    the same score, all weights are 0.5.

    Deviation: the public re-implementation uses temperature 1, here 0.5 is the default. It did
    better for Deep SVDD in trials; for the hybrid OC-SVM on Thyroid 1 did better.
    """
    beta = np.median(s)
    below, above = beta - s.min(), s.max() - beta
    reach = min(below, above) or max(below, above)
    if reach == 0 or not np.isfinite(reach):
        return np.full(len(s), 0.5)
    with np.errstate(over="ignore"):  # a row that is infinitely far above has weight 0
        return expit((beta - s) / reach / temperature)


def apart_weights(s: Scores) -> Scores:
    """Trust in each row: near 1 unless its score lies apart from the bulk of all scores.

    A score becomes a normal deviate z (`aberra.ordinary.bulk`). Of n ordinary rows the
    oddest lies about where a normal exceeds 1 / n, and at least at 3; there the trust is 1/2, and
    it falls from 1 to 0 around it. So nearly all rows of a clean table keep their trust, whatever
    their number, and rows that are plainly apart lose all of it. So does a group of rows whose
    scores form a second hill (`aberra.ordinary.group_apart`).
    """
    edge = max(FARTHEST_ORDINARY, -float(ndtri(1 / len(s))))
    return np.where(group_apart(s), 0.0, expit((edge - bulk(s).deviates(s)) / SOFTNESS))


def in_quartiles(s: Scores) -> Scores:
    """Return scores in units of the distance from the median to the upper quartile.

    So the scores of different detectors can be added. Where half of the rows share the median, the
    distance between the smallest and the largest score is the unit.
    """
    middle, spread = middle_and_upper_spread(s)
    return (s - middle) / (spread or float(np.ptp(s)) or 1.0)


def newly_doubted(w: Scores, previous: Scores) -> int:
    """Count the rows in which the trust has fallen below 1/2 since the last round."""
    return int(np.count_nonzero((w < 0.5) & (previous >= 0.5)))


def crossings(s: Scores, previous: Scores, outlier_ratio: float) -> int:
    """Count the rows that entered the top share r of the ranking since the last round [IAD-h].

    The same number of rows has left it. With r = 0.5 these are the rows that moved from the lower
    half of the ranking to the upper half.
    """
    top = top_rows(s, outlier_ratio)
    return int(np.count_nonzero(top & ~top_rows(previous, outlier_ratio)))


def top_rows(s: Scores, outlier_ratio: float) -> NDArray[np.bool_]:
    """Mark the ceil(r n) rows with the largest scores; ties go to the earlier row."""
    n_top = int(np.ceil(outlier_ratio * len(s)))
    top = np.zeros(len(s), dtype=bool)
    top[np.argsort(-s, kind="stable")[:n_top]] = True
    return top
