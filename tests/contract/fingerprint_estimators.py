"""Fingerprints of the estimators: each is fitted on small made-up data with a fixed seed.

Every setting of a localiser is given, because better defaults may be found; what a detector or an
ensemble does by default is part of its fingerprint.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Found = dict[str, Any]  # what came out: name to numbers or to words

# How closely another machine must agree. Measured by switching off instruction sets and kernels of
# the processor (AVX-512, then all of AVX) in NumPy, SciPy, torch and numba.
DOUBLE = 1e-6  # double precision: sums in another order change the last digits only
SINGLE = 1e-4  # trained in single precision: the differences were up to 1e-5
# A solver that stops near the optimum (libsvm), or a choice of rows by rank (DAGPR), carries small
# differences further: they were up to 1e-3.
CHOICE = 5e-3
LONG = 5e-2  # 150 epochs, which the shell cannot shorten: up to 1e-2


@dataclass(frozen=True)
class Case:
    """One fit or command, and how closely another machine must agree."""

    run: Callable[[], Found]
    rtol: float = DOUBLE
    slow: bool = False
    needs: str = "aberra"  # a library that may not be installed


# Data. RandomState promises the same numbers in every version of NumPy; Generator does not.


def table(n: int = 120, seed: int = 11) -> np.ndarray:
    """Return six columns of unlike scale, every twelfth row odd."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 6)) * [1, 1, 3, 10, 0.1, 1] + rng.normal(size=(n, 1))
    X[:, 5] = np.exp(X[:, 5] / 2)
    X[::12] += 3 * rng.normal(size=X[::12].shape) * X.std(axis=0)
    return X


def wide(n: int = 40, seed: int = 6) -> np.ndarray:
    """Return 24 columns with something in common, every twelfth row odd."""
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(n, 24)) + 2 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, 24))
    X[::12, 3:6] += 6
    return X


def frame() -> Any:
    """Return the table with gaps and a column of text."""
    import pandas as pd

    rng = np.random.RandomState(5)
    held = pd.DataFrame(table(), columns=list("abcdef"))
    held = held.mask(rng.random_sample(held.shape) < 0.04)
    held["ward"] = rng.choice(["north", "south", "east"], len(held), p=[0.6, 0.3, 0.1])
    return held


def images(n: int = 24, channels: int = 1, seed: int = 3) -> np.ndarray:
    """Return bright discs on a dark ground, 16 pixels a side, every eighth with a dark hole."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[:16, :16] + 0.5
    middle = 8 + rng.uniform(-1, 1, size=(n, 2, 1, 1))
    radius = rng.uniform(5.5, 6.7, size=(n, 1, 1))
    inside = (y - middle[:, 0]) ** 2 + (x - middle[:, 1]) ** 2 < radius**2
    found = 0.8 * inside[:, None] + 0.02 * rng.normal(size=(n, channels, 16, 16))
    found[::8, :, 7:11, 6:10] = 0.05
    return found.astype(np.float32)


# What is looked at.


def of_detector(model: Any, X: Any, new: Any, **fit: Any) -> Found:
    """Fit a detector or an ensemble; return what it says of new rows and of its training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few epochs and rounds are meant
        model.fit(X, **fit)
    found = {
        "scores": model.anomaly_score(new),
        "predicted": model.predict(new),
        "threshold": model.threshold_,
        "contamination": model.contamination_,
    }
    if np.ndim(new) == 2:
        found["explain"] = np.asarray(model.explain(new[:3]))
    return found | (of_rounds(model) if type(model).__name__ == "IADC" else {})


def of_rounds(model: Any) -> Found:
    """Return what IADC learnt in its rounds."""
    history = model.history_
    return {
        "weights": model.weights_,
        "rounds": [len(history), history.kept],
        "first_round": history[0].scores,
    }


def of_localiser(model: Any, channels: int = 1, **fit: Any) -> Found:
    """Fit a localiser; return what it shows in new images."""
    model.fit(images(channels=channels), **fit)
    new = images(20, channels, seed=4)
    return {
        "scores": model.anomaly_score(new),
        "maps": model.anomaly_map(new),
        "restored": model.reconstruct(new[:3]),
        "segmented": model.segment(new).sum(axis=(1, 2)),
        "height": map_threshold(model),
    }


def of_calibrated(model: Any) -> Found:
    """Fit with weights and patients, then place the threshold on the discs of other images."""
    found = of_localiser(model, sample_weight=np.linspace(0, 1, 24), groups=np.arange(24) // 2)
    other = images(8, seed=9)
    model.calibrate(other, mask=other[:, 0] > 0.4)
    return found | {"calibrated": map_threshold(model)}


def of_localisers(model: Any) -> Found:
    """Fit an ensemble of localisers; return what it shows in new images."""
    new = images(6, seed=4)
    return of_detector(model, images(12), new) | {"maps": model.anomaly_map(new)}


def of_patches() -> Found:
    """Return what `PatchFinder` learns from: images with something foreign, in other contrasts."""
    import torch

    from aberra.localise.patches import pasted, recontrasted
    from aberra.loop import Batch
    from aberra.rng import torch_generator

    x = torch.from_numpy(2 * np.clip(images(96), 0, 1) - 1)
    batch = Batch(x, torch.ones(len(x)), torch_generator(7), len(x), slice(len(x)))
    dirty, cover = pasted(x, batch)
    other = recontrasted(x, batch, 0.5, (0.7, 1.3), 0.2)
    return {"dirty": dirty.numpy(), "cover": cover.numpy(), "other": other.numpy()}


def map_threshold(model: Any) -> float:
    """Return the height of the map above which a pixel is flagged, whichever checkout this is."""
    return model.map_threshold_ if hasattr(model, "map_threshold_") else model.threshold_


# Models. Names are looked up when a case runs, for most of them load torch.


def made(name: str, *args: Any, **keywords: Any) -> Any:
    """Return an estimator by its public name."""
    import aberra

    return getattr(aberra, name)(*args, **keywords)


def forest() -> Any:
    from sklearn.ensemble import IsolationForest

    return IsolationForest(n_estimators=20)


def ecod() -> Any:
    from pyod.models.ecod import ECOD

    return ECOD()


BATCH = {"batch_size": 16, "learning_rate": 1e-3, "weight_decay": 1e-6}
TABLES: dict[str, tuple[str, dict[str, Any], float]] = {
    "MultiView": ("MultiView", {"n_landmarks": 64}, DOUBLE),
    "OCSVM": ("OCSVM", {"solver": "exact", "nu": 0.2}, CHOICE),
    "OCSVM nystroem": ("OCSVM", {"solver": "nystroem", "n_landmarks": 16}, CHOICE),
    "HybridOCSVM": ("HybridOCSVM", {**BATCH, "pretrain_epochs": 10}, CHOICE),
    "AutoEncoder": ("AutoEncoder", {**BATCH, "epochs": 4}, SINGLE),
    "DeepSVDD": ("DeepSVDD", {**BATCH, "epochs": 3, "pretrain_epochs": 3}, SINGLE),
    "RSRAE": ("RSRAE", {**BATCH, "epochs": 4}, SINGLE),
    "DAGPR": ("DAGPR", {**BATCH, "pretrain_epochs": 4, "n_refinements": 0}, SINGLE),
}
SHORT = {**BATCH, "batch_size": 8}
PICTURES: dict[str, tuple[dict[str, Any], float]] = {
    "OCSVM": ({"solver": "exact"}, CHOICE),
    "HybridOCSVM": ({**SHORT, "pretrain_epochs": 2}, CHOICE),
    "AutoEncoder": ({**SHORT, "epochs": 2}, SINGLE),
    "DeepSVDD": ({**SHORT, "epochs": 1, "pretrain_epochs": 1}, CHOICE),
    "RSRAE": ({**SHORT, "epochs": 2}, SINGLE),
    "DAGPR": ({**SHORT, "pretrain_epochs": 2, "n_refinements": 1}, CHOICE),
}
FEW = {"n_members": 3, "random_state": 0}
ROUNDS = {**FEW, "max_rounds": 3}

LEVEL = {"side": "both", "reference": "pixel", "smooth": 3, "holdout": 0.25,
         "false_alarm_rate": 0.05}  # fmt: skip
NEAREST = {"n_neighbours": 8, "n_kept": 20, "keep": "images", "error": "net", "relative": True,
           "harmonise": False, "smooth": 3, "holdout": 0.25, "false_alarm_rate": 0.05}  # fmt: skip
TRAINED = {"preset": "small", "train_steps": 3, "batch_size": 4, "learning_rate": 1e-3,
           "error": "squared", "smooth": 3, "holdout": 0.25, "false_alarm_rate": 0.05,
           "device": "cpu", "precision": "float32"}  # fmt: skip
DIFFUSION = {**TRAINED, "noise": "gaussian", "schedule": "linear", "n_steps": 1000, "start": 0.25,
             "sampling_steps": 3, "sampler": "ddpm", "n_draws": 1, "norm_groups": 32}  # fmt: skip
PRINTED = {"adversarial_weight": 0.05, "adversarial_stride": 1, "discriminator_norm": "spectral",
           "discriminator_sees_time": False}  # fmt: skip
OTHER = {"noise": "pyramid", "start": 0.1, "sampling_steps": 1, "n_draws": 4, "error": "darker",
         "smooth": 5, "adversarial_weight": 0.5, "adversarial_stride": 500,
         "discriminator_norm": "instance", "discriminator_sees_time": True}  # fmt: skip
LOCALISERS: dict[str, tuple[str, dict[str, Any]]] = {
    "DDPM": ("DDPM", DIFFUSION),
    "DDPM, cosine and DDIM": (
        "DDPM",
        {**DIFFUSION, "schedule": "cosine", "sampler": "ddim", "n_draws": 2, "error": "absolute"},
    ),
    "AnoDDPM": ("AnoDDPM", {**DIFFUSION, "noise": "simplex", "error": "brighter", "smooth": 1}),
    "ADDM": ("ADDM", {**DIFFUSION, **PRINTED}),
    "ADDM, other settings": ("ADDM", {**DIFFUSION, **OTHER}),
    "SpatialAE": ("SpatialAE", {**TRAINED, "code_channels": 8}),
    "DenseVAE": ("DenseVAE", {**TRAINED, "n_latent": 32, "kl_weight": 1.0}),
    "FAnoGAN": (
        "FAnoGAN",
        {**TRAINED, "n_latent": 32, "n_critic": 2, "penalty": 10.0, "kappa": 1.0,
         "train_steps": 2, "encoder_steps": 1},
    ),
    "VQTransformer": (
        "VQTransformer",
        {**TRAINED, "unlikely": 0.02, "n_draws": 2, "emphasis": "likelihood",
         "transformer_steps": 3},
    ),
    "PatchFinder": ("PatchFinder", {**TRAINED, "contrast": 0.5}),
    "IntensityThreshold": ("IntensityThreshold", LEVEL),
    "IntensityThreshold, overall": (
        "IntensityThreshold",
        {**LEVEL, "side": "dark", "reference": "overall"},
    ),
    "NearestHealthy": ("NearestHealthy", NEAREST),
    "NearestHealthy, harmonised": (
        "NearestHealthy",
        {**NEAREST, "harmonise": True, "relative": False, "error": "absolute"},
    ),
}  # fmt: skip


def on_table(make: Callable[[], Any], rtol: float = DOUBLE, **more: Any) -> Case:
    """Return the case of a detector or ensemble on the table."""
    return Case(lambda: of_detector(make(), table(), table(20, 12)), rtol, **more)


def single(name: str, rtol: float, **keywords: Any) -> Case:
    return on_table(lambda: made(name, **keywords, random_state=0), rtol)


def robust(name: str, rtol: float, start: str = "equal", **keywords: Any) -> Case:
    return on_table(lambda: made("IADC", made(name, **keywords), start=start, **ROUNDS), rtol)


def on_images(name: str, rtol: float, **keywords: Any) -> Case:
    """Return the case of a detector on colour images, whose networks are convolutional."""
    return Case(
        lambda: of_detector(
            made(name, **keywords, random_state=0), images(channels=3), images(20, 3, seed=4)
        ),
        rtol,
    )


def on_digits(name: str, rtol: float, **keywords: Any) -> Case:
    """Return the case of a detector on grey images of 28 pixels, with a compiled network."""

    def run() -> Found:
        border = ((0, 0), (0, 0), (6, 6), (6, 6))
        given, new = (np.pad(x, border) for x in (images(), images(20, seed=4)))
        return of_detector(made(name, **keywords, random_state=0), given, new)

    return Case(run, rtol)


def localiser(name: str, channels: int = 1, **keywords: Any) -> Case:
    rtol = CHOICE if name == "FAnoGAN" else SINGLE  # its critic and generator drive each other
    return Case(lambda: of_localiser(made(name, **keywords, random_state=0), channels), rtol)


def several(wrap: str, name: str, settings: Mapping[str, Any], keywords: Mapping[str, Any]) -> Case:
    """Return the case of an ensemble of localisers."""
    slow = name != "IntensityThreshold"  # a network per member
    return Case(lambda: of_localisers(made(wrap, made(name, **settings), **keywords)), SINGLE, slow)


COLOURED = ("IntensityThreshold", "NearestHealthy", "PatchFinder", "DenseVAE", "VQTransformer")
TWO = {"n_members": 2, "random_state": 0}
DEFAULTS = {"MultiView": DOUBLE, "OCSVM": CHOICE, "HybridOCSVM": CHOICE, "AutoEncoder": SINGLE,
            "DeepSVDD": SINGLE, "RSRAE": SINGLE, "DAGPR": SINGLE, "ADC": DOUBLE,
            "IADC": DOUBLE}  # fmt: skip
CASES: dict[str, Case] = {
    **{f"{name}()": single(name, rtol) for name, rtol in DEFAULTS.items()},
    **{label: single(name, rtol, **own) for label, (name, own, rtol) in TABLES.items()},
    **{f"IADC({label})": robust(name, rtol, **own) for label, (name, own, rtol) in TABLES.items()},
    "MultiView, few rows": Case(
        lambda: of_detector(made("MultiView", random_state=0), wide(), wide(20, 12))
    ),
    "IADC(AutoEncoder), by default": robust(
        "AutoEncoder", SINGLE, "auto", **TABLES["AutoEncoder"][1]
    ),
    "IADC(HybridOCSVM), by default": robust(
        "HybridOCSVM", CHOICE, "auto", **TABLES["HybridOCSVM"][1]
    ),
    "ADC(AutoEncoder)": on_table(
        lambda: made("ADC", made("AutoEncoder", **TABLES["AutoEncoder"][1]), **FEW), SINGLE
    ),
    "IADC(OCSVM), all rows": on_table(
        lambda: made("IADC", made("OCSVM"), resample=False, start="equal", **ROUNDS), CHOICE
    ),
    "ADC(IsolationForest)": on_table(lambda: made("ADC", forest(), **FEW)),
    "IADC(IsolationForest)": on_table(lambda: made("IADC", forest(), **ROUNDS)),
    "ADC(ECOD)": on_table(lambda: made("ADC", ecod(), **FEW), needs="pyod"),
    "IADC(ECOD)": on_table(lambda: made("IADC", ecod(), **ROUNDS), needs="pyod"),
    "IADC(), text and gaps": Case(
        lambda: of_detector(
            made("IADC", missing="impute", encode="auto", random_state=0), frame(), frame()[:20]
        )
    ),
    "DeepSVDD, weighted rows": Case(
        lambda: of_detector(
            made("DeepSVDD", **TABLES["DeepSVDD"][1], random_state=0),
            table(),
            table(20, 12),
            sample_weight=np.linspace(0, 1, 120),
        ),
        SINGLE,
    ),
    **{f"{name} on images": on_images(name, rtol, **own) for name, (own, rtol) in PICTURES.items()},
    **{
        f"{name} on digits": on_digits(name, PICTURES[name][1], **PICTURES[name][0])
        for name in ("HybridOCSVM", "AutoEncoder", "DeepSVDD")
    },
    "IADC(AutoEncoder) on images": Case(
        lambda: of_detector(
            made("IADC", made("AutoEncoder", **BATCH, epochs=2), max_rounds=2, **TWO),
            images(),
            images(20, seed=4),
        ),
        SINGLE,
    ),
    **{label: localiser(name, **own) for label, (name, own) in LOCALISERS.items()},
    **{f"{name}, colour": localiser(name, 3, **LOCALISERS[name][1]) for name in COLOURED},
    "DDPM, weighted patients": Case(
        lambda: of_calibrated(made("DDPM", **DIFFUSION, random_state=0)),
        SINGLE,
        slow=True,
    ),
    "patches of PatchFinder": Case(of_patches, SINGLE),
    "ADC(IntensityThreshold)": several("ADC", "IntensityThreshold", LEVEL, FEW),
    "IADC(IntensityThreshold)": several("IADC", "IntensityThreshold", LEVEL, ROUNDS),
    "IADC(DDPM)": several("IADC", "DDPM", DIFFUSION, {**TWO, "max_rounds": 2}),
    "ADC(ADDM)": several("ADC", "ADDM", LOCALISERS["ADDM, other settings"][1], TWO),
}
