"""From a model, its recipe and its findings to what the page shows."""

from __future__ import annotations

import numpy as np

from aberra.report.charts import histogram
from aberra.report.contents import Fact, Findings, Histogram, Report
from aberra.report.pictures import data_uri, heat_table
from aberra.report.subject import Subject
from aberra.report.training import describe
from aberra.report.trust import doubts_of, rounds_of
from aberra.robust.weighting import LOST_TRUST
from aberra.words import count, number, percent


def compose(subject: Subject, findings: Findings | None, title: str) -> Report:
    """Return all that the page shows; `findings` are None where there are no data."""
    doubts, note = doubts_of(subject, findings)
    shown = findings is not None and findings.heat_top > 0
    return Report(
        title,
        _summary(subject, findings),
        _figures(subject, findings),
        findings,
        _histogram(subject, findings),
        doubts,
        note,
        rounds_of(subject),
        describe(subject),
        data_uri(np.broadcast_to(heat_table()[None], (8, 256, 3))) if shown else "",
    )


def _n_lost(subject: Subject) -> int | None:
    return int((subject.model.weights_ < LOST_TRUST).sum()) if subject.learns_trust else None


def _summary(subject: Subject, findings: Findings | None) -> list[str]:
    """Say the outcome in a few sentences."""
    n, thing, lost = subject.n_samples, subject.thing, _n_lost(subject)
    sentences = [f"{subject.name} was trained" + ("." if n is None else f" on {count(n, thing)}.")]
    if subject.contamination is not None:
        sentences.append(
            f"By its own estimate {percent(subject.contamination)} of the training data do not "
            "belong; no label was used."
        )
    if lost:
        sentences.append(
            f"{count(lost, thing)} lost trust and count less than half as much as a typical one."
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


def _figures(subject: Subject, findings: Findings | None) -> list[Fact]:
    """Return the few numbers that stand out on top."""
    n, lost = subject.n_samples, _n_lost(subject)
    figures = []
    if n is not None:
        figures.append(Fact(f"training {subject.thing}s", f"{n:,}"))
    if subject.contamination is not None:
        share = percent(subject.contamination)
        figures.append(Fact("estimated contamination", share, "of the training data"))
    if lost is not None:
        figures.append(Fact("lost trust", f"{lost:,}", f"trust below {LOST_TRUST}"))
    if findings is not None and not findings.trained_on:
        figures.append(Fact(f"{findings.thing}s examined", f"{len(findings.scores):,}"))
        if findings.n_flagged is not None:
            share = percent(findings.n_flagged / len(findings.scores))
            figures.append(Fact("above the threshold", f"{findings.n_flagged:,}", share))
    return figures


def _histogram(subject: Subject, findings: Findings | None) -> Histogram | None:
    """Return the chart of the scores; what is known decides which."""
    known, thing = subject.reference, subject.thing
    if findings is None or findings.trained_on:
        if known is None:
            return None
        scores, compared, things = known, None, f"training {thing}s"
    else:
        # A scan's score is not one of a slice, so there is nothing to compare it with.
        comparable = findings.thing != "scan"
        scores, compared = findings.scores, known if comparable else None
        things = f"{findings.thing}s"
    threshold = None if things == "scans" else subject.threshold
    sentences = []
    if threshold is not None:
        share = percent(float((scores > threshold).mean()))
        sentences.append(
            f"{share} of the {things} lie above the threshold {number(threshold)}; their bars are "
            "hatched."
        )
    if compared is not None:
        sentences.append(f"The outline shows the training {thing}s.")
    return Histogram(histogram(scores, threshold, compared, things), sentences)
