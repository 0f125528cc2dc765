"""Autoencoders of healthy images: what they cannot rebuild does not belong.

The networks are those of Baur et al. 2021 ("Autoencoders for unsupervised anomaly segmentation in
brain MR images: a comparative study"): strided 5 x 5 convolutions down to an 8 x 8 map, mirrored
back. Deviation: group norm for batch norm, so that no image sees its neighbours, and no dropout.

Notation (shapes): x, x_hat (B, c, h, w); mu, log_sigma (B, k) of the latent; w (B,) sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam

from aberra.data.images import TrainingImages
from aberra.diffusion.losses import per_image
from aberra.localise.base import Error, MapStyle, Restorers
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser
from aberra.loop import Batch, Losses, Run, Tempo, train
from aberra.nets.building import seeded
from aberra.nets.place import Place, Precision
from aberra.rng import RandomState, draw_seeds
from aberra.scikit import Interval

LEAK = 0.3  # Keras' default, which the original uses
GROUPS = 8


@dataclass(frozen=True)
class ReconstructionPreset:
    """Network and training settings for one image size."""

    image_size: int
    down: tuple[int, ...]
    up: tuple[int, ...]
    code: int
    tempo: Tempo


# The spatial code is an eighth of the numbers of a grey image at every size, as at 256 pixels in
# the original; with its 128 channels at 64 pixels it would be larger than the image.
PRESETS = {
    "small": ReconstructionPreset(64, (32, 64, 128), (64, 32, 32), 8, Tempo(1200, 16, 1e-3)),
    "medium": ReconstructionPreset(
        128, (32, 64, 128, 128), (128, 64, 32, 32), 32, Tempo(10_000, 16, 5e-4)
    ),
    "paper": ReconstructionPreset(
        256, (32, 64, 128, 128, 128), (128, 64, 32, 32, 32), 128, Tempo(50_000, 8, 1e-4)
    ),
}


def reconstruction_loss(x: Tensor, x_hat: Tensor, w: Tensor) -> Tensor:
    """Weighted mean absolute error of the pixels."""
    return (w * per_image((x - x_hat).abs())).mean()


def kl_to_normal(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """Divergence of N(mu, sigma^2) from the standard normal, summed over the latent: (B,)."""
    return 0.5 * (mu.square() + (2 * log_sigma).exp() - 2 * log_sigma - 1).sum(dim=1)


def vae_loss(
    x: Tensor, x_hat: Tensor, mu: Tensor, log_sigma: Tensor, w: Tensor, kl_weight: float
) -> Tensor:
    """Weighted sum of absolute errors and divergence, per pixel.

    Deviation: the original does not divide by the number of pixels. The minimum is the same, and
    the number can be compared between image sizes.
    """
    kl = kl_to_normal(mu, log_sigma) / x[0].numel()
    return reconstruction_loss(x, x_hat, w) + kl_weight * (w * kl).mean()


@dataclass(frozen=True)
class SpatialPlan:
    """Everything that decides the shape of an autoencoder whose code is a map."""

    n_channels: int
    down: tuple[int, ...]  # channels after each halving
    up: tuple[int, ...]  # channels after each doubling
    code: int  # channels of the code


@dataclass(frozen=True)
class DensePlan:
    """Everything that decides the shape of an autoencoder whose code is a vector."""

    n_channels: int
    down: tuple[int, ...]
    up: tuple[int, ...]
    code: int  # channels of the map next to the code
    n_latent: int
    map_size: tuple[int, int]  # height and width of that map


def narrowed(n_in: int, n_out: int) -> nn.Module:
    """Return a 1 x 1 convolution, or nothing where the number of channels stays."""
    return nn.Identity() if n_in == n_out else nn.Conv2d(n_in, n_out, 1)


def encoder(plan: SpatialPlan | DensePlan) -> nn.Sequential:
    """Return the layers from an image to the map of `plan.code` channels."""
    layers: list[nn.Module] = []
    for n_in, n_out in zip((plan.n_channels, *plan.down), plan.down, strict=False):
        layers += [nn.Conv2d(n_in, n_out, 5, 2, 2), nn.GroupNorm(GROUPS, n_out)]
        layers += [nn.LeakyReLU(LEAK)]
    return nn.Sequential(*layers, narrowed(plan.down[-1], plan.code))


def decoder(plan: SpatialPlan | DensePlan) -> nn.Sequential:
    """Return the layers from the map of `plan.code` channels to an image."""
    deepest = plan.down[-1]
    layers = [narrowed(plan.code, deepest), nn.GroupNorm(GROUPS, deepest), nn.ReLU()]
    for n_in, n_out in zip((deepest, *plan.up), plan.up, strict=False):
        layers += [nn.ConvTranspose2d(n_in, n_out, 5, 2, 2, 1), nn.GroupNorm(GROUPS, n_out)]
        layers += [nn.LeakyReLU(LEAK)]
    return nn.Sequential(*layers, nn.Conv2d(plan.up[-1], plan.n_channels, 1))


class SpatialNet(nn.Module):
    """An autoencoder whose code is a small map."""

    def __init__(self, plan: SpatialPlan) -> None:
        super().__init__()
        self.plan = plan
        self.encoder, self.decoder = encoder(plan), decoder(plan)

    def forward(self, x: Tensor) -> Tensor:
        """Return x_hat."""
        x_hat: Tensor = self.decoder(self.encoder(x))
        return x_hat


class DenseNet(nn.Module):
    """A variational autoencoder whose code is a vector."""

    def __init__(self, plan: DensePlan) -> None:
        super().__init__()
        self.plan = plan
        n_map = plan.code * plan.map_size[0] * plan.map_size[1]
        self.encoder, self.decoder = encoder(plan), decoder(plan)
        self.to_mu, self.to_log_sigma = (
            nn.Linear(n_map, plan.n_latent),
            nn.Linear(n_map, plan.n_latent),
        )
        self.from_latent = nn.Linear(plan.n_latent, n_map)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mu and log_sigma."""
        # The same order of numbers whatever the layout in memory.
        flat = self.encoder(x).contiguous().flatten(1)
        return self.to_mu(flat), self.to_log_sigma(flat)

    def decode(self, z: Tensor) -> Tensor:
        """Return the image of a latent."""
        plan = self.plan
        image: Tensor = self.decoder(self.from_latent(z).reshape(-1, plan.code, *plan.map_size))
        return image

    def forward(self, x: Tensor) -> Tensor:
        """Return x_hat at the mean of the latent."""
        return self.decode(self.encode(x)[0])


class SpatialRun(Run):
    """Learns to rebuild images through a narrow map."""

    def __init__(self, plan: SpatialPlan, learning_rate: float, seed: int, place: Place) -> None:
        self.place = place
        self.net = seeded(lambda: SpatialNet(plan), draw_seeds(seed, 2, n=1)[0]).to(place.device)
        self.nets = {"net": self.net}
        self.optimisers = {"net": Adam(self.net.parameters(), learning_rate)}

    def step(self, step: int, batch: Batch) -> Losses:
        """Update the network; return its loss."""
        with self.place.autocast():
            x_hat = self.net(batch.x)
        loss = reconstruction_loss(batch.x, x_hat.float(), batch.w)
        self.update("net", loss)
        return {"loss": loss}


class DenseRun(Run):
    """Learns to rebuild images from a random draw near their latent mean."""

    def __init__(
        self, plan: DensePlan, learning_rate: float, kl_weight: float, seed: int, place: Place
    ) -> None:
        self.place, self.kl_weight = place, kl_weight
        self.net = seeded(lambda: DenseNet(plan), draw_seeds(seed, 2, n=1)[0]).to(place.device)
        self.nets = {"net": self.net}
        self.optimisers = {"net": Adam(self.net.parameters(), learning_rate)}

    def step(self, step: int, batch: Batch) -> Losses:
        """Update the network; return its loss."""
        with self.place.autocast():
            mu, log_sigma = self.net.encode(batch.x)
        mu, log_sigma = mu.float(), log_sigma.float()
        z = mu + log_sigma.exp() * batch.normal(self.net.plan.n_latent)
        with self.place.autocast():
            x_hat = self.net.decode(z)
        loss = vae_loss(batch.x, x_hat.float(), mu, log_sigma, batch.w, self.kl_weight)
        self.update("net", loss)
        return {"loss": loss}


@dataclass
class Rebuilders(Restorers):
    """Members that restore an image by one call."""

    frame: Frame
    style: MapStyle
    nets: list[nn.Module] = field(repr=False)

    @torch.inference_mode()
    def restore(self, x: Tensor) -> Tensor:
        """Return what each member makes of the images, (m, n, c, h, w)."""
        device = next(self.nets[0].parameters()).device
        x = x.to(device, memory_format=torch.channels_last)
        return torch.stack([net(x).contiguous() for net in self.nets]).cpu()


class SpatialAE(NetworkLocaliser):
    """Autoencoder whose code is a small map (Baur et al. 2021): what it cannot rebuild stands out.

    The reconstruction is by absolute error, as in the original. The code is an eighth of the size
    of a grey image at every preset, so that a lesion cannot simply be copied through it.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Network and training for 64, 128 or 256 pixels a side; "paper" has the published sizes.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    code_channels : int, optional
        Channels of the code, whose sides are an eighth of 64 pixels, a sixteenth of 128 or a
        thirty-second of 256. From the preset by default: 8, 32 and 128.
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        From the preset by default.
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
    >>> from aberra.localise.reconstruction import SpatialAE
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = SpatialAE(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    members_: Rebuilders
    stops_early = True

    _parameter_constraints: dict[str, list[Any]] = {
        **NetworkLocaliser._parameter_constraints,
        "code_channels": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        code_channels: int | None = None,
        error: Error = "squared",
        smooth: int = 1,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
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
        self.code_channels = code_channels
        self.error = error
        self.smooth = smooth
        self.train_steps = train_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.holdout = holdout
        self.false_alarm_rate = false_alarm_rate
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.precision = precision
        self.random_state = random_state

    def _size_and_multiple(self) -> tuple[int, int]:
        preset = PRESETS[self.preset]
        return preset.image_size, int(2 ** len(preset.down))

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> SpatialNet:
        preset = PRESETS[self.preset]
        code = self.code_channels or preset.code
        plan = SpatialPlan(images.shape[1], preset.down, preset.up, code)
        tempo = self._tempo(preset.tempo)
        run = SpatialRun(plan, tempo.learning_rate, seed, self._place())
        train(run, plan, tempo, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, trained: list[nn.Module]) -> Rebuilders:
        return Rebuilders(frame, MapStyle(self.error, self.smooth), trained)


class DenseVAE(NetworkLocaliser):
    """Variational autoencoder with a dense latent (Baur et al. 2021).

    It minimises the sum of the absolute errors of all pixels plus `kl_weight` times the divergence
    of the latent from the standard normal. Images are restored at the mean of their latent.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Network and training for 64, 128 or 256 pixels a side; "paper" has the published sizes.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    n_latent : int
        Numbers in the latent.
    kl_weight : float
        Weight of the divergence. Pixels lie in [-1, 1] here, so 1 weighs the pixels twice as much
        as the original does with pixels in [0, 1].
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        From the preset by default.
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
    >>> from aberra.localise.reconstruction import DenseVAE
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = DenseVAE(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.reconstruct(images[:3]).shape
    (3, 1, 16, 16)
    """

    members_: Rebuilders
    stops_early = True

    _parameter_constraints: dict[str, list[Any]] = {
        **NetworkLocaliser._parameter_constraints,
        "n_latent": [Interval(Integral, 1, None, closed="left")],
        "kl_weight": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        n_latent: int = 128,
        kl_weight: float = 1.0,
        error: Error = "squared",
        smooth: int = 1,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
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
        self.kl_weight = kl_weight
        self.error = error
        self.smooth = smooth
        self.train_steps = train_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.holdout = holdout
        self.false_alarm_rate = false_alarm_rate
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.precision = precision
        self.random_state = random_state

    def _size_and_multiple(self) -> tuple[int, int]:
        preset = PRESETS[self.preset]
        return preset.image_size, int(2 ** len(preset.down))

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> DenseNet:
        preset = PRESETS[self.preset]
        _, multiple = self._size_and_multiple()
        plan = DensePlan(
            images.shape[1],
            preset.down,
            preset.up,
            preset.down[-1] // 8,
            self.n_latent,
            (images.shape[2] // multiple, images.shape[3] // multiple),
        )
        tempo = self._tempo(preset.tempo)
        run = DenseRun(plan, tempo.learning_rate, self.kl_weight, seed, self._place())
        train(run, (plan, self.kl_weight), tempo, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, trained: list[nn.Module]) -> Rebuilders:
        return Rebuilders(frame, MapStyle(self.error, self.smooth), trained)
