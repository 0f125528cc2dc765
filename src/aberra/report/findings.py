"""What a fitted model says about other data: scores, the oddest samples, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.errors import DataError
from aberra.recipe import Recipe
from aberra.report.contents import Findings, Picture, Reason, Sample
from aberra.report.pictures import data_uri, grey, heat
from aberra.report.training import column_names, training_scores
from aberra.report.words import number, percent
from aberra.robust.iadc import IADC

LEAST_SHARE = 0.05  # of the score, for a column to count as a reason
N_REASONS = 3
N_PICTURES = 24
BATCH = 256


@dataclass(frozen=True)
class Table:
    """Rows to report on, in chunks: each a data frame and the names of its rows."""

    chunks: Iterable[tuple[pd.DataFrame, Sequence[str]]]
    name: str = "data"


@dataclass(frozen=True)
class Images:
    """Images to report on, (n, channels, height, width), and their names."""

    images: NDArray[Any]
    names: Sequence[str]
    name: str = "data"


# Tables


def of_table(model: Any, recipe: Recipe | None, table: Table, top: int) -> Findings:
    """Score a table chunk by chunk; keep its oddest rows and say why they are odd."""
    wanted = column_names(model, recipe)
    scores: list[NDArray[np.float64]] = []
    best = _Best(top)
    for frame, names in table.chunks:
        rows = chosen(frame, wanted, model.n_features_in_)
        found = np.asarray(model.anomaly_score(_as_fitted(model, rows)))
        scores.append(found)
        best.add(rows, names, found)
    if not scores or best.rows is None:
        raise DataError(f"{table.name} holds no rows. Give a table with at least one.")
    every = np.concatenate(scores)
    reasons = reasons_of(model, best.rows)
    trained_on = is_training_data(model, every)
    samples = [
        Sample(
            k + 1,
            name,
            float(score),
            bool(score > model.threshold_),
            float(model.weights_[position]) if trained_on and isinstance(model, IADC) else None,
            why,
        )
        for k, (position, name, score, why) in enumerate(
            zip(best.positions, best.names, best.scores, reasons, strict=True)
        )
    ]
    flagged = int((every > model.threshold_).sum())
    return Findings(table.name, "row", every, flagged, samples, trained_on)


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


def chosen(frame: pd.DataFrame, wanted: Sequence[str] | None, n_columns: int) -> pd.DataFrame:
    """Return the columns that the model knows, in its order."""
    if wanted is None:
        if frame.shape[1] != n_columns:
            raise DataError(
                f"The model was trained on {n_columns} columns without names, but the data have "
                f"{frame.shape[1]}. Give a table with the same columns."
            )
        return frame
    named = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_columns(list(named.columns), wanted, "The table")
    return named[list(wanted)]


def check_columns(present: Sequence[str], wanted: Sequence[str], where: str) -> None:
    """Raise an error that names the columns that are not there."""
    missing = [name for name in wanted if name not in set(present)]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DataError(
            f"{where} lacks columns that the model was trained on: "
            f"{', '.join(map(repr, missing[:5]))}{more}. Give a table with all of them."
        )


def _as_fitted(model: Any, rows: pd.DataFrame) -> Any:
    """Return rows with names for a model that was fitted with names, else without."""
    return rows if hasattr(model, "feature_names_in_") else rows.to_numpy()


def is_training_data(model: Any, scores: NDArray[np.float64]) -> bool:
    """Say whether the scores are those of the training samples, in their order."""
    known = training_scores(model)
    return known is not None and known.shape == scores.shape and bool(np.allclose(known, scores))


def reasons_of(model: Any, rows: pd.DataFrame) -> list[tuple[Reason, ...]]:
    """Return for each row the columns that have most to do with its score."""
    shares = np.asarray(model.explain(_as_fitted(model, rows)))
    kinds = _kinds(model)
    reasons = []
    for i, line in enumerate(shares):
        order = np.argsort(-line, kind="stable")[:N_REASONS]
        reasons.append(
            tuple(
                Reason(
                    str(rows.columns[j]),
                    float(line[j]),
                    _shown(rows.iat[i, int(j)]),
                    _usual(model.references_[:, j], kinds[j]),
                )
                for j in order
                if line[j] >= LEAST_SHARE
            )
        )
    return reasons


def _kinds(model: Any) -> list[str]:
    reader = getattr(model, "reader_", None)
    return ["number"] * model.n_features_in_ if reader is None else list(reader.kinds)


def _shown(value: Any) -> str:
    if pd.isna(value):
        return "missing"
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool):
        return number(float(value))
    text = str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _usual(quartiles: NDArray[np.float64], kind: str) -> str:
    """Say where the middle half of the training rows lies."""
    if kind != "number":
        return "rare" if kind == "text" else ""
    low, high = number(quartiles[0], 3), number(quartiles[2], 3)
    return f"usually {low}" if low == high else f"usually {low} to {high}"


# Images


def of_images(model: Any, data: Images, top: int) -> Findings:
    """Score images; show the oddest as they are, restored, and as a map."""
    images = np.asarray(data.images)
    parts = [np.asarray(model.anomaly_score(batch)) for batch in batches(images)]
    scores = np.concatenate(parts)
    trained_on = is_training_data(model, scores)
    has_threshold = hasattr(model, "threshold_rule_")
    flagged = scores > model.threshold_ if has_threshold else None
    order = np.argsort(-scores, kind="stable")[:top]
    samples = [
        Sample(
            k + 1,
            str(data.names[i]),
            float(scores[i]),
            None if flagged is None else bool(flagged[i]),
            float(model.weights_[i]) if trained_on and isinstance(model, IADC) else None,
        )
        for k, i in enumerate(order)
    ]
    shown = samples[:N_PICTURES]
    pictures, heat_top = gallery(model, images[order[: len(shown)]], shown)
    n_flagged = None if flagged is None else int(flagged.sum())
    return Findings(
        data.name, "image", scores, n_flagged, samples, trained_on, pictures, heat_top=heat_top
    )


def batches(images: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the images in parts that fit into memory."""
    for start in range(0, len(images), BATCH):
        yield images[start : start + BATCH]


def gallery(
    model: Any, images: NDArray[Any], samples: Sequence[Sample]
) -> tuple[list[Picture], float]:
    """Return pictures of the samples, and the map value that is shown lightest."""
    low, high = (float(q) for q in np.quantile(images, (0.001, 0.999)))
    inputs = [data_uri(grey(image, low, high)) for image in images]
    if not hasattr(model, "anomaly_map"):
        return [
            Picture(s.name, s.score, s.flagged, "", uri)
            for s, uri in zip(samples, inputs, strict=True)
        ], 0.0
    maps, restored = model.anomaly_map(images), model.reconstruct(images)
    top = float(np.quantile(maps, 0.999))
    pixels = None if hasattr(model, "threshold_rule_") else maps > model.threshold_
    notes = [""] * len(maps) if pixels is None else [f"{percent(p.mean())} flagged" for p in pixels]
    return [
        Picture(
            s.name,
            s.score,
            s.flagged,
            note,
            uri,
            data_uri(grey(healthy, low, high)),
            data_uri(heat(m, top)),
        )
        for s, note, uri, healthy, m in zip(samples, notes, inputs, restored, maps, strict=True)
    ], top
