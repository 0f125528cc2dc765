"""What a model's page shows: what was trained, how trust moved, and which samples are doubtful."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from aberra.explain.charts import score_bins, trust_band
from aberra.explain.doubts import Doubt
from aberra.explain.scales import FARTHEST
from aberra.explain.subject import Subject
from aberra.explain.training import Fact, what_it_does
from aberra.model_file import load, load_notes
from aberra.recipe import Recipe
from aberra.words import count, number

N_DOUBTS_SHOWN = 10


def model_page(path: Path) -> dict[str, Any]:
    """Return what there is to say about a model file, ready for JSON.

    Parameters
    ----------
    path : Path

    Returns
    -------
    page : dict
        `title`, `thing` (what a training sample is called), `sentences`, `facts` (name, value and
        note of each), `rounds` (None for a model without rounds), `scores` (None where no
        training scores are known), `doubts`, `about_doubts` and `glossary`.
    """
    recipe = Recipe.of(load_notes(path))
    subject = Subject(load(path), recipe)
    doubts = subject.doubts(N_DOUBTS_SHOWN)
    return {
        "title": subject.name,
        "thing": subject.thing,
        "sentences": _sentences(subject, recipe),
        "facts": _shown_facts(subject, recipe),
        "rounds": _trust_chart(subject, doubts),
        "scores": _score_chart(subject),
        "doubts": [_shown(doubt) for doubt in doubts],
        "about_doubts": subject.about_doubts(),
        "glossary": subject.glossary(with_trust=bool(doubts)),
    }


def _sentences(subject: Subject, recipe: Recipe | None) -> list[str]:
    """Say what the model does; where it flags something, the choices of a recipe tell already."""
    noted = recipe is not None and bool(recipe.choices)
    return what_it_does(subject.model) if noted else subject.sentences()


def _shown_facts(subject: Subject, recipe: Recipe | None) -> list[tuple[str, str, str]]:
    """Return what the recipe notes, or else what the model itself knows."""
    facts: list[Fact] = []
    if recipe is not None:
        facts.append(Fact("trained on", f"{recipe.data}, {count(recipe.n_samples, subject.thing)}"))
        # They tell of rounds, threshold and what was left out as well.
        facts += [Fact(name, why) for name, why in recipe.shown_choices()]
        measured = "measured with labels, which training never saw"
        facts += [Fact(k.upper(), f"{v:.3f}", measured) for k, v in recipe.metrics.items()]
    if recipe is None or not recipe.choices:
        facts += subject.facts()
    return [(fact.name[:1].upper() + fact.name[1:], fact.value, fact.note) for fact in facts]


def _trust_chart(subject: Subject, doubts: list[Doubt]) -> dict[str, Any] | None:
    story = subject.story
    if story is None:
        return None
    trust, part = story.trust, subject.part
    known = {} if part is None else {int(row): k for k, row in enumerate(part.sample.rows)}
    places = [doubt.row if part is None else known.get(doubt.row, -1) for doubt in doubts]
    rows = [place for place in places if 0 <= place < trust.shape[1]]
    return {
        "kept": story.kept,
        "crossings": story.crossings,
        "sentences": story.sentences(subject.thing),
        "about_low_trust": subject.about_low_trust(),
        "samples": subject.n_samples,
        "quantiles": trust_band(trust, "all").quantiles.round(4).tolist(),
        "curves": trust[:, rows].T.round(4).tolist(),
    }


def _score_chart(subject: Subject) -> dict[str, Any] | None:
    """Return the histogram of the training scores, with places between 0 and 1."""
    if subject.reference is None or abs(subject.model.threshold_) > FARTHEST:
        return None  # nothing to draw, or a threshold that no score reaches
    bins = score_bins([subject.reference], float(subject.model.threshold_))
    scale = bins.scale
    return {
        "places": scale.places(bins.edges).round(4).tolist(),
        "shares": bins.shares().round(5).tolist(),
        "above": bins.above.tolist(),
        "ticks": [(round(scale.place(v), 4), number(v)) for v in scale.ticks()],
        "threshold": (
            round(scale.place(subject.model.threshold_), 4),
            number(subject.model.threshold_),
        ),
    }


def _shown(doubt: Doubt) -> dict[str, Any]:
    score = doubt.score if np.isfinite(doubt.score) else None
    return {"name": doubt.name, "trust": doubt.trust, "score": score, "reasons": doubt.reasons}
