"""The network that tells a noised image from a denoised one: MONAI's patch discriminator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from aberra.extras import need
from aberra.nets.building import seeded

Norm = Literal["spectral", "instance"]


@dataclass(frozen=True)
class DiscriminatorPlan:
    """Everything that decides the shape of a discriminator."""

    n_channels: int
    width: int
    n_layers: int
    norm: Norm = "spectral"
    sees_time: bool = False


class Discriminator(nn.Module):
    """Judges patches of an image; a logit above zero means real.

    As the paper's D(.) it sees the image alone. With `sees_time` it gets the noise level as one
    more channel, which the noise in the image gives away in any case.
    """

    plan: DiscriminatorPlan

    def __init__(self, plan: DiscriminatorPlan) -> None:
        super().__init__()
        need("monai", "images", "This network")
        from monai.networks.nets.patchgan_discriminator import PatchDiscriminator

        self.plan = plan
        spectral = plan.norm == "spectral"
        self.body = PatchDiscriminator(
            spatial_dims=2,
            channels=plan.width,
            in_channels=plan.n_channels + plan.sees_time,
            num_layers_d=plan.n_layers,
            norm="" if spectral else "INSTANCE",  # batch norm would let images see each other
            bias=spectral,
        )
        if spectral:
            for module in list(self.body.modules()):
                if isinstance(module, nn.Conv2d):
                    spectral_norm(module)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """Return a map of logits (B, 1, h', w'); `time` is the step of x as a share of T."""
        if self.plan.sees_time:
            level = time.to(x.dtype).view(-1, 1, 1, 1).expand(-1, 1, *x.shape[2:])
            x = torch.cat([x, level], dim=1)
        logits: Tensor = self.body(x)[-1]
        return logits


def discriminator(plan: DiscriminatorPlan, seed: int) -> Discriminator:
    """Return a freshly initialised discriminator."""
    return seeded(lambda: Discriminator(plan), seed)
