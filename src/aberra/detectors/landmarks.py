"""How far a row is from some trusted rows: from a tenth of them, and from the nearest few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

Single = NDArray[np.float32]
Array = NDArray[np.float64]

NEAR = 0.1
CLOSE = 3  # the nearest may be the row itself


@dataclass(frozen=True)
class Landmarks:
    """Some rows, and how many of them make a neighbourhood."""

    rows: Annotated[Single, Shape("s", "V", dtype="float32")]
    n_near: int

    def __post_init__(self) -> None:
        if not 1 <= self.n_near <= len(self.rows):
            raise ValueError("a neighbourhood is larger than the number of landmarks")

    def distances(self, rows: Single) -> tuple[Array, Array]:
        """Return how far every row is from its neighbourhood, and from its third landmark.

        A neighbourhood of a tenth of all rows, instead of five rows, is too large for a cluster of
        dirt to fill, so dirt does not become its own neighbour. The third nearest landmark tells
        whether a row lies between the groups of a table that has several.
        """
        squares = rows @ (-2 * self.rows.T)
        squares += np.square(self.rows).sum(axis=1)
        close = min(CLOSE, len(self.rows)) - 1
        squares.partition((close, self.n_near - 1), axis=1)
        own = np.square(rows).sum(axis=1, dtype=np.float64)
        far = np.sqrt(np.maximum(squares[:, self.n_near - 1] + own, 0.0))
        return far, np.sqrt(np.maximum(squares[:, close] + own, 0.0))


def landmarks(rows: Single, trust: Array, most: int, generator: np.random.Generator) -> Landmarks:
    """Draw landmarks by the trust in them, no more than the trust amounts to."""
    amount = int(np.clip(trust.sum() ** 2 / np.square(trust).sum(), 1, most))
    trusted = np.flatnonzero(trust)
    n = min(amount, len(trusted))
    chosen = generator.choice(trusted, n, replace=False, p=trust[trusted] / trust[trusted].sum())
    return Landmarks(rows[np.sort(chosen)], max(1, round(NEAR * n)))
