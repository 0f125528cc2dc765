"""How far a row is from its part of the crowd: a tenth of some trusted rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

Single = NDArray[np.float32]
Array = NDArray[np.float64]

NEAR = 0.1


@dataclass(frozen=True)
class Landmarks:
    """Some rows, and how many of them make a neighbourhood."""

    rows: Annotated[Single, Shape("s", "V", dtype="float32")]
    n_near: int

    def __post_init__(self) -> None:
        if not 1 <= self.n_near <= len(self.rows):
            raise ValueError("a neighbourhood is larger than the number of landmarks")

    def oddness(self, rows: Single) -> Array:
        """Return the distance of every row to the farthest landmark of its neighbourhood.

        A neighbourhood of a tenth of all rows, instead of five rows, is too large for a cluster of
        dirt to fill, so dirt does not become its own neighbour.
        """
        squares = rows @ (-2 * self.rows.T)
        squares += np.square(self.rows).sum(axis=1)
        squares.partition(self.n_near - 1, axis=1)
        nearest = squares[:, self.n_near - 1].astype(np.float64)
        nearest += np.square(rows).sum(axis=1, dtype=np.float64)
        return np.sqrt(np.maximum(nearest, 0.0))


def landmarks(rows: Single, trust: Array, most: int, generator: np.random.Generator) -> Landmarks:
    """Draw landmarks by the trust in them, no more than the trust amounts to."""
    amount = int(np.clip(trust.sum() ** 2 / np.square(trust).sum(), 1, most))
    trusted = np.flatnonzero(trust)
    n = min(amount, len(trusted))
    chosen = generator.choice(trusted, n, replace=False, p=trust[trusted] / trust[trusted].sum())
    return Landmarks(rows[np.sort(chosen)], max(1, round(NEAR * n)))
