"""Labels, which measure a result and never train."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.tables import kind_of
from aberra.errors import DataError
from aberra.metrics import auroc, average_precision


def anomalies(labels: pd.Series[Any]) -> tuple[NDArray[np.bool_], str]:
    """Return which labels mean an anomaly, and the label that was taken for one.

    Raises
    ------
    DataError
        Unless there are exactly two different labels.
    """
    kinds = labels.unique()
    if len(kinds) != 2:
        raise DataError(
            f"The label column {labels.name!r} holds {len(kinds)} different values. It must hold "
            "two: one for normal rows and one for anomalies."
        )
    if kind_of(labels) == "number" and {*map(float, kinds)} in ({0.0, 1.0}, {-1.0, 1.0}):
        odd = 1 if 0 in kinds else -1
    else:
        odd = labels.value_counts(ascending=True).index[0]
    return (labels == odd).to_numpy(bool), str(odd)


def measured(labels: pd.Series[Any], scores: NDArray[np.float64]) -> dict[str, float]:
    """Return how well scores rank the anomalies; rows without a label are left out."""
    known = labels.notna().to_numpy()
    y, _ = anomalies(labels[known])
    return {"auroc": auroc(y, scores[known]), "ap": average_precision(y, scores[known])}
