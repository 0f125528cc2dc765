"""Autoencoders of healthy images: what they cannot rebuild does not belong.

Both methods are from Baur et al. 2021; the networks are in `aberra.nets.baur`.

Notation (shapes): x, x_hat (B, c, h, w); mu, log_sigma (B, k) of the latent; w (B,) sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral, Real

from torch import Tensor
from torch.optim import Adam

from aberra.data.images import TrainingImages
from aberra.declare import estimator, learnt, parameter
from aberra.diffusion.losses import per_image
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser, NetworkPreset, filled
from aberra.localise.restorers import Rebuilders
from aberra.loop import Batch, Losses, Run, train
from aberra.nets.baur import DenseNet, DensePlan, SpatialNet, SpatialPlan
from aberra.nets.building import seeded
from aberra.nets.place import Place
from aberra.rng import draw_seeds
from aberra.scikit import Interval


@dataclass(frozen=True, kw_only=True)
class ReconstructionPreset(NetworkPreset):
    """Network and training for one size of image."""

    down: tuple[int, ...]
    up: tuple[int, ...]
    code_channels: int

    @property
    def multiple(self) -> int:
        """Sides of an image must be multiples of this."""
        return int(2 ** len(self.down))


# The spatial code is an eighth of the numbers of a grey image at every size, as at 256 pixels in
# the original; with its 128 channels at 64 pixels it would be larger than the image.
BAUR_PRESETS = {
    "small": ReconstructionPreset(
        image_size=64,
        down=(32, 64, 128),
        up=(64, 32, 32),
        code_channels=8,
        train_steps=1200,
        batch_size=16,
        learning_rate=1e-3,
    ),
    "medium": ReconstructionPreset(
        image_size=128,
        down=(32, 64, 128, 128),
        up=(128, 64, 32, 32),
        code_channels=32,
        train_steps=10_000,
        batch_size=16,
        learning_rate=5e-4,
    ),
    "paper": ReconstructionPreset(
        image_size=256,
        down=(32, 64, 128, 128, 128),
        up=(128, 64, 32, 32, 32),
        code_channels=128,
        train_steps=50_000,
        batch_size=8,
        learning_rate=1e-4,
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

    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return images, rebuilt."""
        return batch.x, self.net(batch.x)


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

    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return images, rebuilt from their latent mean."""
        return batch.x, self.net.decode(self.net.encode(batch.x)[0])


@dataclass
class SpatialNets(Rebuilders):
    """Trained members of `SpatialAE`."""

    nets: list[SpatialNet] = field(repr=False)


@dataclass
class DenseNets(Rebuilders):
    """Trained members of `DenseVAE`."""

    nets: list[DenseNet] = field(repr=False)


@estimator
class BaurLocaliser(NetworkLocaliser):
    """What the two autoencoders of Baur et al. share."""

    def _preset(self) -> ReconstructionPreset:
        return filled(BAUR_PRESETS[self.preset], self)


@estimator
class SpatialAE(BaurLocaliser):
    """Autoencoder whose code is a small map: what it cannot rebuild stands out (Baur et al. 2021).

    The network learns by the absolute error, as in the original. The code is an eighth of the size
    of a grey image at every preset, so that a lesion cannot simply be copied through it.

    See Also
    --------
    DenseVAE : A variational autoencoder whose code is a vector.

    References
    ----------
    Baur, Denner, Wiestler, Navab and Albarqouni (2021), "Autoencoders for unsupervised anomaly
    segmentation in brain MR images: a comparative study", Medical Image Analysis 69.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.reconstruction import SpatialAE
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = SpatialAE(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    code_channels: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Channels of the code, whose sides are an eighth of 64 pixels, a sixteenth of 128 or a
        thirty-second of 256. None takes it from the preset: 8, 32 or 128.""",
    )

    members_: SpatialNets = learnt()

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> SpatialNet:
        preset = self._preset()
        plan = SpatialPlan(
            n_channels=images.shape[1],
            down=preset.down,
            up=preset.up,
            code=preset.code_channels,
        )
        run = SpatialRun(plan, preset.learning_rate, seed, self._place())
        train(run, plan, preset.tempo, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, nets: list[SpatialNet]) -> SpatialNets:
        return SpatialNets(frame, self._map_style(), nets)


@estimator
class DenseVAE(BaurLocaliser):
    """Variational autoencoder whose code is a vector (Baur et al. 2021).

    It minimises the sum of the absolute errors of all pixels plus `kl_weight` times the divergence
    of the code from the standard normal. Images are restored at the mean of their code.

    See Also
    --------
    SpatialAE : An autoencoder whose code is a small map.

    References
    ----------
    Baur, Denner, Wiestler, Navab and Albarqouni (2021), "Autoencoders for unsupervised anomaly
    segmentation in brain MR images: a comparative study", Medical Image Analysis 69.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.reconstruction import DenseVAE
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = DenseVAE(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.reconstruct(images[:3]).shape
    (3, 1, 16, 16)
    """

    n_latent: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=128,
        doc="How many numbers the code has.",
    )
    kl_weight: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=1.0,
        doc="""Weight of the divergence. Pixels lie in [-1, 1] here, so 1 weighs the pixels twice as
        much as the original does with pixels in [0, 1].""",
    )

    members_: DenseNets = learnt()

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> DenseNet:
        preset = self._preset()
        plan = DensePlan(
            n_channels=images.shape[1],
            down=preset.down,
            up=preset.up,
            code=preset.down[-1] // 8,
            n_latent=self.n_latent,
            map_size=preset.coarsest(images),
        )
        run = DenseRun(plan, preset.learning_rate, self.kl_weight, seed, self._place())
        settings = (plan, self.kl_weight)
        train(run, settings, preset.tempo, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, nets: list[DenseNet]) -> DenseNets:
        return DenseNets(frame, self._map_style(), nets)
