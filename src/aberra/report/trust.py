"""Which training samples lost trust, and how it went round by round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.recipe import Doubt
from aberra.report.charts import Band, crossings_chart, trust_chart
from aberra.report.contents import Findings, Reason, RoundLine, Rounds, Sample
from aberra.report.subject import Subject
from aberra.report.training import REASONS
from aberra.robust.iadc import IADC
from aberra.robust.weighting import LOST_TRUST
from aberra.words import count

SHOWN_WITHOUT_DATA = 25


def doubts_of(subject: Subject, findings: Findings | None) -> tuple[list[Sample], str]:
    """Return the least trusted training samples, and a sentence about where they come from."""
    if findings is not None and findings.trained_on:
        return [], ""  # the findings are these very samples
    recipe = subject.recipe
    if recipe is not None and recipe.doubts:
        note = "Noted when the model was trained."
        if not subject.learns_trust:
            note += (
                " Every sample counted fully in this training; the trust is the one that IADC "
                "would have begun with."
            )
        return [_noted(k + 1, doubt, subject) for k, doubt in enumerate(recipe.doubts)], note
    if not isinstance(subject.model, IADC):
        return [], ""
    return _from_weights(subject.model), (
        "The model keeps the trust in each sample, not the samples. Give the training data to the "
        "report to see their values and why they lost trust. Rows are counted from 0."
    )


def _noted(rank: int, doubt: Doubt, subject: Subject) -> Sample:
    reasons = tuple(Reason(name, share) for name, share in doubt.reasons[:3])
    above = None if subject.threshold is None else doubt.score > subject.threshold
    return Sample(rank, doubt.name, doubt.score, above, doubt.trust, reasons)


def _from_weights(model: IADC) -> list[Sample]:
    scores = model.history_[model.history_.kept].scores
    rows = np.argsort(model.weights_, kind="stable")[:SHOWN_WITHOUT_DATA]
    return [
        Sample(
            k + 1,
            f"row {row}",
            float(scores[row]),
            bool(scores[row] > model.threshold_),
            float(model.weights_[row]),
        )
        for k, row in enumerate(rows)
        if model.weights_[row] < LOST_TRUST
    ]


def rounds_of(subject: Subject) -> Rounds | None:
    """Return the rounds of an IADC model; nothing else has any."""
    model, thing = subject.model, subject.thing
    if not isinstance(model, IADC):
        return None
    history, kept = model.history_, model.history_.kept
    trust = np.stack([history.weights(t) for t in range(len(history))])
    lost = trust[kept] < LOST_TRUST
    groups = ((~lost, f"other {thing}s", False), (lost, f"{thing}s that lost trust", True))
    bands = [_band(trust[:, rows], name, odd) for rows, name, odd in groups if rows.any()]
    h = history.crossings()
    lines = [
        RoundLine(
            t + 1,
            h[t - 1] if t else None,
            int((trust[t] < LOST_TRUST).sum()),
            history[t].seconds,
            t == kept,
        )
        for t in range(len(history))
    ]
    summary = (
        f"Training took {count(len(history), 'round')} and ended because "
        f"{REASONS[history.reason]}. Round {kept + 1} was kept: it is the one in which the fewest "
        f"{thing}s changed sides."
        if h
        else f"One round was trained, so no {thing} could change sides."
    )
    return Rounds(summary, trust_chart(bands, kept), crossings_chart(h, kept) if h else "", lines)


def _band(trust: NDArray[np.float64], name: str, odd: bool) -> Band:
    low, middle, high = np.quantile(trust, (0.25, 0.5, 0.75), axis=1)
    return Band(name, low, middle, high, odd)
