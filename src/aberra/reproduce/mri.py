"""Cells of the MRI table: localisers trained on healthy brains, judged on tumours.

A cell trains a model, restores slices with pasted lesions of other healthy subjects in every way
that `STARTS`, `CALLS`, `ERRORS` and `SMOOTH` name, takes the settings that are best there on
average over the seeds, then the rate of false alarms, and only then sees the tumours. Models are
kept in FOLDER/models.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from aberra.contract.maps import upper_quantile
from aberra.localise.base import Error, MapStyle
from aberra.localise.diffusion import ADDM, DDPM, AnoDDPM
from aberra.localise.fanogan import FAnoGAN
from aberra.localise.intensity import IntensityThreshold
from aberra.localise.protocols import Evaluation, anoddpm, standard
from aberra.localise.reconstruction import DenseVAE, SpatialAE
from aberra.localise.vqvae_transformer import VQTransformer
from aberra.metrics import auroc, best_dice, dice
from aberra.model_file import load, save
from aberra.reproduce.mri_slices import Slices, edinburgh, head_mask, ixi, pasted
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Record, Setting, Store, key_of
from aberra.reproduce.work import Job

FAMILY = "mri"
RATES = (0.0025, 0.005, 0.01, 0.02, 0.04)  # of the head's pixels in healthy slices


class Row(NamedTuple):
    """One line of the table: the class, its keywords, and the paper's name for it."""

    kind: type[Any]
    params: dict[str, Any]
    method: str
    steps: str  # the paper's T


ROWS = {
    "SpatialAE": Row(SpatialAE, {}, "AE (Spatial)", ""),
    "DenseVAE": Row(DenseVAE, {}, "VAE (Dense)", ""),
    "FAnoGAN": Row(FAnoGAN, {}, "f-AnoGAN", ""),
    "VQTransformer": Row(VQTransformer, {}, "Transformer", ""),
    "DDPM T=1000": Row(DDPM, {}, "DDPM (Pinaya et al.)", "1000"),
    "AnoDDPM T=1000": Row(AnoDDPM, {}, "AnoDDPM", "1000"),
    "ADDM T=300": Row(ADDM, {"n_steps": 300}, "ADDM", "300"),
    "ADDM T=500": Row(ADDM, {"n_steps": 500}, "ADDM", "500"),
    "ADDM T=1000": Row(ADDM, {}, "ADDM", "1000"),
    "IntensityThreshold": Row(IntensityThreshold, {}, "Intensity threshold", ""),
    "DDPM pyramid": Row(DDPM, {"noise": "pyramid"}, "DDPM, pyramid noise", "1000"),
    "ADDM pyramid stride 50": Row(
        ADDM, {"noise": "pyramid", "adversarial_stride": 50}, "ADDM, pyramid noise", "1000"
    ),
    "ADDM pyramid to x_0": Row(
        ADDM,
        {"noise": "pyramid", "adversarial_stride": 500, "adversarial_weight": 0.5},
        "ADDM, pyramid noise, judged at x_0",
        "1000",
    ),
}
SEEDED = (DDPM, ADDM)  # what the paper's claims are about has all seeds; the rivals have one
# What is tried on pasted lesions. Starts are shares of T; calls are network calls on the way back.
STARTS = (0.1, 0.15, 0.2, 0.25, 0.35)
CALLS = ((1, 1), (5, 1), (1, 4))  # calls of a walk, draws that are averaged
ERRORS: tuple[Error, ...] = ("squared", "absolute", "darker")
SMOOTH = (1, 3, 5, 7)


def jobs(profile: Profile) -> list[Job]:
    """Return one job a row of the table, with all its seeds."""
    return [Job(FAMILY, name, tuple(settings_for(profile, name))) for name in ROWS]


def settings_for(profile: Profile, name: str) -> list[Setting]:
    """Return the settings of one row, one a seed."""
    row = ROWS[name]
    params = {**row.params, "preset": profile.mri_preset}
    if profile.mri_steps and issubclass(row.kind, DDPM):
        params["train_steps"] = profile.mri_steps
    if profile.mri_rival_steps and not issubclass(row.kind, DDPM):
        params |= _short(row.kind, profile.mri_rival_steps)
    if row.kind is IntensityThreshold:
        params.pop("preset")
    seeds = profile.mri_seeds if row.kind in SEEDED else 1
    shared = {
        "experiment": FAMILY,
        "model": name,
        "params": params,
        "size": profile.mri_size,
        "slices": profile.mri_slices,
    }
    return [{**shared, "seed": seed} for seed in range(seeds)]


def _short(kind: type[Any], steps: int) -> dict[str, int]:
    names = ("train_steps", "encoder_steps", "transformer_steps")
    return {name: steps for name in names if name in kind().get_params()}


def compute(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Train what is not trained, choose on pasted lesions, judge on tumours, keep a record each."""
    parts = scene(settings[0]["size"], settings[0]["slices"], data_dir)
    models = [trained(setting, store, parts) for setting in settings]
    tried = [list(tuning(model, parts.tune)) for model, _ in models]
    chosen = best_settings(tried)
    for setting, (model, minutes), own in zip(settings, models, tried, strict=True):
        found = judged(model, chosen, parts)
        best = max(own, key=lambda t: t["auroc"] + t["dice"])
        store.add(FAMILY, setting, {**found, "minutes": minutes, "tuned": best})


class Scene(NamedTuple):
    """Whom a model trains on, is tuned on, takes its threshold from, and is judged by."""

    train: Slices
    tune: Slices
    threshold: Slices
    healthy: Slices
    sick: Slices


@lru_cache(maxsize=1)
def scene(size: int, n: int, data_dir: Path | None) -> Scene:
    """Return the slices of the table, `n` at most where models are judged; all if n is 0."""
    parts, some = ixi(size, data_dir), slice(None, n or None)
    healthy, sick = parts["healthy"], edinburgh(size, data_dir)
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
    """Return the model of a setting and its minutes of training; a killed one goes on."""
    folder = store.folder / "models"
    path = folder / f"{key_of(setting)}.aberra"
    folder.mkdir(parents=True, exist_ok=True)
    timing = path.with_suffix(".minutes")
    if not path.exists():
        row, started = ROWS[setting["model"]], time.perf_counter()
        model = row.kind(**setting["params"], random_state=setting["seed"])
        if "checkpoint" in model.get_params():
            model.set_params(checkpoint=str(folder), checkpoint_minutes=2.0)
        model.fit(scene.train.images, groups=scene.train.subject)
        save(model, path)
        timing.write_text(f"{(time.perf_counter() - started) / 60:.2f}")
    return load(path), float(timing.read_text()) if timing.exists() else float("nan")


def ways(model: Any) -> Iterator[dict[str, Any]]:
    """Yield the ways in which a model can restore; rivals of the diffusion models have one."""
    if isinstance(model, DDPM):
        for start, (calls, draws) in product(STARTS, CALLS):
            yield {"start": start, "sampling_steps": calls, "n_draws": draws}
    else:
        yield {}


def tuning(model: Any, slices: Slices) -> Iterator[dict[str, Any]]:
    """Judge all ways and maps on the pasted lesions, inside the head."""
    before = model.get_params()
    for way in ways(model):
        restored = model.set_params(**way).reconstruct(slices.images)
        for error, smooth in product(ERRORS, SMOOTH):
            maps = np.where(slices.brain, _maps(slices.images, restored, error, smooth), 0)
            each = [auroc(m, s) for m, s in zip(slices.lesion, maps, strict=True)]
            overlap, _ = best_dice(slices.lesion, maps)
            found = {"auroc": float(np.mean(each)), "dice": float(overlap)}
            yield {**way, "error": error, "smooth": smooth, **found}
    model.set_params(**before)


def _maps(
    images: NDArray[np.float32], restored: NDArray[np.float32], error: Error, smooth: int
) -> NDArray[np.float32]:
    """Return the maps of images in [0, 1] on the scale [-1, 1], as the localisers do."""
    x, y = (torch.from_numpy(np.ascontiguousarray(a * 2 - 1)) for a in (images, restored))
    return MapStyle(error, smooth)(x, y)[:, 0].numpy()


def best_settings(tried: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Return the settings with the best mean over the seeds."""
    totals = [sum(t["auroc"] + t["dice"] for t in same) for same in zip(*tried, strict=True)]
    best = tried[0][int(np.argmax(totals))]
    return {k: v for k, v in best.items() if k not in ("auroc", "dice")}


def own_names(model: Any, chosen: dict[str, Any]) -> dict[str, Any]:
    """Return settings under a model's own keywords: the intensity floor says sides, not errors."""
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
