"""Which training samples are trusted least, and how trust moved round by round."""

from __future__ import annotations

from aberra.explain.charts import trust_band
from aberra.explain.doubts import Doubt
from aberra.explain.reasons import ReasonInWords
from aberra.explain.subject import Subject
from aberra.report.charts import crossings_chart, trust_chart
from aberra.report.contents import Findings, RoundsSection, Sample
from aberra.robust.weighting import LOST_TRUST

MOST_DOUBTS = 25


def doubts_of(subject: Subject, findings: Findings | None) -> tuple[list[Sample], str]:
    """Return the least trusted training samples, and a note on where they come from."""
    if findings is not None and findings.trained_on:
        return [], ""  # the findings are these very samples
    found = subject.doubts(MOST_DOUBTS)
    lines = [_sample_of(k + 1, doubt, subject) for k, doubt in enumerate(found)]
    return lines, subject.about_doubts()


def _sample_of(rank: int, doubt: Doubt, subject: Subject) -> Sample:
    reasons = tuple(ReasonInWords(column, share) for column, share in doubt.reasons)
    flagged = doubt.score > subject.model.threshold_
    return Sample(rank, doubt.name, doubt.score, bool(flagged), doubt.trust, reasons)


def rounds_of(subject: Subject) -> RoundsSection | None:
    """Return how the rounds went, for a model that was trained in rounds."""
    story, thing = subject.story, subject.thing
    if story is None:
        return None
    low = story.trust[story.kept] < LOST_TRUST
    groups = ((~low, f"other {thing}s", False), (low, f"{thing}s with low trust", True))
    bands = [trust_band(story.trust, name, rows, odd) for rows, name, odd in groups if rows.any()]
    crossings = crossings_chart(story.crossings, story.kept) if story.crossings else ""
    said = [*story.sentences(thing), *subject.about_low_trust()]
    return RoundsSection(said, trust_chart(bands, story.kept), crossings, story.lines)
