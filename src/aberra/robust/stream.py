"""A model that keeps up with a stream of rows: it forgets, follows, and is fitted again.

What is remembered is a reservoir of rows. Each row gets a key when it arrives, and the rows with
the lowest keys stay (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006);
the weight of a row doubles with every half-life of rows, so older rows leave, but not all at once.
Columns that move as a whole take the rows of the reservoir along (`aberra.robust.levels`).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from aberra.contract.members import Scores
from aberra.data.drift.verdict import Drift
from aberra.data.tables import as_pandas
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.errors import DataError
from aberra.rng import RandomState, entropy_of
from aberra.robust.iadc import IADC
from aberra.robust.levels import Levels, Matrix
from aberra.scikit import HasMethods, Interval

OLDEST = 0.1  # a level that was left is forgotten when fewer remembered rows than this are older


@estimator
class Stream(BaseEstimator):
    """A model of a stream of rows, some of them dirty, in a world that changes.

    `partial_fit` puts rows into a reservoir in which old ones give way to new ones, and fits the
    model again, from scratch, when enough new rows have come. So the cost is bounded: one fit on at
    most `n_rows` rows for every `refit_every` rows of the stream. A column that moves as a whole,
    at once or little by little, takes the remembered rows along. The trust in rows is learnt in
    each fit, as ever; nothing is left out of the reservoir because it looks odd, since after a
    change of the world all that is new does.

    See Also
    --------
    IADC : The model that is fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import MultiView, Stream
    >>> rng = np.random.default_rng(0)
    >>> stream = Stream(MultiView(), n_rows=200, refit_every=100, random_state=0)
    >>> for day in range(8):  # the world moves by one deviation a day
    ...     _ = stream.partial_fit(day + rng.normal(size=(100, 2)))
    >>> odd, usual = stream.anomaly_score([[0.0, 0.0], [7.5, 7.5]])
    >>> bool(odd > usual), stream.n_fits_
    (True, 8)
    """

    model: Any = parameter(
        HasMethods("fit"),
        None,
        default=None,
        kw_only=False,
        doc="An unfitted detector or ensemble of Aberra; None is `IADC()`.",
    )
    n_rows: int = parameter(
        Interval(Integral, 2, None, closed="left"), default=2048, doc="Rows that are remembered."
    )
    half_life: float = parameter(
        Interval(Real, 0, None, closed="neither"),
        default=2048,
        doc="Rows of the stream after which a row is half as likely to be remembered.",
    )
    refit_every: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=256,
        doc="""New rows after which the level of the columns is taken and the model fitted again.
        The first call always fits it.""",
    )
    follow: bool = parameter(
        "boolean",
        default=True,
        doc="""Whether remembered rows move along with a column that moves as a whole. False leaves
        them as they were, to be forgotten.""",
    )
    random_state: RandomState = parameter(
        "random_state",
        default=None,
        doc="Seeds the reservoir, and the model if it has no `random_state` of its own.",
    )

    model_: Any = learnt(
        "The model of the last fit. `aberra.save` saves it, without the reservoir."
    )
    rows_: Any = learnt("The rows that are remembered, in their order and as they came.")
    n_seen_: int = learnt("Rows of the stream so far.")
    n_fits_: int = learnt("How often the model was fitted.")
    level_: Annotated[NDArray[np.float64], Shape("d")] = learnt(
        "How far each column has moved since the beginning; always 0 for text."
    )

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Take in a batch, and fit the model again if enough new rows have come.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            New rows, in the order in which they came; they may be contaminated.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        self : Stream
        """
        self._validate_params()
        rows = _as_rows(X)
        first = "model_" not in vars(self)
        if first:
            self._begin(rows)
        if self._taken(rows, everything=first):
            self._refit()
        return self

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Begin a new stream with these rows."""
        self.__dict__.pop("model_", None)
        return self.partial_fit(X)

    def anomaly_score(self, X: ArrayLike) -> Scores:
        """Return one score per row, as if it came next in the stream; the higher, the odder.

        After a jump of the level a row may be of the old world or of the new one: it is as odd as
        it is in that world in which it is less odd.
        """
        check_is_fitted(self, "model_")
        found = [self.model_.anomaly_score(rows) for rows in self._aligned(X)]
        return np.asarray(np.min(found, axis=0))

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return -1 for anomalies and 1 for normal rows, as if they came next in the stream."""
        return np.where(self.anomaly_score(X) > self.model_.threshold_, -1, 1)

    def aligned(self, X: ArrayLike) -> Any:
        """Return rows that come next as `model_` wants them: at the level of its last fit.

        `stream.model_.explain(stream.aligned(X))` says why a row is odd.
        """
        check_is_fitted(self, "model_")
        return self._aligned(X)[0]

    def compare(self, X: ArrayLike) -> Drift:
        """Say whether new rows are like those of the last fit; see `IADC.compare`."""
        check_is_fitted(self, "model_")
        found: Drift = self.model_.compare(_as_rows(X))
        return found

    def _aligned(self, X: ArrayLike) -> list[Any]:
        """Return rows as the model wants them, once for each level that they may have."""
        rows = _as_rows(X)
        _check_columns(self.rows_, rows)
        return [_moved(rows, self.level_ - level, self._numeric) for level in self._levels.likely()]

    def _begin(self, rows: Any) -> None:
        self._waiting = rows[:0]
        self._entropy = entropy_of(self.random_state)
        self._generator = np.random.default_rng(self._entropy)
        self._numeric = _numeric(rows)
        self._levels = Levels.at_zero(len(self._numeric))
        self.rows_ = rows[:0]
        self._keys, self._then = np.empty(0), np.empty((0, len(self._numeric)))
        self._places = np.empty(0, np.int64)
        self.n_seen_ = self.n_fits_ = self._n_taken = 0

    def _taken(self, rows: Any, everything: bool) -> int:
        """Take in all pieces that are complete now, and return how many; the rest waits."""
        self._waiting = _joined(self._waiting, rows)
        self.n_seen_ += len(rows)
        sizes = [self.refit_every] * (len(self._waiting) // self.refit_every)
        rest = len(self._waiting) - sum(sizes)
        sizes += [rest] if everything and rest else []
        for n in sizes:
            self._take(n)
        return len(sizes)

    def _take(self, n: int) -> None:
        """Take in the rows that have waited longest: follow their level, and remember them."""
        piece, self._waiting = self._waiting[:n], self._waiting[n:]
        known = _numbers(self.rows_, self._numeric) - self._then
        if self.follow and len(known):
            self._levels.follow(_numbers(piece, self._numeric), known, self._n_taken)
        self._remember(piece)
        self._levels.forget(int(np.quantile(self._places, OLDEST)))

    def _remember(self, piece: Any) -> None:
        """Keep the rows of lowest key; the logarithm of a key falls with the row's place."""
        new = self._n_taken + np.arange(len(piece))
        self._n_taken += len(piece)
        drawn = np.log(-np.log1p(-self._generator.random(len(piece))))
        keys = np.concatenate([self._keys, drawn - np.log(2) * new / self.half_life])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.n_rows])
        then = np.tile(self._levels.now, (len(piece), 1))
        self._keys = keys[kept]
        self._places = np.concatenate([self._places, new])[kept]
        self._then = np.concatenate([self._then, then])[kept]
        self.rows_ = _chosen(_joined(self.rows_, piece), kept)

    def _refit(self) -> None:
        model = IADC() if self.model is None else clone(self.model)
        if model.random_state is None:
            model.set_params(random_state=self._entropy)
        self.level_ = self._levels.now
        self.model_ = model.fit(_moved(self.rows_, self.level_ - self._then, self._numeric))
        self.n_fits_ += 1


def _as_rows(X: ArrayLike) -> Any:
    rows = as_pandas(X)
    rows = rows if isinstance(rows, pd.DataFrame) else np.asarray(rows)
    if rows.ndim != 2 or not len(rows):
        raise DataError(f"A batch is a table with at least one row, but got shape {rows.shape}.")
    return rows


def _check_columns(before: Any, rows: Any) -> None:
    if isinstance(rows, pd.DataFrame) != isinstance(before, pd.DataFrame):
        raise DataError("A stream is of data frames or of arrays, not of both.")
    if rows.shape[1] != before.shape[1]:
        raise DataError(
            f"These rows have {rows.shape[1]} columns, but the stream has {before.shape[1]}."
        )
    if isinstance(rows, pd.DataFrame) and list(rows.columns) != list(before.columns):
        raise DataError("These rows have other columns than the stream, or in another order.")


def _joined(before: Any, rows: Any) -> Any:
    _check_columns(before, rows)
    if not isinstance(rows, pd.DataFrame):
        return np.concatenate([before, rows])
    return pd.concat([before, rows], ignore_index=True) if len(before) else rows


def _chosen(rows: Any, kept: NDArray[np.int64]) -> Any:
    return rows.iloc[kept] if isinstance(rows, pd.DataFrame) else rows[kept]


def _numeric(rows: Any) -> NDArray[np.int64]:
    """Return the positions of the columns that have a level: numbers, not dates or truths."""
    if not isinstance(rows, pd.DataFrame):
        return np.arange(rows.shape[1] if np.issubdtype(rows.dtype, np.number) else 0)
    kinds = [is_numeric_dtype(kind) and not is_bool_dtype(kind) for kind in rows.dtypes]
    return np.flatnonzero(kinds)


def _numbers(rows: Any, numeric: NDArray[np.int64]) -> Matrix:
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan)
    return rows[:, numeric].astype(np.float64)


def _moved(rows: Any, by: Matrix, numeric: NDArray[np.int64]) -> Any:
    """Return rows with their numbers moved; those that stay where they are keep their type."""
    if not by.any():
        return rows
    if not isinstance(rows, pd.DataFrame):
        return rows + by
    moved = rows.copy()
    for k in np.flatnonzero(by.reshape(-1, len(numeric)).any(axis=0)):
        name = rows.columns[numeric[k]]
        moved[name] = _numbers(rows, numeric[k : k + 1])[:, 0] + by[..., k]
    return moved
