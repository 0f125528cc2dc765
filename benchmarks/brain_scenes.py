"""Brain slices with lesions that were pasted in: one kind to choose settings by, one to report.

Settings are chosen on the lesions of `aberra.data.scenarios.paste_lesions` (tumour-like blobs with
texture and rim) in 15 healthy IXI subjects. Figures are reported on plain ellipses of one even
brightness in 10 other subjects. Both come a second time as another scanner might have shown them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from aberra.contract.maps import upper_quantile
from aberra.metrics import auroc, average_precision, best_dice, dice
from aberra.reproduce.mri_slices import SIZE, Slices, head_mask, ixi
from benchmarks.map_defaults import AREA, COMMON, N_SLICES, Judged, scenes

Images = NDArray[np.float32]
Scene = dict[str, Judged]  # "dark", "bright" and "healthy"
CONTRAST = (0.15, 0.6)  # how far an ellipse differs from the tissue that it covers
GAMMA = (0.7, 1.4)
GAIN = (1.0, 1.2)  # what lies above white is lost
SHADE = 0.1  # deviation of the brightness across the head


def all_scenes() -> tuple[Slices, dict[str, Scene]]:
    """Return the slices to train on, and the scenes "choose" and "report", each on two scanners."""
    train, choose = scenes()
    found = {"choose": choose, "report": report_scene()}
    for name in ("choose", "report"):
        found[f"{name}, other scanner"] = {
            kind: on_other_scanner(one, seed)
            for seed, (kind, one) in enumerate(found[name].items())
        }
    return train, found


def report_scene() -> Scene:
    """Return ellipses in ten subjects, and slices of ten others that have none."""
    healthy = ixi()["healthy"]
    names = np.unique(healthy.subject)
    calm = healthy.of(np.isin(healthy.subject, names[:10]))
    sick = healthy.of(np.isin(healthy.subject, names[10:]))
    sick = sick.of(sick.brain.mean(axis=(1, 2)) > 200 / SIZE**2)
    rng = np.random.default_rng(11)
    sick = sick.of(np.sort(rng.permutation(len(sick.images))[:N_SLICES]))
    images = calm.images[::6][:N_SLICES]
    return {
        "dark": ellipses(sick, -1.0, rng),
        "bright": ellipses(sick, 1.0, rng),
        "healthy": Judged(images, None, head_mask(images[:, 0])),
    }


def ellipses(slices: Slices, sign: float, rng: np.random.Generator) -> Judged:
    """Return slices with an even ellipse each, darker or brighter than what it covers."""
    images = slices.images.copy()
    lesion = np.zeros(images[:, 0].shape, bool)
    for image, brain, mask in zip(images[:, 0], slices.brain, lesion, strict=True):
        shape = ellipse(brain, sign, image, rng)
        cover = ndimage.gaussian_filter(shape.astype(np.float32), 0.7) * brain
        level = np.median(image[shape]) + sign * rng.uniform(*CONTRAST)
        image += cover * (np.clip(level, 0.05, 0.95) - image)
        mask |= shape
    return Judged(images, lesion, head_mask(images[:, 0]))


def ellipse(
    brain: NDArray[np.bool_], sign: float, image: Images, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return an ellipse in the brain, where there is room to be darker or brighter."""
    room = brain & ((image > 0.5) if sign < 0 else (image < 0.7))
    places = np.argwhere(room if room.any() else brain)
    rows, columns = np.indices(brain.shape) - places[rng.integers(len(places))][:, None, None]
    angle, stretch = rng.uniform(0, np.pi), rng.uniform(1, 2)
    along = np.cos(angle) * rows + np.sin(angle) * columns
    across = np.cos(angle) * columns - np.sin(angle) * rows
    distance = np.where(brain, along**2 / stretch + across**2 * stretch, np.inf)
    n = max(4, round(rng.uniform(*AREA) * brain.sum()))
    return np.asarray(distance <= np.partition(distance, n, axis=None)[n])


def on_other_scanner(one: Judged, seed: int) -> Judged:
    """Return slices with another contrast, white cut off, and shade across the head."""
    rng = np.random.default_rng(100 + seed)
    images = one.images.copy()
    for image in images[:, 0]:
        shade = ndimage.gaussian_filter(rng.standard_normal(image.shape), 16)
        field = 1 + SHADE * shade / shade.std()
        image[:] = np.clip(image ** rng.uniform(*GAMMA) * field * rng.uniform(*GAIN), 0, 1)
    return Judged(images, one.lesion, one.head)


def figures(maps: Mapping[str, Images], scene: Scene) -> dict[str, float]:
    """Return AUROC, AP, best single Dice and Dice at a common rate, all inside the head."""
    height = upper_quantile(maps["healthy"], scene["healthy"].head.astype(float), COMMON)
    found: dict[str, float] = {}
    for kind in ("dark", "bright"):
        _, lesion, head = scene[kind]
        assert lesion is not None
        found |= {f"{kind} {k}": v for k, v in judged(maps[kind], lesion, head, height).items()}
    return found


def judged(
    maps: Images, lesion: NDArray[np.bool_], head: NDArray[np.bool_], height: float
) -> dict[str, float]:
    """Return the figures of maps (n, h, w); the mean over slices, but one threshold for all."""
    inside = [(m[h], s[h]) for m, s, h in zip(lesion, maps, head, strict=True)]
    whole = np.where(head, maps, 0)
    flagged = [dice(m, s > height) for m, s in zip(lesion, whole, strict=True)]
    return {
        "auroc": float(np.mean([auroc(*one) for one in inside])),
        "ap": float(np.mean([average_precision(*one) for one in inside])),
        "oracle": float(best_dice(lesion, whole)[0]),
        "common": float(np.mean(flagged)),
    }
