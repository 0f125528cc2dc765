"""The localisers of the MRI table, with every setting of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from aberra.methods import named
from aberra.reproduce.engines import ENGINES
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Setting

MRI = "mri"


@dataclass(frozen=True)
class MriSize:
    """How much of the MRI table a profile runs.

    Parameters
    ----------
    seeds : int
        Runs of the rows that the paper's claims are about; the rivals have one.
    preset : str
        Size of the networks.
    size : int
        Pixels a side of the slices.
    steps, rival_steps : int
        Training steps of the diffusion models and of their rivals; 0 means the preset's.
    calls : int or "all"
        Network calls on the way back of a diffusion model.
    slices : int
        Slices judged at most; 0 means all.
    """

    seeds: int
    preset: str
    size: int
    steps: int
    rival_steps: int
    calls: int | str
    slices: int


class MriRow(NamedTuple):
    """One line of the table: the class, its parameters, the paper's T, and what it is called."""

    kind: str
    params: dict[str, Any]
    steps: str = ""
    own_name: str = ""  # of what is not in the paper

    @property
    def title(self) -> str:
        """The method as the table names it, with T where it has one."""
        method = self.own_name or named(self.kind).paper
        return f"{method} T={self.steps}" if self.steps else method


# Everything below is stated although much of it is a default today, because the table is about
# these settings, whatever the defaults become. None means the preset's.
FLAGS = {"false_alarm_rate": 0.01, "threshold": "auto"}
MAP = {"style": "printed", "error": "squared", "smooth": 1, **FLAGS}
FIT = {"image_size": None, "batch_size": None, "learning_rate": None, "holdout": 0.1}
WALK = {"schedule": "linear", "start": 0.25, "sampler": "ddpm", "n_draws": 1, "norm_groups": 32}
GAUSSIAN = {**MAP, **FIT, **WALK, "noise": "gaussian", "n_steps": 1000}
PYRAMID = {**GAUSSIAN, "noise": "pyramid"}
JUDGE = {
    "adversarial_weight": 0.05,
    "adversarial_stride": 1,
    "discriminator_norm": "spectral",
    "discriminator_sees_time": False,
}
MRI_ROWS = {
    "SpatialAE": MriRow("SpatialAE", {**MAP, **FIT, "code_channels": None}),
    "DenseVAE": MriRow("DenseVAE", {**MAP, **FIT, "n_latent": 128, "kl_weight": 1.0}),
    "FAnoGAN": MriRow(
        "FAnoGAN",
        {**MAP, **FIT, "n_latent": 128, "kappa": 1.0, "penalty": 10.0, "n_critic": None},
    ),
    "VQTransformer": MriRow(
        "VQTransformer",
        {**MAP, **FIT, "emphasis": "likelihood", "unlikely": 0.02, "n_draws": None},
    ),
    "DDPM T=1000": MriRow("DDPM", GAUSSIAN, "1000"),
    "AnoDDPM T=1000": MriRow("AnoDDPM", {**GAUSSIAN, "noise": "simplex"}, "1000"),
    "ADDM T=300": MriRow("ADDM", {**GAUSSIAN, **JUDGE, "n_steps": 300}, "300"),
    "ADDM T=500": MriRow("ADDM", {**GAUSSIAN, **JUDGE, "n_steps": 500}, "500"),
    "ADDM T=1000": MriRow("ADDM", {**GAUSSIAN, **JUDGE}, "1000"),
    "IntensityThreshold": MriRow(
        "IntensityThreshold",
        {
            "side": "both",
            "reference": "pixel",
            "image_size": None,
            "smooth": 1,
            "holdout": 0.1,
            **FLAGS,
        },
        own_name="Intensity threshold",
    ),
    "DDPM pyramid": MriRow("DDPM", PYRAMID, "1000", "DDPM, pyramid noise"),
    "ADDM pyramid stride 50": MriRow(
        "ADDM", {**PYRAMID, **JUDGE, "adversarial_stride": 50}, "1000", "ADDM, pyramid noise"
    ),
    "ADDM pyramid to x_0": MriRow(
        "ADDM",
        {**PYRAMID, **JUDGE, "adversarial_stride": 500, "adversarial_weight": 0.5},
        "1000",
        "ADDM, pyramid noise, judged at x_0",
    ),
}
DIFFUSION = ("DDPM", "AnoDDPM", "ADDM")
SEEDED = ("DDPM", "ADDM")  # what the paper's claims are about has all seeds; the rivals have one
RIVAL_STEPS = {  # what the trainings of a rival are called
    "SpatialAE": ("train_steps",),
    "DenseVAE": ("train_steps",),
    "FAnoGAN": ("train_steps", "encoder_steps"),
    "VQTransformer": ("train_steps", "transformer_steps"),
}


def mri_size(profile: Profile) -> MriSize:
    """Return how much of the MRI table a profile runs."""
    return profile.size(MRI, MriSize)


def mri_settings(profile: Profile, name: str) -> list[Setting]:
    """Return the settings of one row, one per seed."""
    row, size = MRI_ROWS[name], mri_size(profile)
    shared = {
        "experiment": MRI,
        "model": name,
        "params": {**row.params, **_sized(row.kind, size)},
        "size": size.size,
        "slices": size.slices,
        "engine": ENGINES["scans"][row.kind],
    }
    return [{**shared, "seed": k} for k in range(size.seeds if row.kind in SEEDED else 1)]


def _sized(kind: str, size: MriSize) -> dict[str, Any]:
    """Return the parameters that a profile decides."""
    if kind in DIFFUSION:
        steps = size.steps or None
        return {"preset": size.preset, "train_steps": steps, "sampling_steps": size.calls}
    if kind in RIVAL_STEPS:
        steps = size.rival_steps or None
        return {"preset": size.preset, **dict.fromkeys(RIVAL_STEPS[kind], steps)}
    return {}
