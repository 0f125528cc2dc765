"""From rows in a request to what a model says about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Semaphore
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.errors import AberraError, DataError
from aberra.explain.reasons import reasons
from aberra.explain.subject import Subject
from aberra.scoring.rows import matched_columns, percentiles
from aberra.service.limits import Limits, RefusedError

Row = dict[str, Any] | list[Any]
EXPLAINED = 500  # rows a request; each costs three scorings a column


@dataclass(frozen=True)
class Answers:
    """A model that answers one request at a time, and keeps a few waiting.

    Parameters
    ----------
    subject : Subject
        The model, and what was noted when it was fitted.
    limits : Limits
    """

    subject: Subject
    limits: Limits
    waiting: Semaphore = field(init=False)
    lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        object.__setattr__(self, "waiting", Semaphore(self.limits.max_waiting + 1))

    def score(self, rows: list[Row]) -> dict[str, Any]:
        """Return scores, flags and percentiles of rows."""
        with self._turn():
            return self._scored(self._table(rows, self.limits.max_rows))

    def explain(self, rows: list[Row]) -> dict[str, Any]:
        """Return scores of rows, and the columns that they come from."""
        with self._turn():
            table = self._table(rows, min(EXPLAINED, self.limits.max_rows))
            found = self._scored(table)
            shares = np.asarray(self.subject.model.explain(table))
        names = self._names(shares.shape[1])
        found["reasons"] = [
            [{"column": name, "share": float(share)} for name, share in row]
            for row in reasons(shares, names)
        ]
        return found

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for the turn of this request; too many at a time are sent away."""
        if not self.waiting.acquire(blocking=False):
            raise RefusedError(503, "Too many requests are waiting. Try again in a moment.")
        try:
            with self.lock, _explained():
                yield
        finally:
            self.waiting.release()

    def _scored(self, table: Any) -> dict[str, Any]:
        model, reference = self.subject.model, self.subject.reference
        scores = np.asarray(model.anomaly_score(table))
        found = {
            "scores": scores.tolist(),
            "flags": (scores > model.threshold_).tolist(),
            "threshold": float(model.threshold_),
        }
        if reference is not None:
            found["percentiles"] = percentiles(scores, reference).tolist()
        return found

    def _table(self, rows: list[Row], most: int) -> pd.DataFrame | NDArray[Any]:
        """Return rows as the model was fitted: with names or without."""
        if not rows:
            raise DataError("There are no rows in the request.")
        if len(rows) > most:
            raise RefusedError(413, f"A request may have at most {most:,} rows, not {len(rows):,}.")
        if len({type(row) for row in rows}) > 1:
            raise DataError("Some rows have names and others have none. Send all in one way.")
        return self._named(rows) if isinstance(rows[0], dict) else self._in_order(rows)

    def _named(self, rows: list[Any]) -> pd.DataFrame | NDArray[Any]:
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns, _ = matched_columns(self.subject.model, names, None)
        # Other names are passed over row by row: a column each would take memory for all rows.
        held = [{name: row[name] for name in columns if name in row} for row in rows]
        chosen = pd.DataFrame(held, columns=columns)
        return chosen if self.subject.model.column_names() is not None else chosen.to_numpy()

    def _in_order(self, rows: list[Any]) -> pd.DataFrame | NDArray[Any]:
        names = self._names(self.subject.model.n_features_in_)
        odd = next((k for k, row in enumerate(rows) if len(row) != len(names)), None)
        if odd is not None:
            raise DataError(
                f"Row {odd} has {len(rows[odd])} values, but the model takes {len(names)}."
            )
        frame = pd.DataFrame(rows, columns=names)
        return frame if self.subject.model.column_names() is not None else frame.to_numpy()

    def _names(self, n: int) -> list[str]:
        return self.subject.model.column_names() or [f"column {j}" for j in range(n)]


@contextmanager
def _explained() -> Iterator[None]:
    """Lay what a model cannot take to the rows, in a sentence."""
    try:
        yield
    except (AberraError, RefusedError):
        raise
    except (ValueError, TypeError) as error:
        why = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"These rows cannot be scored: {why}.") from error
