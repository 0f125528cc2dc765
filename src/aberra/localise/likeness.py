"""Whether a scan looks like those that a model was trained on, before anybody believes its map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.words import whole_percent

LEVELS = np.linspace(10, 90, 9)  # percentiles of the head's pixels
HEAD = 0.1  # what is darker is background
TOLERANCE = 2.0  # times the largest distance among training scans ...
MUCH = 0.2  # share of the brain; lesions of 200 ml are rare
LEAST_LIMIT = 0.08  # ... or this, where training scans are few or all alike


def look_of(images: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how the slices of one scan look as a model sees them, in [0, 1]: (10,).

    The numbers are the percentiles of the head's brightness, and the head's share of the slices.
    Other contrasts (T2, FLAIR, CT) move the percentiles; a skull that was cut off moves both.
    """
    head = images[images > HEAD]
    if not head.size:
        return np.zeros(len(LEVELS) + 1)
    return np.append(np.percentile(head, LEVELS), head.size / images.size).astype(np.float64)


def too_much(share: float) -> str:
    """Return a warning where so much of a scan is flagged that the scan itself is in doubt."""
    if share < MUCH:
        return ""
    return (
        f"flagged in {whole_percent(share)} of what was looked at, which is rarely a lesion: it "
        "may lie otherwise than its header says (see --axes), or come from another kind of scanner"
    )


@dataclass(frozen=True)
class Looks:
    """How the training scans looked.

    Parameters
    ----------
    middle : list of float
        The median of their looks.
    largest : float
        How far the farthest of them lies from it.
    """

    middle: list[float]
    largest: float

    @classmethod
    def of(cls, looks: Sequence[NDArray[np.float64]]) -> Looks:
        """Sum up the looks of the training scans."""
        middle = np.median(looks, axis=0)
        return cls(middle.tolist(), max(distance(look, middle) for look in looks))

    @property
    def limit(self) -> float:
        """The distance above which a scan is called unlike the training scans."""
        return max(LEAST_LIMIT, TOLERANCE * self.largest)

    def remark(self, look: NDArray[np.float64]) -> str:
        """Return a warning for a scan that looks unlike the training scans; else an empty text."""
        away = distance(look, np.array(self.middle))
        if away <= self.limit:
            return ""
        return (
            f"unlike the training scans: brightness and size of the head differ by {away:.2f} (up "
            f"to {self.limit:.2f} is usual). Another contrast, another scanner or a skull that was "
            "cut off? Do not trust this map."
        )


def distance(look: NDArray[np.float64], middle: NDArray[np.float64]) -> float:
    """Return the mean difference of two looks."""
    return float(np.abs(look - middle).mean())
