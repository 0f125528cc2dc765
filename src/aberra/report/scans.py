"""Scans to leaf through: each becomes one picture with all its slices, which the page unfolds."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.grid import resample
from aberra.data.mri.prepare import Preparation
from aberra.data.mri.volume import Volume, inverse, reorient
from aberra.errors import DataError
from aberra.explain.subject import Subject
from aberra.localise.volumes import ScoredVolume, score_volume
from aberra.progress import advance
from aberra.report.contents import Findings, FoldedScan, Sample
from aberra.report.pictures import data_uri

N_SCANS = 8
SIDE = 96  # voxels of the longest side
PICTURE_BYTES = 11_000_000  # of all scans together: the page stays below 15 MB


@dataclass(frozen=True)
class ScansToReport:
    """Scans to report on: their names, how to read one by position, and how it is cut."""

    names: Sequence[str]
    read: Callable[[int], Volume]
    preparation: Preparation
    name: str = "the data"


@dataclass(frozen=True)
class _Small:
    """A scan and its map on a coarse grid along the body's axes."""

    name: str
    score: float
    note: str
    scan: NDArray[np.float32]
    heat: NDArray[np.float32]
    flagged: NDArray[np.bool_]
    spacing: float
    origin: tuple[float, float, float]


def of_scans(subject: Subject, data: ScansToReport, top: int) -> Findings:
    """Score scans one by one, memory holding one at full size and the oddest ones reduced."""
    if not subject.model.localises:
        raise DataError(
            f"{subject.name} gives scores but no maps, so scans cannot be shown. Train a "
            "localiser, such as ADDM."
        )
    names, scores, failures = [], [], []
    best: list[tuple[float, int, _Small]] = []
    for k, name in enumerate(data.names):
        try:
            scored = _scored(subject, data.read(k), data.preparation)
        except DataError as error:
            failures.append((name, str(error)))
            continue
        names.append(name)
        scores.append(scored.score)
        heapq.heappush(best, (scored.score, -k, _small(scored, name)))
        if len(best) > N_SCANS:
            heapq.heappop(best)
        advance("scoring scans", (k + 1) / len(data.names), name)
    if not scores:
        why = failures[0][1] if failures else "The folder is empty."
        raise DataError(f"No scan in {data.name} can be used. {why}")
    order = np.argsort(-np.array(scores), kind="stable")[:top]
    samples = [Sample(rank + 1, names[k], scores[k]) for rank, k in enumerate(order)]
    shown = [small for *_, small in sorted(best, key=lambda entry: entry[:2], reverse=True)]
    heat_top = max(float(np.quantile(small.heat, 0.9995)) for small in shown)
    return Findings(
        data.name,
        "scan",
        np.array(scores),
        samples,
        scans=_within_budget(shown, heat_top),
        heat_top=heat_top,
        failures=failures,
    )


def _scored(subject: Subject, scan: Volume, preparation: Preparation) -> ScoredVolume:
    # An ensemble from Python has a threshold for images, none for pixels: it flags no voxel.
    threshold = np.inf if subject.map_threshold is None else subject.map_threshold
    return score_volume(subject.model, scan, preparation, "auto", threshold)


def _small(scored: ScoredVolume, name: str) -> _Small:
    """Turn to right, front, top and reduce to cubes that fit the page."""
    upright = reorient(scored.scan, "RAS")
    extent = np.array(upright.array.shape) * upright.spacing
    spacing = float(max(extent.max() / SIDE, upright.spacing.min()))
    shape = tuple(int(n) for n in np.maximum(1, np.rint(extent / spacing)))
    factors = spacing / upright.spacing
    to_upright = np.eye(4)
    to_upright[:3, :3] = np.diag(factors)
    to_upright[:3, 3] = (factors - 1) / 2  # the middle of the first cube, not its corner
    to_scan = inverse(scored.scan.affine) @ upright.affine @ to_upright
    scan, heat, flagged = (
        resample(values, to_scan, shape, mode="nearest")
        for values in (scored.scan.array, scored.anomaly_map, scored.segmentation)
    )
    x, y, z = (upright.anatomy @ to_upright)[:3, 3]
    flags = f"{scored.millilitres:.1f} ml flagged" if scored.segmentation.any() else ""
    note = "; ".join(part for part in (scored.description, flags) if part)
    origin = (float(x), float(y), float(z))
    return _Small(name, scored.score, note, scan, heat, flagged > 0.5, spacing, origin)


def _within_budget(shown: list[_Small], heat_top: float) -> list[FoldedScan]:
    """Return pictures of the scans, oddest first, until the page is full; at least one."""
    scans: list[FoldedScan] = []
    left = PICTURE_BYTES
    for small in shown:
        scan = _folded(small, heat_top)
        left -= len(scan.mosaic)
        if left < 0 and scans:
            break
        scans.append(scan)
    return scans


def _folded(small: _Small, heat_top: float) -> FoldedScan:
    low, high = (float(q) for q in np.quantile(small.scan, (0.01, 0.995)))
    channels = (
        (small.scan - low) / max(high - low, 1e-12),
        small.heat / max(heat_top, 1e-12),
        small.flagged,
    )
    levels = [np.rint(255 * np.clip(channel, 0, 1)).astype(np.uint8) for channel in channels]
    i, j, k = small.scan.shape
    columns = int(np.ceil(np.sqrt(k)))
    lines = -(-k // columns)
    # (i, j, k, colour) to slices with rows from front to back, then slices side by side.
    slices = np.zeros((lines * columns, j, i, 3), np.uint8)
    slices[:k] = np.stack(levels, axis=-1).transpose(2, 1, 0, 3)[:, ::-1]
    mosaic = slices.reshape(lines, columns, j, i, 3).transpose(0, 2, 1, 3, 4)
    at = np.unravel_index(int(small.heat.argmax()), small.heat.shape)
    return FoldedScan(
        small.name,
        small.score,
        small.note,
        data_uri(mosaic.reshape(lines * j, columns * i, 3)),
        (i, j, k),
        columns,
        (int(at[0]), int(at[1]), int(at[2])),
        small.spacing,
        small.origin,
    )
