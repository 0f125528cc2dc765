"""What a fitted model says about other data: scores, the oddest samples, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.drift.sentences import zoned_columns
from aberra.data.drift.verdict import compared
from aberra.errors import DataError
from aberra.explain.reasons import ReasonInWords, as_fitted, reasons_in_words
from aberra.explain.subject import Subject
from aberra.progress import advance
from aberra.report.contents import Findings, Picture, Sample
from aberra.report.pictures import data_uri, grey, heat
from aberra.scoring.rows import matched_columns
from aberra.words import percent

N_PICTURES = 24
IMAGES_AT_A_TIME = 64


@dataclass(frozen=True)
class TableToReport:
    """Rows to report on, in chunks: each a data frame and the names of its rows."""

    chunks: Iterable[tuple[pd.DataFrame, Sequence[str]]]
    name: str = "the data"


@dataclass(frozen=True)
class ImagesToReport:
    """Images to report on: their names, and how to read some of them by position.

    `read` returns an array of shape (n, channels, height, width).
    """

    names: Sequence[str]
    read: Callable[[Sequence[int]], NDArray[Any]]
    name: str = "the data"


def found_in(
    subject: Subject,
    data: TableToReport | ImagesToReport,
    scores: NDArray[np.float64],
    samples: list[Sample],
) -> Findings:
    """Return the findings in a table or in images."""
    return Findings(
        data.name,
        "row" if isinstance(data, TableToReport) else "image",
        scores,
        samples,
        int(subject.flags(scores).sum()),
        subject.are_training_scores(scores),
    )


def ranked(
    subject: Subject,
    scores: NDArray[np.float64],
    positions: NDArray[np.int64],
    names: Sequence[str],
    reasons: Sequence[tuple[ReasonInWords, ...]] | None = None,
) -> list[Sample]:
    """Return the samples at some positions as the lines of a table."""
    flagged = subject.flags(scores)
    trust = subject.trust_of(scores)
    return [
        Sample(
            k + 1,
            names[k],
            float(scores[i]),
            bool(flagged[i]),
            None if trust is None else float(trust[i]),
            () if reasons is None else reasons[k],
        )
        for k, i in enumerate(positions)
    ]


# Tables


def of_table(subject: Subject, table: TableToReport, top: int) -> Findings:
    """Score a table chunk by chunk; keep its oddest rows and say why they are odd."""
    scores: list[NDArray[np.float64]] = []
    oddest, before, seen = _OddestRows(top), subject.model.training_portrait(), None
    zoned: set[int] = set()
    for frame, names in table.chunks:
        rows = chosen(frame, subject.model)
        given = as_fitted(subject.model, rows)
        found = np.asarray(subject.model.anomaly_score(given))
        scores.append(found)
        oddest.add(rows, names, found)
        if before is not None:
            some = before.count(given, found, subject.model.threshold_)
            seen = some if seen is None else seen + some
            zoned.update(zoned_columns(given))
    if oddest.rows is None:
        raise DataError(f"There are no rows in {table.name}. Give a table with at least one.")
    every = np.concatenate(scores)
    reasons = reasons_in_words(subject.model, oddest.rows)
    samples = ranked(subject, every, oddest.positions, oddest.names, reasons)
    findings = found_in(subject, table, every, samples)
    if seen is None or findings.trained_on:
        return findings
    marked = subject.model.review_marks() is not None
    return replace(findings, drift=compared(before, seen, zoned, marked=marked))


class _OddestRows:
    """The rows of highest score so far, highest first; ties go to the earlier row."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.seen = 0
        self.rows: pd.DataFrame | None = None
        self.names: list[str] = []
        self.positions: NDArray[np.int64] = np.empty(0, np.int64)
        self.scores: NDArray[np.float64] = np.empty(0)

    def add(self, rows: pd.DataFrame, names: Sequence[str], scores: NDArray[np.float64]) -> None:
        """Take in a chunk."""
        order = np.argsort(-scores, kind="stable")[: self.n]
        part = rows.iloc[order]
        joined = part if self.rows is None else pd.concat([self.rows, part])
        labels = [*self.names, *(str(names[k]) for k in order)]
        positions = np.concatenate([self.positions, order + self.seen])
        values = np.concatenate([self.scores, scores[order]])
        keep = np.argsort(-values, kind="stable")[: self.n]
        self.rows, self.names = joined.iloc[keep], [labels[k] for k in keep]
        self.positions, self.scores = positions[keep], values[keep]
        self.seen += len(rows)


def chosen(frame: pd.DataFrame, model: Any) -> pd.DataFrame:
    """Return the columns that the model knows, in its order."""
    named = frame.set_axis([str(name) for name in frame.columns], axis=1)
    columns, _ = matched_columns(model, list(named.columns), None)
    return named[columns]


# Images


def of_images(subject: Subject, data: ImagesToReport, top: int) -> Findings:
    """Score images a few at a time; show the oddest as they are, restored, and as a map."""
    n = len(data.names)
    if not n:
        raise DataError(f"There are no images in {data.name}. Give at least one.")
    scores = np.empty(n)
    for start in range(0, n, IMAGES_AT_A_TIME):
        some = range(start, min(n, start + IMAGES_AT_A_TIME))
        scores[start : some.stop] = subject.model.anomaly_score(data.read(some))
        advance("scoring images", some.stop / n)
    order = np.argsort(-scores, kind="stable")[:top]
    samples = ranked(subject, scores, order, [data.names[i] for i in order])
    images = data.read(order[:N_PICTURES].tolist())
    pictures, heat_top = gallery(subject, images, samples)
    found = found_in(subject, data, scores, samples)
    return replace(found, pictures=pictures, heat_top=heat_top)


def gallery(
    subject: Subject, images: NDArray[Any], samples: Sequence[Sample]
) -> tuple[list[Picture], float]:
    """Return pictures of the images, and the map value that is shown lightest."""
    low, high = (float(q) for q in np.quantile(images, (0.001, 0.999)))
    pictures = [
        Picture(sample, data_uri(grey(image, low, high)))
        for sample, image in zip(samples, images, strict=False)
    ]
    model = subject.model
    if not model.localises:
        return pictures, 0.0
    maps, restored = model.anomaly_map(images), model.reconstruct(images)
    top = float(np.quantile(maps, 0.999))
    return [
        replace(
            picture,
            restored=data_uri(grey(healthy, low, high)),
            heat=data_uri(heat(anomaly_map, top)),
            note=_flagged_part(anomaly_map, subject.map_threshold),
        )
        for picture, healthy, anomaly_map in zip(pictures, restored, maps, strict=True)
    ], top


def _flagged_part(anomaly_map: NDArray[np.float32], threshold: float | None) -> str:
    if threshold is None:
        return ""
    return f"{percent(float((anomaly_map > threshold).mean()))} of the pixels flagged"
