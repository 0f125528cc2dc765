"""Scans in, scans out: places, twins, memory, and the automatic brain mask, on real heads.

    ABERRA_DATA=... python -m benchmarks.volumes roundtrip     places, and a picture
    ABERRA_DATA=... python -m benchmarks.volumes dicom         a series against its NIfTI twin
    ABERRA_DATA=... python -m benchmarks.volumes slabs --volumes FOLDER      write 185 volumes
    python -m benchmarks.volumes folder --volumes FOLDER       train and score there, peak memory
    ABERRA_DATA=... python -m benchmarks.volumes mask          Dice, and a picture
    python -m benchmarks.volumes table                         writes results/volumes.md

Each part keeps its figures in results/volumes.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.brain import brain_mask, slice_brain_mask
from aberra.data.mri.dicom import read_dicom
from aberra.data.mri.files import find_volumes
from aberra.data.mri.grid import resample
from aberra.data.mri.nifti import read_mask, read_nifti, write_nifti
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Affine, Volume, apply_affine, reorient
from aberra.localise.collect import collect_slices
from aberra.localise.volumes import ScoredVolume, score_scan, score_volume
from benchmarks.records import data_folder, environment

RESULTS = Path("results")
STORE = RESULTS / "volumes.json"
# The headers of the eight IXI files say PRS, but the arrays run to the top, the back and the right.
AXES = "SPR"
TUNED = slice(5, None, 18)  # subjects whose stacks were looked at while the mask was made
RADIUS = 10.0  # mm, of the lesion that is put in
SEEN, TRUE, MAP = "#56B4E9", "#D55E00", "inferno"

Mask = NDArray[np.bool_]
Head = tuple[Volume, Mask]


class Memory:
    """Stands for a localiser that cannot fail: remembers a head and shows where another differs."""

    def fit(self, images: NDArray[Any], sample_weight: object = None) -> Memory:
        """Remember the slices."""
        self.images_ = np.array(images)
        return self

    def anomaly_map(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the difference."""
        return np.asarray(np.abs(images - self.images_)[:, 0])

    def segment(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return where a quarter of the range is exceeded."""
        return self.anomaly_map(images) > 0.25


def names() -> list[str]:
    """Return the eight heads."""
    paths = sorted((data_folder() / "mri" / "nifti").glob("*_t1w.nii.gz"))
    return [path.name.removesuffix("_t1w.nii.gz") for path in paths]


def head(name: str) -> Head:
    """Return a head and the mask of its brain."""
    folder = data_folder() / "mri" / "nifti"
    scan = read_nifti(folder / f"{name}_t1w.nii.gz", axes=AXES)
    return scan, read_mask(folder / f"{name}_brain.nii.gz", scan)


def dice(a: Mask, b: Mask) -> float:
    """Return twice the overlap over the sum."""
    return float(2.0 * (a & b).sum() / (a.sum() + b.sum()))


def remember(part: str, figures: dict[str, Any]) -> None:
    """Keep the figures of one part."""
    stored = json.loads(STORE.read_text()) if STORE.exists() else {}
    stored[part] = {**figures, "made with": environment() | {"nibabel": nib.__version__}}
    STORE.write_text(json.dumps(stored, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


# Round trip


def flipped(scan: Volume, brain: Mask) -> Head:
    """Swap and flip the axes of the array; nothing moves."""
    mask = Volume(brain.astype(np.uint8), scan.affine, axes=scan.axes)
    return reorient(scan, "PLI"), np.asarray(reorient(mask, "PLI").array > 0)


def oblique(scan: Volume, brain: Mask) -> Head:
    """Turn the grid by 15 and 20 degrees under the head."""
    a, b = np.deg2rad((15.0, 20.0))
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_z = np.array([[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]])
    return regridded(scan, brain, (130, 140, 120), about_x @ about_z, (1.0, 1.0, 1.0))


def anisotropic(scan: Volume, brain: Mask) -> Head:
    """Make axial slices of 5 mm with pixels of 1 x 1.5 mm."""
    return regridded(scan, brain, (48, 240, 120), np.eye(3), (2.5, 0.5, 0.75))


CHANGES: dict[str, Callable[[Volume, Mask], Head]] = {
    "as it is": lambda scan, brain: (scan, brain),
    "axes flipped": flipped,
    "oblique": oblique,
    "anisotropic": anisotropic,
}


def regridded(
    scan: Volume,
    brain: Mask,
    shape: tuple[int, int, int],
    turn: NDArray[Any],
    zoom: tuple[float, float, float],
) -> Head:
    """Return the same head on another grid about the same middle."""
    affine: Affine = scan.affine @ np.diag([*zoom, 1.0])
    affine[:3, :3] = turn @ affine[:3, :3]
    old = apply_affine(scan.affine, (np.array(scan.array.shape) - 1) / 2)
    affine[:3, 3] += old - apply_affine(affine, (np.array(shape) - 1) / 2)
    to_array = np.asarray(np.linalg.inv(scan.affine) @ affine, np.float64)
    array = resample(scan.array, to_array, shape)
    return Volume(array, affine, axes=AXES), np.asarray(resample(brain, to_array, shape) > 0.5)


def with_lesion(scan: Volume, centre: NDArray[np.float64]) -> Volume:
    """Darken a ball around a point of the world."""
    points = scan.to_world(np.moveaxis(np.indices(scan.array.shape), 0, -1))
    ball = ((points - centre) ** 2).sum(axis=-1) < RADIUS**2
    return Volume(np.where(ball, scan.array * 0.2, scan.array), scan.affine, axes=scan.axes)


def place_of_lesion(scan: Volume, brain: Mask) -> NDArray[np.float64]:
    """Return a point well inside the brain and the slices, off its middle in all directions."""
    inside = np.argwhere(brain)
    quantiles = np.quantile(inside, (0.7, 0.4, 0.35), axis=0).diagonal()
    return scan.to_world(quantiles)


def trip(scan: Volume, brain: Mask, centre: NDArray[np.float64], folder: Path) -> dict[str, Any]:
    """Write a scan with a lesion, score the file, and look where the written result lies."""
    ill = with_lesion(scan, centre)
    path = write_nifti(folder / "scan.nii.gz", ill.array, ill)
    model = Memory().fit(prepare(scan, brain, Preparation())[0])
    read = read_nifti(path, axes=scan.axes)
    scored = score_volume(model, read, mask=brain)
    files = {
        "map": write_nifti(folder / "map.nii.gz", scored.anomaly_map, read),
        "segmentation": write_nifti(folder / "seg.nii.gz", scored.segmentation, read),
    }
    opened: dict[str, Any] = {
        what: nib.load(file) for what, file in files.items()
    }  # as any viewer would
    original: Any = nib.load(path)
    same = all(
        image.shape == original.shape and (image.affine == original.affine).all()
        for image in opened.values()
    )
    marks = opened["segmentation"].get_fdata() > 0
    found = apply_affine(opened["segmentation"].affine, np.argwhere(marks)).mean(axis=0)
    ball = with_lesion(scan, centre).array != scan.array
    values = opened["map"].get_fdata() * ball
    weighted = (apply_affine(read.affine, np.argwhere(ball)) * values[ball][:, None]).sum(axis=0)
    return {
        "same grid and affine": bool(same),
        "segmentation off by mm": float(np.linalg.norm(found - centre)),
        "map off by mm": float(np.linalg.norm(weighted / values.sum() - centre)),
        "dice of lesion": dice(marks, ball & brain),
        "scored": scored,
    }


def roundtrip() -> None:
    """Measure where lesions are found again, and draw one head on four grids."""
    rows, drawn = [], []
    for name in names():
        scan, brain = head(name)
        centre = place_of_lesion(scan, brain)
        for change, make in CHANGES.items():
            with tempfile.TemporaryDirectory() as folder:
                result = trip(*make(scan, brain), centre, Path(folder))
            scored = result.pop("scored")
            rows.append({"head": name, "grid": change, **result})
            if name == names()[0]:
                drawn.append((change, scored, centre))
    draw_planes(drawn, RESULTS / "volumes_roundtrip.png")
    summary = {
        change: {
            key: round(pick([row[key] for row in rows if row["grid"] == change]), 3)
            for key, pick in (
                ("segmentation off by mm", max),
                ("map off by mm", max),
                ("dice of lesion", min),
            )
        }
        for change in CHANGES
    }
    same = all(row["same grid and affine"] for row in rows)
    remember("roundtrip", {"heads": len(names()), "same grid": same, "worst": summary})


def draw_planes(drawn: list[tuple[str, ScoredVolume, NDArray[np.float64]]], path: Path) -> None:
    """Draw each array through the lesion, head up: scan, map, outline, and the true place."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3 * len(drawn)), layout="constrained", facecolor="white")
    axes = figure.subplots(len(drawn), 3)
    for row, (change, scored, centre) in zip(axes, drawn, strict=True):
        scan = reorient(scored.scan)
        values, marks = (
            reorient(Volume(array.astype(np.float32), scored.scan.affine, axes=scored.scan.axes))
            for array in (scored.anomaly_map, scored.segmentation)
        )
        voxel = scan.to_voxels(centre)
        for k, ax in enumerate(row):
            across, up = (axis for axis in range(3) if axis != k)
            plane = np.take(scan.array, round(float(voxel[k])), axis=k).T
            shown = {"origin": "lower", "aspect": scan.spacing[up] / scan.spacing[across]}
            ax.imshow(plane, cmap="gray", **shown)
            heat = np.take(values.array, round(float(voxel[k])), axis=k).T
            ax.imshow(np.ma.masked_less(heat, 0.15), cmap=MAP, vmin=0, vmax=1, **shown)
            outline = np.take(marks.array, round(float(voxel[k])), axis=k).T
            ax.contour(outline, [0.5], colors=SEEN, linewidths=1.2)
            ax.plot(voxel[across], voxel[up], "+", color=TRUE, markersize=9)
            ax.set(xticks=[], yticks=[])
        size = " x ".join(f"{s:g}" for s in scored.scan.spacing.round(2))
        row[0].set_ylabel(f"{change}: {scored.scan.directions}, {size} mm", fontsize=9)
    figure.savefig(path, dpi=80)


# DICOM


def write_series(folder: Path, scan: Volume, seed: int) -> None:
    """Write a scan as DICOM: shuffled names, numbers that mean nothing, slope and intercept."""
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage, generate_uid

    generator = np.random.default_rng(seed)
    n = scan.array.shape[2]
    order, numbers = generator.permutation(n), generator.permutation(n)
    series, lps = generate_uid(), np.diag([-1.0, -1.0, 1.0, 1.0]) @ scan.affine
    across, down = np.linalg.norm(lps[:3, :2], axis=0)
    for k in range(n):
        meta = FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.TransferSyntaxUID = (
            MRImageStorage,
            ExplicitVRLittleEndian,
        )
        meta.MediaStorageSOPInstanceUID = generate_uid()
        data = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
        data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
        data.SeriesInstanceUID, data.Modality = series, "MR"
        data.InstanceNumber = int(numbers[k])
        data.Columns, data.Rows = scan.array.shape[:2]
        data.PixelSpacing = [f"{down:.9g}", f"{across:.9g}"]
        directions = np.concatenate([lps[:3, 0] / across, lps[:3, 1] / down])
        data.ImageOrientationPatient = [f"{v:.10f}" for v in directions]
        data.ImagePositionPatient = [f"{v:.8f}" for v in lps[:3, 3] + k * lps[:3, 2]]
        data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
        data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
        slope = (0.25, 0.5, 1.0)[int(generator.integers(3))]  # every slice has its own
        data.RescaleSlope, data.RescaleIntercept = slope, -16
        stored = ((scan.array[:, :, k].T + 16) / slope).astype(np.uint16)
        data.PixelData = np.ascontiguousarray(stored).tobytes()
        data.save_as(folder / f"IM{order[k]:05d}", enforce_file_format=True)


def dicom() -> None:
    """Score DICOM series and their NIfTI twins."""
    rows: list[dict[str, float]] = []
    for name in names():
        scan, brain = head(name)
        scan = Volume(scan.array, scan.anatomy)  # with a header that tells the truth
        ill = with_lesion(scan, place_of_lesion(scan, brain))
        ill = Volume(np.rint(ill.array), ill.affine)
        model = Memory().fit(prepare(scan, brain, Preparation())[0])
        twin = score_volume(model, ill, mask=brain)
        with tempfile.TemporaryDirectory() as folder:
            write_series(Path(folder), ill, seed=len(rows))
            series = read_dicom(folder)

        def turned(array: NDArray[Any], start: Volume, goal: Volume) -> Volume:
            return reorient(Volume(array.astype(np.float32), start.affine), goal.directions)

        scored = score_volume(model, series, mask=turned(brain, scan, series).array > 0)
        back = turned(scored.anomaly_map, series, ill)
        marks = turned(scored.segmentation, series, ill).array > 0
        rows.append(
            {
                "affine differs by": float(np.abs(back.affine - ill.affine).max()),
                "map differs by": float(np.abs(back.array - twin.anomaly_map).max()),
                "voxels segmented otherwise": int((marks != twin.segmentation).sum()),
                "voxels segmented": int(twin.segmentation.sum()),
            }
        )
    worst = {key: max(row[key] for row in rows) for key in rows[0]}
    remember("dicom", {"series": len(rows), "slices each": scan.array.shape[2], "largest": worst})


# Memory


class Typical:
    """Stands for a localiser: learns the mean head from a file of slices, a few at a time."""

    def fit(self, images: NDArray[Any], sample_weight: object = None) -> Typical:
        """Average the slices."""
        self.mean_ = np.zeros(images.shape[2:])
        for k in range(0, len(images), 64):
            self.mean_ += images[k : k + 64, 0].sum(axis=0, dtype=np.float64) / len(images)
        return self

    def anomaly_map(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return the difference from the mean."""
        return np.asarray(np.abs(images[:, 0] - self.mean_))

    def segment(self, images: NDArray[Any]) -> NDArray[Any]:
        """Return where half of the range is exceeded."""
        return self.anomaly_map(images) > 0.5


def peak() -> float:
    """Return the most memory that this process has ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def localiser(name: str, steps: int) -> Any:
    """Return a stand-in, or one of Aberra's localisers."""
    if name == "Typical":
        return Typical()
    import aberra

    kind = getattr(aberra, name)
    return kind(preset="small", style="printed", train_steps=steps, random_state=0)


def write_slabs(folder: Path, repeat: int, limit: int) -> None:
    """Write the 185 stacks of slices as volumes with masks."""
    with np.load(data_folder() / "mri" / "ixi185_t1_axial128.npz") as file:
        images, brains, subjects = file["img"], file["brain"], file["subject"]
    size = 2.0 / repeat
    affine = np.diag([size, -size, -size, 1.0])  # to the right, to the back, downwards
    for name in np.unique(subjects)[:limit]:
        rows = np.flatnonzero(subjects == name)
        # (slice, row, column), first slice on top, to (column, row, slice)
        arrays = [np.transpose(a[rows], (2, 1, 0)) for a in (images, brains)]
        arrays = [a.repeat(repeat, 0).repeat(repeat, 1).repeat(repeat, 2) for a in arrays]
        slab = Volume(arrays[0].astype(np.float32), affine)
        write_nifti(folder / f"{name}_t1w.nii.gz", slab.array, slab)
        write_nifti(folder / f"{name}_brain.nii.gz", arrays[1], slab)


def mask_of(path: Path) -> Path:
    """Return the mask that lies beside a scan."""
    return path.with_name(path.name.replace("_t1w", "_brain"))


@contextmanager
def own_memory() -> Iterator[list[float]]:
    """Watch the memory that is the process's own, in MB; mapped files can be given back."""
    most, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            held = next(line for line in lines if line.startswith("RssAnon"))
            most[0] = max(most[0], int(held.split()[1]) / 1024.0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def folder(root: Path, name: str, steps: int) -> None:
    """Train and score on the volumes of a folder that `slabs` has written."""
    recipe = Preparation(below_top=(0.0, 70.0))  # the stacks begin 8 mm below the top
    model, scans = localiser(name, steps), find_volumes(root, "*_t1w*")
    first, n = read_nifti(scans[0]), len(scans)
    figures: dict[str, Any] = {"scans": n, "MB of one": first.array.nbytes / 1e6}
    figures["libraries loaded"] = peak()
    score_volume(Typical().fit(np.zeros((1, 1, 64, 64))), first, recipe, mask="auto")
    figures["one scan scored, automatic mask"] = peak()
    with tempfile.TemporaryDirectory() as where:
        started = time.perf_counter()
        collected = collect_slices(scans, Path(where) / "slices.npy", recipe, mask=mask_of)
        figures["slices"], figures["all collected"] = len(collected.images), peak()
        figures["seconds a scan, collecting"] = (time.perf_counter() - started) / n
        with own_memory() as own:
            model.fit(collected.images)
        figures["trained"] = peak()
        figures["trained, mapped files left out"] = own[0]
        started = time.perf_counter()
        height = 0.5 if isinstance(model, Typical) else model.map_threshold_
        maps = Path(where) / "maps"
        results = [
            score_scan(model, path, maps, recipe, mask=mask_of, threshold=height) for path in scans
        ]
        figures["maps written"] = sum(record.map_path is not None for record in results)
        figures["all scored"] = peak()
        figures["seconds a scan, scoring"] = (time.perf_counter() - started) / n
    rounded = {k: round(v, 2) if isinstance(v, float) else v for k, v in figures.items()}
    remember(f"folder, {name}, {n} volumes of {first.spacing[0]:g} mm", rounded)


# The automatic mask


def top_of(mask: Mask, scan: Volume) -> float:
    """Return the height of the highest voxel in mm."""
    return float(apply_affine(scan.anatomy, np.argwhere(mask))[:, 2].max())


def dark_lesions(scan: Volume, brain: Mask, seed: int) -> Mask:
    """Return a ball of 14 mm that reaches through the surface of the upper brain."""
    from scipy import ndimage

    depth = ndimage.distance_transform_edt(brain, sampling=scan.spacing)
    height = apply_affine(scan.anatomy, np.moveaxis(np.indices(brain.shape), 0, -1))[..., 2]
    upper = height > top_of(brain, scan) - 70.0
    choice = np.argwhere((np.abs(depth - 10.0) < 1.0) & upper)
    centre = scan.to_world(choice[np.random.default_rng(seed).integers(len(choice))])
    points = scan.to_world(np.moveaxis(np.indices(brain.shape), 0, -1))
    return np.asarray((((points - centre) ** 2).sum(axis=-1) < 14.0**2) & brain)


def masks_of_volumes() -> dict[str, Any]:
    """Measure the mask on the eight whole heads, and on the same heads with dark lesions."""
    overlaps, tops, kept, seconds = [], [], [], []
    for k, name in enumerate(names()):
        scan, brain = head(name)
        started = time.perf_counter()
        found = brain_mask(scan)
        seconds.append(time.perf_counter() - started)
        overlaps.append(dice(found, brain))
        tops.append(top_of(found, scan) - top_of(brain, scan))
        lesion = dark_lesions(scan, brain, k)
        ill = Volume(np.where(lesion, scan.array * 0.25, scan.array), scan.affine)
        kept.append(float((brain_mask(ill) & lesion).sum() / lesion.sum()))
    return {
        "Dice": [round(v, 3) for v in overlaps],
        "mean Dice": round(float(np.mean(overlaps)), 3),
        "top off by mm": tops,
        "share of a dark lesion at the surface that is kept": [round(v, 2) for v in kept],
        "seconds": round(float(np.median(seconds)), 2),
    }


def masks_of_slabs(every: int) -> dict[str, Any]:
    """Measure the mask on stacks of slices of subjects that no setting was chosen with."""
    with np.load(data_folder() / "mri" / "ixi185_t1_axial128.npz") as file:
        images, brains, subjects = file["img"], file["brain"], file["subject"]
    known = {*names(), *np.unique(subjects)[TUNED]}
    others = [name for name in np.unique(subjects) if name not in known][::every]
    overlaps = []
    for name in others:
        rows = subjects == name
        slab = Volume(images[rows].astype(np.float32), np.diag([2.0, 2.0, 2.0, 1.0]))
        overlaps.append(dice(brain_mask(slab), brains[rows]))
    low, middle, high = np.percentile(overlaps, (0, 50, 100))
    return {
        "subjects": len(others),
        "mean Dice": round(float(np.mean(overlaps)), 3),
        "lowest, median, highest": [round(float(v), 3) for v in (low, middle, high)],
    }


def solidity(mask: Mask) -> float:
    """Return the share of a mask in its convex hull; a bite out of the brain lowers it."""
    from scipy.spatial import ConvexHull

    if mask.sum() < 10:
        return 0.0
    corners = [(-0.5, -0.5), (-0.5, 0.5), (0.5, -0.5), (0.5, 0.5)]
    points = np.concatenate([np.argwhere(mask) + corner for corner in corners])
    return float(mask.sum() / ConvexHull(points).volume)


def masks_of_slices() -> dict[str, Any]:
    """Look at the slice version: healthy slices, how much tumour it keeps, and bites."""
    with np.load(data_folder() / "mri" / "ixi185_t1_axial128.npz") as file:
        # None of these slices was looked at while the mask was made.
        images, brains = file["img"][30::61], file["brain"][30::61]
    healthy = [dice(slice_brain_mask(i, 2.0), b) for i, b in zip(images, brains, strict=True)]
    usual = float(np.percentile([solidity(brain) for brain in brains], 5))
    with np.load(data_folder() / "mri" / "edinburgh22_t1_2mm128.npz") as file:
        images, tumours = file["img"], file["mask"]
    found = np.array([slice_brain_mask(image, 2.0) for image in images])
    kept = (found & tumours).sum(axis=(1, 2)) / tumours.sum(axis=(1, 2))
    draw_outlines(found, tumours, kept, RESULTS / "brain_mask.png")
    shapes = np.array([solidity(mask) for mask in found])
    return {
        "healthy slices": len(healthy),
        "Dice on healthy slices": round(float(np.mean(healthy)), 3),
        "lowest": round(float(np.min(healthy)), 3),
        "tumour slices": len(kept),
        "share of tumour kept": round(float(kept.mean()), 3),
        "slices that keep all": int((kept > 0.999).sum()),
        "slices that lose more than half": int((kept < 0.5).sum()),
        "5th percentile of solidity, healthy brains": round(usual, 3),
        "tumour slices less solid than that": int((shapes < usual).sum()),
        "area of the mask in cm2, median": round(float(np.median(found.sum(axis=(1, 2)))) * 0.04),
    }


def draw_outlines(found: Mask, tumours: Mask, kept: NDArray[Any], path: Path) -> None:
    """Draw outlines of mask and tumour alone; the scans may not be shown."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.6), layout="constrained", facecolor="white")
    for k, ax in enumerate(figure.subplots(8, 11).flat):
        if found[k].any():
            ax.contour(found[k], [0.5], colors="#0072B2", linewidths=0.9)
        ax.contour(tumours[k], [0.5], colors=TRUE, linewidths=0.9)
        ax.set_title(f"{100 * kept[k]:.0f} %", fontsize=7, pad=1)
        ax.set(xlim=(12, 116), ylim=(116, 12), xticks=[], yticks=[], aspect="equal")
    figure.suptitle("Automatic brain mask (blue) and tumour (red); share of the tumour kept")
    figure.savefig(path, dpi=80)


def mask(every: int) -> None:
    """Measure the automatic mask."""
    figures = {
        "whole heads": masks_of_volumes(),
        "stacks": masks_of_slabs(every),
        "slices": masks_of_slices(),
    }
    remember("mask", figures)


# Report


HEAD = """# Scans in, scans out

`python -m benchmarks.volumes`; all figures, with versions and commit, in volumes.json.

The pictures show heads and outlines from IXI (brain-development.org, CC BY-SA 3.0;
volumes_roundtrip.png is under the same licence) and outlines alone from the Edinburgh set,
whose scans may not be shown.

The headers of the eight IXI files used here say that the array axes run to the back, the right
and the top. The pictures in them run to the top, the back and to one side. So slices are cut
with `axes="SPR"`; maps keep the header of the file. Left and right cannot be told from the
pictures: R is taken over, not checked.
"""

NOTES = {
    "roundtrip": """
A dark ball (10 mm) is put into each head at a point of the world; the scan is written, read,
scored and the result written; the result is opened with nibabel. The stand-in for a model
remembers the healthy head, so this measures places, not detection. Worst of the heads; slices
have pixels of 3.25 mm.
""",
    "dicom": """
Shuffled names, numbers that mean nothing, a slope per slice. Largest difference from the twin.
The reader keeps the order of these slices, so arrays are equal as they stand; the unit tests
turn it round.
""",
    "mask": """
What was chosen in view of what: the settings for volumes on the eight heads and ten stacks
(left out of `stacks`), and on dark balls put into these heads; the settings for slices on
healthy slices (others than those counted here, of partly the same people) and
**on the tumour slices, with their tumours in view**. So `share of tumour kept` is what was
tuned for, not a prediction. It says nothing about healthy brain that the mask loses: solidity
finds the worst bites, but by eye (brain_mask.png) about ten of the 88 outlines miss part of the
brain. Tumour volumes in three dimensions were not at hand; the dark balls stand for them, and
61-86 % of each is kept. Do not blank maps with this mask where lesions at the surface matter:
give a mask, or none.
""",
    "folder": """
Peak memory of the process in MB after each step. Collecting and scoring hold one scan.
`Typical` is a stand-in that reads the slices a few at a time; what it adds in training should
be pages of the slice file (104 MB), which count here though the system can take them back.
A training reads its slices batch by batch from the collected file; "mapped files left out" counts
what cannot be given back.
""",
}


def table() -> None:
    """Write the figures as text."""
    lines = [HEAD]
    shown = set()
    for part, figures in json.loads(STORE.read_text()).items():
        lines += [f"## {part}", ""]
        kind = part.split(",")[0]
        if kind not in shown:
            shown.add(kind)
            lines += [NOTES[kind].strip(), ""]
        for key, value in figures.items():
            if isinstance(value, dict) and key != "made with":
                lines += [f"- {key}", *(f"  - {name}: {v}" for name, v in value.items())]
            elif key != "made with":
                lines += [f"- {key}: {value}"]
        lines += [""]
    (RESULTS / "volumes.md").write_text("\n".join(lines).rstrip() + "\n")


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["roundtrip", "dicom", "slabs", "folder", "mask", "table"])
    parser.add_argument("--volumes", type=Path, help="for slabs, folder: where the volumes are")
    parser.add_argument("--localiser", default="Typical", help="for folder: a name in aberra")
    parser.add_argument("--steps", type=int, default=50, help="for folder: training steps")
    parser.add_argument("--repeat", type=int, default=1, help="for slabs: make voxels smaller")
    parser.add_argument("--limit", type=int, default=185, help="for slabs: how many volumes")
    parser.add_argument("--every", type=int, default=6, help="for mask: every nth subject")
    given = parser.parse_args()
    if given.part in ("slabs", "folder") and given.volumes is None:
        parser.error("slabs and folder need --volumes FOLDER")
    parts: dict[str, Callable[[], None]] = {
        "roundtrip": roundtrip,
        "dicom": dicom,
        "slabs": lambda: write_slabs(given.volumes, given.repeat, given.limit),
        "folder": lambda: folder(given.volumes, given.localiser, given.steps),
        "mask": lambda: mask(given.every),
        "table": table,
    }
    parts[given.part]()


if __name__ == "__main__":
    main()
