"""From a model, its recipe and its findings to what the page shows."""

from __future__ import annotations

import numpy as np

from aberra.explain.subject import Subject
from aberra.explain.training import Fact
from aberra.recipe import Recipe
from aberra.report.charts import histogram
from aberra.report.contents import Findings, Report, ScoresSection
from aberra.report.drift import drift_section
from aberra.report.pictures import data_uri, heat_table
from aberra.report.training import describe
from aberra.report.trust import doubts_of, rounds_of
from aberra.words import count, number, percent


def compose(
    subject: Subject, recipe: Recipe | None, findings: Findings | None, title: str
) -> Report:
    """Return all that the page shows; `findings` are None where there are no data."""
    doubts, note = doubts_of(subject, findings)
    shown = findings is not None and findings.heat_top > 0
    return Report(
        title,
        subject.thing,
        _outcome(subject, findings),
        _figures(subject, findings),
        findings,
        _scores_section(subject, findings),
        doubts,
        note,
        rounds_of(subject),
        describe(subject, recipe),
        subject.glossary(with_trust=bool(doubts)),
        data_uri(np.broadcast_to(heat_table()[None], (8, 256, 3))) if shown else "",
        None if findings is None else drift_section(findings.drift),
    )


def _outcome(subject: Subject, findings: Findings | None) -> list[str]:
    """Say the outcome in a few sentences."""
    n, thing = subject.n_samples, subject.thing
    sentences = [f"{subject.name} was trained" + ("." if n is None else f" on {count(n, thing)}.")]
    if subject.contamination is not None:
        sentences.append(
            f"It estimates that {_of_them(subject.contamination, n)} do not belong: they score "
            "above the threshold. No labels were used."
        )
    if findings is not None and not findings.trained_on:
        sentences.append(_found(findings))
    return sentences


def _of_them(share: float, n: int | None) -> str:
    """Say how many of n samples a share is, where n is known."""
    if n is None:
        return f"{percent(share)} of them"
    return f"{round(share * n):,} of them ({percent(share)})"


def _found(findings: Findings) -> str:
    n = count(len(findings.scores), findings.thing)
    if findings.n_flagged is None:
        first = findings.samples[0]
        return f"Of {n} in {findings.name}, {first.name} has the highest score."
    verb = "lies" if findings.n_flagged == 1 else "lie"
    return f"Of {n} in {findings.name}, {findings.n_flagged:,} {verb} above the threshold."


def _figures(subject: Subject, findings: Findings | None) -> list[Fact]:
    """Return the few numbers that stand out on top."""
    figures = []
    if subject.n_samples is not None:
        figures.append(Fact(f"training {subject.thing}s", f"{subject.n_samples:,}"))
    if subject.contamination is not None:
        share = percent(subject.contamination)
        figures.append(Fact("estimated contamination", share, "of the training data"))
    if findings is not None and not findings.trained_on:
        figures.append(Fact(f"{findings.thing}s examined", f"{len(findings.scores):,}"))
        if findings.n_flagged is not None:
            share = percent(findings.n_flagged / len(findings.scores))
            figures.append(Fact("above the threshold", f"{findings.n_flagged:,}", share))
    return figures


def _scores_section(subject: Subject, findings: Findings | None) -> ScoresSection | None:
    """Return the chart of the scores; what is known decides which."""
    known, thing = subject.reference, subject.thing
    if findings is None or findings.trained_on:
        if known is None:
            return None
        scores, compared, things = known, None, f"training {thing}s"
    else:
        # The score of a scan is not that of a slice, so there is nothing to compare it with.
        comparable = findings.thing != "scan"
        scores, compared = findings.scores, known if comparable else None
        things = f"{findings.thing}s"
    threshold = None if things == "scans" else float(subject.model.threshold_)
    sentences = []
    if threshold is not None:
        share = percent(float((scores > threshold).mean()))
        sentences.append(
            f"{share} of the {things} score above the threshold {number(threshold)}. Their bars "
            "are hatched."
        )
    if compared is not None:
        sentences.append(f"The outline shows the training {thing}s, for comparison.")
    return ScoresSection(histogram(scores, threshold, compared, things), sentences)
