"""Which columns a row's score comes from: each cell is hidden in turn, and the score watched.

Where columns move together, that is not enough: with one of them hidden, the others stay where they
are, and the row is as odd as before, or odder. Then each cell is shown alone, too.
"""

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
HARDLY = 0.1  # of what a row scores above an ordinary one: no cell alone takes more away


def column_shares(
    members: Members, data: Data, references: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each column's share of the score, (n, d), each row summing to 1.

    A column's part is how far the score falls, on average, when that cell takes the column's
    lower quartile, median and upper quartile. In a row of very many columns only the cells that
    lie furthest from the middle of theirs are looked at. On planted anomalies this named the right
    column more often than the reconstruction error did, also for detectors that reconstruct.

    If the score hardly falls whichever cell is hidden, several columns say the same. How far the
    score of a row of medians rises with that cell is then added: a cell that is odd without the
    others keeps its part, and one that merely belongs to the others loses what it was given.
    """
    before = member_scores(members, data).mean(axis=0)
    ordinary = float(member_scores(members, references[1:2]).mean())
    parts = np.zeros(data.shape)
    n, d = data.shape
    size = n if members.tile_rows is None else max(1, min(EXPLAINED_ROWS, STACKED_CELLS // d**2))

    def explain(start: int) -> None:
        block = slice(start, start + size)
        rows = data[block].astype(np.float64)
        parts[block] = _parts(members, rows, references, before[block], ordinary)

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


def _parts(
    members: Members, rows: Data, references: NDArray[np.float64], before: Scores, ordinary: float
) -> NDArray[np.float64]:
    """Return each column's part, (n, d), summed over its references."""
    hidden, n = _hidden(rows, references), len(references)
    after = [_with_one_cell(members, rows, hidden, cells) for cells in references]
    falls = before - np.stack(after)  # (3, k, n)
    parts: NDArray[np.float64] = np.maximum(falls, 0.0).sum(axis=0)
    together = parts.max(axis=0) < HARDLY * n * (before - ordinary)
    if together.any():
        some, middle = rows[together], np.broadcast_to(references[1], rows[together].shape)
        rises = _with_one_cell(members, middle, hidden[:, together], some) - ordinary
        both = np.maximum(falls[:, :, together].sum(axis=0) + n * rises, 0.0)
        parts[:, together] = np.where(both.any(axis=0), both, parts[:, together])
    found = np.zeros(rows.shape)
    found[np.arange(len(rows)), hidden] = parts
    return found


def _hidden(rows: Data, references: NDArray[np.float64]) -> Rows:
    """Return which column of each row is hidden in each variant, (k, n)."""
    n, d = rows.shape
    if d <= MOST_HIDDEN:
        return np.repeat(np.arange(d)[:, None], n, axis=1)
    lower, middle, upper = references
    far = np.abs(rows - middle) / np.where(upper > lower, upper - lower, 1.0)
    far[np.isnan(far)] = np.inf  # a gap may be what is odd
    return np.argsort(-far, axis=1, kind="stable")[:, :MOST_HIDDEN].T


def _with_one_cell(
    members: Members, rows: Data, columns: Rows, cells: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the scores, (k, n), of rows in which the cell of one column is another, k times.

    `columns` (k, n) says which column that is, and `cells`, of one row or of each, what it becomes.
    All variants of a few rows are scored as one stack, so that tiles are full. Members without
    tiles may look at a row's neighbours, and get one variant of all rows at a time.
    """
    (n, d), others = rows.shape, np.broadcast_to(cells, rows.shape)
    at_once = 1 if members.tile_rows is None else max(1, STACKED_CELLS // (n * d))
    found = []
    for start in range(0, len(columns), at_once):
        some = columns[start : start + at_once]
        variants = np.repeat(rows[None], len(some), axis=0)  # (k, n, d)
        variants[np.arange(len(some))[:, None], np.arange(n), some] = others[np.arange(n), some]
        scores = member_scores(members, variants.reshape(-1, d)).mean(axis=0)
        found.append(scores.reshape(len(some), n))
    return np.concatenate(found)
