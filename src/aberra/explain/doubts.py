"""Which training samples are doubtful: the ones that the model trusts least."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Scores
from aberra.contract.scorer import Scorer
from aberra.explain.reasons import Reason
from aberra.robust.weighting import apart_weights, importance_weights

N_DOUBTS = 10
TEMPERATURE = 0.5  # IADC's default

# Where a list of doubts comes from
NOTED = "They were noted when the model was trained."
AS_IADC_WOULD = (
    "All of them counted fully in this training; the trust shown here is the one that IADC would "
    "give them after its first round."
)
REMEMBERED = (
    "The model remembers how far it trusts each training sample, but not the samples themselves, "
    "so they are numbered from 0. A report on the training data shows their values and reasons."
)

SHOWN_FULL = 0.995  # trust from here on is shown as 1.00

ReasonsOf = Callable[[NDArray[np.int64]], Sequence[Sequence[Reason]]]


@dataclass(frozen=True)
class Doubt:
    """One of the least trusted training samples, and why it is.

    Parameters
    ----------
    row : int
        Position in the training data, counted from 0.
    name : str
        Its identifier, file name or position, as a person would look it up.
    trust : float
        Final weight in [0, 1].
    score : float
        Anomaly score.
    reasons : list of Reason, default=[]
        Columns, and each one's share of the score, largest first; empty for images.
    """

    row: int
    name: str
    trust: float
    score: float
    reasons: list[Reason] = field(default_factory=list)


def any_doubted(trust: Iterable[float | None]) -> bool:
    """Say whether any of these samples is shown with less than full trust."""
    return any(one is not None and one < SHOWN_FULL for one in trust)


def trust_in(model: Scorer, scores: Scores) -> Scores:
    """Return the trust in each training sample: as it was learnt, or as IADC would begin with.

    Parameters
    ----------
    model : Scorer
    scores : ndarray of shape (n,)
        Scores of the training samples.

    Returns
    -------
    trust : ndarray of shape (n,)
        In [0, 1].
    """
    learnt = model.training_trust()
    if learnt is not None:
        return np.asarray(learnt)
    if model.trust_rule == "apart":
        return apart_weights(scores)
    return importance_weights(scores, TEMPERATURE)


def doubts(
    trust: Scores,
    scores: Scores,
    names: Sequence[str] | None = None,
    reasons_of: ReasonsOf | None = None,
    n: int = N_DOUBTS,
    thing: str = "row",
) -> list[Doubt]:
    """Return the least trusted samples.

    Parameters
    ----------
    trust, scores : ndarray of shape (n_samples,)
    names : sequence of str, optional
        What each sample is called; `thing` and its position from 0 by default.
    reasons_of : callable, optional
        From positions of samples to the reasons of each; none by default.
    n : int, default=10
        How many samples to return.
    thing : str, default="row"
        What one sample is, where it has no name.

    Returns
    -------
    doubts : list of Doubt
        The least trusted first; of equally trusted ones, the higher score first.
    """
    rows = np.lexsort((-scores, trust))[:n]
    why = [[] for _ in rows] if reasons_of is None else [list(one) for one in reasons_of(rows)]
    return [
        Doubt(
            int(row),
            f"{thing} {row}" if names is None else str(names[row]),
            float(trust[row]),
            float(scores[row]),
            found,
        )
        for row, found in zip(rows, why, strict=True)
    ]


def learnt_doubts(model: Scorer, n: int = N_DOUBTS, thing: str = "row") -> list[Doubt]:
    """Return the least trusted samples that a model itself remembers, named by position.

    Parameters
    ----------
    model : Scorer
    n : int, default=10
        How many samples to return.
    thing : str, default="row"
        What one sample is.

    Returns
    -------
    doubts : list of Doubt
        Empty where training learnt no trust.
    """
    part = model.training_sample()
    if part is not None and model.training_rounds() is not None:
        found = doubts(part.sample.trust, part.scores, n=n, thing=thing)
        return [_renamed(one, int(part.sample.rows[one.row]), thing) for one in found]
    trust, scores = model.training_trust(), model.training_scores()
    return [] if trust is None or scores is None else doubts(trust, scores, n=n, thing=thing)


def _renamed(doubt: Doubt, row: int, thing: str) -> Doubt:
    return replace(doubt, row=row, name=f"{thing} {row}")
