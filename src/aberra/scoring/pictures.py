"""Images in, maps out: numbers for programs, and pictures for people."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.data.sources.images import OURS
from aberra.errors import DataError
from aberra.extras import need
from aberra.files import write_atomically
from aberra.progress import advance
from aberra.scoring.folder import Line, ResultFolder
from aberra.scoring.rows import percentiles

COLUMNS = ("image", "map", "picture", "score", "percentile", "flag", "flagged_pixels", "error")
AT_A_TIME = 64
MIDDLE = 127.5  # grey of a pixel at the threshold: darker is normal, brighter is flagged

Read = Callable[[Sequence[int]], NDArray[Any]]
Size = Callable[[int], tuple[int, int]]
Mark = Callable[[int], str]


@dataclass(frozen=True)
class ImageSource:
    """Images by position, so that a few are in memory at a time.

    Parameters
    ----------
    names : sequence of str
        Unique; results are called after them.
    read : callable
        From positions to an array of shape (n, channels, height, width).
    size : callable
        From a position to height and width of the image as it is.
    mark : callable
        From a position to what changes when the image does.
    """

    names: Sequence[str]
    read: Read
    size: Size
    mark: Mark


@dataclass(frozen=True)
class ImageRule:
    """When a pixel and when an image is flagged, and what percentiles refer to."""

    map_threshold: float
    score_threshold: float
    reference: NDArray[np.float64] | None  # sorted training scores, or quantiles of them

    def percentile(self, score: float) -> str:
        """Return the share of training scores, in percent, that a score reaches, if known."""
        if self.reference is None:
            return ""
        return f"{percentiles(np.array([score]), self.reference)[0]:.2f}"


def score_images(
    model: Any, source: ImageSource, results: ResultFolder, rule: ImageRule
) -> Iterator[Line]:
    """Score images that have no result yet, a few at a time, and yield the line of each.

    An image that cannot be read gets a line that says why, and the others go on.

    Every image gets `NAME_anomaly.npz` (`map` and `segmentation`, at the size that the model
    looks at) and `NAME_anomaly.png` (the map at the image's size, middle grey at the threshold).

    Parameters
    ----------
    model : localiser
    source : ImageSource
    results : ResultFolder
    rule : ImageRule

    Yields
    ------
    line : mapping
        The columns of `scores.csv`.
    """
    marks = [source.mark(k) for k in range(len(source.names))]
    named = enumerate(zip(source.names, marks, strict=True))
    waiting = [k for k, (name, mark) in named if not results.is_done(name, mark)]
    for start in range(0, len(waiting), AT_A_TIME):
        some = waiting[start : start + AT_A_TIME]
        images, lines = {}, []
        for k in some:
            try:
                images[k] = source.read([k])
            except DataError as error:
                lines.append(_failed(source.names[k], error))
                results.add(lines[-1], marks[k])
        if images:
            found = model.maps_and_scores(np.concatenate(list(images.values())))
            for k, anomaly_map, score in zip(images, *found, strict=True):
                lines.append(_kept(source, k, anomaly_map, float(score), results.folder, rule))
                results.add(lines[-1], marks[k])
        results.write(source.names)
        advance("images", (start + len(some)) / len(waiting), lines[-1]["image"])
        yield from lines


def _failed(name: str, error: DataError) -> Line:
    return {**dict.fromkeys(COLUMNS, ""), "image": name, "error": str(error)}


def _kept(
    source: ImageSource,
    k: int,
    anomaly_map: NDArray[np.float32],
    score: float,
    folder: Path,
    rule: ImageRule,
) -> Line:
    """Write the files of one image; return its line."""
    name = source.names[k]
    numbers, picture = Path(f"{name}_anomaly.npz"), Path(f"{name}{OURS}")
    (folder / numbers).parent.mkdir(parents=True, exist_ok=True)
    odd = anomaly_map > rule.map_threshold
    buffer = io.BytesIO()
    np.savez_compressed(buffer, map=anomaly_map, segmentation=odd)
    write_atomically(folder / picture, as_png(anomaly_map / rule.map_threshold, source.size(k)))
    write_atomically(folder / numbers, buffer.getvalue())
    return {
        "image": name,
        "map": numbers.as_posix(),
        "picture": picture.as_posix(),
        "score": repr(score),
        "percentile": rule.percentile(score),
        "flag": str(score > rule.score_threshold).lower(),
        "flagged_pixels": f"{odd.mean():.5f}",
        "error": "",
    }


def as_png(relative: NDArray[np.float32], size: tuple[int, int]) -> bytes:
    """Return a grey picture of a map, given in thresholds, at height and width `size`."""
    pil = need("PIL.Image", "images", "Writing pictures")
    grey = np.clip(relative * MIDDLE, 0, 255).astype(np.uint8)
    picture = pil.fromarray(grey).resize((size[1], size[0]), pil.Resampling.BILINEAR)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()
