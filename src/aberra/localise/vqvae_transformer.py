"""VQ-VAE and transformer (Pinaya et al. 2022): codes that do not belong give way to likely ones.

A VQ-VAE turns an image into a grid of codes. A transformer, which reads them row by row, learns how
likely each code is after those before it. Codes of a new image that are unlikely are replaced, and
the decoded image is the restoration. Networks are MONAI's; the sequence begins with a token of its
own, number `n_codes`.

Notation (shapes): z (B, k, h, w) encoded images; codes (B, L) with L = h * w, row by row; log_p
(B, L, n_codes); w (B,) sample weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam

from aberra.data.images import TrainingImages
from aberra.diffusion.losses import per_image
from aberra.localise.base import Error, Images, Maps, MapStyle, Restorers
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser
from aberra.localise.reconstruction import reconstruction_loss
from aberra.loop import Batch, Losses, Run, Tempo, train
from aberra.nets.building import seeded
from aberra.nets.place import Place, Precision
from aberra.rng import RandomState, draw_seeds, torch_generator
from aberra.scikit import Interval, StrOptions

Emphasis = Literal["likelihood", "replaced", "none"]
SCORING_SEED = 20220504  # the same draws for every image: a score depends on the image alone
COMMITMENT = 0.25
CODE_DECAY = 0.95
DEAD = 0.03  # a code used less than this share of the average takes a new place


@dataclass(frozen=True)
class VQPreset:
    """Network and training settings for one image size."""

    image_size: int
    widths: tuple[int, ...]
    res_layers: int
    n_codes: int
    code_width: int
    model_width: int
    depth: int
    n_heads: int
    tempo: Tempo  # of the VQ-VAE
    transformer_steps: int
    transformer_rate: float


PRESETS = {
    "small": VQPreset(64, (32, 64), 1, 32, 32, 96, 3, 4, Tempo(800, 16, 1e-3), 1000, 1e-3),
    "medium": VQPreset(
        128, (64, 128, 128), 2, 32, 64, 256, 8, 8, Tempo(20_000, 16, 3e-4), 40_000, 3e-4
    ),
    "paper": VQPreset(
        256, (256, 256, 256), 3, 32, 256, 256, 24, 8, Tempo(100_000, 16, 1e-4), 100_000, 5e-4
    ),
}


def commitment_loss(z: Tensor, embedded: Tensor, w: Tensor) -> Tensor:
    """Weighted squared distance of encoded images from their codes, which stay where they are."""
    return (w * per_image((z - embedded.detach()).square())).mean()


def code_loss(log_p: Tensor, codes: Tensor, w: Tensor) -> Tensor:
    """Weighted mean of minus the log-likelihood of the codes."""
    return (w * code_surprise(log_p, codes).mean(dim=1)).mean()


def code_surprise(log_p: Tensor, codes: Tensor) -> Tensor:
    """Minus the log-likelihood of each code, (B, L)."""
    return -log_p.gather(2, codes[:, :, None])[:, :, 0]


def code_usage(flat: Tensor, codes: Tensor, w: Tensor, n_codes: int) -> tuple[Tensor, Tensor]:
    """Weighted number (n_codes,) and sum (n_codes, k) of the vectors (N, k) that took each code."""
    taken = F.one_hot(codes, n_codes).to(flat.dtype) * w[:, None]
    return taken.sum(dim=0), taken.T @ flat


def healed(
    codes: Tensor,
    log_probs: Callable[[Tensor], Tensor],
    choose: Callable[[Tensor], Tensor],
    unlikely: float,
) -> Tensor:
    """Replace the codes whose likelihood is below `unlikely`, each after the healed ones before it.

    All places are looked at in parallel, again and again until nothing changes. After k rounds the
    first k codes are final, and the end is what one place after the other would give; but it comes
    after a few rounds instead of L.
    """
    bad = code_surprise(log_probs(codes), codes).neg().exp() < unlikely
    current = codes
    for _ in range(codes.shape[1]):
        following = torch.where(bad, choose(log_probs(current)), codes)
        if torch.equal(following, current):
            break
        current = following
    return current


@dataclass(frozen=True)
class VQPlan:
    """Everything that decides the shape of VQ-VAE and transformer."""

    n_channels: int
    widths: tuple[int, ...]  # channels after each halving
    res_layers: int
    n_codes: int
    code_width: int
    model_width: int
    depth: int
    n_heads: int
    map_size: tuple[int, int]  # height and width of the grid of codes


class VQNet(nn.Module):
    """A VQ-VAE, and the transformer that knows its codes."""

    def __init__(self, plan: VQPlan) -> None:
        super().__init__()
        from monai.networks.nets.transformer import DecoderOnlyTransformer
        from monai.networks.nets.vqvae import VQVAE

        self.plan = plan
        n_levels = len(plan.widths)
        self.vqvae = VQVAE(
            spatial_dims=2,
            in_channels=plan.n_channels,
            out_channels=plan.n_channels,
            channels=plan.widths,
            num_res_layers=plan.res_layers,
            num_res_channels=plan.widths,
            downsample_parameters=((2, 4, 1, 1),) * n_levels,
            upsample_parameters=((2, 4, 1, 1, 0),) * n_levels,
            num_embeddings=plan.n_codes,
            embedding_dim=plan.code_width,
        )
        self.transformer = DecoderOnlyTransformer(
            num_tokens=plan.n_codes + 1,
            max_seq_len=plan.map_size[0] * plan.map_size[1],
            attn_layers_dim=plan.model_width,
            attn_layers_depth=plan.depth,
            attn_layers_heads=plan.n_heads,
            use_flash_attention=True,
        )

    @property
    def book(self) -> Any:
        """MONAI's quantiser, which holds the code book; its own way of learning is not used."""
        return self.vqvae.quantizer.quantizer

    def codes(self, z: Tensor) -> Tensor:
        """Return the nearest codes of encoded images."""
        nearest: Tensor = self.book.quantize(z)[2]
        return nearest.flatten(1)

    def embedded(self, codes: Tensor) -> Tensor:
        """Return the vectors of codes, in the shape of z."""
        vectors: Tensor = self.book.embed(codes.reshape(-1, *self.plan.map_size))
        return vectors

    def log_probs(self, codes: Tensor) -> Tensor:
        """Return log_p of every code at every place, after the codes before it."""
        begin = torch.full_like(codes[:, :1], self.plan.n_codes)
        logits = self.transformer(torch.cat([begin, codes[:, :-1]], dim=1))
        return logits[:, :, :-1].float().log_softmax(dim=2)


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


@dataclass(frozen=True)
class Healing:
    """How codes are replaced, and where the map looks."""

    unlikely: float
    n_draws: int | None
    emphasis: Emphasis


@dataclass
class CodeHealers(Restorers):
    """Members that restore an image by replacing its unlikely codes."""

    frame: Frame
    style: MapStyle
    healing: Healing
    nets: list[VQNet] = field(repr=False)

    def restore(self, x: Tensor) -> Tensor:
        """Return what each member makes of the images, (m, n, c, h, w)."""
        return torch.stack([self._restored(net, x)[0] for net in self.nets])

    def grid_maps(self, x: Tensor) -> Tensor:
        """Return the differences, multiplied by how much each place is suspected."""
        found = [self._restored(net, x) for net in self.nets]
        return torch.stack([self.style(x, restored) * suspicion for restored, suspicion in found])

    def likelihoods(self, tile: Images) -> NDArray[Any]:
        """Return minus the log-likelihood of the codes at each pixel, (m, n, h, w)."""
        x = self.frame.inward(tile)
        maps = [self._at_pixels(net, self._surprise(net, x), x) for net in self.nets]
        return torch.stack([self.frame.outward(member)[:, 0] for member in maps]).numpy()

    @torch.inference_mode()
    def _surprise(self, net: VQNet, x: Tensor) -> Tensor:
        codes = self._codes(net, x)
        return code_surprise(net.log_probs(codes), codes)

    @torch.inference_mode()
    def _restored(self, net: VQNet, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean restoration over the draws, and the suspicion (n, 1, h, w)."""
        codes = self._codes(net, x)
        total, replaced = torch.zeros_like(x), torch.zeros(codes.shape)
        choices = self._choices(net)
        for choose in choices:
            clean = healed(codes, net.log_probs, choose, self.healing.unlikely)
            total += net.vqvae.decode(net.embedded(clean)).cpu() / len(choices)
            replaced += (clean != codes).cpu() / len(choices)
        if self.healing.emphasis == "none":
            return total, torch.ones_like(x[:, :1])
        if self.healing.emphasis == "likelihood":
            replaced = code_surprise(net.log_probs(codes), codes).cpu()
        return total, self._at_pixels(net, replaced, x)

    def _choices(self, net: VQNet) -> list[Callable[[Tensor], Tensor]]:
        """Return how to choose a code from log_p: the likeliest, or drawn, the same way always."""
        if self.healing.n_draws is None:
            return [lambda log_p: log_p.argmax(dim=2)]
        plan = net.plan
        shape = (plan.map_size[0] * plan.map_size[1], plan.n_codes)
        return [self._drawn(SCORING_SEED + k, shape) for k in range(self.healing.n_draws)]

    def _drawn(self, seed: int, shape: tuple[int, int]) -> Callable[[Tensor], Tensor]:
        gumbel = -torch.empty(shape).exponential_(generator=torch_generator(seed)).log()
        return lambda log_p: (log_p + gumbel.to(log_p.device)).argmax(dim=2)

    def _codes(self, net: VQNet, x: Tensor) -> Tensor:
        device = next(net.parameters()).device
        return net.codes(net.vqvae.encode(x.to(device, memory_format=torch.channels_last)))

    def _at_pixels(self, net: VQNet, values: Tensor, x: Tensor) -> Tensor:
        """Bring one value per code (n, L) to the pixels; interpolation smooths the edges."""
        maps = values.cpu().reshape(-1, 1, *net.plan.map_size)
        return F.interpolate(maps, size=x.shape[2:], mode="bilinear", align_corners=False)


class VQTransformer(NetworkLocaliser):
    """VQ-VAE and transformer that replace unlikely codes (Pinaya et al. 2022).

    The map is the difference between image and restoration, multiplied by how unlikely the codes
    are. Deviation: the paper multiplies by a smooth mask of the replaced codes, which is
    `emphasis="replaced"`; on dark discs planted into healthy slices that was the weaker choice (AUC
    0.93 instead of 0.96). One transformer reads the codes row by row, where the paper has an
    ensemble over several orders, with approximate attention. And codes give way to the likeliest
    ones unless `n_draws` is given.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Networks and training for 64, 128 or 256 pixels a side; "paper" has the published sizes.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    unlikely : float
        Likelihood below which a code is replaced; 0.005 in the paper.
    n_draws : int, optional
        Restorations with codes drawn by their likelihood that are averaged; by default one, with
        the likeliest codes.
    emphasis : {"likelihood", "replaced", "none"}
        What the difference is multiplied by: minus the log-likelihood of the codes, the mask of the
        replaced codes, or nothing.
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the difference is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        Of the VQ-VAE; the batches of the transformer are as large. From the preset by default.
    transformer_steps : int, optional
        Training steps of the transformer. From the preset by default.
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
    >>> from aberra.localise.vqvae_transformer import VQTransformer
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = VQTransformer(train_steps=2, transformer_steps=2, batch_size=4, random_state=0)
    >>> model.fit(images).likelihood_map(images[:3]).shape
    (3, 16, 16)
    """

    members_: CodeHealers

    _parameter_constraints: dict[str, list[Any]] = {
        **NetworkLocaliser._parameter_constraints,
        "unlikely": [Interval(Real, 0, 1, closed="both")],
        "n_draws": [Interval(Integral, 1, None, closed="left"), None],
        "emphasis": [StrOptions({"replaced", "likelihood", "none"})],
        "transformer_steps": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        unlikely: float = 0.02,
        n_draws: int | None = None,
        emphasis: Emphasis = "likelihood",
        error: Error = "squared",
        smooth: int = 1,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        transformer_steps: int | None = None,
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
        self.unlikely = unlikely
        self.n_draws = n_draws
        self.emphasis = emphasis
        self.error = error
        self.smooth = smooth
        self.train_steps = train_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.transformer_steps = transformer_steps
        self.holdout = holdout
        self.false_alarm_rate = false_alarm_rate
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.precision = precision
        self.random_state = random_state

    def likelihood_map(self, images: ArrayLike) -> Maps:
        """Return minus the log-likelihood of the codes at each pixel, (n, height, width)."""
        maps: Maps = self._in_tiles(images, "likelihoods")
        return maps

    def _size_and_multiple(self) -> tuple[int, int]:
        preset = PRESETS[self.preset]
        return preset.image_size, int(2 ** len(preset.widths))

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> VQNet:
        preset = PRESETS[self.preset]
        _, multiple = self._size_and_multiple()
        plan = VQPlan(
            n_channels=images.shape[1],
            widths=preset.widths,
            res_layers=preset.res_layers,
            n_codes=preset.n_codes,
            code_width=preset.code_width,
            model_width=preset.model_width,
            depth=preset.depth,
            n_heads=preset.n_heads,
            map_size=(images.shape[2] // multiple, images.shape[3] // multiple),
        )
        tempo = self._tempo(preset.tempo)
        whole = replace(
            tempo,
            train_steps=tempo.train_steps + (self.transformer_steps or preset.transformer_steps),
        )
        rates = (tempo.learning_rate, preset.transformer_rate)
        run = VQRun(plan, tempo.train_steps, rates, seed, self._place())
        train(run, (plan, tempo, rates), whole, images, weights, seed, self._keeping())
        return run.net.eval()

    def _members(self, frame: Frame, trained: list[VQNet]) -> CodeHealers:
        healing = Healing(self.unlikely, self.n_draws, self.emphasis)
        return CodeHealers(frame, MapStyle(self.error, self.smooth), healing, trained)
