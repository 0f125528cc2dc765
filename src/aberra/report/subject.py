"""A fitted model with its recipe: what is known about its training, wherever it is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import thresholds
from aberra.recipe import Recipe
from aberra.robust.ensemble import Ensemble, default_detector
from aberra.robust.iadc import IADC
from aberra.scoring.rows import reference_scores, training_scores

THINGS = {"table": "row", "images": "image", "volumes": "slice"}


@dataclass(frozen=True)
class Subject:
    """What the page is about.

    Parameters
    ----------
    model : estimator
    recipe : Recipe, optional
        None for a model that was saved from Python.
    """

    model: Any
    recipe: Recipe | None = None

    @property
    def name(self) -> str:
        """The model in a few words, such as "IADC around DeepSVDD"."""
        if not isinstance(self.model, Ensemble):
            return type(self.model).__name__
        return f"{type(self.model).__name__} around {type(self.detector).__name__}"

    @property
    def detector(self) -> Any:
        """What an ensemble consists of, or the model itself."""
        if not isinstance(self.model, Ensemble):
            return self.model
        default = self.model.detector is None
        return default_detector(self.model.image_shape_) if default else self.model.detector

    @property
    def thing(self) -> str:
        """What one training sample is called."""
        if self.recipe is not None:
            return THINGS[self.recipe.kind]
        return "image" if self.sees_images else "row"

    @property
    def sees_images(self) -> bool:
        """Whether the model was trained on images, or on slices."""
        return self.model.image_shape_ is not None

    @property
    def learns_trust(self) -> bool:
        """Whether training weighed the samples."""
        return isinstance(self.model, IADC)

    @cached_property
    def scores(self) -> NDArray[np.float64] | None:
        """Scores of all training samples in their order, where the model keeps them."""
        return training_scores(self.model)

    @cached_property
    def reference(self) -> NDArray[np.float64] | None:
        """Scores of the training samples, or quantiles of them, sorted."""
        return reference_scores(self.model, self.recipe.quantiles if self.recipe else [])

    @property
    def n_samples(self) -> int | None:
        """How many samples trained, where anything tells."""
        if self.scores is not None:
            return len(self.scores)
        return None if self.recipe is None else self.recipe.n_samples

    @cached_property
    def _placed(self) -> tuple[float | None, str]:
        if hasattr(self.model, "threshold_rule_"):
            return float(self.model.threshold_), str(self.model.threshold_rule_)
        if self.reference is None:
            return None, ""
        return thresholds.threshold(self.reference)

    @property
    def threshold(self) -> float | None:
        """Score above which a sample is flagged; a localiser's comes from its training scores."""
        return self._placed[0]

    @property
    def rule(self) -> str:
        """Name of the rule that placed the threshold."""
        return self._placed[1]

    @property
    def map_threshold(self) -> float | None:
        """Height of a map above which a pixel is flagged."""
        if self.recipe is not None and self.recipe.map_threshold is not None:
            return self.recipe.map_threshold
        return None if hasattr(self.model, "threshold_rule_") else float(self.model.threshold_)

    @property
    def contamination(self) -> float | None:
        """Estimated share of training samples that do not belong; localisers make no estimate."""
        held = getattr(self.model, "contamination_", None)
        return None if held is None else float(held)

    def flags(self, scores: NDArray[np.float64]) -> NDArray[np.bool_] | None:
        """Say which scores lie above the threshold, if there is one."""
        return None if self.threshold is None else np.asarray(scores > self.threshold)

    def are_training_scores(self, scores: NDArray[np.float64]) -> bool:
        """Say whether the scores are those of the training samples, in their order."""
        known = self.scores
        return (
            known is not None and known.shape == scores.shape and bool(np.allclose(known, scores))
        )
