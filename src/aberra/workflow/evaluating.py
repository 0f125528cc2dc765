"""How well a model finds lesions that somebody has outlined: both protocols, scan by scan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import find_volumes, read_volume, stem
from aberra.data.mri.grid import resample
from aberra.data.mri.nifti import is_nifti, read_mask
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import inverse
from aberra.errors import DataError
from aberra.localise.protocols import Evaluation, anoddpm, standard
from aberra.localise.volumes import across_slices
from aberra.progress import advance
from aberra.report.evaluation import OutlinedSlice
from aberra.workflow.evaluation_files import CONFIDENCE, Evaluated, write_evaluation
from aberra.workflow.opened import Opened, opened

N_BOOTSTRAP = 2000


@dataclass(frozen=True)
class OutlinedScan:
    """The slices of one scan as the model sees them, with what was outlined."""

    name: str
    maps: NDArray[np.float32]  # (n, h, w)
    lesion: NDArray[np.bool_]
    brain: NDArray[np.bool_]
    millilitres: float
    missed_by_slices: float  # share of the lesion that no slice covers
    shown: OutlinedSlice


def evaluate(
    model: Any,
    scans: str | Path,
    masks: str | Path,
    output: str | Path,
    *,
    pattern: str | None = None,
    seed: int = 0,
) -> Evaluated:
    """Measure a model on scans whose lesions were outlined: what `aberra evaluate` does.

    Two protocols are applied to the slices that the model sees. "standard" counts pixels of the
    brain, pools the slices of a scan and takes the mean over scans, at the threshold of the model,
    which was placed without labels. "published" is that of AnoDDPM: all pixels, slice by slice, a
    fixed threshold of 0.5, which means something only for maps of squared errors; its AUROC and its
    oracle Dice hold for any map. Intervals come from drawing scans again, with replacement.

    Parameters
    ----------
    model : path, Fitted or estimator
        A model of scans: a file, or the name of one that comes with Aberra ("brain-t1").
    scans : path
        A folder of scans, or one scan.
    masks : path
        A folder with a mask for each scan, on the grid of the scan: a file of the same name, or
        one whose name begins with the scan's name, or with the part of it before the last "_". A
        scan without a lesion has a mask of zeros.
    output : path
        The folder to write to.
    pattern : str, optional
        Which names in the folder are scans. By default the pattern that the model was fitted with.
    seed : int, default=0
        Decides which scans are drawn for the intervals.

    Returns
    -------
    evaluated : Evaluated

    Raises
    ------
    DataError
        If no scan can be evaluated.
    """
    known, folder = opened(model), Path(output)
    if known.recipe is None or known.recipe.map_threshold is None or known.kind != "volumes":
        raise DataError(f"{known.name} was not fitted on scans, so it cannot be evaluated on them.")
    source = Path(scans)
    paths = find_volumes(source, pattern or known.recipe.pattern) if source.is_dir() else [source]
    seen, errors = _outlined(known, paths, Path(masks))
    found = _judged(seen, known.recipe.map_threshold, seed)
    evaluated = Evaluated(folder, *found, known.recipe.map_threshold, errors)
    write_evaluation(evaluated, known.name, [one.shown for one in seen])
    return evaluated


def _outlined(
    known: Opened, paths: list[Path], masks: Path
) -> tuple[list[OutlinedScan], dict[str, str]]:
    """Return what the model says about the scans that can be evaluated, and why others cannot."""
    assert known.recipe is not None
    seen: list[OutlinedScan] = []
    errors: dict[str, str] = {}
    for k, path in enumerate(paths):
        try:
            mask, how = mask_of(path, masks), known.recipe.scan_preparation()
            seen.append(_slices(known.model, path, mask, how, known.recipe.axes))
        except DataError as error:
            errors[path.name] = str(error)
        advance("scans", (k + 1) / len(paths), path.name)
    if not seen:
        why = next(iter(errors.values()))
        raise DataError(f"None of {len(paths)} scans could be evaluated. {why}")
    return seen, errors


def mask_of(scan: Path, masks: Path) -> Path:
    """Return the mask that belongs to a scan, or say that there is none, or more than one."""
    name = stem(scan)
    held = sorted(p for p in masks.rglob("*") if p.is_file() and is_nifti(p))
    others = [path for path in held if path.resolve() != scan.resolve()]
    for begin in (name, name.rsplit("_", 1)[0] + "_"):
        exact = [path for path in others if stem(path) == begin]
        fitting = exact or [path for path in others if path.name.startswith(begin)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = ", ".join(path.name for path in fitting[:3])
            raise DataError(f"{scan.name}: several masks fit, {names}. Keep one for each scan.")
    raise DataError(f"{scan.name}: there is no mask for it in {masks}.")


def _slices(
    model: Any, path: Path, mask: Path, preparation: Preparation, axes: str | None
) -> OutlinedScan:
    scan = read_volume(path, axes)
    outlined, brain = read_mask(mask, scan, may_be_empty=True), brain_mask(scan)
    images, grid = prepare(scan, brain, preparation)
    to_scan = inverse(scan.anatomy) @ grid.affine
    lesion, inside = (resample(m, to_scan, grid.shape) > 0.5 for m in (outlined, brain))
    voxel = abs(float(np.linalg.det(scan.affine[:3, :3]))) / 1000.0
    size = float(outlined.sum()) * voxel
    on_slices = float(lesion.sum()) * abs(float(np.linalg.det(grid.affine[:3, :3]))) / 1000.0
    missed = max(0.0, 1 - on_slices / size) if size else 0.0
    maps = across_slices(model.anomaly_map(images).astype(np.float32, copy=False), preparation)
    k = int(lesion.sum(axis=(1, 2)).argmax())
    restored = model.reconstruct(images[k : k + 1])[0, 0]
    depth = float(grid.below_top[k])
    shown = OutlinedSlice(stem(path), depth, images[k, 0], restored, maps[k], lesion[k])
    # The brain mask may leave out a part of a lesion, which is brain all the same.
    return OutlinedScan(stem(path), maps, lesion, inside | lesion, size, missed, shown)


def _judged(
    seen: list[OutlinedScan], threshold: float, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Apply both protocols; return scans, intervals and sizes."""
    owners = np.concatenate([[one.name] * len(one.maps) for one in seen])
    maps = np.concatenate([one.maps for one in seen])
    lesion = np.concatenate([one.lesion for one in seen])
    brain = np.concatenate([one.brain for one in seen])
    ours = standard(maps, lesion, brain, owners, threshold)
    theirs = anoddpm(maps, lesion)
    facts = pd.DataFrame(
        {
            "millilitres": {one.name: one.millilitres for one in seen},
            "lesion_below_slices": {one.name: one.missed_by_slices for one in seen},
        }
    )
    patients = ours.units.join(facts)
    intervals = pd.concat(
        [
            _intervals("standard", ours, patients.index.to_numpy(), seed),
            _intervals("published", theirs, owners, seed),
        ],
        ignore_index=True,
    )
    return patients, intervals, ours.by_size


def _intervals(protocol: str, found: Evaluation, owners: NDArray[Any], seed: int) -> pd.DataFrame:
    """Return the mean of each metric with its interval over scans."""
    rows = []
    for name in found.metrics:
        if name in found.units:
            values = found.units[name].to_numpy(dtype=float)
            low, high = interval_over(values, owners, seed)
            rows.append({"protocol": protocol, "metric": name, "mean": found.metrics[name].mean,
                         "low": low, "high": high, "n": found.metrics[name].n})  # fmt: skip
    return pd.DataFrame(rows)


def interval_over(values: NDArray[Any], owners: NDArray[Any], seed: int) -> tuple[float, float]:
    """Return the confidence interval of a mean when whole patients are drawn again.

    Units without a value (NaN) count for nothing.
    """
    known = ~np.isnan(values)
    names, index = np.unique(owners[known], return_inverse=True)
    if not len(names):
        return float("nan"), float("nan")
    sums = np.bincount(index, values[known], len(names))
    counts = np.bincount(index, minlength=len(names))
    drawn = np.random.default_rng(seed).integers(len(names), size=(N_BOOTSTRAP, len(names)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)
