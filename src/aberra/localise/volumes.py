"""A scan in, a map and a segmentation of the scan out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from aberra.contract.maps import TOP_SHARE
from aberra.data.mri.brain import Mask, brain_mask
from aberra.data.mri.files import (
    DEVIATIONS,
    FINDINGS,
    MAP,
    PERCENTILE,
    SCORED,
    SEGMENTATION,
    read_volume,
    stem,
)
from aberra.data.mri.grid import SliceGrid, covered, cut, put_back
from aberra.data.mri.nifti import check_mask, read_mask, write_nifti
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Volume
from aberra.errors import DataError
from aberra.files import write_atomically
from aberra.localise.collect import MaskOf
from aberra.localise.findings import Finding, findings, findings_csv, findings_json
from aberra.localise.likeness import Looks, look_of, too_much
from aberra.localise.relative import HealthyHeights, SliceMaps


class SliceModel(Protocol):
    """What scoring asks of a fitted localiser of images."""

    def anomaly_map(self, images: Any) -> Any:
        """Return an array of shape (n, h, w), high where something is odd."""
        ...

    def segment(self, images: Any) -> Any:
        """Return an array of bool, shape (n, h, w)."""
        ...


@dataclass(frozen=True, eq=False)
class ScoredVolume:
    """What a model says about one scan, on the scan's own grid.

    Parameters
    ----------
    scan : Volume
    anomaly_map : ndarray of float32, shape of the scan
        0 where nothing was looked at; `looked_at` says where that is.
    segmentation : ndarray of bool, shape of the scan
        False where nothing was looked at.
    grid : SliceGrid
        The slices that were scored.
    maps : ndarray of float32, shape (n, h, w)
        The map on these slices, before it was put back.
    """

    scan: Volume
    anomaly_map: NDArray[np.float32]
    segmentation: Mask
    grid: SliceGrid
    maps: NDArray[np.float32]
    brain: Mask | None = None  # outside of which the map is blank
    whole_brain: Mask | None = None  # whatever was looked at, to say what was not
    look: NDArray[np.float64] | None = None  # of the slices, to compare with the training scans

    @property
    def scored(self) -> Mask:
        """The voxels that were looked at, brain mask aside."""
        return covered(self.grid, self.scan)

    @property
    def looked_at(self) -> Mask:
        """The voxels of which the map says anything: on a slice, and inside the mask."""
        return self.scored if self.brain is None else self.scored & self.brain

    def on_slices(self, brain: Mask) -> SliceMaps:
        """Return the map as it is on the slices, with the brain that is given there."""
        inside = cut(replace(self.scan, array=brain.astype(np.float32)), self.grid, 0.0) > 0.5
        return SliceMaps(self.maps, inside, self.grid.below_top)

    def relative(self, healthy: HealthyHeights) -> tuple[NDArray[np.float32], ...]:
        """Return the map as percentiles of healthy scans and as deviations, on the scan's grid."""
        found = healthy.relative(self.maps, self.grid.below_top)
        back = [put_back(one, self.grid, self.scan) for one in found]
        return tuple(np.where(self.looked_at, one, np.float32(0)) for one in back)

    @property
    def share_not_scored(self) -> float:
        """Share of the brain that no slice covers, such as the cerebellum."""
        if self.whole_brain is None:
            return float("nan")
        return float((self.whole_brain & ~self.scored).sum() / self.whole_brain.sum())

    @property
    def share_flagged(self) -> float:
        """Share of the voxels looked at that is flagged."""
        return float(self.segmentation.sum() / max(1, int(self.looked_at.sum())))

    @property
    def millilitres(self) -> float:
        """Size of the segmentation."""
        voxel = abs(float(np.linalg.det(self.scan.affine[:3, :3])))
        return float(self.segmentation.sum()) * voxel / 1000.0

    @property
    def score(self) -> float:
        """One number for the scan: the mean over the oddest of the voxels looked at.

        Blank voxels outside the brain do not count: a scan's field of view is no anomaly.
        """
        seen = self.anomaly_map[self.looked_at]
        k = max(1, round(TOP_SHARE * seen.size))
        return float(np.partition(seen, seen.size - k)[-k:].mean(dtype=np.float64))

    @property
    def description(self) -> str:
        """Which slices were scored, in one line."""
        depths = self.grid.below_top
        return f"{len(depths)} axial slices, {depths[0]:g}-{depths[-1]:g} mm below top of brain"

    @property
    def findings(self) -> list[Finding]:
        """What was flagged, piece by piece, the largest first."""
        return findings(self.anomaly_map, self.segmentation, self.scan.affine)


def score_volume(
    model: SliceModel,
    scan: Volume,
    preparation: Preparation | None = None,
    mask: Mask | Literal["auto"] | None = None,
    threshold: float | None = None,
) -> ScoredVolume:
    """Score one scan slice by slice and put the result back on its grid.

    Parameters
    ----------
    model : SliceModel
        A fitted localiser.
    scan : Volume
    preparation : Preparation, optional
        The one that the model was trained with.
    mask : ndarray of bool, "auto" or None, default=None
        The brain. Map and segmentation are blank outside it. None blanks nothing; the automatic
        mask then only says where the slices are.
    threshold : float, optional
        Segment where the map exceeds it. None asks the model, which may then have to look at the
        images a second time.

    Returns
    -------
    scored : ScoredVolume

    Examples
    --------
    >>> from aberra.data.mri.phantom import head_phantom
    >>> from aberra.localise.volumes import score_volume
    >>> class Dark:  # stands for a trained localiser
    ...     def anomaly_map(self, images):
    ...         return 1 - images[:, 0]
    ...     def segment(self, images):
    ...         return images[:, 0] < 0.3
    >>> scan, brain = head_phantom(lesion=(-30, 20, 30))
    >>> scored = score_volume(Dark(), scan, mask=brain)
    >>> scored.description
    '36 axial slices, 8-78 mm below top of brain'
    >>> centre = tuple(int(round(v)) for v in scan.to_voxels((-30, 20, 30)))
    >>> bool(scored.segmentation[centre])
    True
    """
    brain, recipe = _brain(scan, mask), Preparation() if preparation is None else preparation
    images, grid = prepare(scan, brain, recipe)
    alone = _slices(model.anomaly_map(images), grid, "anomaly_map").astype(np.float32, copy=False)
    maps = across_slices(alone, recipe)
    odd = _slices(model.segment(images), grid, "segment") if threshold is None else maps > threshold
    anomaly_map = put_back(maps, grid, scan)
    segmentation = put_back(odd, grid, scan) > 0.5
    look = look_of(images)
    if mask is None:
        return ScoredVolume(scan, anomaly_map, segmentation, grid, maps, None, brain, look)
    anomaly_map[~brain] = 0.0
    inside = segmentation & brain
    return ScoredVolume(scan, anomaly_map, inside, grid, maps, brain, brain, look)


def across_slices(maps: NDArray[np.float32], preparation: Preparation) -> NDArray[np.float32]:
    """Average the maps (n, h, w) of neighbouring slices, as the preparation says."""
    slices = preparation.across / preparation.step
    if slices == 0:
        return maps
    return np.asarray(ndimage.gaussian_filter1d(maps, slices, axis=0, mode="nearest"))


def _brain(scan: Volume, mask: Mask | Literal["auto"] | None) -> Mask:
    if not isinstance(mask, np.ndarray):
        return brain_mask(scan)
    check_mask(mask, scan)
    return np.asarray(mask > 0)


def _slices(values: Any, grid: SliceGrid, what: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != grid.shape:
        raise DataError(
            f"The model's {what} gave shape {array.shape} for slices of shape {grid.shape}."
        )
    return array


@dataclass(frozen=True)
class ScanRecord:
    """What became of one scan: where its results are, or why there are none."""

    source: Path
    map_path: Path | None = None
    segmentation_path: Path | None = None
    slices: str = ""
    largest: float = float("nan")
    millilitres: float = float("nan")
    error: str | None = None
    score: float = float("nan")
    n_findings: int = 0
    share_not_scored: float = float("nan")
    remark: str = ""


def score_scan(
    model: SliceModel,
    path: Path,
    folder: Path,
    preparation: Preparation | None = None,
    *,
    mask: MaskOf | Literal["auto"] | None = None,
    threshold: float | None = None,
    axes: str | None = None,
    looks: Looks | None = None,
    p_value: Callable[[float], float] | None = None,
    relative_to: HealthyHeights | None = None,
) -> ScanRecord:
    """Read one scan, score it, and write its map and segmentation to a folder.

    Whole folders of scans, with resume, are scored by `aberra.scoring.scans.score_scans`.

    Parameters
    ----------
    model : SliceModel
        A fitted localiser.
    path : Path
        The scan: a NIfTI file or the folder of a DICOM series.
    folder : Path
        Gets `NAME_anomaly.nii.gz`, `NAME_segmentation.nii.gz`, `NAME_scored.nii.gz` (1 where the
        map says anything), and `NAME_findings.csv` and `NAME_findings.json` (what was flagged,
        piece by piece).
    preparation : Preparation, optional
        The one that the model was trained with.
    mask : callable, "auto" or None, default=None
        From the path of a scan to that of its brain mask; the others as in `score_volume`.
    threshold : float, optional
        Height of the map above which a voxel is flagged; None asks the model.
    axes : str, optional
        Where the array axes of the scan really point, if its header is wrong.
    looks : Looks, optional
        How the training scans looked; the record then remarks on a scan that looks unlike them.
    p_value : callable, optional
        From the millilitres of a finding to the share of healthy scans with one as large.
    relative_to : HealthyHeights, optional
        What is usual in healthy scans; `NAME_percentile.nii.gz` and `NAME_z.nii.gz` are then
        written as well.

    Returns
    -------
    record : ScanRecord
    """
    scan = read_volume(path, axes)
    brain = read_mask(mask(path), scan) if callable(mask) else mask
    scored = score_volume(model, scan, preparation, brain, threshold)
    unlike = "" if looks is None or scored.look is None else looks.remark(scored.look)
    unlike = unlike or too_much(scored.share_flagged)
    affine, flagged = scored.scan.affine, scored.segmentation
    found = findings(scored.anomaly_map, flagged, affine, p_value=p_value)
    further = (
        {}
        if relative_to is None
        else dict(zip((PERCENTILE, DEVIATIONS), scored.relative(relative_to), strict=True))
    )
    return _write(scored, found, path, folder, unlike, further)


def _write(
    scored: ScoredVolume,
    found: list[Finding],
    path: Path,
    folder: Path,
    remark: str,
    further: Mapping[str, NDArray[np.float32]],
) -> ScanRecord:
    name, note = stem(path), f"Aberra: {scored.description}"
    about = {"scan": path.name, "slices": scored.description, "remark": remark}
    for ending, values in {SCORED: scored.looked_at, **further}.items():
        write_nifti(folder / f"{name}{ending}.nii.gz", values, scored.scan, note)
    write_atomically(folder / f"{name}{FINDINGS}", findings_csv(found))
    write_atomically(folder / f"{name}_findings.json", findings_json(found, about))
    return ScanRecord(
        path,
        write_nifti(folder / f"{name}{MAP}.nii.gz", scored.anomaly_map, scored.scan, note),
        write_nifti(
            folder / f"{name}{SEGMENTATION}.nii.gz", scored.segmentation, scored.scan, note
        ),
        scored.description,
        float(scored.anomaly_map.max()),
        scored.millilitres,
        score=scored.score,
        n_findings=len(found),
        share_not_scored=scored.share_not_scored,
        remark=remark,
    )
