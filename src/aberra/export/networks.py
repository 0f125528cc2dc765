"""Network detectors and one-class machines as graphs; every function returns scores (m, n).

Notation (shapes): x (n, d) rows as numbers; h (m, n, k) what m members make of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aberra.detectors.autoencoder import Reconstructors
from aberra.detectors.dagpr import LENGTH_SCALE, Regression, Regressions
from aberra.detectors.deep_svdd import Spheres
from aberra.detectors.hybrid import CodeExpansions
from aberra.detectors.ocsvm import Expansions, KernelExpansion
from aberra.detectors.rsrae import Subspaces
from aberra.detectors.scaling import Scaling
from aberra.export.convolutions import convolutional
from aberra.export.graph import Graph, Value
from aberra.nets.conv_plan import FrozenConv
from aberra.nets.networks import Frozen
from aberra.nets.stacked import LEAK


def scaled(g: Graph, x: Value, scaling: Scaling) -> str:
    """Scale the columns."""
    return g.op("Mul", g.op("Sub", x, scaling.shift), scaling.factor)


def mapped(g: Graph, x: Value, net: Frozen, shared: bool = True) -> str:
    """Map rows (n, d) that members share, or each member's own (m, n, d), to (m, n, k)."""
    if isinstance(net, FrozenConv):
        return convolutional(g, x, net, shared)
    h, last = x, len(net.weights) - 1
    for k, (weight, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
        h = g.op("MatMul", h, weight.swapaxes(1, 2))
        if k < last or not net.linear_output:
            h = g.op("Add", h, bias[:, None, :])
            h = g.op("Max", h, g.op("Mul", h, LEAK))  # the leaky ReLU
    assert isinstance(h, str)
    return h


def sigmoid(g: Graph, h: Value) -> str:
    """Return 1 / (1 + exp(-h))."""
    return g.op("Div", 1.0, g.op("Add", g.op("Exp", g.op("Neg", h)), 1.0))


def square_sum(g: Graph, h: Value, keep: bool = False) -> str:
    """Return the sum of squares over the last axis."""
    return g.reduced("Sum", g.op("Mul", h, h), -1, keep)


def autoencoder(g: Graph, x: str, members: Reconstructors) -> str:
    """Squared reconstruction errors."""
    own = scaled(g, x, members.scaling)
    rebuilt = mapped(g, mapped(g, own, members.encoder), members.decoder, shared=False)
    return square_sum(g, g.op("Sub", own, sigmoid(g, rebuilt)))


def subspaces(g: Graph, x: str, members: Subspaces) -> str:
    """Squared reconstruction errors of RSRAE."""
    own = scaled(g, x, members.scaling)
    inner = g.op("MatMul", mapped(g, own, members.encoder), members.A.swapaxes(1, 2))
    rebuilt = mapped(g, inner, members.decoder, shared=False)
    return square_sum(g, g.op("Sub", own, sigmoid(g, rebuilt)))


def spheres(g: Graph, x: str, members: Spheres) -> str:
    """Squared distances to the centres."""
    codes = mapped(g, scaled(g, x, members.scaling), members.encoder)
    return square_sum(g, g.op("Sub", codes, members.centre.swapaxes(1, 2)))


def regressions(g: Graph, x: str, members: Regressions) -> str:
    """Predictive means of DAGPR."""
    codes = mapped(g, scaled(g, x, members.scaling), members.encoder)
    length = g.op("Sqrt", g.op("Add", square_sum(g, codes, keep=True), 1e-12))
    on_sphere = g.op("Div", codes, length)
    own = [_member(g, on_sphere, k) for k in range(members.n_members)]
    return _stacked(g, [_mean(g, z, one) for z, one in zip(own, members.regressions, strict=True)])


def code_machines(g: Graph, x: str, members: CodeExpansions) -> str:
    """Signed distances of an autoencoder's codes."""
    codes = mapped(g, scaled(g, x, members.scaling), members.encoder)
    parts = zip(members.machines, members.code_scalings, strict=True)
    return _stacked(
        g,
        [
            _distance(g, scaled(g, _member(g, codes, k), scaling), machine)
            for k, (machine, scaling) in enumerate(parts)
        ],
    )


def machines(g: Graph, x: str, members: Expansions) -> str:
    """Signed distances of rows."""
    own = scaled(g, x, members.scaling)
    return _stacked(g, [_distance(g, own, machine) for machine in members.machines])


def _distance(g: Graph, x: Value, machine: KernelExpansion) -> str:
    kernel = gaussian_kernel(g, x, machine.vectors, machine.gamma)
    inside = g.op("MatMul", kernel, machine.coefficients)
    return g.op("Sub", machine.rho, inside)


def _mean(g: Graph, z: Value, regression: Regression) -> str:
    near = gaussian_kernel(g, z, regression.vectors, 0.5 / LENGTH_SCALE**2)
    linear = g.op("MatMul", z, regression.vectors.T)
    kernel = g.op("Add", g.op("Add", near, linear), 1.0)
    return g.op("MatMul", kernel, regression.coefficients)


def gaussian_kernel(g: Graph, x: Value, v: NDArray[np.float64], gamma: float) -> str:
    """Return exp(-gamma |x - v|^2) for all pairs, (n, s)."""
    squares = g.op("Sub", (v * v).sum(axis=1), g.op("MatMul", x, 2.0 * v.T))
    squares = g.op("Max", g.op("Add", squares, square_sum(g, x, keep=True)), 0.0)
    return g.op("Exp", g.op("Mul", squares, -gamma))


def _member(g: Graph, h: Value, k: int) -> str:
    return g.op("Gather", h, np.array(k), axis=0)


def _stacked(g: Graph, scores: list[str]) -> str:
    return g.op("Concat", *(g.unsqueezed(one, 0) for one in scores), axis=0)
