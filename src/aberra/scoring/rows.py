"""What a model says about some rows of a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from aberra.data.drift.packed import packed, unpacked
from aberra.data.drift.portrait import Portrait
from aberra.data.drift.sentences import zoned_columns
from aberra.errors import DataError
from aberra.explain.reasons import N_REASONS, leading_names
from aberra.scoring import Reasons

Scores = NDArray[np.float64]

TEXT = pa.string()
SHOWN = 8
COUNTS = b"aberra.portrait"  # where a table of answers keeps what its rows looked like
ZONED = b"aberra.zoned"  # and which of their columns had dates with offsets from UTC


@dataclass(frozen=True)
class RowAnswers:
    """A model, and how its answers become columns.

    Parameters
    ----------
    model : estimator
        Fitted on a table.
    columns : list of str
        The columns that it takes, in its order.
    id_column : str, optional
        The column that names the rows; without it they are numbered from 0.
    id_type : pyarrow type, default=string
        Of the identifiers in the result.
    reference : ndarray, optional
        Scores of the training rows, sorted, which percentiles refer to.
    reasons : {"none", "flagged", "all"}
        Which rows get reasons. A row's reasons cost three scorings a column.
    """

    model: Any
    columns: list[str]
    id_column: str | None = None
    id_type: pa.DataType = TEXT
    reference: Scores | None = None
    reasons: Reasons = "flagged"

    @property
    def wanted(self) -> list[str]:
        """The columns to read."""
        named = self.id_column is not None and self.id_column not in self.columns
        return [*self.columns, *([str(self.id_column)] if named else [])]

    @property
    def takes_gaps(self) -> bool:
        """Whether a row may have gaps."""
        return str(getattr(self.model, "missing", "error")) == "impute"

    @property
    def kinds(self) -> dict[str, str]:
        """What each column holds: "number", "text", "time" or "duration"."""
        kinds = self.model.column_kinds() or ["number"] * len(self.columns)
        held = dict(zip(self.columns, kinds, strict=True))
        if self.id_column is not None:
            held.setdefault(self.id_column, "text")
        return held

    @property
    def forms(self) -> dict[str, str]:
        """How numbers and dates are written in columns of text."""
        reader = self.model.reader_
        forms = None if reader is None else reader.forms
        return {self.columns[j]: form for j, form in (forms or {}).items()}

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the result."""
        name, kind = ("row", pa.int64()) if self.id_column is None else ("id", self.id_type)
        reasons = [(f"reason_{k + 1}", pa.string()) for k in range(N_REASONS)]
        numbers = [("score", pa.float64()), ("percentile", pa.float64()), ("flag", pa.bool_())]
        return pa.schema([(name, kind), *numbers, *reasons])

    def __call__(self, frame: pd.DataFrame, start: int) -> pa.Table:
        """Return score, percentile, flag and reasons of rows that begin at `start`."""
        rows = self._rows(frame)
        scores = self.model.anomaly_score(rows)
        flags = scores > self.model.threshold_
        ids: Any = np.arange(start, start + len(frame))
        if self.id_column is not None:
            ids = self._names_of(frame[self.id_column])
        columns = [ids, scores, self._percentiles(scores), flags]
        schema = self.schema.with_metadata(self._counted(rows, scores))
        return pa.table(
            [
                pa.array(values, field.type, from_pandas=True)
                for values, field in zip(
                    [*columns, *self._reasons(frame, rows, flags)], schema, strict=True
                )
            ],
            schema=schema,
        )

    def _names_of(self, column: pd.Series[Any]) -> pa.Array:
        """Return identifiers; whole numbers may come as text, which keeps all their digits."""
        if pa.types.is_string(self.id_type):
            return pa.array([None if pd.isna(value) else str(value) for value in column], TEXT)
        return pa.array(column.tolist(), from_pandas=True).cast(self.id_type)

    def _rows(self, frame: pd.DataFrame) -> Any:
        """Return the rows as the model saw them when it was fitted: with names or without."""
        rows = frame[self.columns]
        return rows.to_numpy() if self.model.column_names() is None else rows

    def _counted(self, rows: Any, scores: Scores) -> dict[bytes, bytes] | None:
        """Return what the rows look like, to be added up and compared with the training rows."""
        before = self.model.training_portrait()
        if before is None:
            return None
        counted = packed(before.count(rows, scores, self.model.threshold_))
        return {COUNTS: counted.encode(), ZONED: json.dumps(zoned_columns(rows)).encode()}

    def zoned(self, answers: pa.Table) -> set[int]:
        """Return which columns of the rows that were answered had dates with offsets."""
        return set(json.loads((answers.schema.metadata or {}).get(ZONED, b"[]")))

    def looked(self, answers: pa.Table) -> Portrait | None:
        """Return what the rows looked like that were answered; None for an older model."""
        held = answers.schema.metadata or {}
        return self.unpacked(held[COUNTS].decode()) if COUNTS in held else None

    def unpacked(self, text: str) -> Portrait:
        """Return what rows look like whose counts were packed."""
        return unpacked(text, self.model.training_portrait())

    def _percentiles(self, scores: Scores) -> Scores:
        if self.reference is None:
            return np.full(len(scores), np.nan)
        return percentiles(scores, self.reference)

    def _reasons(
        self, frame: pd.DataFrame, rows: Any, flags: NDArray[np.bool_]
    ) -> list[NDArray[np.object_]]:
        found = np.full((N_REASONS, len(frame)), None, dtype=object)
        which = np.flatnonzero(flags | (self.reasons == "all"))
        if self.reasons != "none" and len(which):
            some = rows.iloc[which] if isinstance(rows, pd.DataFrame) else rows[which]
            top = leading_names(np.asarray(self.model.explain(some)), self.columns)
            found[:, which] = top
        return list(found)


def percentiles(scores: Scores, reference: Scores) -> Scores:
    """Return the share of sorted reference scores, in percent, that each score reaches."""
    return 100.0 * np.searchsorted(reference, scores, side="right") / len(reference)


def matched_columns(
    model: Any, given: Sequence[str], id_column: str | None
) -> tuple[list[str], list[str]]:
    """Return the columns that the model takes, and those of the file that it does not.

    Parameters
    ----------
    model : estimator
    given : sequence of str
        Columns of the file.
    id_column : str, optional

    Raises
    ------
    DataError
        If a column that the model was fitted on is not there.
    """
    columns = model.column_names()
    if columns is None:
        columns = [name for name in given if name != id_column]
        if len(columns) != model.n_features_in_:
            raise DataError(
                f"The model was fitted on {model.n_features_in_} columns without names, but the "
                f"file has {len(columns)}. Leave out what it was not fitted on."
            )
        return columns, []
    there, wanted = set(given), set(columns)
    missing = [name for name in columns if name not in there]
    if missing:
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise DataError(
            f"The table lacks columns that the model was fitted on: {missing[:SHOWN]}{more}. Add "
            "or rename them, or fit a model without them."
        )
    return columns, [name for name in given if name not in wanted]
