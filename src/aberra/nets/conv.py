"""Convolutional members, in torch: trained together, and asked once they are trained.

Images travel as (m, c * h * w, B) and members are looped inside, because a loop of convolutions
measured faster on the CPU than grouped convolution or vmap (benchmarks/stacking). No layer has a
bias, batch norm has no affine part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from aberra.nets.conv_plan import ConvLayer, ConvPlan, FrozenConv, size_of
from aberra.nets.stacked import BN_EPS, BN_MOMENTUM, LEAK, Double, uniform_fan_in
from aberra.twister import Single, Twister


def drawn(layer: ConvLayer, generator: Twister) -> Tensor:
    """Draw a kernel: Xavier uniform with the leaky gain, as the official networks do."""
    n_in, n_out, kernel = layer.n_in, layer.n_out, layer.kernel
    first, second = (n_in, n_out) if layer.transposed else (n_out, n_in)
    bound = (6 / ((n_in + n_out) * kernel**2) * 2 / (1 + LEAK**2)) ** 0.5
    return (2 * torch.from_numpy(generator.uniform(first, second, kernel, kernel)) - 1) * bound


def convolved(layer: ConvLayer, x: Tensor, weight: Tensor) -> Tensor:
    """Apply the linear part of a layer to (B, n_in, h, w)."""
    if layer.upsample_to is not None:
        x = F.interpolate(x, size=layer.upsample_to)
    if layer.transposed:
        return F.conv_transpose2d(
            x, weight, None, layer.stride, layer.padding, layer.output_padding
        )
    return F.conv2d(x, weight, None, layer.stride, layer.padding)


class ConvStack:
    """m convolutional members of one plan."""

    def __init__(self, plan: ConvPlan, generators: Sequence[Twister]) -> None:
        self.plan = plan
        self.n_members = len(generators)
        self.members = [
            [drawn(layer, g).requires_grad_() for layer in plan.layers] for g in generators
        ]
        shape = (plan.n_code, size_of(plan.inner))
        if plan.dense:
            for member, g in zip(self.members, generators, strict=True):
                dense = torch.from_numpy(uniform_fan_in(*_oriented(shape, plan), g))
                member.append(dense.requires_grad_())
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
            arrays[f"weight{k}"] = _stacked([member[k].detach() for member in self.members])
        for k in range(len(self.plan.layers)):
            arrays[f"mean{k}"] = _stacked([means[k] for means in self.means])
            arrays[f"variance{k}"] = _stacked([var[k] for var in self.variances])
        return FrozenConv(self.plan, arrays)

    def _member(self, j: int, x: Tensor, train: bool) -> Tensor:
        def normalise(k: int, h: Tensor) -> Tensor:
            return F.batch_norm(
                h, self.means[j][k], self.variances[j][k], None, None, train, BN_MOMENTUM, BN_EPS
            )

        return _apply(self.plan, x, self.members[j], normalise)


def mapped(plan: ConvPlan, arrays: Mapping[str, Single], x: Double) -> Double:
    """Map images that trained members share, (d, B), or each member's own codes, (m, d, B)."""
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    n_members, n_weights = len(tensors["weight0"]), len(plan.layers) + plan.dense
    single = torch.from_numpy(x).float()
    own = single if single.ndim == 3 else single.expand(n_members, *single.shape)

    def member(j: int) -> Tensor:
        def normalise(k: int, h: Tensor) -> Tensor:
            mean, variance = tensors[f"mean{k}"][j], tensors[f"variance{k}"][j]
            return F.batch_norm(h, mean, variance, None, None, False, BN_MOMENTUM, BN_EPS)

        weights = [tensors[f"weight{k}"][j] for k in range(n_weights)]
        return _apply(plan, own[j], weights, normalise)

    return torch.stack([member(j) for j in range(n_members)]).double().numpy()


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
        h = convolved(layer, h, weights[k])
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


def _stacked(parts: Sequence[Tensor]) -> Single:
    return torch.stack(tuple(parts)).numpy()
