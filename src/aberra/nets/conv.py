"""Convolutional members: the LeNets of Deep SVDD and the strided nets of RSRAE and DAGPR.

Images travel as (m, c * h * w, B) and members are looped inside, because a loop of convolutions
measured faster on the CPU than grouped convolution or vmap (benchmarks/stacking). No layer has a
bias, batch norm has no affine part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn import functional as F

from aberra.declare import AnyShape
from aberra.nets.stacked import BN_EPS, BN_MOMENTUM, LEAK, uniform_fan_in

ImageShape = tuple[int, int, int]  # channels, height, width


@dataclass(frozen=True)
class ConvLayer:
    """One layer: up-sampling, (transposed) convolution, norm and leak, pooling; most optional."""

    n_in: int
    n_out: int
    size: tuple[int, int]  # height and width that leave the convolution
    kernel: int = 5
    padding: int = 2
    stride: int = 1
    transposed: bool = False
    output_padding: tuple[int, int] = (0, 0)
    upsample_to: tuple[int, int] | None = None
    pool: bool = False
    linear: bool = False

    def draw(self, generator: torch.Generator) -> Tensor:
        """Draw the kernel: Xavier uniform with the leaky gain, as the official networks do."""
        first, second = (self.n_in, self.n_out) if self.transposed else (self.n_out, self.n_in)
        area = self.kernel**2
        bound = (6 / ((self.n_in + self.n_out) * area) * 2 / (1 + LEAK**2)) ** 0.5
        weight = torch.rand(first, second, self.kernel, self.kernel, generator=generator)
        return (2 * weight - 1) * bound

    def convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        """Apply the linear part to (B, n_in, h, w)."""
        if self.upsample_to is not None:
            x = F.interpolate(x, size=self.upsample_to)
        if self.transposed:
            return F.conv_transpose2d(
                x, weight, None, self.stride, self.padding, self.output_padding
            )
        return F.conv2d(x, weight, None, self.stride, self.padding)


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
    code = n_code if n_code is not None else _size(inner)
    return (
        ConvPlan(image, encoder, code, inner, dense=dense),
        ConvPlan(image, decoder, code, inner, decodes=True, dense=dense),
    )


class ConvStack:
    """m convolutional members of one plan."""

    def __init__(self, plan: ConvPlan, generators: Sequence[torch.Generator]) -> None:
        self.plan = plan
        self.n_members = len(generators)
        self.members = [
            [layer.draw(g).requires_grad_() for layer in plan.layers] for g in generators
        ]
        shape = (plan.n_code, _size(plan.inner))
        if plan.dense:
            for member, g in zip(self.members, generators, strict=True):
                member.append(uniform_fan_in(*_oriented(shape, plan), g).requires_grad_())
        self.means = [[torch.zeros(la.n_out) for la in plan.layers] for _ in generators]
        self.variances = [[torch.ones(la.n_out) for la in plan.layers] for _ in generators]

    def __call__(self, x: Tensor) -> Tensor:
        """Map (m, inputs, B) to (m, outputs, B) with batch statistics."""
        return torch.stack([self._member(j, x[j], train=True) for j in range(self.n_members)])

    def parameters(self) -> list[Tensor]:
        """Return every kernel of every member."""
        return [weight for member in self.members for weight in member]

    def freeze(self) -> FrozenConv:
        """Return the trained members with their running statistics."""
        arrays = {}
        for k in range(len(self.members[0])):
            arrays[f"weight{k}"] = torch.stack([member[k].detach() for member in self.members])
        for k in range(len(self.plan.layers)):
            arrays[f"mean{k}"] = torch.stack([means[k] for means in self.means])
            arrays[f"variance{k}"] = torch.stack([var[k] for var in self.variances])
        return FrozenConv(self.plan, arrays)

    def _member(self, j: int, x: Tensor, train: bool) -> Tensor:
        def normalise(k: int, h: Tensor) -> Tensor:
            return F.batch_norm(
                h, self.means[j][k], self.variances[j][k], None, None, train, BN_MOMENTUM, BN_EPS
            )

        return _apply(self.plan, x, self.members[j], normalise)


@dataclass(frozen=True, eq=False)
class FrozenConv:
    """A trained `ConvStack`, in single precision."""

    plan: ConvPlan
    arrays: dict[str, Annotated[Tensor, AnyShape(dtype="float32")]]  # by name, members first

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return len(self.arrays["weight0"])

    def __call__(self, x: Tensor) -> Tensor:
        """Map images shared by all members, (d, B), or each member's own codes, (m, d, B)."""
        x = x.float()
        own = x if x.ndim == 3 else x.expand(self.n_members, *x.shape)
        return torch.stack([self._member(j, own[j]) for j in range(self.n_members)]).double()

    def _member(self, j: int, x: Tensor) -> Tensor:
        n_weights = len(self.plan.layers) + self.plan.dense
        weights = [self.arrays[f"weight{k}"][j] for k in range(n_weights)]

        def normalise(k: int, h: Tensor) -> Tensor:
            mean, variance = self.arrays[f"mean{k}"][j], self.arrays[f"variance{k}"][j]
            return F.batch_norm(h, mean, variance, None, None, False, BN_MOMENTUM, BN_EPS)

        return _apply(self.plan, x, weights, normalise)


def _apply(
    plan: ConvPlan, x: Tensor, weights: Sequence[Tensor], normalise: Callable[[int, Tensor], Tensor]
) -> Tensor:
    """Run one member on (inputs, B)."""
    h = x.T
    if plan.decodes:
        if plan.dense:
            h = h @ weights[-1].T
        h = F.leaky_relu(h.reshape(-1, *plan.inner), LEAK)
    else:
        h = h.reshape(-1, *plan.image)
    for k, layer in enumerate(plan.layers):
        h = layer.convolve(h, weights[k])
        if not layer.linear:
            h = F.leaky_relu(normalise(k, h), LEAK)
        if layer.pool:
            h = F.max_pool2d(h, 2)
    h = h.flatten(1)
    if not plan.decodes and plan.dense:
        h = h @ weights[-1].T
    return h.T


def _oriented(shape: tuple[int, int], plan: ConvPlan) -> tuple[int, int]:
    return (shape[1], shape[0]) if plan.decodes else shape


def _size(shape: ImageShape) -> int:
    return shape[0] * shape[1] * shape[2]
