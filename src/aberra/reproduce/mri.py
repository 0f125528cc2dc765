"""Cells of the MRI table: localisers trained on healthy brains, judged on tumours.

A cell trains a model and restores slices with pasted lesions of other healthy subjects in every
way that `STARTS`, `CALLS`, `MAP_ERRORS` and `MAP_SMOOTHING` name. It takes the settings that are
best there on average over the seeds, then the rate of false alarms, and only then sees the
tumours. Models are kept in FOLDER/models.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.contract.maps import upper_quantile
from aberra.methods import named
from aberra.metrics import auroc, best_dice, dice
from aberra.model_file import load, save
from aberra.reproduce.mri_models import DIFFUSION, MRI, MRI_ROWS, mri_settings
from aberra.reproduce.mri_slices import Slices, head_mask, healthy_parts, pasted, sick_slices
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Record, Setting, Store, key_of
from aberra.reproduce.work import Job

if TYPE_CHECKING:  # localisers need torch, which the other tables do without
    from aberra.localise.protocols import Evaluation
    from aberra.localise.restorers import Error

RATES = (0.0025, 0.005, 0.01, 0.02, 0.04)  # of the head's pixels in healthy slices
# What is tried on pasted lesions. Starts are shares of T; calls are network calls on the way back.
STARTS = (0.1, 0.15, 0.2, 0.25, 0.35)
CALLS = ((1, 1), (5, 1), (1, 4))  # calls of a walk, draws that are averaged
MAP_ERRORS: tuple[Error, ...] = ("squared", "absolute", "darker")
MAP_SMOOTHING = (1, 3, 5, 7)


def mri_jobs(profile: Profile) -> list[Job]:
    """Return one job per row of the table, with all its seeds."""
    return [Job(MRI, name, tuple(mri_settings(profile, name)), compute_mri) for name in MRI_ROWS]


def compute_mri(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Train the models, choose settings on pasted lesions, judge on tumours, keep the records."""
    parts = scene(settings[0]["size"], settings[0]["slices"], data_dir)
    models = [trained(setting, store, parts) for setting in settings]
    tried = [list(tuning(model, parts.tune)) for model, _ in models]
    chosen = best_settings(tried)
    for setting, (model, minutes), own in zip(settings, models, tried, strict=True):
        found = judged(model, chosen, parts)
        best = max(own, key=lambda t: t["auroc"] + t["dice"])
        store.add(MRI, setting, {**found, "minutes": minutes, "tuned": best})


class Scene(NamedTuple):
    """The slices for training, for tuning, for the threshold, and for the judgement."""

    train: Slices
    tune: Slices
    threshold: Slices
    healthy: Slices
    sick: Slices


@lru_cache(maxsize=1)
def scene(size: int, n: int, data_dir: Path | None) -> Scene:
    """Return the slices of the table, `n` at most where models are judged; all if n is 0."""
    parts, some = healthy_parts(size, data_dir), slice(None, n or None)
    healthy, sick = parts["healthy"], sick_slices(size, data_dir)
    first = np.isin(healthy.subject, np.unique(healthy.subject)[:10])
    third = slice(None, None, 3)
    return Scene(
        parts["train"],
        pasted(parts["tune"], n or 96),
        healthy.of(np.flatnonzero(first)[third][some]),
        healthy.of(np.flatnonzero(~first)[third][some]),
        sick.of(np.arange(len(sick.images))[some]),
    )


def trained(setting: Setting, store: Store, scene: Scene) -> tuple[Any, float]:
    """Return the model of a setting and how many minutes it trained.

    A model that is in the folder is loaded, and a training that was killed goes on.
    """
    folder = store.folder / "models"
    path = folder / f"{key_of(setting)}.aberra"
    folder.mkdir(parents=True, exist_ok=True)
    timing = path.with_suffix(".minutes")
    if not path.exists():
        kind, started = named(MRI_ROWS[setting["model"]].kind).load(), time.perf_counter()
        model = kind(**setting["params"], random_state=setting["seed"])
        if "checkpoint" in model.get_params():
            model.set_params(checkpoint=str(folder), checkpoint_minutes=2.0)
        model.fit(scene.train.images, groups=scene.train.subject)
        save(model, path)
        timing.write_text(f"{(time.perf_counter() - started) / 60:.2f}")
    return load(path), float(timing.read_text()) if timing.exists() else float("nan")


def ways(model: Any) -> Iterator[dict[str, Any]]:
    """Yield the ways in which a model can restore; only diffusion models have several."""
    if type(model).__name__ in DIFFUSION:
        for start, (calls, draws) in product(STARTS, CALLS):
            yield {"start": start, "sampling_steps": calls, "n_draws": draws}
    else:
        yield {}


def tuning(model: Any, slices: Slices) -> Iterator[dict[str, Any]]:
    """Judge all ways and maps on the pasted lesions, inside the head."""
    before = model.get_params()
    for way in ways(model):
        restored = model.set_params(**way).reconstruct(slices.images)
        for error, smooth in product(MAP_ERRORS, MAP_SMOOTHING):
            maps = np.where(
                slices.brain, _difference_maps(slices.images, restored, error, smooth), 0
            )
            each = [auroc(m, s) for m, s in zip(slices.lesion, maps, strict=True)]
            overlap, _ = best_dice(slices.lesion, maps)
            found = {"auroc": float(np.mean(each)), "dice": float(overlap)}
            yield {**way, "error": error, "smooth": smooth, **found}
    model.set_params(**before)


def _difference_maps(
    images: NDArray[np.float32], restored: NDArray[np.float32], error: Error, smooth: int
) -> NDArray[np.float32]:
    """Return the maps of images in [0, 1] on the scale [-1, 1], as the localisers do."""
    from torch import from_numpy

    from aberra.localise.restorers import MapStyle

    x, y = (from_numpy(np.ascontiguousarray(a * 2 - 1)) for a in (images, restored))
    return MapStyle(error, smooth)(x, y)[:, 0].numpy()


def best_settings(tried: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Return the settings with the best mean over the seeds."""
    totals = [sum(t["auroc"] + t["dice"] for t in same) for same in zip(*tried, strict=True)]
    best = tried[0][int(np.argmax(totals))]
    return {k: v for k, v in best.items() if k not in ("auroc", "dice")}


def own_names(model: Any, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return settings by the names of the model's parameters; `IntensityThreshold` has others."""
    if "side" not in model.get_params():
        return chosen
    side = {"darker": "dark", "brighter": "bright"}.get(chosen["error"], "both")
    return {"side": side, "smooth": chosen["smooth"]}


def best_rate(model: Any, scene: Scene) -> float:
    """Return the rate of false alarms whose threshold has the best Dice on the pasted lesions."""
    healthy, tune = scene.threshold, scene.tune
    inside = head_mask(healthy.images[:, 0]).astype(float)
    calm = model.anomaly_map(healthy.images)
    maps = np.where(tune.brain, model.anomaly_map(tune.images), 0)

    def quality(rate: float) -> float:
        flagged = maps > upper_quantile(calm, inside, rate)
        return float(np.mean([dice(m, f) for m, f in zip(tune.lesion, flagged, strict=True)]))

    return max(RATES, key=quality)


def judged(model: Any, chosen: dict[str, Any], scene: Scene) -> Record:
    """Evaluate on the tumours: as printed, and with the chosen settings."""
    from aberra.localise.protocols import anoddpm, standard

    sick, started = scene.sick, time.perf_counter()
    printed = model.anomaly_map(sick.images)
    seconds = (time.perf_counter() - started) / len(printed)
    model.set_params(**own_names(model, chosen))
    model.set_params(false_alarm_rate=best_rate(model, scene))
    model.calibrate(scene.threshold.images, head_mask(scene.threshold.images[:, 0]))
    maps = model.anomaly_map(sick.images, sick.brain)
    found = standard(
        maps,
        sick.lesion,
        sick.brain,
        sick.subject,
        model.map_threshold_,
        model.anomaly_map(scene.healthy.images),
        head_mask(scene.healthy.images[:, 0]),
    )
    return {
        "seconds_per_slice": seconds,
        "settings": {**chosen, "false_alarm_rate": model.false_alarm_rate},
        "anoddpm": _numbers(anoddpm(printed, sick.lesion)),
        "best_anoddpm": _numbers(anoddpm(maps, sick.lesion)),
        "standard": _numbers(found),
        "by_size": found.by_size.to_dict("index"),
        "false_alarms": found.false_alarms,
    }


def _numbers(found: Evaluation) -> dict[str, tuple[float, float]]:
    return {k: (round(s.mean, 4), round(s.std, 4)) for k, s in found.metrics.items()}
