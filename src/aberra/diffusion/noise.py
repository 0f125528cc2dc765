"""Kinds of noise for the forward process: white, and two with coarse structure.

Notation (shapes): a batch (B, c, h, w) is N = B c fields. Octave 0 is the coarsest; a cell is the
length in pixels over which an octave varies.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from aberra.diffusion.simplex import SIMPLEX_STD, simplex_sum

N_OCTAVES = 6
PERSISTENCE = 0.8  # amplitude of an octave relative to the next coarser one
CUBIC = -0.75  # free parameter of the bicubic kernel, as in torch's own upsampling


class Noise(Protocol):
    """A function that draws a batch of noise images.

    Every pixel has mean zero and variance one, and every image and channel is a field of its own.
    All randomness comes from the generator, so that every device sees the same noise.
    """

    def __call__(
        self,
        shape: tuple[int, int, int, int],
        generator: torch.Generator,
        device: torch.device | str = "cpu",
    ) -> Tensor:
        """Return noise of `shape` in float32.

        Parameters
        ----------
        shape
            (B, c, h, w).
        generator
            CPU generator.
        device
            Where to compute; the result lives there.
        """


def gaussian(
    shape: tuple[int, int, int, int],
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return white noise; parameters as in `Noise`."""
    return torch.randn(shape, generator=generator).to(device)


def _amplitudes() -> list[float]:
    """Return the octaves' standard deviations, scaled so that their squares sum to one."""
    raw = [PERSISTENCE**k for k in range(N_OCTAVES)]
    return [a / math.hypot(*raw) for a in raw]


def pyramid(
    shape: tuple[int, int, int, int],
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return white noise on six grids of 32, 16, ... 1 pixels, interpolated and summed.

    The interpolation is bicubic, but the weights of each pixel are scaled to unit norm: every
    pixel is then exactly standard normal, while plain bicubic weights lose 48 % of the variance
    in the middle between nodes. Each grid lies at a random place under the image, drawn per
    field, so that no pixel is special: the noise is stationary. Parameters as in `Noise`.
    """
    *batch, h, w = shape
    n = math.prod(batch)
    *coarse, finest = _amplitudes()
    total = finest * torch.randn((n, h, w), generator=generator).to(device)
    for k, amplitude in enumerate(coarse):
        nodes, columns = _coarse((n, h, w), 2 ** (N_OCTAVES - 1 - k), generator, device)
        total.baddbmm_(nodes, columns, alpha=amplitude)
    return total.view(shape)


def clouds(
    shape: tuple[int, int, int, int],
    generator: torch.Generator,
    device: torch.device | str = "cpu",
    cell: int = 32,
) -> Tensor:
    """Return one octave of `pyramid`: smooth fields that vary over `cell` pixels, as in `Noise`."""
    *batch, h, w = shape
    nodes, columns = _coarse((math.prod(batch), h, w), cell, generator, device)
    return (nodes @ columns).view(shape)


def _coarse(
    shape: tuple[int, int, int],
    cell: int,
    generator: torch.Generator,
    device: torch.device | str,
) -> tuple[Tensor, Tensor]:
    """Return two factors of N smooth fields (N, h, w): rows of nodes, and columns between them."""
    n, h, w = shape
    rows, columns = (
        _bicubic_weights(size, cell, torch.randint(cell, (n,), generator=generator)).to(device)
        for size in (h, w)
    )
    nodes = torch.randn((n, rows.shape[1], columns.shape[1]), generator=generator).to(device)
    return rows.mT @ nodes, columns


def _bicubic_weights(size: int, cell: int, shift: Tensor) -> Tensor:
    """Return unit-norm weights (N, nodes, size) of pixels that start `shift` (N,) into a cell."""
    last = size + cell - 2  # the last pixel at the greatest shift
    pixel = torch.arange(last + 1) / cell + 1  # one node lies before the first pixel
    d = (pixel[:, None] - torch.arange(math.ceil(last / cell) + 3)).abs()
    near = ((CUBIC + 2) * d - (CUBIC + 3)) * d * d + 1
    far = CUBIC * (((d - 5) * d + 8) * d - 4)
    weights = torch.where(d < 1, near, torch.where(d < 2, far, 0))
    return F.normalize(weights, dim=1).unfold(0, size, 1)[shift]


CELL = 64  # pixels to a unit of the simplex lattice, in the coarsest octave


def simplex(
    shape: tuple[int, int, int, int],
    generator: torch.Generator,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return six octaves of OpenSimplex noise, each a slice of 3-D noise (AnoDDPM's setting).

    Each field has its own permutation table. The fields of one call share the random place and
    depth at which the lattice is cut: they are independent given the place, and uncorrelated (but
    not their squares: the correlation at a pixel is 0.006). Parameters as in `Noise`.

    Deviation: AnoDDPM does not scale to unit variance, repeats one field over the batch, starts
    every slice at x = y = 0 and takes the step t as its depth. The place is random here because
    the noise is zero at every vertex, so that pixels at fixed places would differ in variance.

    Deviation: OpenSimplex itself omits one of the vertices in reach at 4 % of all points, by its
    choice of cases, and so has small jumps (about 1e-4 at most); here all vertices in reach count.
    """
    *batch, h, w = shape
    permutations = torch.rand((math.prod(batch), 256), generator=generator).argsort(dim=1)
    # From 2 sqrt(2) cells off the origin no pixel sees a vertex, and so its gradient, in two
    # octaves; and the lattice repeats after six units in each direction.
    origin = 4 * CELL + 6 * CELL * torch.rand(3, generator=generator, dtype=torch.float64)
    octaves = {CELL >> k: a / SIMPLEX_STD for k, a in enumerate(_amplitudes())}
    if torch.device(device).type == "cpu":
        from aberra.diffusion.simplex_cpu import simplex_fields  # compiles, once

        fields = torch.from_numpy(
            simplex_fields(permutations.numpy(), origin.numpy(), octaves, (h, w))
        )
    else:
        on_device = permutations.to(device)
        fields = simplex_sum(on_device, origin.numpy(), octaves, (h, w), torch.float32)
    return fields.view(shape)


NOISES: dict[str, Noise] = {"gaussian": gaussian, "pyramid": pyramid, "simplex": simplex}
