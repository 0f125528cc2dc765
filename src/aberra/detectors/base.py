"""The contract of every detector: scikit-learn's, plus one score that is high where it is odd."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from numbers import Real
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    validate_data,
)

from aberra import thresholds
from aberra.data.tables import (
    Encode,
    Missing,
    TableReader,
    as_frame,
    check_numbers,
    needs_reader,
)
from aberra.errors import CollapseWarning, DataError, DivergenceError
from aberra.rng import RandomState, draw_seeds, entropy_of, for_each, single_thread

Data = NDArray[Any]  # (n, d), any number type; images are flattened
Scores = NDArray[np.float64]
Rows = NDArray[np.int64]  # (m, n_drawn): the rows that each member trains on

Fit = TypeVar("Fit", bound=Callable[..., Any])

TABLE_TILE = 1024
IMAGE_TILE = 128
EXPLAINED_ROWS = 256  # at a time, so that threads can share them
STACKED_CELLS = 1 << 22  # numbers in all the variants of the rows that are explained at a time
SORTED_CELLS = 1 << 20  # numbers copied at once to find quartiles


class Members(Protocol):
    """Trained members of one ensemble; a single model is the case of one member."""

    @property
    def n_members(self) -> int:
        """Number of members."""

    @property
    def tile_rows(self) -> int | None:
        """Rows a call, filled up or cut to it; None: all rows in one call."""

    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Score one tile of raw rows: (n, d) in, (m, n) out, high = anomalous."""


def member_scores(members: Members, data: Data) -> NDArray[np.float64]:
    """Score rows tile by tile, (m, n).

    Every tile has the same number of rows (the last is filled up), so that a row goes through the
    same arithmetic whatever it is scored with, and memory stays at one tile.
    """
    size = members.tile_rows
    if size is None:
        return members.scores(data)
    scores = np.empty((members.n_members, len(data)))

    def score(start: int) -> None:
        tile, n = tile_at(data, start, size)
        scores[:, start : start + n] = members.scores(tile)[:, :n]

    _at_each(score, range(0, len(data), size), members)
    return scores


def _at_each(work: Callable[[int], None], starts: range, members: Members) -> None:
    """Do the work at each start, in threads if the members can answer several at a time."""
    if getattr(members, "in_threads", False):
        for_each(work, starts)
        return
    for start in starts:
        work(start)


def training_scores(members: Members, data: Data) -> NDArray[np.float64]:
    """Score the rows that members have just been trained on; some know the scores already."""
    take = getattr(members, "take_training_scores", None)
    known: NDArray[np.float64] | None = None if take is None else take()
    return member_scores(members, data) if known is None else known


def tiles(data: Data, size: int) -> Iterator[tuple[Data, int]]:
    """Yield tiles of exactly `size` rows, the last filled up, with how many rows count."""
    for start in range(0, len(data), size):
        yield tile_at(data, start, size)


def tile_at(data: Data, start: int, size: int) -> tuple[Data, int]:
    """Return the tile that begins there, filled up, and how many of its rows count."""
    tile = data[start : start + size]
    n = len(tile)
    return (tile if n == size else np.concatenate([tile, np.repeat(tile[-1:], size - n, 0)])), n


def column_shares(
    members: Members, data: Data, references: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each column's share of the score, (n, d), each row summing to 1.

    A column's part is how far the score falls, on average, when that cell takes the column's
    lower quartile, median and upper quartile. On planted anomalies this named the right column
    more often than the reconstruction error did, also for detectors that reconstruct.
    """
    before = member_scores(members, data).mean(axis=0)
    parts = np.zeros(data.shape)
    n, d = data.shape
    size = n if members.tile_rows is None else max(1, min(EXPLAINED_ROWS, STACKED_CELLS // d**2))

    def explain(start: int) -> None:
        block = slice(start, start + size)
        parts[block] = _falls(members, data[block].astype(np.float64), references, before[block])

    _at_each(explain, range(0, n, size), members)
    total = parts.sum(axis=1, keepdims=True)
    return np.divide(parts, total, out=np.full(parts.shape, 1 / data.shape[1]), where=total > 0)


def quartiles(data: Data) -> NDArray[np.float64]:
    """Return the quartiles of every column, (3, d).

    Some columns at a time: NumPy sorts in a copy, and a second copy of large data costs more than
    the sorting.
    """
    numbers = data.astype(np.uint8) if data.dtype == bool else data
    width = max(1, SORTED_CELLS // len(data))
    parts = [
        np.quantile(numbers[:, start : start + width], (0.25, 0.5, 0.75), axis=0)
        for start in range(0, data.shape[1], width)
    ]
    return np.concatenate(parts, axis=1).astype(np.float64)


def _falls(
    members: Members, rows: Data, references: NDArray[np.float64], before: Scores
) -> NDArray[np.float64]:
    """Return how far the score falls, (n, d), summed over a column's references.

    All variants of a few rows are scored as one stack, so that tiles are full. Members without
    tiles may look at a row's neighbours, and get one variant of all rows at a time.
    """
    n, d = rows.shape
    parts = np.zeros((n, d))
    at_once = max(1, STACKED_CELLS // (n * d))  # columns
    for reference in references:
        known = hidden_scores(members, rows, reference)
        if known is not None:
            after = known.mean(axis=0).T
        elif members.tile_rows is None:
            after = np.stack([_one_hidden(members, rows, j, reference[j]) for j in range(d)])
        else:
            groups = np.split(np.arange(d), range(at_once, d, at_once))
            after = np.concatenate([_each_hidden(members, rows, g, reference) for g in groups])
        parts += np.maximum(before - after, 0.0).T
    return parts


def hidden_scores(
    members: Members, rows: Data, reference: NDArray[np.float64]
) -> NDArray[np.float64] | None:
    """Return the scores (m, n, d) with each cell in turn at its reference.

    None where the members have no shorter way to them than to score every variant.
    """
    shorter = getattr(members, "hidden_scores", None)
    return None if shorter is None else shorter(rows, reference)


def _each_hidden(
    members: Members, rows: Data, columns: Rows, reference: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the scores, (columns, n), with each of some columns at its reference."""
    (n, d), k = rows.shape, len(columns)
    variants = np.repeat(rows[None], k, axis=0)  # (k, n, d)
    variants[range(k), :, columns] = reference[columns, None]
    return member_scores(members, variants.reshape(-1, d)).mean(axis=0).reshape(k, n)


def _one_hidden(members: Members, rows: Data, j: int, value: float) -> Scores:
    hidden = rows.copy()
    hidden[:, j] = value
    return member_scores(members, hidden).mean(axis=0)


def row_counts(rows: Rows, n: int) -> NDArray[np.float64]:
    """Return how often each member drew each row, (m, n)."""
    return np.stack([np.bincount(drawn, minlength=n) for drawn in rows]).astype(np.float64)


def all_or_nothing(fit: Fit) -> Fit:
    """Let a `fit` that fails leave the estimator as it was: fitted before, or not at all."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Fit, guarded)


class Scorer(OutlierMixin, BaseEstimator, ABC):
    """What a fitted detector or ensemble answers; subclasses learn `members_`."""

    n_features_in_: int
    image_shape_: tuple[int, int, int] | None
    members_: Members
    threshold: float | str
    missing: Missing
    encode: Encode
    threshold_: float
    threshold_rule_: str
    contamination_: float
    references_: NDArray[np.float64]  # (3, d): quartiles of the training rows
    reader_: TableReader | None

    _scorer_constraints: dict[str, list[Any]] = {
        "threshold": [
            StrOptions({"auto", *thresholds.RULES}),
            Interval(Real, 0, 1, closed="neither"),
        ],
        "missing": [StrOptions({"error", "impute"})],
        "encode": [StrOptions({"error", "auto"})],
        "random_state": ["random_state"],
    }

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

    def explain(self, X: ArrayLike) -> Any:
        """Return how much each column has to do with a row's score.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Rows to explain. Every row is scored three times per column, so give the rows in
            question rather than all.

        Returns
        -------
        shares : ndarray or DataFrame of shape (n, n_features)
            Every row is non-negative and sums to 1. A data frame, with the names of the columns,
            where the model was fitted on one.
        """
        check_is_fitted(self, "members_")
        data = self._validate(X, reset=False)
        with single_thread():
            shares = column_shares(self.members_, data, self.references_)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return shares
        import pandas as pd

        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(shares, columns=names, index=index)

    def _validate(self, X: ArrayLike, reset: bool) -> Data:
        """Check the rows; images (n, c, h, w) come back flattened, text columns as numbers."""
        image = self._image_shape(X, reset)
        fewest = 2 if reset else 1
        rows: ArrayLike = X
        if image is not None:
            self._refuse_columns(reset)
            rows = np.reshape(np.asarray(X), (np.shape(X)[0], int(np.prod(image))))
        elif self._reads(X, reset):
            if not hasattr(X, "columns"):
                check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
            validate_data(self, X, reset=reset, skip_check_array=True)
            rows = self._read(X, reset)
        checks = {"dtype": "numeric", "ensure_min_samples": fewest, "ensure_all_finite": False}
        if rows is X or image is not None:
            data = np.asarray(validate_data(self, rows, reset=reset, **checks))
        else:
            data = np.asarray(check_array(rows, estimator=self, input_name="X", **checks))
        names = getattr(self, "feature_names_in_", None)
        check_numbers(data, None if names is None else [str(name) for name in names])
        return data

    def _image_shape(self, X: ArrayLike, reset: bool) -> tuple[int, int, int] | None:
        shape = tuple(getattr(X, "shape", ()))
        image = (shape[1], shape[2], shape[3]) if len(shape) == 4 else None
        if reset:
            self.image_shape_ = image
        elif image != self.image_shape_:
            fitted = "a table" if self.image_shape_ is None else f"images {self.image_shape_}"
            raise DataError(
                f"This model was fitted on {fitted} (channels, height, width for images), but "
                f"got data of shape {shape}."
            )
        return image

    def _refuse_columns(self, reset: bool) -> None:
        """Refuse what is said about columns where there are none."""
        if reset:
            self.reader_ = None
        if (self.missing, self.encode) != ("error", "error"):
            raise ValueError("`missing` and `encode` are for tables: leave both at 'error'.")

    def _reads(self, X: ArrayLike, reset: bool) -> bool:
        if reset:
            self.reader_ = None
            return needs_reader(X, self.missing, self.encode)
        return self.reader_ is not None

    def _read(self, X: ArrayLike, reset: bool) -> NDArray[np.float64]:
        table = as_frame(X, infer=reset)
        if reset:
            self.reader_ = TableReader(self.missing, self.encode)
            self.reader_.fit(table)
        assert self.reader_ is not None
        return self.reader_.transform(table)

    def _conclude(self, scores: Scores, data: Data) -> None:
        """Learn what follows from the training rows' scores."""
        if not np.isfinite(scores).all():
            raise DivergenceError(
                f"Training of {type(self).__name__} diverged: some scores are not finite. Lower "
                "the learning rate, or look for columns of extreme scale."
            )
        self._warn_if_constant(scores, data)
        self.threshold_, self.threshold_rule_ = thresholds.threshold(scores, self.threshold)
        self.contamination_ = float(np.mean(scores > self.threshold_))
        self.references_ = quartiles(data)

    def _warn_if_constant(self, scores: Scores, data: Data) -> None:
        """Warn when all scores are one although the rows are not."""
        if np.ptp(scores) > 1e-12 * max(1.0, float(np.abs(scores).max())):
            return
        if len(data) > 1 and bool((data != data[:1]).any()):
            warnings.warn(
                f"{type(self).__name__} gives all {len(scores)} training rows the same score, "
                "which separates nothing. A network has then collapsed to a constant map: train "
                "for fewer epochs, with a lower learning rate, or with less weight decay.",
                CollapseWarning,
                stacklevel=5,  # this, _conclude, fit, the guard around it
            )


class Detector(Scorer):
    """A detector of our own: its members train together, `fit` is the case of one member."""

    random_state: RandomState

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
            scores = training_scores(self.members_, data).mean(axis=0)
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


def checked_weights(sample_weight: ArrayLike | None, data: Data) -> NDArray[np.float64]:
    """Return one non-negative weight per row, the positive ones 1 on average.

    Only their ratios mean something; weights that add up to 1 would all but stop a network.
    """
    w = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
    w = w / w.max()  # first: the sum of large weights may overflow
    return w / w[w > 0].mean()
