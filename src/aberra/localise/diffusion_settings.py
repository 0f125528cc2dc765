"""Presets and styles of the diffusion localisers: what their parameters mean when left at None."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aberra.localise.network import NetworkPreset, Style

NoiseName = Literal["gaussian", "pyramid", "simplex"]
All = Literal["all"]


@dataclass(frozen=True, kw_only=True)
class DiffusionPreset(NetworkPreset):
    """Networks and training for one size of image."""

    widths: tuple[int, ...]
    res_blocks: int
    attention: tuple[bool, ...]
    patch: int
    discriminator_width: int
    discriminator_layers: int
    highest: float  # noise is learnt up to this share of the steps
    decay: float = 1.0  # factor on the learning rate ...
    decay_every: int = 1000  # ... every so many training steps
    ema: float
    printed_steps: int | All  # calls of the network on the way back, as printed

    @property
    def multiple(self) -> int:
        """Sides of an image must be multiples of this."""
        return int(self.patch * 2 ** (len(self.widths) - 1))


DIFFUSION_PRESETS = {
    "small": DiffusionPreset(
        image_size=64,
        widths=(32, 64, 128),
        res_blocks=1,
        attention=(False, False, True),
        patch=2,
        discriminator_width=32,
        discriminator_layers=3,
        highest=0.5,
        train_steps=1500,
        batch_size=8,
        learning_rate=4e-4,
        ema=0.995,
        printed_steps=10,
    ),
    "medium": DiffusionPreset(
        image_size=128,
        widths=(32, 64, 128, 128),
        res_blocks=2,
        attention=(False, False, False, True),
        patch=2,
        discriminator_width=64,
        discriminator_layers=3,
        highest=0.5,
        train_steps=20_000,
        batch_size=16,
        learning_rate=2e-4,
        ema=0.999,
        printed_steps=10,
    ),
    # AnoDDPM's network. An epoch there is a hundred slices: 25 steps of batch 4, 3000 times.
    "paper": DiffusionPreset(
        image_size=256,
        widths=(128, 128, 256, 256, 512, 512),
        res_blocks=2,
        attention=(False, False, False, True, True, True),
        patch=1,
        discriminator_width=64,
        discriminator_layers=3,
        highest=0.8,
        train_steps=75_000,
        batch_size=4,
        learning_rate=1e-4,
        decay=0.999,
        decay_every=200 * 25,
        ema=0.9999,
        printed_steps="all",
    ),
}


@dataclass(frozen=True, kw_only=True)
class DiffusionStyle(Style):
    """The objective, the way back and the map."""

    noise: NoiseName
    start: float
    sampling_steps: int | All
    n_draws: int
    norm_groups: int
    adversarial_weight: float = 0.0
    adversarial_stride: int | All = 1


# Chosen on lesions that were pasted into healthy subjects: results/map_defaults.md.
BEST_DIFFUSION = DiffusionStyle(
    noise="pyramid",
    start=0.1,
    sampling_steps=1,
    n_draws=4,
    norm_groups=8,
    error="absolute",
    smooth=5,
)
PRINTED_DIFFUSION = DiffusionStyle(
    noise="gaussian",
    start=0.25,
    sampling_steps=10,  # or what the preset says
    n_draws=1,
    norm_groups=32,
    error="squared",
    smooth=1,
)
