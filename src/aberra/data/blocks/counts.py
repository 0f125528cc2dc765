"""What is counted in every column of a long table: values, gaps, and the two ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from aberra.data.blocks.sample import Rows


@dataclass(frozen=True)
class ColumnCounts:
    """One column, counted; `+` combines two.

    Parameters
    ----------
    n : int, default 0
        Rows.
    gaps : int, default 0
        Rows without a value.
    lowest, highest : float, str or None, default None
        The two ends, as numbers, as text, or as seconds; None without any value.
    """

    n: int = 0
    gaps: int = 0
    lowest: Any = None
    highest: Any = None

    @classmethod
    def of(cls, column: pd.Series[Any]) -> Self:
        """Count the rows of one block."""
        held = pa.array(column, from_pandas=True)
        ends = pc.min_max(held).as_py() if len(held) > held.null_count else {}
        return cls(len(held), held.null_count, ends.get("min"), ends.get("max"))

    def __add__(self, other: Self) -> Self:
        """Return the counts of both together."""
        ends = [end for one in (self, other) for end in (one.lowest, one.highest)]
        known = [end for end in ends if end is not None]
        low, high = (min(known), max(known)) if known else (None, None)
        return type(self)(self.n + other.n, self.gaps + other.gaps, low, high)

    @property
    def varies(self) -> bool:
        """Whether there are two different values."""
        return bool(self.lowest != self.highest)

    @property
    def spans_rows(self) -> bool:
        """Whether the values could be the numbers from some number on, one for each row."""
        if self.gaps or not isinstance(self.lowest, int | float) or isinstance(self.lowest, bool):
            return False
        whole = float(self.lowest).is_integer() and float(self.highest).is_integer()
        return whole and self.highest - self.lowest == self.n - 1


Counts = dict[str, ColumnCounts]


def counted(rows: Rows) -> Counts:
    """Count the columns of a block; those without names are called x0, x1, ..."""
    if isinstance(rows, np.ndarray):
        rows = pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])], copy=False)
    return {str(name): ColumnCounts.of(rows[name]) for name in rows.columns}


def together(one: Counts, two: Counts) -> Counts:
    """Return the counts of two blocks together; the first may be empty."""
    return {name: one.get(name, ColumnCounts()) + counts for name, counts in two.items()} or one
