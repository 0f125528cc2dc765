"""Tables as people have them: text, gaps, odd numbers; and what to say when they cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.date_parts import numbers_of_dates, parts_of_dates
from aberra.data.nested import refuse_nested
from aberra.data.rarity import rarities, rarity_of
from aberra.data.written import dates_of, form_of, means, odd_places, read_as
from aberra.declare import LATER
from aberra.errors import DataError
from aberra.words import count

Missing = Literal["error", "impute"]
Encode = Literal["error", "auto"]

LARGEST = 1e150  # beyond it the square of a number, and so a distance, overflows
SHOWN = 5
FILL = "Fill the gaps, drop the rows, or pass missing='impute'."

NAMES, FEWEST_NAMES = 0.9, 20  # text with a larger share of distinct values names the rows
WIDTH = {"value": 1, "rarity": 1, "elapsed": 1, "day": 2, "week": 2, "year": 2}

KINDS = {"number": "numbers", "time": "dates", "duration": "durations", "text": "text"}


def kind_of(column: pd.Series[Any]) -> str:
    """Return what a column holds: "number", "time", "duration" or "text"."""
    types = pd.api.types
    if types.is_complex_dtype(column.dtype):
        raise DataError(f"Complex data not supported: column {column.name!r}.")
    if types.is_bool_dtype(column.dtype) or types.is_numeric_dtype(column.dtype):
        return "number"
    if types.is_datetime64_any_dtype(column.dtype):
        return "time"
    return "duration" if types.is_timedelta64_dtype(column.dtype) else "text"


@dataclass
class TableReader:
    """Turns the columns of a table into numbers, the same way at fit and later.

    A number column keeps its values. With `encode="auto"` a column of text becomes how rare its
    value is, minus the logarithm of its share of the training rows; text that differs in nearly
    every row only names the rows and is left out. Text in which nearly all cells (95 %) are numbers
    or dates as people write them ("1.234,56 €", "12 %", "27.02.2026") is read as what it says, and
    a cell that is written otherwise is a gap.

    A date becomes its time of the day, day of the week and day of the year, as far as the training
    rows span several of them, each as a point on a circle. What lies later than all training rows
    is not odd for that: the time that has passed counts only where dates are not in order, so that
    they do more than say when a row was written, and a later date counts as an ordinary one.

    With `missing="impute"` a gap in a column
    of numbers takes the column's median, and a gap in text is a value of its own.

    Attributes
    ----------
    kinds : list of str
        "number", "time", "duration" or "text", one per column.
    parts : list of list of str
        What becomes of each column: "value", "rarity", "elapsed", "day", "week", "year".
    medians : list of float
        Filled into gaps, one per number that comes out; empty unless `missing` is "impute".
    rarity : dict
        Rarity of each value of each text column, by position of the column.
    latest : dict
        The latest training date of each column of dates, and an ordinary one, by position.
    forms : dict, optional
        In which form each column of text is written that says numbers or dates, by position.
    """

    missing: Missing = "error"
    encode: Encode = "error"
    kinds: list[str] = field(default_factory=list)
    parts: list[list[str]] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    rarity: dict[int, dict[str, float]] = field(default_factory=dict)
    latest: dict[int, list[float]] = field(default_factory=dict)
    unseen: float = 0.0
    forms: dict[int, str] | None = field(default=None, metadata=LATER)

    def fit(self, table: pd.DataFrame) -> None:
        """Learn medians, the rarity of values and the parts of dates."""
        self.unseen = float(np.log(len(table) + 1.0))
        self.kinds = [kind_of(column) for _, column in _columns(table)]
        if "text" in self.kinds and self.encode == "error":
            odd = [j for j, kind in enumerate(self.kinds) if kind == "text"]
            raise DataError(
                f"Text instead of numbers in {_names(table, odd)}. Drop it, encode it, "
                "or pass encode='auto'."
            )
        text = [(j, column) for j, column in _columns(table) if self.kinds[j] == "text"]
        found = {j: form for j, column in text if (form := form_of(column)) is not None}
        self.forms = found or None
        self.rarity = {j: rarity_of(column) for j, column in text if j not in found}
        self.parts = [self._parts(j, column) for j, column in _columns(table)]
        if not any(self.parts):
            raise DataError(
                "No column says anything about the rows: they only name or date them, or are empty."
            )
        if self.missing == "impute":
            self.medians = np.nanmedian(self._numbers(table), axis=0).tolist()

    def meanings(self) -> list[str]:
        """Return what the columns say: as `kinds`, but numbers and dates where text says them."""
        forms = self.forms or {}
        return [
            means(forms[j]) or kind if j in forms else kind for j, kind in enumerate(self.kinds)
        ]

    def _parts(self, j: int, column: pd.Series[Any]) -> list[str]:
        meaning = self.meanings()[j]
        if meaning == "text":
            values = column.dropna()
            named = len(values) >= FEWEST_NAMES and values.nunique() > NAMES * len(values)
            return [] if named else ["rarity"]
        seconds = self._seconds(j, column)
        known = seconds[~np.isnan(seconds)]
        if meaning != "time":
            return ["value"] if len(known) or self.missing == "error" else []
        if not len(known):
            return []
        self.latest[j] = [float(known.max()), float(np.median(known))]
        return parts_of_dates(known)

    def owners(self) -> NDArray[np.int64]:
        """Return the column that each number comes from."""
        widths = [sum(WIDTH[part] for part in parts) for parts in self.parts]
        return np.repeat(np.arange(len(widths)), widths)

    def transform(self, table: pd.DataFrame, fill: bool = True) -> NDArray[np.float64]:
        """Return the table as numbers; gaps are filled, or left to whoever can use them."""
        if self.missing == "error":
            self._refuse_gaps_in_text(table)
            self._refuse_other_forms(table)
        values = self._numbers(table)
        if self.missing == "impute" and fill:
            gaps = np.isnan(values)
            values[gaps] = np.broadcast_to(self.medians, values.shape)[gaps]
        return values

    def _refuse_gaps_in_text(self, table: pd.DataFrame) -> None:
        gaps = {
            str(column.name): int(column.isna().sum())
            for j, column in _columns(table)
            if self.kinds[j] == "text"
        }
        if any(gaps.values()):
            listed = [f"{name!r} ({count(n, 'row')})" for name, n in gaps.items() if n]
            raise DataError(f"Input X contains gaps in column {_shortened(listed)}. {FILL}")

    def _refuse_other_forms(self, table: pd.DataFrame) -> None:
        for j, form in (self.forms or {}).items():
            column = table.iloc[:, j]
            if len(odd := odd_places(column, form)):
                raise DataError(
                    f"Column {column.name!r} is written as {form!r}, but has "
                    f"{str(column.iloc[odd[0]])!r} too ({count(len(odd), 'row')} are not in that "
                    "form). Correct them, drop the rows, or pass missing='impute', for which they "
                    "are gaps."
                )

    def _numbers(self, table: pd.DataFrame) -> NDArray[np.float64]:
        values = np.empty((len(table), len(self.owners())), dtype=np.float64)
        place = 0
        for j, column in _columns(table):
            for part in self._column(j, column) if self.parts[j] else ():
                values[:, place] = part
                place += 1
        return values

    def _column(self, j: int, column: pd.Series[Any]) -> list[NDArray[np.float64]]:
        """Return the numbers that a column becomes."""
        meaning = self.meanings()[j]
        if meaning == "text":
            return [rarities(column, self.rarity[j], self.unseen)]
        seconds = self._seconds(j, column)
        if meaning != "time":
            return [seconds]
        return numbers_of_dates(seconds, self.parts[j], self.latest[j])

    def _seconds(self, j: int, column: pd.Series[Any]) -> NDArray[np.float64]:
        """Return the numbers of a column, dates and durations in seconds."""
        kind = self.kinds[j]
        if self.forms is not None and j in self.forms:
            return read_as(column, self.forms[j])
        try:
            if kind == "time":
                return dates_of(column)
            if kind == "duration":
                return np.asarray(pd.to_timedelta(column).dt.total_seconds(), dtype=np.float64)
            if kind_of(column) in ("time", "duration"):
                raise ValueError(f"dtype {column.dtype}")
            return pd.to_numeric(column).to_numpy(np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"Column {column.name!r} held {KINDS[kind]} when the model was fitted, but now "
                f"holds something else: {str(error).splitlines()[0].rstrip('.')}."
            ) from error


def plain(X: Any) -> Any:
    """Return tensors as arrays, tables without sparse columns, arrays of dates as tables.

    Masked cells are gaps, and cells that hold several values are refused.
    """
    if type(X).__module__.partition(".")[0] == "torch":
        return _array_of(X)
    if isinstance(X, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(X)
        X = np.where(masked, np.nan, X.data) if masked.any() else X.data
    if isinstance(X, pd.DataFrame):
        _refuse_duplicates(X)
        refuse_nested(X)
        return _dense(X)
    return pd.DataFrame(X) if isinstance(X, np.ndarray) and X.dtype.kind in "Mm" else X


def _array_of(tensor: Any) -> NDArray[Any]:
    """Return the numbers of a tensor, whatever it computes with and wherever it lies."""
    if tensor.device.type == "meta":
        raise DataError("A tensor on the device 'meta' has a shape but no numbers.")
    try:
        numbers = tensor.detach().to_dense().cpu()
        try:
            return np.asarray(numbers.numpy())
        except TypeError:  # bfloat16 and shorter ones, which NumPy does not have
            return np.asarray(numbers.float().numpy())
    except RuntimeError as error:  # quantised, nested or conjugated ones
        raise DataError(
            f"This tensor of {tensor.dtype} has no rows of plain numbers. Give a dense tensor of "
            "real numbers."
        ) from error


def _refuse_duplicates(table: pd.DataFrame) -> None:
    if table.columns.has_duplicates:
        twice = sorted({str(name) for name in table.columns[table.columns.duplicated()]})
        raise DataError(f"Column names occur more than once: {twice[:SHOWN]}. Rename them.")


def _dense(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without sparse columns."""
    sparse = [j for j, kind in enumerate(table.dtypes) if isinstance(kind, pd.SparseDtype)]
    if sparse:
        table = table.copy()
        for j in sparse:
            table.isetitem(j, np.asarray(table.iloc[:, j]))
    return table


def refuse_dates(X: Any) -> None:
    """Raise an error about dates where all columns held numbers."""
    kinds = X.dtypes.items() if isinstance(X, pd.DataFrame) else ()
    for name, kind in kinds:
        if kind.kind in "Mm":
            raise DataError(
                f"Column {name!r} held numbers when the model was fitted, but now holds {kind}. "
                "Give it the column that it was fitted on."
            )


def needs_reader(X: Any, missing: Missing, encode: Encode) -> bool:
    """Say whether the columns have to be looked at one by one before they are numbers."""
    if not isinstance(X, pd.DataFrame):
        return missing == "impute" or encode == "auto"
    if missing == "impute" or encode == "auto":
        return True
    return any(kind_of(column) != "number" for _, column in _columns(X))


def numbers_of(table: pd.DataFrame) -> NDArray[np.float64]:
    """Return the columns of numbers, and 0 for all others."""
    values = np.zeros(table.shape)
    for j, column in _columns(table):
        if kind_of(column) == "number":
            values[:, j] = column.to_numpy(np.float64, na_value=np.nan)
    return values


def as_pandas(X: Any) -> Any:
    """Return a table of Polars or Arrow, or a structured array, as a data frame.

    Anything else comes back as it is.
    """
    if isinstance(X, np.ndarray) and X.dtype.names is not None:
        return pd.DataFrame(_records(X))
    library = type(X).__module__.partition(".")[0]
    if library == "polars":
        X = (X.collect() if hasattr(X, "collect") else X).to_arrow()
    if library in ("polars", "pyarrow"):
        return X.to_pandas(date_as_object=False)  # dates are dates, not text
    return X


def _records(X: NDArray[Any]) -> NDArray[Any]:
    """Return a structured array with one record for each row."""
    if X.ndim == 1 or X.shape == (len(X), 1):
        return X.reshape(-1)
    raise DataError(
        f"A structured array holds one record for each row, but this one has the shape {X.shape}. "
        f"Its columns are {', '.join(X.dtype.names or ())}."
    )


def as_frame(X: Any, infer: bool) -> pd.DataFrame:
    """Return rows as a data frame; with `infer`, columns of objects get the best type that fits."""
    # A list keeps each cell's own type, where an array would turn a mixed row into text.
    own = isinstance(X, pd.DataFrame | list)
    if isinstance(X, pd.DataFrame):
        frame = X
    else:  # an array is looked at where it is: nothing here writes to it
        frame = pd.DataFrame(X) if own else pd.DataFrame(np.asarray(X), copy=False)
        refuse_nested(frame)
    if not infer or all(kind_of(column) != "text" for _, column in _columns(frame)):
        return frame
    return frame.apply(_best_type, parse=not own)


def _best_type(column: pd.Series[Any], parse: bool) -> pd.Series[Any]:
    """Return objects as numbers or dates if all are; text is parsed only on request.

    In an array of text a number has no other way to be written. In a data frame or a list, text
    that looks like a number may be a postcode.
    """
    if kind_of(column) != "text" or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    inferred = column.infer_objects()
    if kind_of(inferred) != "text":
        return inferred
    if not parse and column.map(lambda value: isinstance(value, str)).any():
        return column
    try:
        return pd.to_numeric(column)
    except (TypeError, ValueError):
        return column


@contextmanager
def whole_numbers_fit() -> Iterator[None]:
    """Tell of whole numbers, which have no end in Python, that are beyond all floats."""
    try:
        yield
    except OverflowError as error:
        raise DataError(
            f"Input X contains whole numbers beyond {sys.float_info.max:.0e}. Rescale their "
            "column, or leave it out."
        ) from error


def check_numbers(
    values: NDArray[Any], names: list[str] | None, gaps_allowed: bool = False
) -> None:
    """Raise an error that names columns and counts if numbers are missing, infinite or huge."""
    if values.dtype.kind not in "fc":
        return
    if gaps_allowed and np.isnan(values).any():
        values = np.where(np.isnan(values), 0.0, values)
    # The two ends instead of the absolute values: no copy of the data.
    if float(values.min(initial=0.0)) >= -LARGEST and float(values.max(initial=0.0)) <= LARGEST:
        return
    labels = names if names is not None else [f"{j}" for j in range(values.shape[1])]
    for what, test, advice in (
        ("NaN", np.isnan, FILL),
        ("infinity", np.isinf, "Replace these values, or drop the rows."),
        (
            f"numbers beyond {LARGEST:g}, whose squares overflow",
            lambda v: np.abs(v.astype(np.float64)) > LARGEST,
            "Rescale these columns.",
        ),
    ):
        counts = np.array([int(test(values[:, j]).sum()) for j in range(values.shape[1])])
        if counts.any():
            bad = np.flatnonzero(counts)
            listed = _shortened([f"{labels[j]!r} ({count(counts[j], 'row')})" for j in bad])
            raise DataError(f"Input X contains {what} in column {listed}. {advice}")


def _columns(table: pd.DataFrame) -> list[tuple[int, pd.Series[Any]]]:
    return [(j, table.iloc[:, j]) for j in range(table.shape[1])]


def _names(table: pd.DataFrame, positions: Any) -> str:
    shown = [repr(str(table.columns[int(j)])) for j in positions]
    return ("column " if len(shown) == 1 else "columns ") + _shortened(shown)


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
