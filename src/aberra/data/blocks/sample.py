"""The rows with the smallest keys: a sample that can be added up block by block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.blocks.keys import Keys, Positions, row_keys

Rows = pd.DataFrame | NDArray[Any]  # with names, or without


@dataclass(frozen=True)
class Sample:
    """Rows with small keys: `Sample(size)` is empty, `add` takes a block, `+` combines two.

    The order in which blocks come, and how the rows are cut into them, make no difference to what
    `drawn` returns.

    Parameters
    ----------
    size : int
        How many rows are wanted.
    seed : int, default 0
        Seed of the keys.
    bound : uint64 or None, default None
        Rows with larger keys are left out at once, see `keys.key_bound`. None keeps all until
        there are twice as many as wanted.
    """

    size: int
    seed: int = 0
    bound: np.uint64 | None = None
    keys: tuple[Keys, ...] = ()
    positions: tuple[Positions, ...] = ()
    rows: tuple[Rows, ...] = field(default=(), repr=False)

    @property
    def n_held(self) -> int:
        """Rows that are held at the moment; some may have to go."""
        return sum(map(len, self.keys))

    def add(self, start: int, rows: Rows) -> Self:
        """Return the sample with rows whose first one is at position `start`."""
        positions = np.arange(start, start + len(rows), dtype=np.int64)
        keys = row_keys(positions, self.seed)
        few = keys <= self.bound if self.bound is not None else np.ones(len(keys), bool)
        if not few.any():
            return self
        other = type(self)(
            self.size, self.seed, self.bound, (keys[few],), (positions[few],), (_taken(rows, few),)
        )
        return self + other

    def __add__(self, other: Self) -> Self:
        """Return the sample of both together."""
        both = type(self)(
            self.size,
            self.seed,
            self.bound,
            self.keys + other.keys,
            self.positions + other.positions,
            self.rows + other.rows,
        )
        return both._trimmed() if both.n_held > 2 * self.size else both

    def _trimmed(self) -> Self:
        keys, positions = np.concatenate(self.keys), np.concatenate(self.positions)
        if len(keys) <= self.size:
            return self
        kept = np.argpartition(keys, self.size - 1)[: self.size]
        rows = _taken(_joined(self.rows), kept)
        held = ((keys[kept],), (positions[kept],), (rows,))
        return type(self)(self.size, self.seed, self.bound, *held)

    def drawn(self) -> tuple[Positions, Rows]:
        """Return the rows of the sample and their positions, in the order of the table."""
        few = self._trimmed()
        positions = np.concatenate(few.positions)
        order = np.argsort(positions)
        return positions[order], _taken(_joined(few.rows), order)


def _joined(parts: tuple[Rows, ...]) -> Rows:
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)  # type: ignore[arg-type]
    return np.concatenate(parts)


def _taken(rows: Rows, which: NDArray[Any]) -> Rows:
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[which].reset_index(drop=True)
    return np.asarray(rows[which])
