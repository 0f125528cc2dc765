"""How far a row is from its nearest neighbours among some trusted rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape

Single = NDArray[np.float32]
Array = NDArray[np.float64]

NEIGHBOUR = 3  # the nearest may be the row itself


@dataclass(frozen=True)
class Landmarks:
    """Some rows that are trusted."""

    rows: Annotated[Single, Shape("s", "V", dtype="float32")]

    def __post_init__(self) -> None:
        if not len(self.rows):
            raise ValueError("there are no landmarks")

    def oddness(self, rows: Single) -> Array:
        """Return the distance of every row to its third landmark.

        It tells whether a row lies between the groups of a table that has several. Dirt that comes
        in groups is near to itself, so this view may make a row odder, but never more ordinary.
        """
        squares = rows @ (-2 * self.rows.T)
        squares += np.square(self.rows).sum(axis=1)
        place = min(NEIGHBOUR, len(self.rows)) - 1
        squares.partition(place, axis=1)
        own = np.square(rows).sum(axis=1, dtype=np.float64)
        return np.sqrt(np.maximum(squares[:, place] + own, 0.0))


def landmarks(rows: Single, trust: Array, most: int, generator: np.random.Generator) -> Landmarks:
    """Draw landmarks by the trust in them, no more than the trust amounts to."""
    amount = int(np.clip(trust.sum() ** 2 / np.square(trust).sum(), 1, most))
    trusted = np.flatnonzero(trust)
    n = min(amount, len(trusted))
    chosen = generator.choice(trusted, n, replace=False, p=trust[trusted] / trust[trusted].sum())
    return Landmarks(rows[np.sort(chosen)])
