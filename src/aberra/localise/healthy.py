"""What a model says about healthy scans that did not train it, to judge other scans by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.volume import Affine
from aberra.localise.findings import findings
from aberra.localise.relative import HealthyHeights, SliceMaps
from aberra.localise.volumes import ScoredVolume


@dataclass(frozen=True)
class HealthyScans:
    """How healthy scans were scored.

    Parameters
    ----------
    scores : list of float
        The score of each.
    largest : list of float
        Millilitres of the largest piece that was flagged in each; 0 where nothing was.
    heights : HealthyHeights, optional
        How high their maps are, place by place; models of version 0.2.0 did not note it.
    """

    scores: list[float]
    largest: list[float]
    heights: HealthyHeights | None = None

    def percentile(self, score: float) -> float:
        """Return the percentage of the healthy scans whose score is lower."""
        return 100.0 * float(np.mean(np.array(self.scores) < score))

    def z(self, score: float) -> float:
        """Return how many deviations a score lies above the healthy mean; NaN with one scan."""
        deviation = float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else 0.0
        return (score - float(np.mean(self.scores))) / deviation if deviation else math.nan

    def p_value(self, millilitres: float) -> float:
        """Return how likely a healthy scan is to show a piece of this size or more.

        The scan itself counts as one more healthy scan, so with n of them nothing is below
        1 / (n + 1).
        """
        as_large = int(np.sum(np.array(self.largest) >= millilitres))
        return (1 + as_large) / (1 + len(self.largest))


@dataclass(frozen=True)
class CalmScan:
    """The map of a healthy scan, kept small: its values in the brain, and which voxels these are.

    The height above which a voxel is flagged is known only after all scans have been seen.
    """

    values: NDArray[np.float32]
    where: NDArray[np.uint8]  # one bit a voxel
    shape: tuple[int, ...]
    affine: Affine
    score: float
    slices: SliceMaps

    @classmethod
    def of(cls, scored: ScoredVolume, brain: NDArray[np.bool_]) -> CalmScan:
        """Keep what was looked at in the brain of a scan."""
        inside = scored.scored & brain
        values = scored.anomaly_map[inside]
        where, affine = np.packbits(inside), scored.scan.affine
        return cls(values, where, inside.shape, affine, scored.score, scored.on_slices(brain))

    def largest(self, height: float) -> float:
        """Return the millilitres of the largest piece above a height."""
        inside = np.unpackbits(self.where, count=math.prod(self.shape)).astype(bool)
        heights = np.zeros(self.shape, np.float32)
        heights[inside.reshape(self.shape)] = self.values
        found = findings(heights, heights > height, self.affine, smallest=0.0)
        return found[0].millilitres if found else 0.0


def healthy_scans(seen: Sequence[CalmScan], height: float) -> HealthyScans:
    """Sum up the healthy scans, now that the height is known."""
    heights = HealthyHeights.of([one.slices for one in seen])
    largest = [one.largest(height) for one in seen]
    return HealthyScans([one.score for one in seen], largest, heights)
