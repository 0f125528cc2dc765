"""The scans that a model is fitted on: which train, which are held out, which slices are used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import find_volumes, read_volume
from aberra.errors import DataError
from aberra.localise.collect import CollectedSlices
from aberra.rng import stream

HELD_OUT = 0.1  # of the scans, for the height of the map
MOST_HELD = 16  # scans that place a height well enough
MOST_BYTES = 1 << 30  # of training slices in memory


@dataclass(frozen=True)
class Scans:
    """The scans of a path: those that train, those that are held out, and unusable ones."""

    source: Path
    pattern: str
    axes: str | None
    train: list[Path]
    held: list[Path]
    errors: dict[Path, str]

    @classmethod
    def at(cls, source: Path, pattern: str, axes: str | None, seed: int) -> Scans:
        """Find the scans of a path and hold some out."""
        scans = find_volumes(source, pattern) if source.is_dir() else [source]
        return cls(source, pattern, axes, *held_out(scans, seed, axes))

    @property
    def n_scans(self) -> int:
        """How many there are."""
        return len(self.train) + len(self.held) + len(self.errors)

    @property
    def for_height(self) -> list[Path]:
        """The scans that place the height of the map: training scans where none is held out."""
        return self.held or self.train[:MOST_HELD]


def held_out(
    scans: Sequence[Path], seed: int, axes: str | None
) -> tuple[list[Path], list[Path], dict[Path, str]]:
    """Return the scans to train on, those that only place the height, and unusable ones.

    The height is placed after the training, so its scans are tried before: one that cannot be
    used gives its place to another.
    """
    n = min(round(HELD_OUT * len(scans)), MOST_HELD)
    held: set[Path] = set()
    errors: dict[Path, str] = {}
    for k in stream(seed, 3).permutation(len(scans)):
        if len(held) == n:
            break
        try:
            brain_mask(read_volume(scans[k], axes))
            held.add(scans[k])
        except DataError as error:
            errors[scans[k]] = str(error)
    train = [path for path in scans if path not in held and path not in errors]
    return train, [path for path in scans if path in held], errors


def thinned(images: NDArray[Any]) -> NDArray[np.int64]:
    """Return positions of images, evenly spread, that fit into memory."""
    most = max(1, MOST_BYTES // (images[0].size * 4))
    n = min(len(images), most)
    return np.unique(np.linspace(0, len(images) - 1, n).round().astype(np.int64))


def slice_name(slices: CollectedSlices, k: int, root: Path) -> str:
    """Return what a slice is called: its scan, and how deep it lies."""
    source = slices.sources[k]
    name = source.relative_to(root).as_posix() if root.is_dir() else source.name
    return f"{name}, {slices.below_top[k]:g} mm below the top"
