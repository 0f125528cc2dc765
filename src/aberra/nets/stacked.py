"""Perceptrons of m members: what they learn, and how they map rows once trained.

Notation (shapes): m members, B rows a batch, d features. Activations are (m, features, B), so that
one batched product serves all members. `aberra.detectors.compiled_training` trains them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape
from aberra.twister import Single, Twister

Double = NDArray[np.float64]

BN_EPS = 1e-4
BN_MOMENTUM = 0.1
LEAK = 0.01


LINEAR, NORMALISED, SPHERE = 0, 1, 2  # what follows a layer's product


# A diverged network overflows; its scores are then not finite, and that is what is reported.
silently = np.errstate(over="ignore", invalid="ignore")


class Layer(NamedTuple):
    """One layer of all members; training writes into the arrays."""

    weight: Single  # (m, out, in)
    kind: int
    mean: Single  # (m, out), running statistics of a normalised layer
    variance: Single


def linear_layer(weight: Single) -> Layer:
    """Return a layer that is a product and nothing more."""
    units = weight.shape[:2]
    return Layer(weight, LINEAR, np.zeros(units, np.float32), np.ones(units, np.float32))


@silently
def sigmoid(x: Double) -> Double:
    """Return 1 / (1 + exp(-x)), in one new array: several would cost more time than the numbers."""
    y = np.negative(x)
    np.exp(y, out=y)
    y += 1.0
    return np.divide(1.0, y, out=y)


def uniform_fan_in(n_out: int, n_in: int, generator: Twister) -> Single:
    """Draw one layer as `torch.nn.Linear` does: uniform within 1 / sqrt(n_in)."""
    return (2 * generator.uniform(n_out, n_in) - 1) / np.float32(n_in**0.5)


class MLPStack:
    """m bias-free perceptrons: Linear, batch norm (no affine part), leaky ReLU per hidden layer.

    Parameters
    ----------
    widths : sequence of int
        Input width, hidden widths, output width.
    generators : sequence of Twister
        One per member; draws that member's initial weights, layer by layer.
    linear_output : bool
        Leave the last layer linear (codes, reconstructions); otherwise it is a hidden layer too.
    """

    def __init__(
        self,
        widths: Sequence[int],
        generators: Sequence[Twister],
        linear_output: bool = True,
    ) -> None:
        self.widths = tuple(widths)
        self.n_members = len(generators)
        shapes = [(n_out, n_in) for n_in, n_out in pairwise(self.widths)]
        drawn = [[uniform_fan_in(o, i, g) for o, i in shapes] for g in generators]
        self.layers = [np.stack(layer) for layer in zip(*drawn, strict=True)]  # (m, out, in)
        self.normalised = [not linear_output or k < len(shapes) - 1 for k in range(len(shapes))]
        units = [(self.n_members, n_out) for n_out, _ in shapes]
        self.running_mean = [np.zeros(shape, np.float32) for shape in units]
        self.running_var = [np.ones(shape, np.float32) for shape in units]

    def chain(self, output: int = LINEAR) -> list[Layer]:
        """Return the layers in order; a linear output can be brought to the unit sphere."""
        kinds = [NORMALISED if normalised else output for normalised in self.normalised]
        parts = zip(self.layers, kinds, self.running_mean, self.running_var, strict=True)
        return [Layer(*part) for part in parts]

    @silently
    def freeze(self) -> FrozenMLP:
        """Fold the running statistics into the weights."""
        weights, biases = [], []
        for k, layer in enumerate(self.layers):
            weight, bias = layer.astype(np.float64), np.zeros(layer.shape[:2])
            if self.normalised[k]:
                scale = 1.0 / np.sqrt(self.running_var[k].astype(np.float64) + BN_EPS)
                bias = -self.running_mean[k].astype(np.float64) * scale
                weight *= scale[:, :, None]
            weights.append(weight)
            biases.append(bias)
        return FrozenMLP(weights, biases, linear_output=not self.normalised[-1])


@dataclass(frozen=True, eq=False)
class FrozenMLP:
    """A trained `MLPStack` in double precision, batch norm folded into weight and bias.

    Double precision makes a row's score the same to the last digit that matters whatever rows it
    is scored with; single precision differs at the seventh.
    """

    weights: list[Annotated[Double, Shape(None, None, None)]]  # (m, out, in)
    biases: list[Annotated[Double, Shape(None, None)]]  # (m, out)
    linear_output: bool

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return len(self.weights[0])

    def member(self, j: int) -> FrozenMLP:
        """Return one member by itself."""
        weights, biases = ([part[j : j + 1] for part in own] for own in (self.weights, self.biases))
        return FrozenMLP(weights, biases, self.linear_output)

    def turned(self, axes: Double) -> FrozenMLP:
        """Return members whose linear outputs are seen along other axes (m, out, axes)."""
        last = axes.swapaxes(1, 2) @ self.weights[-1]
        return FrozenMLP([*self.weights[:-1], last], self.biases, self.linear_output)

    @silently
    def __call__(self, x: Double) -> Double:
        """Map rows shared by all members, (d, B), or each member's own, (m, d, B)."""
        for k, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if x.ndim == 2:  # every member sees the same rows: one product instead of m
                x = (weight.reshape(-1, weight.shape[2]) @ x).reshape(*weight.shape[:2], -1)
            else:
                x = weight @ x
            if k < len(self.weights) - 1 or not self.linear_output:
                x += bias[:, :, None]
                np.maximum(x, LEAK * x, out=x)  # the leaky ReLU
        return x
