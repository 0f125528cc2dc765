"""What the training table looked like, kept with the model in a few kilobytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.drift.distributions import Categories, Numbers
from aberra.data.tables import as_frame, kind_of
from aberra.data.written import dates_of, means, read_as
from aberra.declare import LATER

POINTS = ((50, 65), (500, 33))  # up to so many columns, so many points each
FEWEST_POINTS = 17
SCORE_POINTS = 101


@dataclass(frozen=True)
class ColumnPortrait:
    """What one column looked like.

    Parameters
    ----------
    name : str
    kind : str
        "number", "time" (seconds since 1970), "duration" (seconds) or "text".
    n_gaps : int
        Rows without a value.
    numbers : Numbers or None
        The distribution of the values; None for text.
    categories : Categories or None
        The distribution of the labels; None unless the column holds text.
    form : str, optional
        How numbers or dates are written in a column of text, see `aberra.data.written`.
    """

    name: str
    kind: str
    n_gaps: int
    numbers: Numbers | None
    categories: Categories | None
    form: str | None = field(default=None, metadata=LATER)

    @classmethod
    def of(cls, name: str, column: pd.Series[Any], n_points: int, form: str | None = None) -> Self:
        """Return the portrait of a column of the training table."""
        kind = kind_of(column) if form is None else str(means(form))
        if kind == "text":
            labels = _labels(column)
            return cls(name, kind, len(column) - len(labels), None, Categories.of(labels))
        values = _values(column, kind, form)
        n_gaps, numbers = len(column) - len(values), Numbers.of(values, n_points)
        return cls(name, kind, n_gaps, numbers, None, form)

    def count(self, column: pd.Series[Any]) -> Self:
        """Return what the same column of other rows looks like, at the same points."""
        if self.categories is not None:
            labels = _labels(column)
            counted = self.categories.count(labels)
            return replace(self, n_gaps=len(column) - len(labels), categories=counted)
        assert self.numbers is not None  # a column has one or the other
        values = _values(column, self.kind, self.form)
        return replace(self, n_gaps=len(column) - len(values), numbers=self.numbers.count(values))

    def __add__(self, other: Self) -> Self:
        """Return what both look like together."""
        n_gaps = self.n_gaps + other.n_gaps
        if self.categories is not None and other.categories is not None:
            return replace(self, n_gaps=n_gaps, categories=self.categories + other.categories)
        assert self.numbers is not None
        assert other.numbers is not None
        return replace(self, n_gaps=n_gaps, numbers=self.numbers + other.numbers)

    @property
    def n(self) -> int:
        """Rows with a value."""
        return (self.numbers or self.categories or _EMPTY).n

    @property
    def gap_share(self) -> float:
        """The share of rows without a value."""
        return self.n_gaps / max(self.n_gaps + self.n, 1)


@dataclass(frozen=True)
class Portrait:
    """What a table looked like: its columns one by one, and the scores of its rows.

    Parameters
    ----------
    columns : list of ColumnPortrait
    scores : Numbers or None
        The distribution of the anomaly scores; None as long as nothing was scored.
    n_rows, n_flagged : int
        Rows, and how many of them score above the threshold.
    """

    columns: list[ColumnPortrait]
    scores: Numbers | None = None
    n_rows: int = 0
    n_flagged: int = 0

    @classmethod
    def of(cls, X: Any, names: list[str] | None, forms: Mapping[int, str] | None = None) -> Self:
        """Return the portrait of a training table.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, d)
        names : list of str or None
            What the columns are called; None numbers them.
        forms : mapping, optional
            How numbers or dates are written in columns of text, by position.
        """
        table = as_frame(X, infer=True)
        called = names or [f"column {j}" for j in range(table.shape[1])]
        n_points = next((q for most, q in POINTS if len(called) <= most), FEWEST_POINTS)
        columns = [
            ColumnPortrait.of(name, column, n_points, (forms or {}).get(j))
            for j, (name, column) in enumerate(zip(called, _columns(table), strict=True))
        ]
        return cls(columns, n_rows=len(table))

    def scored(self, scores: NDArray[np.float64], threshold: float) -> Self:
        """Return the portrait with the scores of its rows."""
        flagged = int((scores > threshold).sum())
        return replace(self, scores=Numbers.of(scores, SCORE_POINTS), n_flagged=flagged)

    def count(self, X: Any, scores: NDArray[np.float64], threshold: float) -> Self:
        """Return what other rows look like, at the same points."""
        table = as_frame(X, infer=False)
        columns = [
            known.count(column) for known, column in zip(self.columns, _columns(table), strict=True)
        ]
        counted = None if self.scores is None else self.scores.count(scores)
        return replace(
            self,
            columns=columns,
            scores=counted,
            n_rows=len(table),
            n_flagged=int((scores > threshold).sum()),
        )

    def __add__(self, other: Self) -> Self:
        """Return what both look like together."""
        pairs = zip(self.columns, other.columns, strict=True)
        both = self.scores is not None and other.scores is not None
        return replace(
            self,
            columns=[one + two for one, two in pairs],
            scores=self.scores + other.scores if both else None,  # type: ignore[operator]
            n_rows=self.n_rows + other.n_rows,
            n_flagged=self.n_flagged + other.n_flagged,
        )


_EMPTY = Categories([], np.empty(0, np.int64), 0, True)


def _columns(table: pd.DataFrame) -> Iterator[pd.Series[Any]]:
    return (table.iloc[:, j] for j in range(table.shape[1]))


def _values(column: pd.Series[Any], kind: str, form: str | None) -> NDArray[np.float64]:
    """Return the numbers of a column without its gaps; a cell that is none counts as a gap."""
    if form is not None:
        values = read_as(column, form)
        return values[~np.isnan(values)]
    if kind == "time":
        values = dates_of(column)
    elif kind == "duration":
        seconds = pd.to_timedelta(column, errors="coerce").dt.total_seconds()
        values = np.asarray(seconds, np.float64)
    else:
        numbers = pd.to_numeric(column, errors="coerce")
        values = np.asarray(numbers.to_numpy(np.float64, na_value=np.nan), np.float64)
    return values[~np.isnan(values)]


def _labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the labels of a column without its gaps, 1 and 1.0 alike."""
    return column.dropna().astype(object).map(_label)


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
