"""Cells of the image tables: one class is normal, others contaminate, new images are judged.

The same runs serve the transductive table: their training images are scored as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.data.registry import load_images
from aberra.metrics import auroc
from aberra.reproduce.detectors import DETECTORS, epochs_of, settings_of
from aberra.reproduce.odds import ensemble_of
from aberra.reproduce.profiles import Profile
from aberra.reproduce.seeds import Trial, run_seeds
from aberra.reproduce.store import Setting, Store
from aberra.reproduce.work import Job
from aberra.rng import stream
from aberra.robust.iadc import IADC

FAMILY = "unseen"
RATIOS = (0.2, 0.1, 0.05, 0.0)  # contamination of the training images
NUS = (0.01, 0.05, 0.1, 0.2, 0.5)


class Scenario(NamedTuple):
    """One class against the others."""

    train: NDArray[np.float32]
    dirty: NDArray[np.bool_]
    test: NDArray[np.float32]
    odd: NDArray[np.bool_]


def jobs(profile: Profile, images: str) -> list[Job]:
    """Return a job for each detector, contamination, class and seed."""
    return [
        Job(FAMILY, f"{setting['detector']} on {images}, {ratio:.0%}", (setting,))
        for seed in range(profile.image_seeds)
        for normal_class in profile.classes
        for ratio in RATIOS
        for detector, params in variants(profile, images)
        for setting in [settings_for(profile, images, normal_class, ratio, seed, detector, params)]
    ]


def variants(profile: Profile, images: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the detectors with their keywords; the one-class machine once for every nu."""
    epochs = profile.cifar_epochs if images == "cifar10" else profile.image_epochs
    machines = [("OCSVM", settings_of("OCSVM", nu=nu)) for nu in NUS]
    batch = {"batch_size": profile.image_batch} if profile.image_batch else {}
    return machines + [(d, settings_of(d, epochs, **batch)) for d in DETECTORS if d != "OCSVM"]


def settings_for(
    profile: Profile,
    images: str,
    normal_class: int,
    ratio: float,
    seed: int,
    detector: str,
    params: dict[str, Any],
) -> Setting:
    """Return the whole setting of one cell."""
    ensemble, colour = IADC(), images == "cifar10"
    return {
        "experiment": FAMILY,
        "images": images,
        "pixels": profile.cifar_pixels if colour else 28,
        "class": normal_class,
        "contamination": ratio,
        "normal": profile.cifar_normal if colour else profile.normal,
        "test": profile.test,
        "detector": detector,
        "params": params,
        "resample": True,
        "members": profile.cifar_members if colour else profile.image_members,
        "rounds": profile.cifar_rounds if colour else profile.image_rounds,
        "temperature": ensemble.temperature,
        "patience": ensemble.patience,
        "seed": seed,
    }


def compute(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Run cells one by one: each has training images of its own."""
    for setting in settings:
        scene = scenario(setting, data_dir)
        (trial,) = run_seeds(
            ensemble_of(setting), scene.train, [setting["seed"]], unseen=scene.test
        )
        history = trial.history
        store.add(
            FAMILY,
            setting,
            {
                **aurocs(trial, scene),
                "kept": history.kept,
                "rounds": [auroc(scene.odd, scores) for scores in trial.unseen],
                "crossings": history.crossings(),
                "seconds": sum(line.seconds for line in history),
                "single_seconds": trial.single_seconds,
                "member_epochs": len(history) * setting["members"] * epochs_of(setting["params"]),
            },
        )


def aurocs(trial: Trial, scene: Scenario) -> dict[str, dict[str, float | None]]:
    """Return AUROC of all variants on new images, and on the training images."""
    kept = trial.history.kept
    new = {
        "Single": trial.single_unseen,
        "ADC": trial.unseen[0],
        "IADC": trial.unseen[kept],
    }
    seen = {
        "Single": trial.single,
        "ADC": trial.history[0].scores,
        "IADC": trial.history[kept].scores,
    }
    return {
        "auroc": {name: auroc(scene.odd, scores) for name, scores in new.items()},
        "transductive": {
            name: auroc(scene.dirty, scores) if scene.dirty.any() else None
            for name, scores in seen.items()
        },
    }


def scenario(setting: Setting, data_dir: Path | None) -> Scenario:
    """Return the images of one setting; the share of dirt counts the whole training set."""
    x, labels, x_test, labels_test = _images(setting["images"], data_dir)
    rng = stream(setting["seed"], setting["class"])
    mine = rng.permutation(np.flatnonzero(labels == setting["class"]))
    mine = mine[: setting["normal"] or None]
    p = setting["contamination"]
    n_dirty = round(len(mine) * p / (1 - p))
    others = rng.choice(np.flatnonzero(labels != setting["class"]), n_dirty, replace=False)
    rows = rng.permutation(np.concatenate([mine, others]))
    test = _test_rows(labels_test, setting["test"], stream(0, 1))
    return Scenario(
        _floats(x[rows], setting["pixels"]),
        labels[rows] != setting["class"],
        _floats(x_test[test], setting["pixels"]),
        labels_test[test] != setting["class"],
    )


def _test_rows(
    labels: NDArray[np.integer[Any]], n: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return at most n test images of each class, the same for every cell; all if n is 0."""
    chosen = [
        rng.permutation(np.flatnonzero(labels == label))[: n or None] for label in np.unique(labels)
    ]
    return np.sort(np.concatenate(chosen))


def _floats(images: NDArray[np.uint8], pixels: int) -> NDArray[np.float32]:
    """Bring pixels to [0, 1] without looking at labels, unlike the normalisation by class."""
    x = images.astype(np.float32) / np.float32(255)
    k = x.shape[2] // pixels
    if k == 1:
        return x
    n, c, h, w = x.shape
    return x.reshape(n, c, h // k, k, w // k, k).mean(axis=(3, 5))


@lru_cache(maxsize=2)
def _images(name: str, data_dir: Path | None) -> Any:
    return load_images(name, data_dir)
