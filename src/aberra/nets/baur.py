"""The autoencoders of Baur et al. 2021: strided convolutions down to a small map, mirrored back.

Deviation: group norm for batch norm, so that no image sees its neighbours, and no dropout.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

KERAS_LEAK = 0.3  # Keras' default, which the original uses
GROUPS = 8


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
        layers += [nn.LeakyReLU(KERAS_LEAK)]
    return nn.Sequential(*layers, narrowed(plan.down[-1], plan.code))


def decoder(plan: SpatialPlan | DensePlan) -> nn.Sequential:
    """Return the layers from the map of `plan.code` channels to an image."""
    deepest = plan.down[-1]
    layers = [narrowed(plan.code, deepest), nn.GroupNorm(GROUPS, deepest), nn.ReLU()]
    for n_in, n_out in zip((deepest, *plan.up), plan.up, strict=False):
        layers += [nn.ConvTranspose2d(n_in, n_out, 5, 2, 2, 1), nn.GroupNorm(GROUPS, n_out)]
        layers += [nn.LeakyReLU(KERAS_LEAK)]
    return nn.Sequential(*layers, nn.Conv2d(plan.up[-1], plan.n_channels, 1))


class SpatialNet(nn.Module):
    """An autoencoder whose code is a small map."""

    plan: SpatialPlan

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

    plan: DensePlan

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
