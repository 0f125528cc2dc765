"""VQ-VAE and transformer (Pinaya et al. 2022): codes that do not belong give way to likely ones.

A VQ-VAE turns an image into a grid of codes. A transformer, which reads them row by row, learns how
likely each code is after those before it. Codes of a new image that are unlikely are replaced, and
the decoded image is the restoration.

Notation (shapes): z (B, k, h, w) encoded images; codes (B, L) with L = h * w, row by row; log_p
(B, L, n_codes); w (B,) sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real

import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional as F
from torch.optim import Adam

from aberra.data.images import TrainingImages
from aberra.declare import estimator, learnt, parameter
from aberra.diffusion.losses import per_image
from aberra.localise.base import Maps
from aberra.localise.frame import Frame
from aberra.localise.healing import CodeHealers, Emphasis, Healing, code_surprise
from aberra.localise.network import NetworkLocaliser, NetworkPreset, filled
from aberra.localise.reconstruction import reconstruction_loss
from aberra.loop import Batch, Losses, Run, train
from aberra.nets.building import seeded
from aberra.nets.place import Place
from aberra.nets.vq import VQNet, VQPlan
from aberra.rng import draw_seeds
from aberra.scikit import Interval, StrOptions

COMMITMENT = 0.25
CODE_DECAY = 0.95
DEAD = 0.03  # a code used less than this share of the average takes a new place


@dataclass(frozen=True, kw_only=True)
class VQPreset(NetworkPreset):
    """Networks and training for one size of image; steps and learning rate are the VQ-VAE's."""

    widths: tuple[int, ...]
    res_layers: int
    n_codes: int
    code_width: int
    model_width: int
    depth: int
    n_heads: int
    transformer_steps: int
    transformer_rate: float

    @property
    def multiple(self) -> int:
        """Sides of an image must be multiples of this."""
        return int(2 ** len(self.widths))


VQ_PRESETS = {
    "small": VQPreset(
        image_size=64,
        widths=(32, 64),
        res_layers=1,
        n_codes=32,
        code_width=32,
        model_width=96,
        depth=3,
        n_heads=4,
        train_steps=800,
        batch_size=16,
        learning_rate=1e-3,
        transformer_steps=1000,
        transformer_rate=1e-3,
    ),
    "medium": VQPreset(
        image_size=128,
        widths=(64, 128, 128),
        res_layers=2,
        n_codes=32,
        code_width=64,
        model_width=256,
        depth=8,
        n_heads=8,
        train_steps=20_000,
        batch_size=16,
        learning_rate=3e-4,
        transformer_steps=40_000,
        transformer_rate=3e-4,
    ),
    "paper": VQPreset(
        image_size=256,
        widths=(256, 256, 256),
        res_layers=3,
        n_codes=32,
        code_width=256,
        model_width=256,
        depth=24,
        n_heads=8,
        train_steps=100_000,
        batch_size=16,
        learning_rate=1e-4,
        transformer_steps=100_000,
        transformer_rate=5e-4,
    ),
}


def commitment_loss(z: Tensor, embedded: Tensor, w: Tensor) -> Tensor:
    """Weighted squared distance of encoded images from their codes, which stay where they are."""
    return (w * per_image((z - embedded.detach()).square())).mean()


def code_loss(log_p: Tensor, codes: Tensor, w: Tensor) -> Tensor:
    """Weighted mean of minus the log-likelihood of the codes."""
    return (w * code_surprise(log_p, codes).mean(dim=1)).mean()


def code_usage(flat: Tensor, codes: Tensor, w: Tensor, n_codes: int) -> tuple[Tensor, Tensor]:
    """Weighted number (n_codes,) and sum (n_codes, k) of the vectors (N, k) that took each code."""
    taken = F.one_hot(codes, n_codes).to(flat.dtype) * w[:, None]
    return taken.sum(dim=0), taken.T @ flat


class VQRun(Run):
    """First the VQ-VAE, then the transformer on its codes."""

    def __init__(
        self, plan: VQPlan, vq_steps: int, rates: tuple[float, float], seed: int, place: Place
    ) -> None:
        self.vq_steps, self.place = vq_steps, place
        self.net = seeded(lambda: VQNet(plan), draw_seeds(seed, 2, n=1)[0]).to(place.device).eval()
        self.nets = {"net": self.net}
        learnt = [*self.net.vqvae.encoder.parameters(), *self.net.vqvae.decoder.parameters()]
        self.optimisers = {
            "vqvae": Adam(learnt, rates[0]),
            "transformer": Adam(self.net.transformer.parameters(), rates[1]),
        }

    def step(self, step: int, batch: Batch) -> Losses:
        """Update what is to be learnt in this step; return its loss."""
        if step >= self.vq_steps:
            return {"transformer": self._transformer_step(batch)}
        net = self.net
        with self.place.autocast():
            z = net.vqvae.encode(batch.x)
        z = z.float()
        if step == 0:
            self._take_places(batch, z.detach(), torch.ones(net.plan.n_codes, dtype=torch.bool))
        codes = net.codes(z)
        embedded = net.embedded(codes)
        with self.place.autocast():
            x_hat = net.vqvae.decode(z + (embedded - z).detach())
        loss = reconstruction_loss(batch.x, x_hat.float(), batch.w)
        loss = loss + COMMITMENT * commitment_loss(z, embedded, batch.w)
        self.update("vqvae", loss)
        self._move_codes(batch, z.detach())
        return {"codes": loss}

    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return images, rebuilt from their codes."""
        codes = self.net.codes(self.net.vqvae.encode(batch.x))
        return batch.x, self.net.vqvae.decode(self.net.embedded(codes))

    @torch.no_grad()
    def _move_codes(self, batch: Batch, z: Tensor) -> None:
        """Move each code to the running mean of the vectors that take it."""
        book, n_codes = self.net.book, self.net.plan.n_codes
        flat, w = self._vectors(batch, z)
        number, total = code_usage(flat, self.net.codes(self.gathered(z)).flatten(), w, n_codes)
        book.ema_cluster_size.lerp_(number, 1 - CODE_DECAY)
        book.ema_w.lerp_(total, 1 - CODE_DECAY)
        used = book.ema_cluster_size
        alive = used > DEAD * used.mean()
        book.embedding.weight[alive] = book.ema_w[alive] / used[alive, None]
        self._take_places(batch, z, ~alive)

    @torch.no_grad()
    def _take_places(self, batch: Batch, z: Tensor, which: Tensor) -> None:
        """Put codes onto encoded vectors of this batch; images of more weight give more."""
        book = self.net.book
        flat, w = self._vectors(batch, z)
        reached = w.cpu().double().cumsum(0)
        at = torch.rand(len(which), generator=batch.generator, dtype=torch.float64) * reached[-1]
        chosen = torch.searchsorted(reached, at, right=True).clamp(max=len(flat) - 1)
        vectors, which = flat[chosen.to(flat.device)], which.to(flat.device)
        usual = book.ema_cluster_size.mean().clamp(min=1e-3)
        book.embedding.weight[which] = vectors[which]
        book.ema_cluster_size[which] = usual
        book.ema_w[which] = vectors[which] * usual

    def _vectors(self, batch: Batch, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the encoded vectors (N, k) of the whole batch and their weights (N,)."""
        whole = self.gathered(z)
        flat = whole.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        return flat, self.gathered(batch.w).repeat_interleave(len(flat) // len(whole))

    def _transformer_step(self, batch: Batch) -> Tensor:
        with torch.no_grad(), self.place.autocast():
            codes = self.net.codes(self.net.vqvae.encode(batch.x))
        with self.place.autocast():
            log_p = self.net.log_probs(codes)
        loss = code_loss(log_p, codes, batch.w)
        self.update("transformer", loss)
        return loss


@estimator
class VQTransformer(NetworkLocaliser):
    """VQ-VAE and transformer that replace unlikely codes (Pinaya et al. 2022).

    A VQ-VAE spells an image with codes from a small book, a transformer knows which codes follow
    each other in healthy images, and unlikely codes are replaced by likely ones. The map is the
    difference between image and restoration, multiplied by how unlikely the codes are.

    Deviation: the paper multiplies by a smooth mask of the replaced codes, which is
    `emphasis="replaced"`; on dark discs planted into healthy slices that was the weaker choice (AUC
    0.93 instead of 0.96). One transformer reads the codes row by row, where the paper has an
    ensemble over several orders, with approximate attention. And codes give way to the likeliest
    ones unless `n_draws` is given.

    References
    ----------
    Pinaya et al. (2022), "Unsupervised brain imaging 3D anomaly detection and segmentation with
    transformers", Medical Image Analysis 79.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.vqvae_transformer import VQTransformer
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = VQTransformer(train_steps=2, transformer_steps=2, batch_size=4, random_state=0)
    >>> model.fit(images).likelihood_map(images[:3]).shape
    (3, 16, 16)
    """

    unlikely: float = parameter(
        Interval(Real, 0, 1, closed="both"),
        default=0.02,
        doc="Likelihood below which a code is replaced; 0.005 in the paper.",
    )
    n_draws: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Number of restorations, with codes drawn by their likelihood, that are averaged. None
        makes one restoration with the likeliest codes.""",
    )
    emphasis: Emphasis = parameter(
        StrOptions({"replaced", "likelihood", "none"}),
        default="likelihood",
        doc="""What the difference is multiplied by: minus the log-likelihood of the codes, the mask
        of the replaced codes, or nothing.""",
    )
    transformer_steps: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Training steps of the transformer, which come after the `train_steps` of the VQ-VAE.
        None takes it from the preset.""",
    )

    members_: CodeHealers = learnt()

    @property
    def stops_early(self) -> bool:
        """Whether a time limit may end training: no, the second network would never train."""
        return False

    def likelihood_map(self, X: ArrayLike) -> Maps:
        """Return minus the log-likelihood of the codes at each pixel, (n, height, width)."""
        return self._answered(CodeHealers.likelihoods, X)

    def _preset(self) -> VQPreset:
        return filled(VQ_PRESETS[self.preset], self)

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> VQNet:
        preset = self._preset()
        plan = VQPlan(
            n_channels=images.shape[1],
            widths=preset.widths,
            res_layers=preset.res_layers,
            n_codes=preset.n_codes,
            code_width=preset.code_width,
            model_width=preset.model_width,
            depth=preset.depth,
            n_heads=preset.n_heads,
            map_size=preset.coarsest(images),
        )
        rates = (preset.learning_rate, preset.transformer_rate)
        tempo = replace(preset.tempo, train_steps=preset.train_steps + preset.transformer_steps)
        run = VQRun(plan, preset.train_steps, rates, seed, self._place())
        settings = (plan, preset.tempo, rates)
        train(run, settings, tempo, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, nets: list[VQNet]) -> CodeHealers:
        healing = Healing(self.unlikely, self.n_draws, self.emphasis)
        return CodeHealers(frame=frame, style=self._map_style(), healing=healing, nets=nets)
