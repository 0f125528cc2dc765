"""From a model, its recipe and its findings to what the page shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from aberra.recipe import Recipe
from aberra.report.charts import histogram
from aberra.report.contents import LOST_TRUST, Fact, Findings, Histogram, Report
from aberra.report.pictures import data_uri, heat_table
from aberra.report.training import describe, n_samples, name_of, thing_of, training_scores
from aberra.report.trust import doubts_of, rounds_of
from aberra.report.words import count, number, percent
from aberra.robust.iadc import IADC


def compose(model: Any, recipe: Recipe | None, findings: Findings | None, title: str) -> Report:
    """Return all that the page shows; `findings` are None where there are no data."""
    thing = thing_of(model, recipe)
    doubts, note = doubts_of(model, recipe, findings)
    shown = findings is not None and findings.heat_top > 0
    return Report(
        title,
        _summary(model, recipe, findings),
        _figures(model, recipe, findings),
        findings,
        _histogram(model, findings, thing),
        doubts,
        note,
        rounds_of(model, thing),
        describe(model, recipe),
        data_uri(np.broadcast_to(heat_table()[None], (8, 256, 3))) if shown else "",
    )


def _n_lost(model: Any) -> int | None:
    return int((model.weights_ < LOST_TRUST).sum()) if isinstance(model, IADC) else None


def _summary(model: Any, recipe: Recipe | None, findings: Findings | None) -> list[str]:
    """Say the outcome in two or three sentences."""
    n, thing, lost = n_samples(model, recipe), thing_of(model, recipe), _n_lost(model)
    sentences = [
        f"{name_of(model)} was trained" + ("." if n is None else f" on {count(n, thing)}.")
    ]
    if hasattr(model, "contamination_"):
        sentences.append(
            f"By its own estimate {percent(model.contamination_)} of them do not belong; "
            "no label was used."
        )
    if lost:
        sentences.append(
            f"{lost:,} of them lost trust: they count less than half as much as a typical {thing}."
        )
    if findings is not None and not findings.trained_on:
        sentences.append(_found(findings))
    return sentences


def _found(findings: Findings) -> str:
    n = count(len(findings.scores), findings.thing)
    if findings.n_flagged is None:
        first = findings.samples[0]
        return f"Of {n} in {findings.name}, {first.name} has the highest score."
    return f"Of {n} in {findings.name}, {findings.n_flagged:,} lie above the threshold."


def _figures(model: Any, recipe: Recipe | None, findings: Findings | None) -> list[Fact]:
    """Return the few numbers that stand out on top."""
    n, thing, lost = n_samples(model, recipe), thing_of(model, recipe), _n_lost(model)
    figures = []
    if n is not None:
        figures.append(Fact(f"training {thing}s", f"{n:,}"))
    if lost is not None:
        figures.append(Fact("lost trust", f"{lost:,}", f"trust below {LOST_TRUST}"))
    if hasattr(model, "contamination_"):
        share = percent(model.contamination_)
        figures.append(Fact("estimated contamination", share, "of the training data"))
    if findings is not None and not findings.trained_on:
        figures.append(Fact(f"{findings.thing}s examined", f"{len(findings.scores):,}"))
        if findings.n_flagged is not None:
            share = percent(findings.n_flagged / len(findings.scores))
            figures.append(Fact("above the threshold", f"{findings.n_flagged:,}", share))
    return figures


def _histogram(model: Any, findings: Findings | None, thing: str) -> Histogram | None:
    """Return the chart of the scores; what is known decides which."""
    known = training_scores(model)
    if findings is None and known is None:
        return None
    threshold = model.threshold_ if hasattr(model, "threshold_rule_") else None
    if findings is None or findings.trained_on:
        assert known is not None
        scores, compared, things = known, None, f"training {thing}s"
    else:
        scores, compared, things = findings.scores, known, f"{findings.thing}s"
        if findings.thing == "scan":
            compared = None  # a scan's score is not one of a slice
    sentences = []
    if threshold is not None:
        above = int((scores > threshold).sum())
        sentences.append(
            f"{above:,} of {len(scores):,} {things} ({percent(above / len(scores))}) lie above the "
            f"threshold {number(threshold)}; their bars are hatched."
        )
    if compared is not None:
        sentences.append(f"The outline shows the {len(compared):,} training {thing}s.")
    chart = histogram(scores, threshold, compared, things)
    return Histogram(chart, sentences, compared is not None)
