"""Trained members of a model, and how they score data of any length.

A model is one or more members of the same kind; what `fit` learns is a `Members` object, and
scoring means asking it. Abilities that only some members have are methods with a default here, so
that nobody has to look whether they are there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.rng import for_each

Data = NDArray[Any]  # (n, d), any number type; images are flattened
Scores = NDArray[np.float64]
LARGEST_SCORE = 1e150  # sums and squares of scores must not overflow
Rows = NDArray[np.int64]  # (m, n_drawn): the rows that each member trains on


class Members(ABC):
    """Trained members of one ensemble; a single model is the case of one member."""

    n_members: int
    tile_rows: int | None  # rows in a call, filled up or cut to it; None: all rows in one call
    in_threads: bool = False  # whether several threads may ask at the same time

    @abstractmethod
    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Score one tile of raw rows: (n, d) in, (m, n) out, high = anomalous."""

    def maps(self, tile: Data) -> NDArray[np.float32]:
        """Return each member's anomaly maps (m, n, h, w) of raw images; for localisers."""
        raise NotImplementedError(f"{type(self).__name__} draws no maps")

    def restored(self, tile: Data) -> NDArray[np.float32]:
        """Return each member's restored images (m, n, c, h, w); for localisers."""
        raise NotImplementedError(f"{type(self).__name__} restores no images")

    def maps_and_scores(self, tile: Data) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return `maps` and `scores` for the price of one; for localisers."""
        raise NotImplementedError(f"{type(self).__name__} draws no maps")

    def why_not_finite(self, model: str) -> str:
        """Say that scores of the training rows are not finite, and what to do about it.

        `model` is the name of the estimator that is being fitted.
        """
        return f"{model} returned scores that are not finite. Look for columns of extreme scale."

    def why_all_equal(self) -> str:
        """Say why all training rows may have the same score, and what to do about it."""
        return "Look for columns that say something about the rows."

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Raise an error unless the parts fit each other and data of this size.

        A model that was loaded from a file is tried out in this way before anybody uses it.
        """
        with np.errstate(all="ignore"):
            shape = self.scores(np.zeros((1, n_features))).shape
        if shape != (self.n_members, 1):
            raise ValueError(f"one row gives scores of shape {shape}")

    def probe_finite(self, rows: Data) -> None:
        """Raise an error unless rows such as those of the training get scores one can work with."""
        if not (np.abs(self.scores(rows)) <= LARGEST_SCORE).all():
            raise ValueError("rows like those of the training have no finite scores, or huge ones")


def member_scores(members: Members, data: Data) -> NDArray[np.float64]:
    """Score rows tile by tile, (m, n).

    Every tile has the same number of rows (the last is filled up), so that a row goes through the
    same arithmetic whatever it is scored with, and memory stays at one tile.
    """
    size = members.tile_rows
    if size is None:
        return members.scores(data)
    scores = np.empty((members.n_members, len(data)))

    def score(start: int) -> None:
        tile, n = tile_at(data, start, size)
        scores[:, start : start + n] = members.scores(tile)[:, :n]

    at_each(score, range(0, len(data), size), members)
    return scores


def at_each(work: Callable[[int], None], starts: range, members: Members) -> None:
    """Do the work at each start, in threads if the members can answer several at a time."""
    if members.in_threads:
        for_each(work, starts)
        return
    for start in starts:
        work(start)


def tiles(data: Data, size: int) -> Iterator[tuple[Data, int]]:
    """Yield tiles of exactly `size` rows, the last filled up, with how many rows count."""
    for start in range(0, len(data), size):
        yield tile_at(data, start, size)


def tile_at(data: Data, start: int, size: int) -> tuple[Data, int]:
    """Return the tile that begins there, filled up, and how many of its rows count."""
    tile = data[start : start + size]
    n = len(tile)
    return (tile if n == size else np.concatenate([tile, np.repeat(tile[-1:], size - n, 0)])), n


def row_counts(rows: Rows, n: int) -> NDArray[np.float64]:
    """Return how often each member drew each row, (m, n)."""
    return np.stack([np.bincount(drawn, minlength=n) for drawn in rows]).astype(np.float64)
