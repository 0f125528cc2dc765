"""Sets of slices as the papers use them: NFBS and Edinburgh by AnoDDPM's protocol, and npz files.

AnoDDPM's protocol (Wyatt et al., CVPR-W 2022, and its public code): intensities of a volume are cut
to mean - 1 sd ... mean + 2 sd and divided by that range; slices are cropped and padded about their
middle and resized to a square.

Deviation: values are cut to [0, 1] afterwards. The range is not shifted, so in AnoDDPM a value can
leave [0, 1] a little where a volume's mean is above its standard deviation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.nifti import check_mask, read_nifti
from aberra.data.mri.prepare import Preparation, normalise
from aberra.errors import DataError

# NFBS: slices are drawn from here, along the second array axis (AnoDDPM, dataset.py).
NFBS_SLICES = range(40, 101)
NFBS_TRAINING = 100  # of 125 subjects
NFBS_CROP = (235, 235)
EDINBURGH_CROP = (175, 240)
# First and last tumour slice of each patient, listed by hand by AnoDDPM's author (dataset.py, MIT).
EDINBURGH_SLICES = {
    "17904": (165, 205),
    "18428": (177, 213),
    "18582": (160, 190),
    "18638": (160, 212),
    "18675": (140, 200),
    "18716": (135, 190),
    "18756": (150, 205),
    "18863": (130, 190),
    "18886": (120, 180),
    "18975": (170, 194),
    "19015": (158, 195),
    "19085": (155, 195),
    "19275": (184, 213),
    "19277": (158, 209),
    "19357": (158, 210),
    "19398": (164, 200),
    "19423": (142, 200),
    "19567": (160, 200),
    "19628": (147, 210),
    "19691": (155, 200),
    "19723": (140, 170),
    "19849": (150, 180),
}

Images = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class SliceSet:
    """Slices with what is known about each.

    Parameters
    ----------
    images : ndarray of shape (n, 1, h, w), float32 in [0, 1]
    subjects : ndarray of shape (n,), str
        Whose slice it is. Split by subject, never by slice.
    positions : ndarray of shape (n,), int
        Number of the slice in its volume, or millimetres below the top of the brain.
    masks : ndarray of shape (n, h, w), bool, optional
        The lesions.
    brains : ndarray of shape (n, h, w), bool, optional
    """

    images: Images
    subjects: NDArray[np.str_]
    positions: NDArray[np.int64]
    masks: NDArray[np.bool_] | None = None
    brains: NDArray[np.bool_] | None = None


def nfbs(
    folder: str | Path,
    part: Literal["train", "test", "all"] = "train",
    slices: Sequence[int] = NFBS_SLICES[::4],
    size: int = 256,
    jitter: int | None = None,
) -> SliceSet:
    """Load healthy slices of NFBS as AnoDDPM trains on them.

    Parameters
    ----------
    folder : path
        Holds `ID/sub-ID_ses-NFB3_T1w.nii.gz` for each subject.
    part : {"train", "test", "all"}, default="train"
        The first 100 subjects by name, the rest, or all of them.
    slices : sequence of int, default=40, 44, ... 100
        Along the second array axis. AnoDDPM draws from 40 ... 100 anew at each visit, which every
        slice of that range, `NFBS_SLICES`, matches on average.
    size : int, default=256
    jitter : int, optional
        Seed of AnoDDPM's small random turns (3 degrees) and shifts (2 % across, 9 % down), one for
        each slice; None leaves slices as they are.

    Returns
    -------
    set : SliceSet

    Notes
    -----
    Deviation: which 100 subjects AnoDDPM trained on is not published; names decide here.
    """
    root = Path(folder)
    names = sorted(p.parent.name for p in root.glob("*/sub-*_ses-NFB3_T1w.nii.gz"))
    if not names:
        raise DataError(f"No ID/sub-ID_ses-NFB3_T1w.nii.gz below {root}.")
    names = {"train": names[:NFBS_TRAINING], "test": names[NFBS_TRAINING:], "all": names}[part]
    if not names:
        raise DataError(f"{root} has no more than {NFBS_TRAINING} subjects: none is left to test.")
    generator = None if jitter is None else np.random.default_rng(jitter)
    images = np.empty((len(names) * len(slices), 1, size, size), np.float32)
    for k, name in enumerate(names):
        path = root / name / f"sub-{name}_ses-NFB3_T1w.nii.gz"
        planes = np.moveaxis(anoddpm_window(read_nifti(path, axes="RAS").array), 1, 0)
        chosen = _planes(planes, slices, path)
        if generator is not None:
            chosen = np.stack([_shaken(image, generator) for image in chosen])
        rows = slice(k * len(slices), (k + 1) * len(slices))
        images[rows, 0] = resize(centre_crop(chosen, *NFBS_CROP), size)
    return SliceSet(
        np.clip(images, 0.0, 1.0, out=images),
        np.repeat(names, len(slices)),
        np.tile(np.asarray(slices, np.int64), len(names)),
    )


def edinburgh(folder: str | Path, size: int = 256) -> SliceSet:
    """Load the tumour slices of the Edinburgh set as AnoDDPM tests on them: four a patient.

    Parameters
    ----------
    folder : path
        Holds, for each patient, `ID/*COR_3D*/anon*.nii` (the scan) and
        `ID/tissue_classes/cleaned*.nii` (the tumour, above zero). Patients that are absent are
        passed over.
    size : int, default=256

    Returns
    -------
    set : SliceSet
        With the tumours as `masks`.
    """
    root = Path(folder)
    parts = [_patient(root / name, name, size) for name in _patients(root)]
    images, masks, numbers = (np.concatenate(column) for column in zip(*parts, strict=True))
    subjects = np.repeat(_patients(root), 4)
    return SliceSet(images[:, None], subjects, numbers.astype(np.int64), masks > 0.5)


def npz_slices(
    path: str | Path,
    preparation: Preparation | None = None,
    pixel: float | None = 2.0,
    subjects: Sequence[str] | None = None,
) -> SliceSet:
    """Load slices from an npz file, prepared as the slices of a scan would be.

    Parameters
    ----------
    path : path
        With the arrays `img` (n, h, w) and `subject` (n,), and any of `mask`, `brain`,
        `mm_below_top`, `slice`.
    preparation : Preparation, optional
        Gives `size`, `field` and the brightness; "volume" means all slices of a subject together.
    pixel : float, optional, default=2.0
        Size of a pixel in mm, by which the slices are cropped to `field`; None crops nothing.
    subjects : sequence of str, optional
        Load only these.

    Returns
    -------
    set : SliceSet
    """
    recipe = Preparation() if preparation is None else preparation
    with np.load(path) as file:
        absent = {"img", "subject"} - set(file.files)
        if absent:
            raise DataError(f"{path} has no array {sorted(absent)}; it holds {file.files}.")
        names = np.asarray(file["subject"]).astype(str)
        rows = (
            np.arange(len(names))
            if subjects is None
            else np.flatnonzero(np.isin(names, list(subjects)))
        )
        stored = file["img"][rows]
        extra = {k: file[k][rows] for k in ("mask", "brain", "mm_below_top", "slice") if k in file}
    names = names[rows]
    if not len(rows):
        raise DataError(f"{path} has no slice of the subjects asked for.")
    side = stored.shape[1] if pixel is None else round(recipe.field / pixel)
    images = np.empty((len(rows), 1, recipe.size, recipe.size), np.float32)
    for name in np.unique(names):
        own = np.flatnonzero(names == name)
        images[own, 0] = normalise(
            resize(centre_crop(stored[own], side, side), recipe.size), recipe
        )
    shrunk = {
        k: resize(centre_crop(extra[k], side, side), recipe.size) > 0.5
        for k in ("mask", "brain")
        if k in extra
    }
    where = extra.get("mm_below_top", extra.get("slice", np.arange(len(rows))))
    return SliceSet(images, names, where.astype(np.int64), shrunk.get("mask"), shrunk.get("brain"))


def anoddpm_window(array: NDArray[Any]) -> Images:
    """Cut to mean - 1 sd ... mean + 2 sd and divide by that range, without a shift."""
    mean, sd = float(array.mean(dtype=np.float64)), float(array.std(dtype=np.float64))
    return np.asarray(np.clip(array, mean - sd, mean + 2.0 * sd) / np.float32(3.0 * sd), np.float32)


def centre_crop(images: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """Crop images, shape (n, h, w), about their middle; pad with zeros where they are smaller."""
    pads = [
        (max(want - have, 0)) for have, want in zip(images.shape[1:], (height, width), strict=True)
    ]
    padded = np.pad(images, [(0, 0), *((p // 2, p - p // 2) for p in pads)])
    top, left = (
        round((have - want) / 2.0)
        for have, want in zip(padded.shape[1:], (height, width), strict=True)
    )
    return padded[:, top : top + height, left : left + width]


def resize(images: NDArray[Any], size: int) -> Images:
    """Resize images, shape (n, h, w), to squares: bilinear, averaging where they shrink."""
    import torch
    from torch.nn import functional as F

    tensor = torch.from_numpy(np.ascontiguousarray(images, np.float32))[:, None]
    return np.asarray(
        F.interpolate(tensor, (size, size), mode="bilinear", antialias=True, align_corners=False)[
            :, 0
        ].numpy()
    )


def _planes(planes: Images, numbers: Sequence[int], path: Path) -> Images:
    if max(numbers) >= len(planes):
        raise DataError(
            f"{path} has {len(planes)} slices, but slice {max(numbers)} is asked for. Use the "
            "files as they are distributed, not resampled."
        )
    return planes[list(numbers)]


def _shaken(image: Images, generator: np.random.Generator) -> Images:
    """Turn by up to 3 degrees about the middle and shift, by the nearest pixel."""
    from scipy import ndimage

    angle = np.deg2rad(generator.uniform(-3.0, 3.0))
    shift = np.rint(generator.uniform(-1.0, 1.0, 2) * (0.09, 0.02) * np.array(image.shape))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    middle = (np.array(image.shape) - 1.0) / 2.0
    offset = middle - turn @ (middle + shift)
    return np.asarray(ndimage.affine_transform(image, turn, offset, order=0, prefilter=False))


def _patients(root: Path) -> list[str]:
    names = [name for name in EDINBURGH_SLICES if (root / name).is_dir()]
    if not names:
        raise DataError(f"No folder of a patient, such as {root / '17904'}.")
    return names


def _patient(folder: Path, name: str, size: int) -> tuple[Images, Images, NDArray[np.int64]]:
    scan_path = _one(folder.glob("*COR_3D*/anon*.nii"), folder, "*COR_3D*/anon*.nii", "corrected")
    mask_path = _one(folder.glob("tissue_classes/cleaned*.nii"), folder, "tissue_classes/cleaned*")
    scan, mask = read_nifti(scan_path, axes="RAS"), read_nifti(mask_path, axes="RAS")
    check_mask(mask.array, scan, str(mask_path))
    first, last = EDINBURGH_SLICES[name]
    numbers = np.linspace(first + 5, last - 5, 4).astype(np.int64)
    pair = []
    for array in (anoddpm_window(scan.array), (mask.array > 0).astype(np.float32)):
        planes = _planes(array.transpose(1, 2, 0), [int(n) for n in numbers], scan_path)
        pair.append(np.clip(resize(centre_crop(planes, *EDINBURGH_CROP), size), 0.0, 1.0))
    return pair[0], pair[1], numbers


def _one(found: Iterator[Path], folder: Path, what: str, but: str | None = None) -> Path:
    paths = sorted(p for p in found if but is None or but not in p.name)
    if len(paths) != 1:
        listed = f": {[p.name for p in paths]}" if paths else ""
        raise DataError(f"{folder} holds {len(paths)} files {what} instead of one{listed}.")
    return paths[0]
