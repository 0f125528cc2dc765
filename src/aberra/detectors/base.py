"""The contract of every detector: scikit-learn's, plus one score that is high where it is odd."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aberra import thresholds
from aberra.errors import CollapseWarning, DataError
from aberra.rng import RandomState, draw_seeds, entropy_of, single_thread

Data = NDArray[Any]  # (n, d), any number type; images are flattened
Scores = NDArray[np.float64]
Rows = NDArray[np.int64]  # (m, n_drawn): the rows that each member trains on

TABLE_TILE = 1024
IMAGE_TILE = 128


class Members(Protocol):
    """Trained members of one ensemble; a single model is the case of one member."""

    n_members: int
    tile_rows: int  # rows a call; others are filled up to it, or cut to it

    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Score one tile of raw rows: (tile_rows, d) in, (m, tile_rows) out, high = anomalous."""


def member_scores(members: Members, data: Data) -> NDArray[np.float64]:
    """Score rows tile by tile, (m, n).

    Every tile has the same number of rows (the last is filled up), so that a row goes through the
    same arithmetic whatever it is scored with, and memory stays at one tile.
    """
    scores = np.empty((members.n_members, len(data)))
    size = members.tile_rows
    for start in range(0, len(data), size):
        tile = data[start : start + size]
        n = len(tile)
        if n < size:
            tile = np.concatenate([tile, np.repeat(tile[-1:], size - n, axis=0)])
        scores[:, start : start + n] = members.scores(tile)[:, :n]
    return scores


class Scorer(OutlierMixin, BaseEstimator, ABC):
    """What a fitted detector or ensemble answers; subclasses learn `members_`."""

    n_features_in_: int
    image_shape_: tuple[int, int, int] | None
    members_: Members
    threshold_: float
    contamination_: float

    def anomaly_score(self, X: ArrayLike) -> Scores:
        """Return one score per row; the higher, the odder.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, channels, height, width)
            Rows to score, in the units the model was fitted on.

        Returns
        -------
        scores : ndarray of shape (n,)
            A row's score does not depend on the other rows.
        """
        check_is_fitted(self, "members_")
        return self._mean_score(self._validate(X, reset=False))

    @property
    def offset_(self) -> float:
        """Minus `threshold_`: scikit-learn's name for it, in the sign of `score_samples`."""
        return -self.threshold_

    def score_samples(self, X: ArrayLike) -> Scores:
        """Return minus `anomaly_score`, scikit-learn's sign (high = normal)."""
        return -self.anomaly_score(X)

    def decision_function(self, X: ArrayLike) -> Scores:
        """Return `threshold_` minus `anomaly_score`: negative where `predict` says -1."""
        scores = self.anomaly_score(X)
        return self.threshold_ - scores

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return -1 for anomalies and 1 for normal rows."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def _mean_score(self, data: Data) -> Scores:
        with single_thread():
            return member_scores(self.members_, data).mean(axis=0)

    def _validate(self, X: ArrayLike, reset: bool) -> Data:
        """Check the rows; images (n, c, h, w) come back flattened."""
        shape = tuple(getattr(X, "shape", ()))
        image = (shape[1], shape[2], shape[3]) if len(shape) == 4 else None
        if not reset and image != self.image_shape_:
            if self.image_shape_ is not None:
                raise DataError(
                    f"This model was fitted on images of shape {self.image_shape_} "
                    f"(channels, height, width), but got data of shape {shape}."
                )
            if image is not None:
                raise DataError("This model was fitted on a table, but got images (4 dimensions).")
        rows = np.reshape(np.asarray(X), (shape[0], -1)) if image is not None else X
        data = validate_data(
            self, rows, reset=reset, dtype="numeric", ensure_min_samples=2 if reset else 1
        )
        if reset:
            self.image_shape_ = image
        return np.asarray(data)

    def _set_threshold(self, scores: Scores) -> None:
        self.threshold_ = thresholds.robust_z(scores)
        self.contamination_ = float(np.mean(scores > self.threshold_))

    def _warn_if_constant(self, scores: Scores, data: Data) -> None:
        """Warn when all scores are one although the rows are not."""
        if np.ptp(scores) > 1e-12 * max(1.0, float(np.abs(scores).max())):
            return
        if len(data) > 1 and bool((data != data[:1]).any()):
            warnings.warn(
                f"{type(self).__name__} gives all {len(scores)} training rows the same score: "
                "the network has collapsed to a constant map, so the scores separate nothing. "
                "Train for fewer epochs, with a lower learning rate, or with less weight decay.",
                CollapseWarning,
                stacklevel=3,
            )


class Detector(Scorer):
    """A detector of our own: its members train together, `fit` is the case of one member."""

    random_state: RandomState

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
        scores = self._mean_score(data)
        self._warn_if_constant(scores, data)
        self._set_threshold(scores)
        return self

    @abstractmethod
    def _prepare(self, data: Data) -> Any:
        """Do once per fit what every round needs: scaling, the training copy of the data."""

    @abstractmethod
    def _train(
        self, prepared: Any, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> Members:
        """Train one member for each line of `rows`, with its line of `weights` (m, n)."""


def checked_weights(sample_weight: ArrayLike | None, data: Data) -> NDArray[np.float64]:
    """Return one non-negative weight per row, not all zero."""
    weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise DataError(
            "All sample weights are zero, so there is nothing to learn from. "
            "Give at least one row a positive weight."
        )
    return np.asarray(weights, dtype=np.float64)
