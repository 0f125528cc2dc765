"""What was flagged in a scan, piece by piece: how large, where, how odd."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from aberra.data.mri.volume import Affine, apply_affine

SMALLEST = 0.1  # ml; smaller pieces are not listed
NEIGHBOURS = np.ones((3, 3, 3))  # voxels that touch at a corner belong together


@dataclass(frozen=True)
class Finding:
    """One connected piece of a segmentation.

    Parameters
    ----------
    number : int
        From 1, the largest first.
    millilitres : float
    x, y, z : float
        Centre of mass in millimetres to the right, to the front, to the top, as in the header of
        the scan.
    peak, mean : float
        Highest and mean height of the map in the piece.
    p_value : float
        Share of healthy scans that show a piece of this size or more; NaN where it is not known.
    """

    number: int
    millilitres: float
    x: float
    y: float
    z: float
    peak: float
    mean: float
    p_value: float = float("nan")


def findings(
    anomaly_map: NDArray[Any],
    segmentation: NDArray[np.bool_],
    affine: Affine,
    smallest: float = SMALLEST,
    p_value: Callable[[float], float] | None = None,
) -> list[Finding]:
    """Return the pieces of a segmentation, the largest first.

    Parameters
    ----------
    anomaly_map : ndarray of three dimensions
    segmentation : ndarray of bool, shape of the map
    affine : ndarray of shape (4, 4)
        From voxel to millimetres.
    smallest : float, default=0.1
        Millilitres that a piece must have to be listed.
    p_value : callable, optional
        From millilitres to the share of healthy scans with a piece of that size or more.

    Returns
    -------
    list of Finding

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.findings import findings
    >>> heights = np.zeros((10, 10, 10))
    >>> heights[2:5, 2:5, 2:5] = 3.0
    >>> found = findings(heights, heights > 1, np.diag([2.0, 2.0, 2.0, 1.0]))
    >>> len(found), round(found[0].millilitres, 3), found[0].x
    (1, 0.216, 6.0)
    """
    labels, n = ndimage.label(segmentation, NEIGHBOURS)
    voxel = abs(float(np.linalg.det(affine[:3, :3]))) / 1000.0
    sizes = np.bincount(labels.ravel(), minlength=n + 1)[1:] * voxel
    order = [int(k) for k in np.argsort(-sizes, kind="stable") if sizes[k] >= smallest]
    at = [k + 1 for k in order]
    if not at:
        return []
    centres = apply_affine(affine, np.array(ndimage.center_of_mass(segmentation, labels, at)))
    peaks, means = (f(anomaly_map, labels, at) for f in (ndimage.maximum, ndimage.mean))
    chances = [float("nan") if p_value is None else p_value(size) for size in sizes[order]]
    rows = np.column_stack([sizes[order], centres, peaks, means, chances])
    names = [f.name for f in fields(Finding)][1:]
    return [
        Finding(k + 1, **dict(zip(names, row, strict=True))) for k, row in enumerate(rows.tolist())
    ]


def findings_csv(found: list[Finding]) -> bytes:
    """Return findings as a table, one line each; only the head if there are none."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [f.name for f in fields(Finding)], lineterminator="\n")
    writer.writeheader()
    for one in found:
        writer.writerow({name: _shown(value) for name, value in asdict(one).items()})
    return text.getvalue().encode()


def findings_json(found: list[Finding], about: Mapping[str, Any]) -> bytes:
    """Return findings as JSON, after what is said about the scan; unknown numbers are null."""
    rows = [
        {name: None if np.isnan(value) else value for name, value in asdict(one).items()}
        for one in found
    ]
    return (json.dumps({**about, "findings": rows}, indent=1) + "\n").encode()


def _shown(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if np.isnan(value) else f"{value:.4g}"
