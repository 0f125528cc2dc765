"""Which columns a row's score comes from: each cell is hidden in turn, and the score watched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Members, Rows, Scores, at_each, member_scores

EXPLAINED_ROWS = 256  # at a time, so that threads can share them
STACKED_CELLS = 1 << 22  # numbers in all the variants of the rows that are explained at a time
SORTED_CELLS = 1 << 20  # numbers copied at once to find quartiles
# Cells of a row that are hidden at most, those furthest from their columns' middle. The time grows
# with this number times the columns; without it, it would grow with the square of the columns.
MOST_HIDDEN = 1024


def column_shares(
    members: Members, data: Data, references: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each column's share of the score, (n, d), each row summing to 1.

    A column's part is how far the score falls, on average, when that cell takes the column's
    lower quartile, median and upper quartile. In a row of very many columns only the cells that
    lie furthest from the middle of theirs are looked at. On planted anomalies this named the right
    column more often than the reconstruction error did, also for detectors that reconstruct.
    """
    before = member_scores(members, data).mean(axis=0)
    parts = np.zeros(data.shape)
    n, d = data.shape
    size = n if members.tile_rows is None else max(1, min(EXPLAINED_ROWS, STACKED_CELLS // d**2))

    def explain(start: int) -> None:
        block = slice(start, start + size)
        parts[block] = _falls(members, data[block].astype(np.float64), references, before[block])

    at_each(explain, range(0, n, size), members)
    total = parts.sum(axis=1, keepdims=True)
    return np.divide(parts, total, out=np.full(parts.shape, 1 / data.shape[1]), where=total > 0)


def quartiles(data: Data) -> NDArray[np.float64]:
    """Return the quartiles of every column, (3, d).

    Some columns at a time: NumPy sorts in a copy, and a second copy of large data costs more than
    the sorting.
    """
    numbers = data.astype(np.uint8) if data.dtype == bool else data
    gaps = numbers.dtype.kind == "f" and bool(np.isnan(numbers).any())
    quantile = np.nanquantile if gaps else np.quantile
    width = max(1, SORTED_CELLS // len(data))
    parts = [
        quantile(numbers[:, start : start + width], (0.25, 0.5, 0.75), axis=0)
        for start in range(0, data.shape[1], width)
    ]
    return np.concatenate(parts, axis=1).astype(np.float64)


def _falls(
    members: Members, rows: Data, references: NDArray[np.float64], before: Scores
) -> NDArray[np.float64]:
    """Return how far the score falls, (n, d), summed over a column's references.

    All variants of a few rows are scored as one stack, so that tiles are full. Members without
    tiles may look at a row's neighbours, and get one variant of all rows at a time.
    """
    n, d = rows.shape
    parts, hidden = np.zeros((n, d)), _hidden(rows, references)
    at_once = 1 if members.tile_rows is None else max(1, STACKED_CELLS // (n * d))
    groups = [hidden[start : start + at_once] for start in range(0, len(hidden), at_once)]
    for reference in references:
        after = np.concatenate([_each_hidden(members, rows, g, reference) for g in groups])
        parts[np.arange(n), hidden] += np.maximum(before - after, 0.0)
    return parts


def _hidden(rows: Data, references: NDArray[np.float64]) -> Rows:
    """Return which column of each row is hidden in each variant, (k, n)."""
    n, d = rows.shape
    if d <= MOST_HIDDEN:
        return np.repeat(np.arange(d)[:, None], n, axis=1)
    lower, middle, upper = references
    far = np.abs(rows - middle) / np.where(upper > lower, upper - lower, 1.0)
    far[np.isnan(far)] = np.inf  # a gap may be what is odd
    return np.argsort(-far, axis=1, kind="stable")[:, :MOST_HIDDEN].T


def _each_hidden(
    members: Members, rows: Data, columns: Rows, reference: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the scores, (k, n), with a cell of each row at its column's reference, k times."""
    (n, d), k = rows.shape, len(columns)
    variants = np.repeat(rows[None], k, axis=0)  # (k, n, d)
    variants[np.arange(k)[:, None], np.arange(n), columns] = reference[columns]
    return member_scores(members, variants.reshape(-1, d)).mean(axis=0).reshape(k, n)
