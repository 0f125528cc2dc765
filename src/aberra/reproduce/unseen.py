"""Cells of the image tables: one class is normal, others contaminate, new images are judged.

The same runs serve the transductive table: their training images are scored as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.data.registry import load_images
from aberra.metrics import auroc
from aberra.reproduce.engines import ENGINES, Kind
from aberra.reproduce.profiles import Profile
from aberra.reproduce.seeds import Trial, run_seeds
from aberra.reproduce.settings import (
    detector_names,
    ensemble_of,
    ensemble_settings,
    member_epochs_of,
    settings_of,
)
from aberra.reproduce.store import Setting, Store
from aberra.reproduce.work import Job
from aberra.rng import stream

UNSEEN = "unseen"
CONTAMINATIONS = (0.2, 0.1, 0.05, 0.0)  # of the training images
NUS = (0.01, 0.05, 0.1, 0.2, 0.5)
KINDS: dict[str, Kind] = {"mnist": "digits", "cifar10": "images"}


@dataclass(frozen=True)
class ImageSize:
    """How much of an image table a profile runs.

    Parameters
    ----------
    classes : sequence of int
        The classes that are normal in turn.
    seeds : int
        Runs of each cell.
    members, rounds : int
        Size of an ensemble, and rounds at most.
    epochs : float
        Share of a detector's own epochs.
    batch : int
        Images per training step; 0 means the detectors' own. Few images and epochs need small
        batches to make enough steps.
    normal, test : int
        Training images of the normal class, and test images of each class; 0 means all.
    pixels : int
        Side of the images, which are reduced to it.
    own_normal : mapping, default={}
        Detectors with another number of training images, because they are cheap.
    own_epochs : mapping, default={}
        Detectors with another share of their epochs, because their networks are larger.
    own_settings : mapping, default={}
        Parameters of detectors on images that are not our defaults, by the detector's name.
    """

    classes: Sequence[int]
    seeds: int
    members: int
    rounds: int
    epochs: float
    batch: int
    normal: int
    test: int
    pixels: int
    own_normal: Mapping[str, int] = field(default_factory=dict)
    own_epochs: Mapping[str, float] = field(default_factory=dict)
    own_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Scenario(NamedTuple):
    """One class against the others."""

    train: NDArray[np.float32]
    dirty: NDArray[np.bool_]
    test: NDArray[np.float32]
    odd: NDArray[np.bool_]


def image_reduced(profile: Profile, images: str) -> str:
    """Say in one line how much of the protocol a profile runs."""
    size = profile.size(images, ImageSize)
    batch = f"{size.batch} images a step" if size.batch else "full batches"
    return (
        f"Profile {profile.name}: classes {', '.join(map(str, size.classes))}, "
        f"{size.normal or 'all'} normal images{_own_normal(size)} of "
        f"{size.pixels} x {size.pixels} pixels, {size.test or 'all'} test images of each class, "
        f"{size.seeds} seed{'s (one where no ± is shown)' if size.seeds > 1 else ''}, "
        f"{size.members} members, at most {size.rounds} rounds, {size.epochs:.0%} of the "
        f"epochs{_own_epochs(size)}, {batch}{_own_settings(size)}."
    )


def _own_normal(size: ImageSize) -> str:
    """Say which detectors have another number of training images."""
    words = ", ".join(f"{name} {n}" for name, n in size.own_normal.items())
    return f" ({words})" if words else ""


def _own_epochs(size: ImageSize) -> str:
    """Say which detectors have another share of their epochs."""
    shares = dict.fromkeys(size.own_epochs.values())
    named = {
        share: " and ".join(name for name, own in size.own_epochs.items() if own == share)
        for share in shares
    }
    words = ", ".join(f"{names} {share:.0%}" for share, names in named.items())
    return f" ({words})" if words else ""


def _own_settings(size: ImageSize) -> str:
    """Say which detectors have parameters of their own on images."""
    words = [
        f"{detector} with {name} {value:g}"
        for detector, own in size.own_settings.items()
        for name, value in own.items()
    ]
    return "; " + ", ".join(words) if words else ""


def image_jobs(profile: Profile, images: str) -> list[Job]:
    """Return a job for each detector, contamination, class and seed: row after row of a table."""
    size = profile.size(images, ImageSize)
    return [
        Job(UNSEEN, f"{detector} on {images}, {ratio:.0%}", (setting,), compute_images)
        for seed in range(size.seeds)
        for detector, params in variants(size)
        for ratio in CONTAMINATIONS
        for normal_class in size.classes
        for setting in [
            {
                **shared_setting(size, images),
                "normal": size.own_normal.get(detector, size.normal),
                "class": normal_class,
                "contamination": ratio,
                "detector": detector,
                "params": params,
                "engine": ENGINES[KINDS[images]][detector],
                "seed": seed,
            }
        ]
    ]


def variants(size: ImageSize) -> list[tuple[str, dict[str, Any]]]:
    """Return the detectors with their parameters; the one-class machine once for every nu."""
    machine = size.own_settings.get("OCSVM", {})
    machines = [("OCSVM", settings_of("OCSVM", nu=nu, **machine)) for nu in NUS]
    batch = {"batch_size": size.batch} if size.batch else {}
    networks = [name for name in detector_names() if name != "OCSVM"]
    return machines + [(name, _network(name, size, batch)) for name in networks]


def _network(name: str, size: ImageSize, batch: dict[str, int]) -> dict[str, Any]:
    share, own = size.own_epochs.get(name, size.epochs), size.own_settings.get(name, {})
    return settings_of(name, share, **batch, **own)


def shared_setting(size: ImageSize, images: str) -> dict[str, Any]:
    """Return what all cells of a table have in common."""
    return {
        "experiment": UNSEEN,
        "images": images,
        "pixels": size.pixels,
        "normal": size.normal,
        "test": size.test,
        "resample": True,
        "members": size.members,
        "rounds": size.rounds,
        **ensemble_settings(),
    }


def compute_images(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Compute cells one by one, because each has training images of its own."""
    for setting in settings:
        scene = scenario(setting, data_dir)
        (trial,) = run_seeds(
            ensemble_of(setting), scene.train, [setting["seed"]], unseen=scene.test
        )
        history = trial.history
        store.add(
            UNSEEN,
            setting,
            {
                **aurocs(trial, scene),
                "kept": history.kept,
                "rounds": [auroc(scene.odd, scores) for scores in trial.unseen],
                "crossings": history.crossings(),
                "seconds": sum(line.seconds for line in history),
                "single_seconds": trial.single_seconds,
                "member_epochs": member_epochs_of(setting, len(history)),
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
    """Return the images of one setting; the contamination is a share of all training images."""
    x, labels, x_test, labels_test = _image_set(setting["images"], data_dir)
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
    """Bring pixels to [0, 1] and reduce the images; no label is looked at."""
    x = images.astype(np.float32) / np.float32(255)
    k = x.shape[2] // pixels
    if k == 1:
        return x
    n, c, h, w = x.shape
    return x.reshape(n, c, h // k, k, w // k, k).mean(axis=(3, 5))


@lru_cache(maxsize=2)
def _image_set(name: str, data_dir: Path | None) -> Any:
    return load_images(name, data_dir)
