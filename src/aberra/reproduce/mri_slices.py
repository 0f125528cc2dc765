"""The brain slices of the MRI tables: healthy subjects, and Edinburgh's tumour patients.

Up to 128 pixels a side the healthy ones are IXI's. They lie in the data folder as
mri/ixi185_t1_axial128.npz and mri/edinburgh22_t1_2mm128.npz. Both are brought to one scale slice by
slice, without labels: background (20th percentile) to 0, the 83rd percentile of the head to 1. The
border that holds no head is cut off, and the rest is resized.

Larger slices are cut from the scans themselves, by AnoDDPM's protocol (`aberra.data.mri.datasets`):
NFBS, on which the paper trained, in mri/nfbs/, and Edinburgh in mri/edinburgh/.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.datasets import SliceSet, edinburgh, nfbs
from aberra.data.registry import data_dir
from aberra.data.scenarios import paste_lesions
from aberra.errors import DataError

SIZE, BORDER = 64, 12
STORED = 128  # pixels a side of the arrays
N_TUNE_NFBS = 10  # of the 25 subjects that do not train
N_TRAIN, N_TUNE = 150, 15  # subjects; the other 20 place thresholds and count false alarms


@dataclass(frozen=True)
class Slices:
    """Slices in [0, 1] with what is known about each."""

    images: NDArray[np.float32]  # (n, 1, h, w)
    brain: NDArray[np.bool_]  # (n, h, w)
    lesion: NDArray[np.bool_]  # (n, h, w)
    subject: NDArray[Any]  # (n,)

    def of(self, which: NDArray[Any]) -> Slices:
        """Return some of the slices."""
        return Slices(
            self.images[which], self.brain[which], self.lesion[which], self.subject[which]
        )


def one_scale(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bring slices (n, h, w) to [0, 1], each by its own percentiles."""
    x = images.astype(np.float32)
    x = np.maximum(x - np.percentile(x, 20, axis=(1, 2), keepdims=True), 0)
    head = x > 0.15 * x.max(axis=(1, 2), keepdims=True)
    white = np.array([np.percentile(s[h], 83) for s, h in zip(x, head, strict=True)])
    return np.clip(x / white[:, None, None], 0, 1).astype(np.float32)


def resized(images: NDArray[Any], size: int = SIZE) -> NDArray[np.float32]:
    """Cut the border off and average down to `size` pixels a side."""
    inner = images[:, BORDER:-BORDER, BORDER:-BORDER].astype(np.float32)
    from torch import from_numpy
    from torch.nn.functional import interpolate

    small = interpolate(from_numpy(inner)[:, None], size=(size, size), mode="area")
    return small[:, 0].numpy()


def healthy_parts(size: int, folder: Path | None = None) -> dict[str, Slices]:
    """Return healthy slices, split by subject into train, tune and healthy.

    Deviation: of the slices 40 to 100 of NFBS, from which AnoDDPM draws anew at each visit, every
    fourth trains, without its small random turns and shifts.
    """
    if size <= STORED:
        return ixi(size, folder)
    root = _scans("nfbs", folder)
    others = _known(nfbs(root, "test", size=size))
    tune = np.isin(others.subject, np.unique(others.subject)[:N_TUNE_NFBS])
    train = _known(nfbs(root, "train", size=size))
    return {"train": train, "tune": others.of(tune), "healthy": others.of(~tune)}


def sick_slices(size: int, folder: Path | None = None) -> Slices:
    """Return the tumour slices; nothing but evaluation may see them."""
    if size <= STORED:
        return tumour_slices(size, folder)
    return _known(edinburgh(_scans("edinburgh", folder), size))


def _known(held: SliceSet) -> Slices:
    """Return slices with the heads in them."""
    brain = head_mask(held.images[:, 0])
    lesion = np.zeros_like(brain) if held.masks is None else held.masks
    return Slices(held.images, brain, lesion, held.subjects)


def _scans(name: str, folder: Path | None) -> Path:
    path = data_dir(folder) / "mri" / name
    if not path.exists():
        raise DataError(
            f"There is no folder {path}. Slices of more than {STORED} pixels are cut from the "
            "scans themselves, which cannot be downloaded by a program; "
            "`aberra.data.mri.datasets` says how they must lie there."
        )
    return path


def ixi(size: int = SIZE, folder: Path | None = None) -> dict[str, Slices]:
    """Return the healthy slices, split by subject into train, tune and healthy."""
    held = _arrays("ixi185_t1_axial128.npz", folder)
    images, brain, subject = held["img"], held["brain"], held["subject"]
    names = np.random.default_rng(0).permutation(np.unique(subject))
    parts = np.split(names, [N_TRAIN, N_TRAIN + N_TUNE])
    x = resized(one_scale(images), size)
    inside = resized(brain, size) >= 0.5
    everything = Slices(x[:, None], inside, np.zeros_like(inside), subject)
    return {
        name: everything.of(np.isin(subject, part))
        for name, part in zip(("train", "tune", "healthy"), parts, strict=True)
    }


def tumour_slices(size: int = SIZE, folder: Path | None = None) -> Slices:
    """Return the tumour slices; nothing but evaluation may see them."""
    held = _arrays("edinburgh22_t1_2mm128.npz", folder)
    images, mask, subject = held["img"], held["mask"], held["subject"]
    x = resized(one_scale(images), size)
    return Slices(x[:, None], head_mask(x), resized(mask, size) >= 0.5, subject)


def pasted(tune: Slices, n: int = 96) -> Slices:
    """Return slices of healthy subjects that did not train, each with a pasted lesion."""
    tune = tune.of(tune.brain.mean(axis=(1, 2)) > 200 / SIZE**2)
    tune = tune.of(np.sort(np.random.default_rng(1).permutation(len(tune.images))[:n]))
    dirty, lesion, _ = paste_lesions(
        tune.images, tune.brain, 1.0, np.random.default_rng(2), area=(0.005, 0.2)
    )
    return Slices(dirty, head_mask(dirty[:, 0]), lesion, tune.subject)


def _arrays(name: str, folder: Path | None) -> dict[str, NDArray[Any]]:
    path = data_dir(folder) / "mri" / name
    if not path.exists():
        raise DataError(
            f"There is no {path}. The brain slices cannot be downloaded by a program; name the "
            "folder that holds mri/ with --data-dir or ABERRA_DATA."
        )
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def head_mask(x: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return the head of each slice (n, h, w): bright pixels, holes filled, largest part."""
    from scipy import ndimage

    masks = np.zeros(x.shape, bool)
    for k, image in enumerate(x):
        labels, n = ndimage.label(ndimage.binary_closing(image > 0.15, iterations=2))
        if n:
            sizes = np.bincount(labels.ravel())[1:]
            masks[k] = ndimage.binary_fill_holes(labels == 1 + sizes.argmax())
    return masks
