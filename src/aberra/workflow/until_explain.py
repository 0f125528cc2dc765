"""Doubts, reasons and the story of the rounds, until `aberra.explain` is their one home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.recipe import Doubt
from aberra.robust.weighting import importance_weights

N_DOUBTS = 10
N_QUANTILES = 1001
WHY_STOPPED = {
    "settled": "the ranking settled",
    "max_rounds": "the limit, before the ranking settled",
    "interrupted": "interrupted",
}

Scores = NDArray[np.float64]


def trust_in(model: Any, scores: Scores) -> Scores:
    """Return the trust that training learnt, or what IADC would learn from these scores."""
    learnt = model.training_trust()
    return importance_weights(scores) if learnt is None else np.asarray(learnt)


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


def reasons_for(model: Any, rows: pd.DataFrame) -> list[list[tuple[str, float]]]:
    """Return for each row the three columns that have most to do with its score."""
    shares = model.explain(rows)
    top = [line.sort_values(ascending=False, kind="stable")[:3] for _, line in shares.iterrows()]
    return [[(str(k), float(v)) for k, v in line.items() if v > 0] for line in top]


def about_rounds(history: Any, out_of_time: str = "") -> str:
    """Say how many rounds there were, which one was kept, and why training stopped."""
    why = out_of_time or WHY_STOPPED[history.reason]
    return f"{len(history)}, kept number {history.kept + 1}: {why}"


def quantiles_to_note(scores: Scores) -> list[float]:
    """Return training scores at even quantiles, which stand for all of them in a recipe."""
    return [float(q) for q in np.quantile(scores, np.linspace(0, 1, N_QUANTILES))]
