"""Members that trained in several places, answering as one ensemble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Members


@dataclass(eq=False)
class Committee(Members):
    """The members of several stacks, side by side.

    Parameters
    ----------
    parts : list of Members
        The stacks. Each worker of an engine trains one; without an engine there is only one.
    """

    parts: list[Members]

    def __post_init__(self) -> None:
        self.n_members = sum(part.n_members for part in self.parts)
        self.in_threads = all(part.in_threads for part in self.parts)
        sizes = [part.tile_rows for part in self.parts]
        self.tile_rows = None if None in sizes else min(size for size in sizes if size is not None)

    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Return the scores of all members, (m, n)."""
        return np.concatenate([part.scores(tile) for part in self.parts])

    def maps(self, tile: Data) -> NDArray[np.float32]:
        """Return the maps of all members, (m, n, h, w), where they are localisers."""
        return np.concatenate([part.maps(tile) for part in self.parts])

    def maps_and_scores(self, tile: Data) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the maps of all members and their scores, where they are localisers."""
        maps, scores = zip(*(part.maps_and_scores(tile) for part in self.parts), strict=True)
        return np.concatenate(maps), np.concatenate(scores)

    def restored(self, tile: Data) -> NDArray[np.float32]:
        """Return the restorations of all members, (m, n, c, h, w), where they are localisers."""
        return np.concatenate([part.restored(tile) for part in self.parts])

    def why_not_finite(self, model: str) -> str:
        """Return what the members say; they are all of one kind."""
        return self.parts[0].why_not_finite(model)

    def why_all_equal(self) -> str:
        """Return what the members say; they are all of one kind."""
        return self.parts[0].why_all_equal()

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Try out every part."""
        for part in self.parts:
            part.probe(n_features, image_shape)
