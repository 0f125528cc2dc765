"""f-AnoGAN (Schlegl et al. 2019): a generator of healthy images, and a way into its latent space.

First a generator learns healthy images against a critic (WGAN-GP), then, with both frozen, an
encoder learns to map an image to a latent whose image is like it, for the eye and for the critic
(izi_f). The networks are the residual ones of the original. Deviation: layer norm in all of them
(the original has batch norm in generator and encoder), so that no image sees its neighbours.

Notation (shapes): x, x_hat (B, c, h, w); z (B, k); real, fake (B,) the critic's values; w (B,)
sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam, RMSprop

from aberra.data.images import TrainingImages
from aberra.diffusion.losses import per_image
from aberra.localise.base import Error, MapStyle
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser
from aberra.localise.reconstruction import Rebuilders
from aberra.loop import Batch, Losses, Run, Tempo, train
from aberra.nets.building import seeded
from aberra.nets.place import Place, Precision
from aberra.rng import RandomState, draw_seeds
from aberra.scikit import Interval

GAN_BETAS = (0.0, 0.9)


@dataclass(frozen=True)
class AnoGANPreset:
    """Network and training settings for one image size."""

    image_size: int
    widths: tuple[int, ...]
    patch: int
    n_critic: int
    tempo: Tempo  # of the critic
    encoder_steps: int
    encoder_rate: float


PRESETS = {
    "small": AnoGANPreset(64, (16, 32, 64, 128), 2, 2, Tempo(1800, 16, 5e-4), 900, 5e-4),
    "medium": AnoGANPreset(
        128, (32, 64, 128, 256, 256), 2, 5, Tempo(50_000, 32, 2e-4), 20_000, 1e-4
    ),
    # The original has 64 pixels and four halvings; two more of its widest blocks make 256.
    "paper": AnoGANPreset(
        256, (64, 128, 256, 512, 512, 512, 512), 1, 5, Tempo(200_000, 64, 1e-4), 50_000, 5e-5
    ),
}


def slopes(critic: nn.Module, x: Tensor) -> Tensor:
    """Norm of the critic's gradient at each image, (B,); gradients flow on to the critic."""
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return gradient.flatten(1).norm(dim=1)


def critic_loss(real: Tensor, fake: Tensor, slope: Tensor, w: Tensor, penalty: float) -> Tensor:
    """Weighted Wasserstein loss of the critic with gradient penalty.

    Every real image is paired with a generated one, which takes over its weight.
    """
    return (w * (fake - real + penalty * (slope - 1).square())).mean()


def generator_loss(fake: Tensor) -> Tensor:
    """Urge the generator to please the critic; no image takes part, so none is weighted."""
    return -fake.mean()


def izif_loss(
    x: Tensor, x_hat: Tensor, features: Tensor, features_hat: Tensor, w: Tensor, kappa: float
) -> Tensor:
    """Weighted residual of the image plus `kappa` times that of the critic's features."""
    of_features = per_image((features - features_hat).square())
    return (w * (per_image((x - x_hat).square()) + kappa * of_features)).mean()


@dataclass(frozen=True)
class AnoGANPlan:
    """Everything that decides the shape of the networks.

    Critic and encoder see `patch` pixels a side as channels; the generator repeats its last map so
    often before the last layer.
    """

    n_channels: int
    widths: tuple[int, ...]  # channels from fine to coarse, halving the sides in between
    patch: int
    n_latent: int
    map_size: tuple[int, int]  # height and width of the coarsest map

    @property
    def n_coarse(self) -> int:
        """Numbers in the coarsest map."""
        return self.widths[-1] * self.map_size[0] * self.map_size[1]


class Block(nn.Module):
    """A residual block that halves or doubles the sides."""

    def __init__(self, n_in: int, n_out: int, resample: Literal["down", "up"]) -> None:
        super().__init__()
        self.up = resample == "up"
        n_mid = n_out if self.up else n_in
        self.norm1, self.norm2 = nn.GroupNorm(1, n_in), nn.GroupNorm(1, n_mid)
        self.conv1 = nn.Conv2d(n_in, n_mid, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(n_mid, n_out, 3, padding=1)
        self.shortcut = nn.Conv2d(n_in, n_out, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the map at half or double size."""
        if self.up:
            inner = self.conv1(doubled(F.relu(self.norm1(x))))
            return self.conv2(F.relu(self.norm2(inner))) + doubled(self.shortcut(x))
        inner = self.conv2(F.relu(self.norm2(self.conv1(F.relu(self.norm1(x))))))
        return F.avg_pool2d(inner, 2) + self.shortcut(F.avg_pool2d(x, 2))


def doubled(x: Tensor) -> Tensor:
    """Return a map with every value repeated twice along both sides."""
    return F.interpolate(x, scale_factor=2, mode="nearest")


class Descent(nn.Module):
    """From an image down to a vector: critic (one number) and encoder (a latent)."""

    def __init__(self, plan: AnoGANPlan, n_out: int) -> None:
        super().__init__()
        blocks = [Block(a, b, "down") for a, b in pairwise(plan.widths)]
        self.body = nn.Sequential(
            nn.PixelUnshuffle(plan.patch),
            nn.Conv2d(plan.n_channels * plan.patch**2, plan.widths[0], 3, padding=1),
            *blocks,
        )
        self.head = nn.Linear(plan.n_coarse, n_out)

    def features(self, x: Tensor) -> Tensor:
        """Return the coarsest map as one row per image."""
        # The same order of numbers whatever the layout in memory.
        flat: Tensor = self.body(x).contiguous().flatten(1)
        return flat

    def forward(self, x: Tensor) -> Tensor:
        """Return one row of numbers per image."""
        out: Tensor = self.head(self.features(x))
        return out


class Generator(nn.Module):
    """From a latent up to an image in [-1, 1]."""

    def __init__(self, plan: AnoGANPlan) -> None:
        super().__init__()
        self.plan = plan
        widths = plan.widths[::-1]
        blocks = [Block(a, b, "up") for a, b in pairwise(widths)]
        self.stem = nn.Linear(plan.n_latent, plan.n_coarse)
        self.body = nn.Sequential(
            *blocks,
            nn.GroupNorm(1, widths[-1]),
            nn.ReLU(),
            nn.Upsample(scale_factor=plan.patch),
            nn.Conv2d(widths[-1], plan.n_channels, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, z: Tensor) -> Tensor:
        """Return the images of latents."""
        coarse = self.stem(z).reshape(-1, self.plan.widths[-1], *self.plan.map_size)
        image: Tensor = self.body(coarse)
        return image


class AnoGANNet(nn.Module):
    """What is needed after training: the way into the latent space, and the way back."""

    def __init__(self, plan: AnoGANPlan) -> None:
        super().__init__()
        self.plan = plan
        self.encoder = Descent(plan, plan.n_latent)
        self.generator = Generator(plan)

    def forward(self, x: Tensor) -> Tensor:
        """Return the healthy image that the encoder takes x for."""
        image: Tensor = self.generator(self.encoder(x))
        return image


@dataclass(frozen=True)
class AnoGANSettings:
    """How the networks are trained."""

    gan_steps: int
    n_critic: int
    penalty: float
    kappa: float
    learning_rate: float
    encoder_rate: float


class AnoGANRun(Run):
    """First generator against critic, then the encoder alone."""

    def __init__(self, plan: AnoGANPlan, settings: AnoGANSettings, seed: int, place: Place) -> None:
        self.settings, self.place = settings, place
        seeds = draw_seeds(seed, 2, n=2)
        self.net = seeded(lambda: AnoGANNet(plan), seeds[0]).to(place.device)
        self.critic = seeded(lambda: Descent(plan, 1), seeds[1]).to(place.device)
        self.nets = {"net": self.net, "critic": self.critic}
        rate = settings.learning_rate
        encoder = self.net.encoder.parameters()
        self.optimisers = {
            "critic": Adam(self.critic.parameters(), rate, GAN_BETAS),
            "generator": Adam(self.net.generator.parameters(), rate, GAN_BETAS),
            "encoder": RMSprop(encoder, settings.encoder_rate, alpha=0.9),
        }

    def step(self, step: int, batch: Batch) -> Losses:
        """Update what is to be learnt in this step; return its loss."""
        if step >= self.settings.gan_steps:
            return {"encoder": self._encoder_step(batch)}
        # (1) The critic learns to tell generated images from real ones.
        loss = self._critic_step(batch)
        # (2) From time to time the generator learns to please it.
        if (step + 1) % self.settings.n_critic == 0:
            self._generator_step(batch)
        return {"critic": loss}

    def _critic_step(self, batch: Batch) -> Tensor:
        with torch.no_grad(), self.place.autocast():
            fake = self.net.generator(batch.normal(self.net.plan.n_latent)).float()
        between = batch.x + batch.uniform(1, 1, 1) * (fake - batch.x)
        slope = slopes(self.critic, between)
        with self.place.autocast():
            on_real, on_fake = self.critic(torch.cat([batch.x, fake]))[:, 0].float().chunk(2)
        loss = critic_loss(on_real, on_fake, slope, batch.w, self.settings.penalty)
        self.update("critic", loss)
        return loss

    def _generator_step(self, batch: Batch) -> None:
        self.critic.requires_grad_(False)
        with self.place.autocast():
            on_fake = self.critic(self.net.generator(batch.normal(self.net.plan.n_latent)))
        self.update("generator", generator_loss(on_fake.float()))
        self.critic.requires_grad_(True)

    def _encoder_step(self, batch: Batch) -> Tensor:
        self.critic.requires_grad_(False)
        self.net.generator.requires_grad_(False)
        with self.place.autocast():
            x_hat = self.net(batch.x)
            features_hat = self.critic.features(x_hat)
            features = self.critic.features(batch.x)
        loss = izif_loss(
            batch.x,
            x_hat.float(),
            features.float(),
            features_hat.float(),
            batch.w,
            self.settings.kappa,
        )
        self.update("encoder", loss)
        return loss


class FAnoGAN(NetworkLocaliser):
    """f-AnoGAN (Schlegl et al. 2019): the nearest image that a generator of healthy ones can make.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Networks and training for 64, 128 or 256 pixels a side; "paper" has the published widths.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    n_latent : int
        Numbers in the latent.
    n_critic : int, optional
        Steps of the critic for each of the generator. From the preset by default: 2, and 5 for
        "medium" and "paper".
    penalty : float
        Weight of the critic's gradient penalty.
    kappa : float
        Weight of the critic's features, beside the image, when the encoder learns.
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        Of critic and generator; `train_steps` counts the critic's. From the preset by default.
    encoder_steps : int, optional
        Training steps of the encoder. From the preset by default.
    holdout : float
        Share of the training images (or of the patients, with `groups`) that is kept for the
        threshold; 0 places it on the training images themselves.
    false_alarm_rate : float
        Share of the pixels of healthy images that `segment` may flag.
    checkpoint : path, optional
        Folder that keeps the state of an unfinished training. The same `fit`, started again, goes
        on from there and gives the same bytes. Needs an integer `random_state`.
    checkpoint_minutes : float
        Minutes between two of them.
    device : str
        "auto" takes CUDA or MPS where there is one, else the CPU.
    precision : {"auto", "float32", "bfloat16"}
        "auto" takes bfloat16 where the hardware computes in it.
    random_state : int, RandomState or None
        Given a seed, global generators are left alone, and bytes repeat on one machine with
        one number of threads.

    Attributes
    ----------
    threshold_ : float
        Height of the map above which `segment` flags a pixel.
    image_shape_ : tuple
        Channels, height and width of the training images.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.fanogan import FAnoGAN
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = FAnoGAN(train_steps=2, encoder_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    members_: Rebuilders

    _parameter_constraints: dict[str, list[Any]] = {
        **NetworkLocaliser._parameter_constraints,
        "n_latent": [Interval(Integral, 1, None, closed="left")],
        "n_critic": [Interval(Integral, 1, None, closed="left"), None],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "kappa": [Interval(Real, 0, None, closed="left")],
        "encoder_steps": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        n_latent: int = 128,
        n_critic: int | None = None,
        penalty: float = 10.0,
        kappa: float = 1.0,
        error: Error = "squared",
        smooth: int = 1,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        encoder_steps: int | None = None,
        holdout: float = 0.1,
        false_alarm_rate: float = 0.01,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        device: str = "auto",
        precision: Precision = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.preset = preset
        self.image_size = image_size
        self.n_latent = n_latent
        self.n_critic = n_critic
        self.penalty = penalty
        self.kappa = kappa
        self.error = error
        self.smooth = smooth
        self.train_steps = train_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.encoder_steps = encoder_steps
        self.holdout = holdout
        self.false_alarm_rate = false_alarm_rate
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.precision = precision
        self.random_state = random_state

    def _size_and_multiple(self) -> tuple[int, int]:
        preset = PRESETS[self.preset]
        return preset.image_size, int(preset.patch * 2 ** (len(preset.widths) - 1))

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> AnoGANNet:
        preset = PRESETS[self.preset]
        _, multiple = self._size_and_multiple()
        coarse = (images.shape[2] // multiple, images.shape[3] // multiple)
        plan = AnoGANPlan(images.shape[1], preset.widths, preset.patch, self.n_latent, coarse)
        tempo = self._tempo(preset.tempo)
        settings = AnoGANSettings(
            gan_steps=tempo.train_steps,
            n_critic=self.n_critic or preset.n_critic,
            penalty=self.penalty,
            kappa=self.kappa,
            learning_rate=tempo.learning_rate,
            encoder_rate=preset.encoder_rate,
        )
        whole = replace(
            tempo, train_steps=tempo.train_steps + (self.encoder_steps or preset.encoder_steps)
        )
        run = AnoGANRun(plan, settings, seed, self._place())
        train(run, (plan, settings), whole, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, trained: list[nn.Module]) -> Rebuilders:
        return Rebuilders(frame, MapStyle(self.error, self.smooth), trained)
