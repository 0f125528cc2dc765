"""Perceptrons whose m members train as one tensor program.

Notation (shapes): m members, B rows a batch, d features. Activations are (m, features, B), so that
one batched product serves all members and batch normalisation is one call over m * features
channels. A whole perceptron is a single autograd node with its gradient written out: on two cores
this takes a third off a training step against autograd through every layer (benchmarks/stacking).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

BN_EPS = 1e-4
BN_MOMENTUM = 0.1
LEAK = 0.01

_bn_backward = torch.ops.aten.native_batch_norm_backward.default
_leaky_backward = torch.ops.aten.leaky_relu_backward.default


class Stack(Protocol):
    """m members of one network. Data flows as (m, features, B)."""

    n_members: int

    def __call__(self, x: Tensor) -> Tensor:
        """Map a batch of each member's own rows, in training mode."""

    def parameters(self) -> list[Tensor]:
        """Return the tensors an optimiser moves; each has a `.grad` after backward."""

    def freeze(self) -> Frozen:
        """Return what is needed to score: no batch statistics, no gradients."""


class Frozen(Protocol):
    """A trained stack, ready to map rows that all members share."""

    def __call__(self, x: Tensor) -> Tensor:
        """Map (features, B), or (m, features, B), to (m, outputs, B)."""

    def arrays(self) -> dict[str, Tensor]:
        """Return everything learnt, by name."""


def uniform_fan_in(n_out: int, n_in: int, generator: torch.Generator) -> Tensor:
    """Draw one layer as `torch.nn.Linear` does: uniform within 1 / sqrt(n_in)."""
    return (2 * torch.rand(n_out, n_in, generator=generator) - 1) / n_in**0.5


class MLPStack:
    """m bias-free perceptrons: Linear, batch norm (no affine part), leaky ReLU per hidden layer.

    Parameters
    ----------
    widths : sequence of int
        Input width, hidden widths, output width.
    generators : sequence of torch.Generator
        One per member; draws that member's initial weights, layer by layer.
    linear_output : bool
        Leave the last layer linear (codes, reconstructions); otherwise it is a hidden layer too.
    """

    def __init__(
        self,
        widths: Sequence[int],
        generators: Sequence[torch.Generator],
        linear_output: bool = True,
    ) -> None:
        self.widths = tuple(widths)
        self.n_members = len(generators)
        pairs = list(zip(self.widths[1:], self.widths[:-1], strict=True))
        self.normalised = [not (linear_output and k == len(pairs) - 1) for k in range(len(pairs))]
        drawn = [[uniform_fan_in(o, i, g) for o, i in pairs] for g in generators]
        layers = [torch.stack(layer) for layer in zip(*drawn, strict=True)]  # (m, out, in) each
        self.flat = torch.cat([layer.reshape(-1) for layer in layers]).requires_grad_()
        self.flat.grad = torch.zeros_like(self.flat)
        shapes = [layer.shape for layer in layers]
        self.layers = _views(self.flat.detach(), shapes)
        self.grads = _views(self.flat.grad, shapes)
        self.running_mean = [torch.zeros(self.n_members * o) for o, _ in pairs]
        self.running_var = [torch.ones(self.n_members * o) for o, _ in pairs]

    def __call__(self, x: Tensor) -> Tensor:
        """Map (m, widths[0], B) to (m, widths[-1], B) and update the running statistics."""
        return _StackNode.apply(x, self.flat, self)

    def parameters(self) -> list[Tensor]:
        """Return the one vector that holds every weight of every member."""
        return [self.flat]

    def freeze(self) -> FrozenMLP:
        """Fold the running statistics into the weights."""
        weights, biases = [], []
        for k, layer in enumerate(self.layers):
            weight = layer.double()
            bias = torch.zeros(layer.shape[:2], dtype=torch.float64)
            if self.normalised[k]:
                scale = (self.running_var[k].double() + BN_EPS).rsqrt().view(layer.shape[:2])
                bias = -self.running_mean[k].double().view(layer.shape[:2]) * scale
                weight = weight * scale[:, :, None]
            weights.append(weight)
            biases.append(bias)
        return FrozenMLP(weights, biases, linear_output=not self.normalised[-1])

    def _forward(self, x: Tensor) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        kept: list[tuple[Tensor, ...]] = []
        for k, layer in enumerate(self.layers):
            product = torch.bmm(layer, x)
            if not self.normalised[k]:
                kept.append((x,))
                x = product
                continue
            channels = product.view(1, -1, product.shape[-1])
            normal, mean, inv_std = torch.native_batch_norm(
                channels,
                None,
                None,
                self.running_mean[k],
                self.running_var[k],
                True,
                BN_MOMENTUM,
                BN_EPS,
            )
            kept.append((x, channels, mean, inv_std, normal))
            x = F.leaky_relu(normal, LEAK).view(product.shape)
        return x, kept

    def _backward(
        self, grad: Tensor, kept: list[tuple[Tensor, ...]], wants_input: bool
    ) -> Tensor | None:
        grad = grad.contiguous()
        for k in range(len(self.layers) - 1, -1, -1):
            if self.normalised[k]:
                _, channels, mean, inv_std, normal = kept[k]
                grad = _leaky_backward(grad.view(channels.shape), normal, LEAK, False)
                grad = _bn_backward(
                    grad,
                    channels,
                    None,
                    None,
                    None,
                    mean,
                    inv_std,
                    True,
                    BN_EPS,
                    [True, False, False],
                )[0].view(self.n_members, -1, channels.shape[-1])
            torch.bmm(grad, kept[k][0].transpose(1, 2), out=self.grads[k])
            if k or wants_input:
                grad = torch.bmm(self.layers[k].transpose(1, 2), grad)
        return grad if wants_input else None


class _StackNode(torch.autograd.Function):
    """The whole perceptron as one node: fewer, larger calls than a node per operation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, flat: Tensor, stack: MLPStack) -> Tensor:
        out, ctx.kept = stack._forward(x)
        ctx.stack = stack
        ctx.wants_input = x.requires_grad
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        # The weights' gradient is written straight into `flat.grad`, which each step overwrites.
        return ctx.stack._backward(grads[0], ctx.kept, ctx.wants_input), None, None


class FrozenMLP:
    """A trained `MLPStack` in double precision, batch norm folded into weight and bias.

    Double precision makes a row's score the same to the last digit that matters whatever rows it
    is scored with; single precision differs at the seventh.
    """

    def __init__(self, weights: list[Tensor], biases: list[Tensor], linear_output: bool) -> None:
        self.weights = weights
        self.biases = biases
        self.linear_output = linear_output

    def __call__(self, x: Tensor) -> Tensor:
        """Map rows shared by all members, (d, B), or each member's own, (m, d, B)."""
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if x.ndim == 2:  # every member sees the same rows: one product instead of m
                x = (weight.flatten(0, 1) @ x).view(*weight.shape[:2], -1)
            else:
                x = torch.bmm(weight, x)
            if k < len(self.weights) - 1 or not self.linear_output:
                x = F.leaky_relu_(x.add_(bias[:, :, None]), LEAK)
        return x

    def arrays(self) -> dict[str, Tensor]:
        """Return weights and biases, `weight0`, `bias0`, ... (m first)."""
        named = {f"weight{k}": weight for k, weight in enumerate(self.weights)}
        return named | {f"bias{k}": bias for k, bias in enumerate(self.biases)}


class Adam:
    """Adam on the few flat vectors of a stack: seven fused calls a step.

    The same update as `torch.optim.Adam` (weight decay added to the gradient), without the
    per-tensor bookkeeping that costs as much as the arithmetic on networks this small.
    """

    def __init__(
        self, parameters: Sequence[Tensor], learning_rate: float, weight_decay: float
    ) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.steps = 0
        self.first = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]
        self.second = [torch.zeros_like(p, requires_grad=False) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter by its gradient, then forget the gradient."""
        self.steps += 1
        bias1, bias2 = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        for p, first, second in zip(self.parameters, self.first, self.second, strict=True):
            if p.grad is None:
                continue
            grad = p.grad.add(p, alpha=self.weight_decay) if self.weight_decay else p.grad
            first.lerp_(grad, 0.1)
            second.mul_(0.999).addcmul_(grad, grad, value=0.001)
            scale = second.sqrt().mul_(bias2**-0.5).add_(1e-8)
            p.addcdiv_(first, scale, value=-self.learning_rate / bias1)
            p.grad.zero_()


def _views(flat: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    parts = flat.split([shape.numel() for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
