"""What a page shows, as plain values: made by the modules beside this one, laid out by page.py."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from aberra.data.drift.verdict import Drift
from aberra.explain.doubts import any_doubted
from aberra.explain.reasons import ReasonInWords
from aberra.explain.rounds import RoundLine
from aberra.explain.training import Fact


@dataclass(frozen=True)
class Sample:
    """One line of a table of samples; what is None has no column."""

    rank: int
    name: str
    score: float
    flagged: bool | None = None
    trust: float | None = None
    reasons: tuple[ReasonInWords, ...] = ()


@dataclass(frozen=True)
class Picture:
    """One image of the gallery: the sample, and addresses of input, restored image and map."""

    sample: Sample
    image: str
    restored: str = ""
    heat: str = ""
    note: str = ""


@dataclass(frozen=True)
class FoldedScan:
    """A scan to leaf through: all slices side by side in one picture, see scans.py."""

    name: str
    score: float
    note: str
    mosaic: str  # red: scan, green: map, blue: flagged
    shape: tuple[int, int, int]  # voxels to the right, to the front, to the top
    columns: int  # slices in a row of the mosaic
    centre: tuple[int, int, int]  # where the map is largest
    spacing: float  # mm
    origin: tuple[float, float, float]  # mm of the first voxel


@dataclass(frozen=True)
class Findings:
    """What the model says about the data of the report."""

    name: str
    thing: str  # row, image, scan
    scores: NDArray[np.float64]
    samples: list[Sample]
    n_flagged: int | None = None  # None for scans, whose scores have no threshold
    trained_on: bool = False
    pictures: list[Picture] = field(default_factory=list)
    scans: list[FoldedScan] = field(default_factory=list)
    heat_top: float = 0.0
    failures: list[tuple[str, str]] = field(default_factory=list)
    drift: Drift | None = None  # for rows other than the training rows

    @property
    def doubted(self) -> bool:
        """Whether any of the samples has lost trust."""
        return any_doubted(sample.trust for sample in self.samples)


@dataclass(frozen=True)
class RoundsSection:
    """How trust moved: sentences, charts and the numbers behind them."""

    sentences: list[str]
    trust_chart: str
    crossings_chart: str
    lines: list[RoundLine]


@dataclass(frozen=True)
class TrainingSection:
    """What was trained, on what, and how."""

    model: str
    sentences: list[str]
    facts: list[Fact]
    choices: list[tuple[str, str]]
    dropped: list[tuple[str, str]]
    metrics: list[tuple[str, str]]
    settings: list[tuple[str, str]]


@dataclass(frozen=True)
class ScoresSection:
    """The scores as a chart, and what to say below it."""

    chart: str
    sentences: list[str]


@dataclass(frozen=True)
class DriftChart:
    """A column that is no longer as in training."""

    name: str
    verdict: str
    effect: str
    why: str
    chart: str  # empty where there is nothing to draw


@dataclass(frozen=True)
class DriftSection:
    """Whether the new rows are like the training rows."""

    verdict: str
    sentences: list[str]
    charts: list[DriftChart]
    n_steady: int


@dataclass(frozen=True)
class Report:
    """The whole page."""

    title: str
    thing: str  # what a training sample is called: row, image, slice
    summary: list[str]
    figures: list[Fact]
    findings: Findings | None
    histogram: ScoresSection | None
    doubts: list[Sample]
    doubts_note: str
    rounds: RoundsSection | None
    training: TrainingSection
    glossary: list[tuple[str, str]]
    colour_bar: str = ""
    drift: DriftSection | None = None
