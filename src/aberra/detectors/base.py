"""The base of Aberra's own detectors: prepare once, train members together, score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aberra.contract.members import Data, Members, Rows, member_scores
from aberra.contract.rows import RowScorer
from aberra.contract.scorer import all_or_nothing, checked_weights
from aberra.declare import estimator
from aberra.rng import draw_seeds, entropy_of, single_thread

TABLE_TILE = 1024
IMAGE_TILE = 128


@estimator
class Detector(RowScorer):
    """A detector of our own: its members train together, `fit` is the case of one member."""

    draws_rows: ClassVar[bool] = False  # members differ by draws of their own
    own_start: ClassVar[str] = "equal"  # the `start` of `IADC` that suits it on tables

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn what is normal in `X`.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, channels, height, width)
            Training rows; they may be contaminated.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,), optional
            How far each row is to be trusted; None means 1 everywhere.

        Returns
        -------
        self : the fitted detector
        """
        self._validate_params()
        data = self._validate(X, reset=True)
        weights = checked_weights(sample_weight, data)
        entropy = entropy_of(self.random_state)
        rows = np.flatnonzero(weights)[None]
        with single_thread():
            prepared = self._prepare(data)
            self.members_ = self._train(prepared, rows, weights[None], draw_seeds(entropy, 0, n=1))
            scores = member_scores(self.members_, data).mean(axis=0)
        self._conclude(scores, data)
        return self

    @abstractmethod
    def _prepare(self, data: Data) -> Any:
        """Do once per fit what every round needs: scaling, the training copy of the data."""

    @abstractmethod
    def _train(
        self, prepared: Any, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> Members:
        """Train one member for each line of `rows`, with its line of `weights` (m, n)."""
