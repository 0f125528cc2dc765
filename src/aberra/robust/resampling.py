"""Which rows each member of the ensemble trains on."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Rows, Scores

Resample = bool | Literal["subsample", "auto"]


def resampled_rows(
    n: int, n_members: int, resample: Resample, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw one line of rows per member [IADC-A1.3].

    True: n rows with replacement (bootstrap), drawn uniformly, because the weights already act in
    the objective. "subsample": half of the rows without replacement. False: all rows.
    """
    if not resample:
        return np.broadcast_to(np.arange(n), (n_members, n))  # no copy
    if isinstance(resample, str):
        half = max(2, n // 2)
        return np.stack([np.sort(generator.permutation(n)[:half]) for _ in range(n_members)])
    return generator.integers(n, size=(n_members, n))


def with_weight(rows: Rows, weights: Scores) -> Rows:
    """Replace the drawn rows that have weight zero by others of the same draw.

    If a member drew nothing else, all members train on all rows that have weight.
    """
    if weights.all():
        return rows
    lines = [line[weights[line] > 0] for line in rows]
    if min(len(line) for line in lines) == 0:
        lines = [np.flatnonzero(weights) for _ in rows]
    return np.stack([np.resize(line, rows.shape[1]) for line in lines])
