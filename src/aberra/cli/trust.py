"""Which training samples a fitted model trusts least."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.recipe import Doubt
from aberra.robust.weighting import importance_weights

N_DOUBTS = 10
N_QUANTILES = 1001
TEMPERATURE = 0.5  # IADC's default

Scores = NDArray[np.float64]


def trust_in(model: Any, scores: Scores) -> Scores:
    """Return the learnt weights, or those that IADC would give for these scores."""
    learnt = getattr(model, "weights_", None)
    return importance_weights(scores, TEMPERATURE) if learnt is None else np.asarray(learnt)


def doubts(
    trust: Scores,
    scores: Scores,
    names: Sequence[str],
    reasons: Callable[[NDArray[np.int64]], list[list[tuple[str, float]]]] | None = None,
) -> list[Doubt]:
    """Return the least trusted samples, least trusted first."""
    rows = np.lexsort((-scores, trust))[:N_DOUBTS]
    why = [[] for _ in rows] if reasons is None else reasons(rows)
    return [
        Doubt(int(row), str(names[row]), float(trust[row]), float(scores[row]), reason)
        for row, reason in zip(rows, why, strict=True)
    ]


def quantiles(scores: Scores) -> list[float]:
    """Return the scores at even quantiles."""
    return [float(q) for q in np.quantile(scores, np.linspace(0, 1, N_QUANTILES))]
