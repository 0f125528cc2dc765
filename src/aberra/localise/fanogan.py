"""f-AnoGAN (Schlegl et al. 2019): a generator of healthy images, and a way into its latent space.

First a generator learns healthy images against a critic (WGAN-GP), then, with both frozen, an
encoder learns to map an image to a latent whose image is like it, for the eye and for the critic
(izi_f).

Notation (shapes): x, x_hat (B, c, h, w); z (B, k); real, fake (B,) the critic's values; w (B,)
sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import torch
from torch import Tensor, nn
from torch.optim import Adam, RMSprop

from aberra.data.images import TrainingImages
from aberra.declare import estimator, learnt, parameter
from aberra.diffusion.losses import per_image
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser, NetworkPreset, filled
from aberra.localise.restorers import Rebuilders
from aberra.loop import Batch, Losses, Run, train
from aberra.nets.anogan import AnoGANNet, AnoGANPlan, Descent
from aberra.nets.building import seeded
from aberra.nets.place import Place
from aberra.rng import draw_seeds
from aberra.scikit import Interval

GAN_BETAS = (0.0, 0.9)


@dataclass(frozen=True, kw_only=True)
class AnoGANPreset(NetworkPreset):
    """Networks and training for one size of image; steps and learning rate are the critic's."""

    widths: tuple[int, ...]
    patch: int
    n_critic: int
    encoder_steps: int
    encoder_rate: float

    @property
    def multiple(self) -> int:
        """Sides of an image must be multiples of this."""
        return int(self.patch * 2 ** (len(self.widths) - 1))


ANOGAN_PRESETS = {
    "small": AnoGANPreset(
        image_size=64,
        widths=(16, 32, 64, 128),
        patch=2,
        n_critic=2,
        train_steps=1800,
        batch_size=16,
        learning_rate=5e-4,
        encoder_steps=900,
        encoder_rate=5e-4,
    ),
    "medium": AnoGANPreset(
        image_size=128,
        widths=(32, 64, 128, 256, 256),
        patch=2,
        n_critic=5,
        train_steps=50_000,
        batch_size=32,
        learning_rate=2e-4,
        encoder_steps=20_000,
        encoder_rate=1e-4,
    ),
    # The original has 64 pixels and four halvings; two more of its widest blocks make 256.
    "paper": AnoGANPreset(
        image_size=256,
        widths=(64, 128, 256, 512, 512, 512, 512),
        patch=1,
        n_critic=5,
        train_steps=200_000,
        batch_size=64,
        learning_rate=1e-4,
        encoder_steps=50_000,
        encoder_rate=5e-5,
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

    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return images, encoded and generated again."""
        return batch.x, self.net.generator(self.net.encoder(batch.x))

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


@dataclass
class AnoGANNets(Rebuilders):
    """Trained members of `FAnoGAN`."""

    nets: list[AnoGANNet] = field(repr=False)


@estimator
class FAnoGAN(NetworkLocaliser):
    """f-AnoGAN: the nearest image that a generator of healthy ones can make (Schlegl et al. 2019).

    A generator learns to draw healthy images against a critic, then an encoder learns which of
    them is nearest to a given image. What differs from that image is the anomaly.

    References
    ----------
    Schlegl, Seeböck, Waldstein, Langs and Schmidt-Erfurth (2019), "f-AnoGAN: fast unsupervised
    anomaly detection with generative adversarial networks", Medical Image Analysis 54.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.fanogan import FAnoGAN
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = FAnoGAN(train_steps=2, encoder_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    n_latent: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=128,
        doc="How many numbers the generator makes an image from.",
    )
    n_critic: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Steps of the critic for each step of the generator; `train_steps` counts the
        critic's. None takes it from the preset: 2, and 5 for "medium" and "paper".""",
    )
    penalty: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=10.0,
        doc="Weight of the critic's gradient penalty.",
    )
    kappa: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=1.0,
        doc="""Weight of the critic's features beside the image itself when the encoder learns.""",
    )
    encoder_steps: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="Training steps of the encoder. None takes it from the preset.",
    )

    members_: AnoGANNets = learnt()

    @property
    def stops_early(self) -> bool:
        """Whether a time limit may end training: no, the second network would never train."""
        return False

    def _preset(self) -> AnoGANPreset:
        return filled(ANOGAN_PRESETS[self.preset], self)

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> AnoGANNet:
        preset = self._preset()
        plan = AnoGANPlan(
            n_channels=images.shape[1],
            widths=preset.widths,
            patch=preset.patch,
            n_latent=self.n_latent,
            map_size=preset.coarsest(images),
        )
        settings = AnoGANSettings(
            gan_steps=preset.train_steps,
            n_critic=preset.n_critic,
            penalty=self.penalty,
            kappa=self.kappa,
            learning_rate=preset.learning_rate,
            encoder_rate=preset.encoder_rate,
        )
        tempo = replace(preset.tempo, train_steps=preset.train_steps + preset.encoder_steps)
        run = AnoGANRun(plan, settings, seed, self._place())
        train(run, (plan, settings), tempo, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, nets: list[AnoGANNet]) -> AnoGANNets:
        return AnoGANNets(frame, self._map_style(), nets)
