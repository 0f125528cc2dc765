"""A trained model together with what was noted when it was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Scores
from aberra.contract.rows import RowScorer
from aberra.contract.scorer import Scorer
from aberra.explain import training
from aberra.explain.doubts import AS_IADC_WOULD, NOTED, REMEMBERED, Doubt, learnt_doubts
from aberra.explain.glossary import explained
from aberra.explain.rounds import RoundsStory, story_of
from aberra.explain.training import Fact
from aberra.robust.ensemble import Ensemble
from aberra.robust.weighting import LOST_TRUST
from aberra.words import count, percent

THINGS = {"table": "row", "images": "image", "volumes": "slice"}


class Notes(Protocol):
    """What `Subject` reads of a recipe, where there is one."""

    @property
    def kind(self) -> str:
        """What was trained on: "table", "images" or "volumes"."""

    @property
    def n_samples(self) -> int:
        """How many rows, images or slices trained."""

    @property
    def quantiles(self) -> Sequence[float]:
        """Training scores at even quantiles, if they were noted."""

    @property
    def map_threshold(self) -> float | None:
        """Height of a map above which a pixel is flagged."""

    @property
    def doubts(self) -> Sequence[Doubt]:
        """The least trusted samples."""


def reference_scores(model: Scorer, quantiles: Sequence[float] = ()) -> Scores | None:
    """Return what new scores are compared with, sorted.

    Parameters
    ----------
    model : Scorer
    quantiles : sequence of float, default=()
        Training scores at even quantiles, for a model that does not keep the scores themselves.

    Returns
    -------
    scores : ndarray or None
        The training scores, or the quantiles of them; None if nothing is known.
    """
    held, part = model.training_scores(), model.training_sample()
    if held is not None:
        return np.sort(held)
    if part is not None:
        return np.asarray(part.sample.every_score(part.scores))
    return np.asarray(quantiles, np.float64) if len(quantiles) else None


@dataclass(frozen=True)
class Subject:
    """A model that is to be explained.

    Parameters
    ----------
    model : Scorer
    notes : Notes, default=None
        The recipe of `aberra fit`; None for a model that was trained from Python.
    """

    model: Any  # a Scorer; what only some of them have is asked for where it is known to be there
    notes: Notes | None = None

    @property
    def name(self) -> str:
        """The model in a few words, such as "IADC around DeepSVDD"."""
        return training.name_of(self.model)

    @property
    def sees_images(self) -> bool:
        """Whether the model was trained on images, or on slices of scans."""
        return self.model.image_shape_ is not None

    @property
    def thing(self) -> str:
        """What one training sample is called."""
        if self.notes is not None:
            return THINGS[self.notes.kind]
        return "image" if self.sees_images else "row"

    @cached_property
    def scores(self) -> Scores | None:
        """Scores of all training samples in their order, where the model keeps them."""
        found: Scores | None = self.model.training_scores()
        return found

    @cached_property
    def trust(self) -> Scores | None:
        """Trust in each training sample, where training learnt any."""
        found: Scores | None = self.model.training_trust()
        return found

    @cached_property
    def part(self) -> Any:
        """The `Round` of some training samples, where a file kept no more of them."""
        return self.model.training_sample()

    @property
    def n_low_trust(self) -> int | None:
        """How many training samples have low trust, where training learnt any."""
        return None if self.story is None else self.story.history.n_low(self.story.kept)

    def about_low_trust(self) -> list[str]:
        """Say how many samples have low trust, and that this is no estimate of contamination."""
        if not self.n_low_trust or not self.n_samples:
            return []
        share = percent(self.n_low_trust / self.n_samples)
        one = f"an {self.thing}" if self.thing == "image" else f"a {self.thing}"
        return [
            f"As a precaution, training relied little on {count(self.n_low_trust, self.thing)} "
            f"({share}): each counts less than half as much as a typical one. Low trust alone does "
            f"not mean that {one} does not belong."
        ]

    @cached_property
    def story(self) -> RoundsStory | None:
        """The story of the rounds, where there were any."""
        return story_of(self.model)

    @cached_property
    def reference(self) -> Scores | None:
        """Scores of the training samples, or quantiles of them, sorted."""
        return reference_scores(self.model, () if self.notes is None else self.notes.quantiles)

    @property
    def n_samples(self) -> int | None:
        """How many samples trained, where anything tells."""
        if self.scores is not None:
            return len(self.scores)
        if self.part is not None:
            return int(self.part.n_rows)
        return None if self.notes is None else self.notes.n_samples

    @property
    def map_threshold(self) -> float | None:
        """Height of a map above which a pixel is flagged; None for a model without maps."""
        if not self.model.localises:
            return None
        noted = None if self.notes is None else self.notes.map_threshold
        return self.model.map_threshold_ if noted is None else noted

    @property
    def contamination(self) -> float | None:
        """Estimated share of training samples that do not belong.

        A localiser on its own makes no estimate: it takes all its images to be healthy.
        """
        return float(self.model.contamination_) if isinstance(self.model, RowScorer) else None

    def doubts(self, n: int) -> list[Doubt]:
        """Return at most n of the least trusted samples: those noted, or those of low trust."""
        if self.notes is not None and self.notes.doubts:
            return list(self.notes.doubts[:n])
        found = learnt_doubts(self.model, n, self.thing)
        return [doubt for doubt in found if doubt.trust < LOST_TRUST]

    def about_doubts(self) -> str:
        """Say where the list of doubts comes from."""
        if self.notes is None or not self.notes.doubts:
            return REMEMBERED
        return NOTED if self.story is not None else f"{NOTED} {AS_IADC_WOULD}"

    def sentences(self) -> list[str]:
        """Say what the model does, and which samples and pixels it flags."""
        model, said = self.model, training.what_it_does(self.model)
        said.append(training.about_threshold(model.threshold_, model.threshold_rule_))
        if self.map_threshold is not None:
            said.append(training.about_map_threshold(self.map_threshold))
        return said

    def facts(self) -> list[Fact]:
        """Return what the model itself knows about its training."""
        facts = [training.input_size(self.model)]
        if self.n_samples is not None:
            facts.insert(0, Fact("Training samples", count(self.n_samples, self.thing)))
        if isinstance(self.model, Ensemble):
            n_members = str(self.model.n_members)
            facts.append(Fact("Members", n_members, "each trained on its own random choice"))
        if self.story is not None:
            facts.append(Fact("Rounds", self.story.in_short()))
        if self.contamination is not None:
            note = f"of the training {self.thing}s score above the threshold"
            facts.append(Fact("Estimated contamination", percent(self.contamination), note))
        return facts

    def glossary(self, with_trust: bool = False) -> list[tuple[str, str]]:
        """Return the words that a page about the model uses, with their meaning."""
        terms = ["score", "threshold", *([] if self.sees_images else ["reason"])]
        if self.story is not None or with_trust:
            terms.append("trust")
        if self.story is not None:
            terms += ["round", "crossing"]
        if isinstance(self.model, Ensemble):
            terms.append("member")
        return explained(*terms, *(["map"] if self.model.localises else []))

    def flags(self, scores: Scores) -> NDArray[np.bool_]:
        """Say which scores lie above the threshold."""
        return np.asarray(scores > self.model.threshold_)

    def are_training_scores(self, scores: Scores) -> bool:
        """Say whether the scores are those of the training samples, in their order."""
        if self.part is not None:
            same = self.part.n_rows == len(scores)
            return same and bool(np.allclose(self.part.scores, scores[self.part.sample.rows]))
        known = self.scores
        return (
            known is not None and known.shape == scores.shape and bool(np.allclose(known, scores))
        )

    def trust_of(self, scores: Scores) -> Scores | None:
        """Return the trust in each sample if the scores are those of the training samples."""
        if not self.are_training_scores(scores):
            return None
        if self.part is None or self.story is None:
            return self.trust
        return self.story.history.trust_by(scores)
