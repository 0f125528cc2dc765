"""Plans of convolutional networks, and what is left of them after training.

These are the LeNets of Deep SVDD and the strided nets of RSRAE and DAGPR. Nothing here needs torch
but asking a trained network, so a model of a table, which could have had such a network, does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from aberra.declare import AnyShape, Within
from aberra.nets.stacked import Double
from aberra.rng import load_torch
from aberra.twister import Single

Side = Annotated[int, Within(1, 1024)]  # in pixels
Small = Annotated[int, Within(0, 64)]
ImageShape = tuple[int, int, int]  # channels, height, width


@dataclass(frozen=True)
class ConvLayer:
    """One layer: up-sampling, (transposed) convolution, norm and leak, pooling; most optional."""

    n_in: int
    n_out: int
    size: tuple[Side, Side]  # height and width that leave the convolution
    kernel: Small = 5
    padding: Small = 2
    stride: Annotated[int, Within(1, 64)] = 1
    transposed: bool = False
    output_padding: tuple[Small, Small] = (0, 0)
    upsample_to: tuple[Side, Side] | None = None
    pool: bool = False
    linear: bool = False


@dataclass(frozen=True)
class ConvPlan:
    """A convolutional encoder (ends in `n_code` linear units) or decoder (starts from them)."""

    image: ImageShape
    layers: tuple[ConvLayer, ...]
    n_code: int
    inner: ImageShape  # the feature map next to the code
    decodes: bool = False
    dense: bool = True  # a linear map between code and feature map; otherwise a plain reshape


def lenet(image: ImageShape) -> tuple[ConvPlan, ConvPlan]:
    """Return Deep SVDD's encoder and decoder: two layers for 28 x 28 x 1, three otherwise."""
    if image == (1, 28, 28):
        return _lenet_mnist(image)
    c, h, w = image
    sizes = [(h >> k, w >> k) for k in range(4)]
    widths = (c, 32, 64, 128)
    encoder = tuple(ConvLayer(widths[k], widths[k + 1], sizes[k], pool=True) for k in range(3))
    n_code = 8 * sizes[3][0] * sizes[3][1]
    up = (8, 128, 64, 32, c)
    decoder = tuple(
        ConvLayer(
            up[k],
            up[k + 1],
            sizes[3 - k],
            transposed=True,
            upsample_to=sizes[3 - k] if k else None,
            linear=k == 3,
        )
        for k in range(4)
    )
    return (
        ConvPlan(image, encoder, n_code, (128, *sizes[3])),
        ConvPlan(image, decoder, n_code, (8, *sizes[3]), decodes=True, dense=False),
    )


def _lenet_mnist(image: ImageShape) -> tuple[ConvPlan, ConvPlan]:
    encoder = (ConvLayer(1, 8, (28, 28), pool=True), ConvLayer(8, 4, (14, 14), pool=True))
    decoder = (
        ConvLayer(2, 4, (8, 8), transposed=True, upsample_to=(8, 8)),
        ConvLayer(4, 8, (14, 14), padding=3, transposed=True, upsample_to=(16, 16)),
        ConvLayer(8, 1, (28, 28), transposed=True, upsample_to=(28, 28), linear=True),
    )
    return (
        ConvPlan(image, encoder, 32, (4, 7, 7)),
        ConvPlan(image, decoder, 32, (2, 4, 4), decodes=True, dense=False),
    )


def strided(image: ImageShape, n_code: int | None) -> tuple[ConvPlan, ConvPlan]:
    """Return the strided nets of RSRAE and DAGPR; without `n_code` the feature map is the code."""
    c, h, w = image
    kernels, widths = (5, 5, 3), (c, 32, 64, 128)
    sizes = [(h, w)]
    for _ in kernels:
        sizes.append((-(-sizes[-1][0] // 2), -(-sizes[-1][1] // 2)))
    encoder = tuple(
        ConvLayer(
            widths[k], widths[k + 1], sizes[k + 1], kernels[k], padding=kernels[k] // 2, stride=2
        )
        for k in range(3)
    )
    decoder = tuple(
        ConvLayer(
            widths[k + 1],
            widths[k],
            sizes[k],
            kernels[k],
            padding=kernels[k] // 2,
            stride=2,
            transposed=True,
            output_padding=((sizes[k][0] + 1) % 2, (sizes[k][1] + 1) % 2),
            linear=k == 0,
        )
        for k in (2, 1, 0)
    )
    inner = (128, *sizes[3])
    dense = n_code is not None
    code = n_code if n_code is not None else size_of(inner)
    return (
        ConvPlan(image, encoder, code, inner, dense=dense),
        ConvPlan(image, decoder, code, inner, decodes=True, dense=dense),
    )


@dataclass(frozen=True, eq=False)
class FrozenConv:
    """Trained convolutional members, in single precision."""

    plan: ConvPlan
    arrays: dict[str, Annotated[Single, AnyShape(dtype="float32")]]  # by name, members first

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return len(self.arrays["weight0"])

    def member(self, j: int) -> FrozenConv:
        """Return one member by itself."""
        return FrozenConv(self.plan, {name: own[j : j + 1] for name, own in self.arrays.items()})

    def turned(self, axes: Double) -> FrozenConv:
        """Return encoders whose codes are seen along other axes (m, code, axes)."""
        name = f"weight{len(self.plan.layers)}"  # the linear map to the code
        last = axes.swapaxes(1, 2) @ self.arrays[name].astype(np.float64)
        return FrozenConv(self.plan, {**self.arrays, name: last.astype(np.float32)})

    def __call__(self, x: Double) -> Double:
        """Map images shared by all members, (d, B), or each member's own codes, (m, d, B)."""
        load_torch("A network for images")
        from aberra.nets.conv import mapped

        return mapped(self.plan, self.arrays, x)


def size_of(shape: ImageShape) -> int:
    """Return how many numbers an image of this shape has."""
    return shape[0] * shape[1] * shape[2]
