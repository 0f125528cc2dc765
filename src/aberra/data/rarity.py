"""Text as numbers: how rare each value is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

HAIR = 1e-3  # between the first and the last of values that are equally rare
MISSING, NEW = "\0missing", "\0new"  # what a gap, and a value that is not known, are kept under


def rarity_of(column: pd.Series[Any]) -> dict[str, float]:
    """Return minus the logarithm of the share of rows that each value has.

    Where values occur that only one row has, later rows have values that no row had, and as many
    of them (Good and Turing). So a new value is then as rare as such a one, and no rarer.
    """
    counts = _labels(column).value_counts()
    n = len(column) + 1.0
    # A hair apart, so that two values of the same rarity can still be told from each other.
    found = {
        str(label): float(np.log(n / (counts[label] + 1.0))) + HAIR * place / len(counts)
        for place, label in enumerate(sorted(counts.index))
    }
    once = [found[label] for label in sorted(counts.index[counts == 1]) if label != MISSING]
    return {**found, NEW: once[len(once) // 2]} if once else found


def rarities(
    column: pd.Series[Any], rarity: dict[str, float], unseen: float
) -> NDArray[np.float64]:
    """Return how rare each cell is; `unseen` where nothing like it is among what is known."""
    labels = _labels(column)
    found = labels.map(rarity).fillna(labels.map({MISSING: unseen}))
    return np.asarray(found.fillna(rarity.get(NEW, unseen)), dtype=np.float64)


def is_known(value: Any, rarity: dict[str, float]) -> bool:
    """Say whether a value is among those that are known."""
    return _label(value) in rarity


def _labels(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return every value as text, whole numbers alike whether stored as 1 or as 1.0."""
    return column.astype(object).map(_label)


def _label(value: Any) -> str:
    if pd.isna(value):
        return MISSING
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
