"""Text as numbers: how rare each value is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

HAIR = 1e-3  # between the first and the last of values that are equally rare


def rarity_of(column: pd.Series[Any]) -> dict[str, float]:
    """Return minus the logarithm of the share of rows that each value has."""
    counts = _labels(column).value_counts()
    n = len(column) + 1.0
    # A hair apart, so that two values of the same rarity can still be told from each other.
    return {
        str(label): float(np.log(n / (counts[label] + 1.0))) + HAIR * place / len(counts)
        for place, label in enumerate(sorted(counts.index))
    }


def rarities(
    column: pd.Series[Any], rarity: dict[str, float], unseen: float
) -> NDArray[np.float64]:
    """Return how rare each cell is; `unseen` where its value is not among those that are known."""
    return np.asarray(_labels(column).map(rarity).fillna(unseen), dtype=np.float64)


def _labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return every value as text, whole numbers alike whether stored as 1 or as 1.0."""
    return column.astype(object).map(_label)


def _label(value: Any) -> str:
    if pd.isna(value):
        return "\0missing"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
