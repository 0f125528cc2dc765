"""How far each training row is trusted, and when the ranking has settled.

The seed leaves both formulas to a main paper that could not be found. These are the formulas of
IAD (Kim et al., IEEE TNNLS 2024, arXiv 2309.09436), the same group's method without the ensemble.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Scores = NDArray[np.float64]

LOST_TRUST = 0.25  # half the weight of a row in the middle of the ranking


def importance_weights(s: Scores, temperature: float = 0.5) -> Scores:
    """Trust in each row: a sigmoid that falls with the score, centred on the median [IAD-w].

    w = 1 / (1 + exp(alpha (s - beta))) with beta the median of s and
    alpha = 1 / (temperature * min(beta - min s, max s - beta)).

    The weight is 0.5 at the median and goes to 0 for rows far above it. An affine change of the
    scores leaves the weights as they are. Where the median equals the smallest or largest score,
    alpha has no value: the larger of the two distances takes its place, and rows that all have
    one score keep weight 0.5.

    Deviation: the public re-implementation uses temperature 1, here 0.5 is the default. It did
    better for Deep SVDD in trials; for the hybrid OC-SVM on Thyroid 1 did better.
    """
    beta = np.median(s)
    below, above = beta - s.min(), s.max() - beta
    reach = min(below, above) or max(below, above)
    if reach == 0 or not np.isfinite(reach):
        return np.full(len(s), 0.5)
    with np.errstate(over="ignore"):  # a row beyond all reach has no trust
        return expit((beta - s) / reach / temperature)


def crossings(s: Scores, previous: Scores, outlier_ratio: float = 0.5) -> int:
    """Count the rows that entered the top share r of the ranking since the last round [IAD-h].

    As many have left it. With r = 0.5 these are the rows whose rank crossed the middle.
    """
    top = top_rows(s, outlier_ratio)
    return int(np.count_nonzero(top & ~top_rows(previous, outlier_ratio)))


def top_rows(s: Scores, outlier_ratio: float) -> NDArray[np.bool_]:
    """Mark the ceil(r n) rows with the largest scores; ties go to the earlier row."""
    n_top = int(np.ceil(outlier_ratio * len(s)))
    top = np.zeros(len(s), dtype=bool)
    top[np.argsort(-s, kind="stable")[:n_top]] = True
    return top
