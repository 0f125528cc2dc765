"""The networks of f-AnoGAN: a critic and an encoder that go down, a generator that goes up.

They are the residual networks of the original (Schlegl et al. 2019). Deviation: layer norm in all
of them (the original has batch norm in generator and encoder), so that no image sees its
neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from torch import Tensor, nn
from torch.nn import functional as F

from aberra.declare import Within


@dataclass(frozen=True)
class AnoGANPlan:
    """Everything that decides the shape of the networks.

    Critic and encoder see `patch` pixels a side as channels; the generator repeats its last map so
    often before the last layer.
    """

    n_channels: int
    widths: tuple[int, ...]  # channels from fine to coarse, halving the sides in between
    patch: Annotated[int, Within(1, 64)]
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

    plan: AnoGANPlan

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

    plan: AnoGANPlan

    def __init__(self, plan: AnoGANPlan) -> None:
        super().__init__()
        self.plan = plan
        self.encoder = Descent(plan, plan.n_latent)
        self.generator = Generator(plan)

    def forward(self, x: Tensor) -> Tensor:
        """Return the healthy image that the encoder takes x for."""
        image: Tensor = self.generator(self.encoder(x))
        return image
