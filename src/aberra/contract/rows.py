"""Models of rows: how a table or images become numbers, and what follows from the scores."""

from __future__ import annotations

import warnings
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from aberra.contract.columns import columns_as_fitted
from aberra.contract.explaining import column_shares, quartiles
from aberra.contract.feedback import Feedback, checked_labels
from aberra.contract.members import Data, Scores, member_scores
from aberra.contract.scorer import Scorer, check_finite
from aberra.data.drift.portrait import Portrait
from aberra.data.drift.sentences import zoned_columns
from aberra.data.drift.verdict import Drift, compared
from aberra.data.tables import (
    Encode,
    Missing,
    TableReader,
    as_frame,
    as_pandas,
    check_numbers,
    needs_reader,
    numbers_of,
    plain,
    refuse_dates,
    whole_numbers_fit,
)
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.errors import ArgumentError, CollapseWarning, DataError, DivergenceError
from aberra.rng import single_thread
from aberra.scikit import StrOptions


@estimator
class RowScorer(Scorer):
    """A model of rows: a detector, or an ensemble; images are rows of pixels to it."""

    missing: Missing = parameter(
        StrOptions({"error", "impute"}),
        default="error",
        doc="""What to do with gaps in a table: "error" says where they are, "impute" fills them
        with the column's median.""",
    )
    encode: Encode = parameter(
        StrOptions({"error", "auto"}),
        default="error",
        doc="""What to do with columns of text: "error" refuses them, "auto" reads the numbers and
        dates that are written in one form, and replaces every other value by how rare it is.""",
    )

    n_features_in_: int = learnt("Number of columns (pixels times channels for images).")
    feature_names_in_: NDArray[np.object_] = learnt(
        "Names of the columns, where the training data had names.", optional=True
    )
    references_: Annotated[NDArray[np.float64], Shape(3, "D")] = learnt()  # quartiles of the rows
    reader_: TableReader | None = learnt()
    portrait_: Portrait = learnt(
        "What the training table looked like, for `compare`; not for images.", optional=True
    )

    feedback_: Feedback = learnt(
        "What reviewers said about some rows, where `feedback` was given any.", optional=True
    )

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
        data = self._validate(X, reset=False)
        scores, marks = self._mean_score(data), self.review_marks()
        check_finite(scores, self.members_.why_not_finite(type(self).__name__))
        if marks is None:
            return scores
        adjusted = marks.adjusted(scores, data)
        check_finite(adjusted, "The marks of reviewers move some scores beyond all numbers.")
        return adjusted

    @property
    def sees_gaps(self) -> bool:
        """Whether gaps in a table reach the model, which makes something of them."""
        return False

    def _mean_score(self, data: Data) -> Scores:
        with single_thread():
            return member_scores(self.members_, data).mean(axis=0)

    def column_names(self) -> list[str] | None:
        """Return the names of the columns, if the model was fitted on a table with names."""
        held = vars(self).get("feature_names_in_")
        return None if held is None else [str(name) for name in held]

    def column_kinds(self) -> list[str] | None:
        """Return what each column holds ("number", "text", "time"), if anything but numbers."""
        return None if self.reader_ is None else list(self.reader_.kinds)

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
        if isinstance(data, pd.DataFrame):
            raise DataError(
                "There are no explanations where a pipeline gets the table as it is. Prepare the "
                "columns before, and fit the detector on what comes out."
            )
        with single_thread():
            shares = self._by_column(column_shares(self.members_, data, self.references_))
        names = self.column_names()
        if names is None:
            return shares
        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(shares, columns=names, index=index)

    def _by_column(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the shares of all numbers that one column became."""
        if self.reader_ is None:
            return shares
        found = np.zeros((self.n_features_in_, len(shares)))
        np.add.at(found, self.reader_.owners(), shares.T)
        return found.T

    def training_portrait(self) -> Portrait | None:
        """Return what the training table looked like; None for images, or an older model."""
        return vars(self).get("portrait_")

    def compare(self, X: ArrayLike) -> Drift:
        """Say whether new rows are still like the training rows, and where they differ.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            New rows, such as the batch of a day; a hundred or more are needed to see anything but
            large differences.

        Returns
        -------
        drift : Drift
            A verdict ("steady", "watch" or "moved"), what decided it in sentences, the share of
            rows that is flagged now and was in training, and each column with the size of its
            shift and a p-value that is corrected for the number of columns. Up to 5 % of dirty
            rows are no drift.

        Raises
        ------
        DataError
            If the model was fitted on images, or by a version that kept no portrait.
        """
        check_is_fitted(self, "members_")
        before = self.training_portrait()
        if before is None:
            raise DataError(
                "This model keeps no portrait of its training data to compare with: it was fitted "
                "on images, or by an earlier version of Aberra. Fit it again on a table."
            )
        rows = as_pandas(X)
        now = before.count(rows, self.anomaly_score(rows), self.threshold_)
        return compared(before, now, zoned_columns(rows), marked=self.review_marks() is not None)

    def feedback(self, X: ArrayLike, labels: ArrayLike) -> Self:
        """Learn from what a reviewer said about some rows, without training again.

        Scores of rejected rows, and of rows like them, rise; those of accepted rows fall. Rows
        that are like none of them keep their scores. The threshold, the scores of the training rows
        and the reasons stay as they were. All marks are kept with the model; a new `fit` forgets
        them.

        Parameters
        ----------
        X : array-like of shape (k, n_features)
            The rows that were reviewed.
        labels : array-like of shape (k,)
            1 or "reject" for an anomaly, 0 or "accept" for a row that is fine. A row that is marked
            again takes the new mark.

        Returns
        -------
        self : the same model, with other scores
        """
        check_is_fitted(self, "members_")
        data, said = self._validate(X, reset=False), checked_labels(labels)
        if len(data) != len(said):
            raise DataError(f"There are {len(data)} rows, but {len(said)} marks.")
        before = self.review_marks() or self._no_marks()
        rows = data.astype(np.float64)
        self.feedback_ = before.with_marks(rows, said, self._mean_score(data))
        return self

    def review_marks(self) -> Feedback | None:
        """Return what reviewers said so far; None if nothing."""
        return vars(self).get("feedback_")

    def _no_marks(self) -> Feedback:
        portrait = self.training_portrait()
        if portrait is None or portrait.scores is None:
            raise DataError(
                "feedback is for models of tables; this one was fitted on images, or by an earlier "
                "version of Aberra."
            )
        lower, middle, upper = self.references_
        spread = np.where(upper > lower, upper - lower, 1.0)
        usual = np.array([portrait.scores.quantile(q) for q in (0.5, 0.75, 0.999)])
        return Feedback.empty(middle, spread, usual)

    def _validate(self, X: ArrayLike, reset: bool) -> Data:
        """Check the rows; images (n, c, h, w) come back flattened, text columns as numbers."""
        with whole_numbers_fit(), columns_as_fitted():
            return self._validated(plain(as_pandas(X)), reset)

    def _validated(self, X: Any, reset: bool) -> Data:
        image = self._image_shape(X, reset)
        if self._takes_frames and isinstance(X, pd.DataFrame):
            return self._checked_frame(X, reset)
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
        else:
            refuse_dates(X)
        checks = {"dtype": "numeric", "ensure_min_samples": fewest, "ensure_all_finite": False}
        if rows is X or image is not None:
            data = np.asarray(validate_data(self, rows, reset=reset, **checks))
        else:
            data = np.asarray(check_array(rows, estimator=self, input_name="X", **checks))
        if data.dtype.kind == "O":  # whole numbers beyond 64 bits
            data = data.astype(np.float64)
        check_numbers(data, self._number_names(), gaps_allowed=self.missing == "impute")
        if reset:
            self._portray(X if rows is not X else data)
        return data

    @property
    def _takes_frames(self) -> bool:
        """Whether a data frame goes on as it is, with all its columns, names and gaps."""
        return False

    def _checked_frame(self, X: pd.DataFrame, reset: bool) -> Any:
        """Return a data frame as it is, once its columns are those that are wanted."""
        if reset:
            self.reader_ = None
        validate_data(self, X, reset=reset, skip_check_array=True)
        if len(X) < (2 if reset else 1):
            raise DataError(f"Found {len(X)} rows, which is too few.")
        if reset:
            self._portray(X)
        return X

    def _number_names(self) -> list[str] | None:
        """Return the column's name for each number that the members see."""
        names = self.column_names()
        if names is None or self.reader_ is None:
            return names
        return [names[j] for j in self.reader_.owners()]

    def _portray(self, table: ArrayLike) -> None:
        """Keep what a training table looks like, gaps and text included."""
        for name in ("portrait_", "feedback_", "positions_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if self.image_shape_ is None:
            forms = None if self.reader_ is None else self.reader_.forms
            self.portrait_ = Portrait.of(table, self.column_names(), forms)

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
            why = "`missing` and `encode` are for tables: leave both at 'error'."
            raise ArgumentError("missing" if self.missing != "error" else "encode", why)

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
        return self.reader_.transform(table, fill=not self.sees_gaps)

    def _conclude(self, scores: Scores, data: Data) -> None:
        """Learn what follows from the training rows' scores."""
        if not np.isfinite(scores).all():
            raise DivergenceError(self.members_.why_not_finite(type(self).__name__))
        numbers = numbers_of(data) if isinstance(data, pd.DataFrame) else data
        self._warn_if_constant(scores, numbers)
        self._place_threshold(scores)
        self.references_ = np.nan_to_num(quartiles(numbers))
        if self.image_shape_ is None:
            self.portrait_ = self.portrait_.scored(scores, self.threshold_)

    def _warn_if_constant(self, scores: Scores, data: Data) -> None:
        """Warn when all scores are one although the rows are not."""
        if np.ptp(scores) > 1e-12 * max(1.0, float(np.abs(scores).max())):
            return
        if len(data) > 1 and bool((data != data[:1]).any()):
            warnings.warn(
                f"{type(self).__name__} gives all {len(scores)} training rows the same score, "
                f"which separates nothing. {self.members_.why_all_equal()}",
                CollapseWarning,
                stacklevel=5,  # this, _conclude, fit, the guard around it
            )
