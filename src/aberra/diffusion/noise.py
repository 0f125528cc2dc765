"""Kinds of noise for the forward process: white, and two with coarse structure.

All have one signature, draw from a CPU generator alone (so every device sees the same noise), and
give every pixel mean zero and variance one; every image and channel is a field of its own.

Notation (shapes): a batch (B, c, h, w) is N = B c fields; octave k = 0 is the coarsest.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor

N_OCTAVES = 6
PERSISTENCE = 0.8  # amplitude of an octave relative to the next coarser one
CUBIC = -0.75  # free parameter of the bicubic kernel, as in torch's own upsampling


class Noise(Protocol):
    """A function that draws a batch of noise images."""

    def __call__(
        self,
        shape: tuple[int, int, int, int],
        generator: torch.Generator,
        device: torch.device | str = "cpu",
    ) -> Tensor: ...


def _amplitudes() -> list[float]:
    """Return the octaves' standard deviations, scaled so that their squares sum to one."""
    raw = [PERSISTENCE**k for k in range(N_OCTAVES)]
    return [a / math.hypot(*raw) for a in raw]


def gaussian(
    shape: tuple[int, int, int, int],
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return white noise.

    Parameters
    ----------
    shape
        (B, c, h, w).
    generator
        CPU generator, the only source of randomness.
    device
        Where to compute; the result lives there.
    """
    return torch.randn(shape, generator=generator).to(device)


def pyramid(
    shape: tuple[int, int, int, int],
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return six octaves of Gaussian noise: white noise on grids of 32, 16, ... 1 pixels, bicubic.

    Each grid lies at a random place under the image, drawn per field, so that no pixel is special:
    the noise is stationary. And the weights of each pixel are scaled to unit norm, so that every
    pixel is exactly standard normal (plain bicubic weights lose 60 % of the variance between the
    nodes of a grid, and none on them).

    Parameters
    ----------
    shape
        (B, c, h, w).
    generator
        CPU generator, the only source of randomness.
    device
        Where to compute; the result lives there.
    """
    *batch, h, w = shape
    n = math.prod(batch)
    *coarse, finest = _amplitudes()
    total = torch.randn((n, h, w), generator=generator).to(device).mul_(finest)
    for k, amplitude in enumerate(coarse):
        cell = 2 ** (N_OCTAVES - 1 - k)
        rows, columns = (
            _bicubic_weights(size, cell, torch.rand(n, generator=generator).to(device))
            for size in (h, w)
        )
        nodes = torch.randn((n, rows.shape[2], columns.shape[2]), generator=generator).to(device)
        total.baddbmm_(rows @ nodes, columns.mT, alpha=amplitude)
    return total.view(shape)


def _bicubic_weights(size: int, cell: int, shift: Tensor) -> Tensor:
    """Return unit-norm weights (N, size, nodes) of pixels `cell` to a node, moved by `shift` < 1."""
    n_nodes = math.ceil((size - 1) / cell) + 4  # one before the first pixel, two after the last
    pixel = torch.arange(size, device=shift.device) / cell + shift[:, None] + 1
    d = (pixel[:, :, None] - torch.arange(n_nodes, device=shift.device)).abs_()
    near = ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1
    far = CUBIC * (((d - 5) * d + 8) * d - 4)
    weights = torch.where(d < 1, near, torch.where(d < 2, far, 0))
    return weights / weights.norm(dim=2, keepdim=True)


NOISES: dict[str, Noise] = {"gaussian": gaussian, "pyramid": pyramid}
