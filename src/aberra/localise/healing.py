"""How a trained VQ-VAE and transformer restore an image: unlikely codes give way to likely ones.

Notation (shapes): codes (B, L), row by row; log_p (B, L, n_codes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from aberra.declare import Within
from aberra.localise.restorers import Images, Restorers
from aberra.nets.vq import VQNet
from aberra.rng import torch_generator

Emphasis = Literal["likelihood", "replaced", "none"]
CODE_SEED = 20220504  # the same draws for every image: a score depends on the image alone


def code_surprise(log_p: Tensor, codes: Tensor) -> Tensor:
    """Minus the log-likelihood of each code, (B, L)."""
    return -log_p.gather(2, codes[:, :, None])[:, :, 0]


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
class Healing:
    """How codes are replaced, and where the map looks."""

    unlikely: float
    n_draws: Annotated[int, Within(1, 1000)] | None
    emphasis: Emphasis


@dataclass
class CodeHealers(Restorers):
    """Members that restore an image by replacing its unlikely codes."""

    healing: Healing
    nets: list[VQNet] = field(repr=False)

    @property
    def n_calls(self) -> int:
        """How often a network is asked about a tile of images."""
        return self.healing.n_draws or 1

    def restore(self, x: Tensor) -> Tensor:
        """Return what each member makes of the images, (m, n, c, h, w)."""
        return torch.stack([self._healed(net, x)[0] for net in self.nets])

    def grid_maps(self, x: Tensor) -> Tensor:
        """Return the differences, multiplied by how much each place is suspected."""
        found = [self._healed(net, x) for net in self.nets]
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
    def _healed(self, net: VQNet, x: Tensor) -> tuple[Tensor, Tensor]:
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
        return [self._drawn(CODE_SEED + k, shape) for k in range(self.healing.n_draws)]

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
