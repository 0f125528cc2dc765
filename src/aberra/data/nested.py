"""Cells that hold several values, which nothing here compares: a table has one value in each."""

from __future__ import annotations

import numpy as np
import pandas as pd

from aberra.errors import DataError

NESTED = (list, dict, set, np.ndarray)
UNCLEAR = ("mixed", "unknown")  # what pandas says of columns that may hold such cells


def refuse_nested(table: pd.DataFrame) -> None:
    """Raise an error that names the column if a cell holds a list, an array or the like."""
    for name, column in table.items():
        if column.dtype.kind != "O" or not pd.api.types.infer_dtype(column).startswith(UNCLEAR):
            continue
        odd = next((value for value in column.astype(object) if isinstance(value, NESTED)), None)
        if odd is not None:
            raise DataError(
                f"Column {str(name)!r} holds {type(odd).__name__}, not numbers, dates or text. "
                "Leave it out, or make a column of each of its parts."
            )
