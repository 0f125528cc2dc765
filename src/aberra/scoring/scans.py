"""Volumes in, maps and segmentations out, one scan at a time."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aberra.data.mri.files import DESCRIPTION
from aberra.data.mri.prepare import Preparation
from aberra.errors import DataError
from aberra.files import fingerprint, write_atomically
from aberra.localise.healthy import HealthyScans
from aberra.localise.likeness import Looks
from aberra.localise.volumes import ScanRecord, score_scan
from aberra.progress import advance
from aberra.scoring.folder import Line, ResultFolder

COLUMNS = (
    "scan",
    "map",
    "segmentation",
    "score",
    "percentile",
    "z",
    "millilitres",
    "findings",
    "not_scored",
    "remark",
    "error",
)


@dataclass(frozen=True)
class ScanScoring:
    """How scans are scored: as the model's training scans were prepared.

    Parameters
    ----------
    preparation : Preparation
        The one that the model was trained with.
    threshold : float
        Height of the map above which a voxel is flagged.
    axes : str, optional
        Where the array axes of the scans really point, if their headers are wrong.
    looks : Looks, optional
        How the training scans looked, to remark on others.
    healthy : HealthyScans, optional
        How healthy scans were scored, for percentiles and p-values.
    relative : bool, default=False
        Whether maps are also written as percentiles of healthy scans and as deviations.
    """

    preparation: Preparation
    threshold: float
    axes: str | None = None
    looks: Looks | None = None
    healthy: HealthyScans | None = None
    relative: bool = False


def score_scans(
    model: Any, scans: Sequence[Path], root: Path, results: ResultFolder, way: ScanScoring
) -> Iterator[Line]:
    """Score scans that have no result yet, and yield the line of each.

    A scan that cannot be used gets a line that says why, and the others go on.

    Parameters
    ----------
    model : localiser
    scans : sequence of Path
        Files or DICOM folders below `root`.
    root : Path
        Their folder; the results lie in folders of the same names.
    results : ResultFolder
    way : ScanScoring

    Yields
    ------
    line : mapping
        The columns of `scores.csv`.
    """
    names = [path.relative_to(root).as_posix() for path in scans]
    marks = [fingerprint(path) for path in scans]
    every = zip(scans, names, marks, strict=True)
    waiting = [(path, name, mark) for path, name, mark in every if not results.is_done(name, mark)]
    for k, (path, name, mark) in enumerate(waiting):
        place = results.folder / Path(name).parent
        try:
            record = score_scan(
                model,
                path,
                place,
                way.preparation,
                mask="auto",
                threshold=way.threshold,
                axes=way.axes,
                looks=way.looks,
                p_value=None if way.healthy is None else way.healthy.p_value,
                relative_to=way.healthy.heights if way.healthy and way.relative else None,
            )
        except DataError as error:
            record = ScanRecord(path, error=str(error))
        line = _line(record, name, results.folder, way.healthy)
        results.add(line, mark)
        results.write(names)
        advance("scans", (k + 1) / len(waiting), name)
        yield line


def describe_derivatives(source: Path, results: Path, version: str) -> None:
    """Say in a folder of results that it was computed, if the scans lie in a BIDS data set."""
    given = source / DESCRIPTION
    if not given.is_file():
        return
    try:
        known = json.loads(given.read_text("utf-8"))
    except ValueError:  # of no use, and no reason to score nothing
        known = {}
    held = known if isinstance(known, dict) else {}
    name = str(held.get("Name", source.resolve().name))
    described = {
        "Name": f"Anomaly maps of {name}",
        "BIDSVersion": str(held.get("BIDSVersion", "1.9.0")),
        "DatasetType": "derivative",
        "GeneratedBy": [{"Name": "aberra", "Version": version}],
    }
    write_atomically(results / DESCRIPTION, (json.dumps(described, indent=1) + "\n").encode())


def _line(record: ScanRecord, name: str, folder: Path, healthy: HealthyScans | None) -> Line:
    if record.map_path is None or record.segmentation_path is None:
        return {**dict.fromkeys(COLUMNS, ""), "scan": name, "error": record.error or ""}
    return {
        "scan": name,
        "map": record.map_path.relative_to(folder).as_posix(),
        "segmentation": record.segmentation_path.relative_to(folder).as_posix(),
        "score": repr(record.score),
        "percentile": "" if healthy is None else f"{healthy.percentile(record.score):.1f}",
        "z": "" if healthy is None else _number(healthy.z(record.score)),
        "millilitres": f"{record.millilitres:.3f}",
        "findings": str(record.n_findings),
        "not_scored": f"{record.share_not_scored:.3f}",
        "remark": record.remark,
        "error": "",
    }


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"
