"""What a fitted model says about other data: scores, the oddest samples, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.errors import DataError
from aberra.progress import advance
from aberra.report.contents import Findings, Picture, Reason, Sample
from aberra.report.pictures import data_uri, grey, heat
from aberra.report.subject import Subject
from aberra.scoring.rows import matched_columns
from aberra.words import number, percent

LEAST_SHARE = 0.05  # of the score, for a column to count as a reason
N_REASONS = 3
N_PICTURES = 24
AT_A_TIME = 64


@dataclass(frozen=True)
class Table:
    """Rows to report on, in chunks: each a data frame and the names of its rows."""

    chunks: Iterable[tuple[pd.DataFrame, Sequence[str]]]
    name: str = "data"


@dataclass(frozen=True)
class Images:
    """Images to report on: their names, and how to read some of them by position.

    `read` returns an array of shape (n, channels, height, width).
    """

    names: Sequence[str]
    read: Callable[[Sequence[int]], NDArray[Any]]
    name: str = "data"


# Tables


def of_table(subject: Subject, table: Table, top: int) -> Findings:
    """Score a table chunk by chunk; keep its oddest rows and say why they are odd."""
    scores: list[NDArray[np.float64]] = []
    best = _Best(top)
    for frame, names in table.chunks:
        rows = chosen(frame, subject.model)
        found = np.asarray(subject.model.anomaly_score(_as_fitted(subject.model, rows)))
        scores.append(found)
        best.add(rows, names, found)
    if best.rows is None:
        raise DataError(f"{table.name} holds no rows. Give a table with at least one.")
    every = np.concatenate(scores)
    reasons = reasons_of(subject.model, best.rows)
    samples = ranked(subject, every, best.positions, best.names, reasons)
    flagged = subject.flags(every)
    return Findings(
        table.name,
        "row",
        every,
        None if flagged is None else int(flagged.sum()),
        samples,
        subject.are_training_scores(every),
    )


def ranked(
    subject: Subject,
    scores: NDArray[np.float64],
    positions: NDArray[np.int64],
    names: Sequence[str],
    reasons: Sequence[tuple[Reason, ...]] | None = None,
) -> list[Sample]:
    """Return the samples at some positions as the lines of a table."""
    flagged, trained_on = subject.flags(scores), subject.are_training_scores(scores)
    weights = subject.model.weights_ if trained_on and subject.learns_trust else None
    return [
        Sample(
            k + 1,
            names[k],
            float(scores[i]),
            None if flagged is None else bool(flagged[i]),
            None if weights is None else float(weights[i]),
            () if reasons is None else reasons[k],
        )
        for k, i in enumerate(positions)
    ]


class _Best:
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


def _as_fitted(model: Any, rows: pd.DataFrame) -> Any:
    """Return rows with names for a model that was fitted with names, else without."""
    return rows if hasattr(model, "feature_names_in_") else rows.to_numpy()


def reasons_of(model: Any, rows: pd.DataFrame) -> list[tuple[Reason, ...]]:
    """Return for each row the columns that have most to do with its score."""
    shares = np.asarray(model.explain(_as_fitted(model, rows)))
    usual = _Usual(model, rows)
    reasons = []
    for i, line in enumerate(shares):
        order = [int(j) for j in np.argsort(-line, kind="stable")[:N_REASONS]]
        reasons.append(
            tuple(
                Reason(
                    str(rows.columns[j]), float(line[j]), _shown(rows.iat[i, j]), usual.words(i, j)
                )
                for j in order
                if line[j] >= LEAST_SHARE
            )
        )
    return reasons


class _Usual:
    """What is usual in a column, in words."""

    def __init__(self, model: Any, rows: pd.DataFrame) -> None:
        self.quartiles = model.references_
        self.reader = getattr(model, "reader_", None)
        self.numbers = None if self.reader is None else self.reader.transform(rows)

    def words(self, i: int, j: int) -> str:
        """Say where the middle half of a column lies, or how many rows share a text."""
        kind = "number" if self.reader is None else self.reader.kinds[j]
        if kind == "number":
            low, high = number(self.quartiles[0, j], 3), number(self.quartiles[2, j], 3)
            return f"usually {low}" if low == high else f"usually {low} to {high}"
        if kind != "text" or self.reader is None or self.numbers is None:
            return ""
        rarity = float(self.numbers[i, j])  # minus the logarithm of the value's share
        if rarity >= self.reader.unseen - 1e-9:
            return "never seen in training"
        return f"in {percent(float(np.exp(-rarity)))} of the training rows"


def _shown(value: Any) -> str:
    if pd.isna(value):
        return "missing"
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return number(float(value))
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"


# Images


def of_images(subject: Subject, data: Images, top: int) -> Findings:
    """Score images a few at a time; show the oddest as they are, restored, and as a map."""
    n = len(data.names)
    if not n:
        raise DataError(f"{data.name} holds no images. Give at least one.")
    scores = np.empty(n)
    for start in range(0, n, AT_A_TIME):
        some = range(start, min(n, start + AT_A_TIME))
        scores[start : some.stop] = subject.model.anomaly_score(data.read(some))
        advance("scoring images", some.stop / n)
    order = np.argsort(-scores, kind="stable")[:top]
    samples = ranked(subject, scores, order, [data.names[i] for i in order])
    flagged = subject.flags(scores)
    shown = order[:N_PICTURES]
    pictures, heat_top = gallery(subject, data.read(shown.tolist()), samples)
    return Findings(
        data.name,
        "image",
        scores,
        None if flagged is None else int(flagged.sum()),
        samples,
        subject.are_training_scores(scores),
        pictures,
        heat_top=heat_top,
    )


def gallery(
    subject: Subject, images: NDArray[Any], samples: Sequence[Sample]
) -> tuple[list[Picture], float]:
    """Return pictures of the images, and the map value that is shown lightest."""
    low, high = (float(q) for q in np.quantile(images, (0.001, 0.999)))
    pictures = [
        Picture(sample.name, sample.score, sample.flagged, "", data_uri(grey(image, low, high)))
        for sample, image in zip(samples, images, strict=False)
    ]
    model = subject.model
    if not hasattr(model, "anomaly_map"):
        return pictures, 0.0
    maps, restored = model.anomaly_map(images), model.reconstruct(images)
    top = float(np.quantile(maps, 0.999))
    return [
        replace(
            picture,
            note=_flagged_part(anomaly_map, subject.map_threshold),
            restored=data_uri(grey(healthy, low, high)),
            heat=data_uri(heat(anomaly_map, top)),
        )
        for picture, healthy, anomaly_map in zip(pictures, restored, maps, strict=True)
    ], top


def _flagged_part(anomaly_map: NDArray[np.float32], threshold: float | None) -> str:
    if threshold is None:
        return ""
    return f"{percent(float((anomaly_map > threshold).mean()))} of the pixels flagged"
