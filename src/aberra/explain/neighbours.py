"""Ordinary rows that resemble an odd one most: what it would look like if it were one of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.contract.rows import RowScorer

MOST_ROWS = 20_000


class Neighbours:
    """Some ordinary rows of a table, among which the nearest are looked for.

    Parameters
    ----------
    model : RowScorer
        Fitted on a table; it says how columns become numbers and how far they spread.
    table : DataFrame
        The columns that the model takes, in its order.
    ordinary : ndarray of shape (n,)
        Positions of the rows that are not odd. Of more than 20,000 rows some are taken, at even
        distances.
    """

    def __init__(self, model: RowScorer, table: pd.DataFrame, ordinary: NDArray[np.int64]) -> None:
        step = max(1, -(-len(ordinary) // MOST_ROWS))
        self.model = model
        self.positions = ordinary[::step]
        self.places = self._places(table.iloc[self.positions])

    def nearest(self, row: pd.DataFrame, n: int = 3) -> NDArray[np.int64]:
        """Return the positions of the n rows that are nearest to one row, the nearest first.

        Columns count by the spread of their middle half, and far values are drawn closer, so that
        one wild cell does not decide alone which rows are near.
        """
        apart = np.abs(self.places - self._places(row)).sum(axis=1)
        return self.positions[np.argsort(apart, kind="stable")[:n]]

    def _places(self, rows: pd.DataFrame) -> NDArray[np.float64]:
        reader = self.model.reader_
        if reader is None:
            numbers = rows.to_numpy(np.float64, na_value=np.nan)
        else:
            numbers = reader.transform(rows)
        low, middle, high = self.model.references_
        spread = np.where(high > low, high - low, 1.0)
        places = np.arcsinh((numbers - middle) / spread)
        return np.where(np.isnan(places), 0.0, places)
