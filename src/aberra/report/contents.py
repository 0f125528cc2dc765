"""What a page shows, as plain values: made by the modules beside this one, laid out by page.py."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Fact:
    """A name, its value, and what the value means."""

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Reason:
    """A column that has to do with a score: its share, its value, and what is usual in it."""

    column: str
    share: float
    value: str = ""
    usual: str = ""


@dataclass(frozen=True)
class Sample:
    """One line of a table of samples; what is None has no column."""

    rank: int
    name: str
    score: float
    flagged: bool | None = None
    trust: float | None = None
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Picture:
    """One image of the gallery: addresses of input, restored image and map."""

    name: str
    score: float
    flagged: bool | None
    note: str
    image: str
    restored: str = ""
    heat: str = ""


@dataclass(frozen=True)
class Scan:
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
    n_flagged: int | None
    samples: list[Sample]
    trained_on: bool = False
    pictures: list[Picture] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    heat_top: float = 0.0
    failures: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class RoundLine:
    """One round in numbers."""

    number: int
    crossings: int | None
    lost: int
    seconds: float
    kept: bool


@dataclass(frozen=True)
class Rounds:
    """How trust moved: sentences, charts and the numbers behind them."""

    summary: str
    trust_chart: str
    crossings_chart: str
    lines: list[RoundLine]


@dataclass(frozen=True)
class Training:
    """What was trained, on what, and how."""

    model: str
    sentences: list[str]
    facts: list[Fact]
    choices: list[tuple[str, str]]
    dropped: list[tuple[str, str]]
    metrics: list[tuple[str, str]]
    settings: list[tuple[str, str]]


@dataclass(frozen=True)
class Histogram:
    """The scores as a chart, and what to say below it."""

    chart: str
    sentences: list[str]


@dataclass(frozen=True)
class Report:
    """The whole page."""

    title: str
    summary: list[str]
    figures: list[Fact]
    findings: Findings | None
    histogram: Histogram | None
    doubts: list[Sample]
    doubts_note: str
    rounds: Rounds | None
    training: Training
    colour_bar: str = ""
