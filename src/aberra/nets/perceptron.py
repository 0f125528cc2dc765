"""Training of perceptrons, compiled: one call is an epoch of one member, gradients written out.

Notation (shapes): B rows a batch; z (B, out) a layer's product, h (B, out) its output, g the
gradient of the loss with respect to one of them. Everything a member learns is one flat vector, its
layers (out, in) one after the other.

The matrix products are the BLAS's, everything between them is fused into loops that stay in the
cache. That is twice as fast as five members as one tensor program (results/stacking.md), and
members can train in threads, since no product is shared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import compiled
from aberra.nets.stacked import BN_EPS, BN_MOMENTUM, LEAK, LINEAR, NORMALISED, SPHERE

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]

F = np.float32
ONE, TWO, LEAKY, EPS, TINY = F(1), F(2), F(LEAK), F(BN_EPS), F(1e-12)
BETA1, BETA2, ADAM_EPS = 0.9, 0.999, F(1e-8)
LOG2_E, LN2_HIGH, LN2_LOW = F(1.4426950408889634), F(0.693359375), F(-2.12194440e-4)
LARGEST_EXPONENT = F(87)  # e^88 is beyond single precision


class Net(NamedTuple):
    """A chain of layers: (layers + 1,) widths, the data's first, and (layers,) kinds."""

    widths: NDArray[np.int64]
    kinds: NDArray[np.int64]


class Aim(NamedTuple):
    """What a member is trained for.

    `centre` (widths[-1],) is what the last layer is drawn to; if empty, the member reconstructs
    its rows through a sigmoid. `subspace` is the layer that is RSRAE's A, or -1.
    """

    centre: Vector
    subspace: int
    lambda1: float
    lambda2: float


def to_reconstruct(subspace: int = -1, lambda1: float = 0.0, lambda2: float = 0.0) -> Aim:
    """Return the aim of an autoencoder, or of RSRAE if a layer is its A."""
    return Aim(np.empty(0, F), subspace, lambda1, lambda2)


def to_centre(centre: Vector) -> Aim:
    """Return the aim of Deep SVDD."""
    return Aim(centre, -1, 0.0, 0.0)


class State(NamedTuple):
    """What a member has learnt: (p,), Adam's moments (2, p), running means and variances (2, u)."""

    parameters: Vector
    moments: Matrix
    statistics: Matrix


class Pace(NamedTuple):
    """Steps before this epoch, learning rate and weight decay."""

    done: int
    rate: float
    decay: float


@compiled
def _normalise(z: Matrix, h: Matrix, spread: Vector, mean: Vector, variance: Vector) -> None:
    """Normalise a layer's product z over the batch, in place; h is its leaky ReLU."""
    n, n_units = F(len(z)), z.shape[1]
    centre, square = np.zeros(n_units, F), np.zeros(n_units, F)
    for b in range(len(z)):
        for j in range(n_units):
            centre[j] += z[b, j]
    for j in range(n_units):
        centre[j] /= n
    for b in range(len(z)):
        for j in range(n_units):
            square[j] += (z[b, j] - centre[j]) * (z[b, j] - centre[j])
    for j in range(n_units):
        spread[j] = ONE / np.sqrt(square[j] / n + EPS)
        mean[j] += F(BN_MOMENTUM) * (centre[j] - mean[j])
        variance[j] += F(BN_MOMENTUM) * (square[j] / (n - ONE) - variance[j])
    for b in range(len(z)):
        for j in range(n_units):
            value = (z[b, j] - centre[j]) * spread[j]
            z[b, j] = value
            h[b, j] = value if value > 0 else LEAKY * value


@compiled
def _undo_normalise(z: Matrix, spread: Vector, g: Matrix) -> None:
    """Turn g, the gradient at h, into that at the product; z is normalised."""
    n, n_units = F(len(z)), z.shape[1]
    mean, slope = np.zeros(n_units, F), np.zeros(n_units, F)
    for b in range(len(z)):
        for j in range(n_units):
            g[b, j] *= ONE if z[b, j] > 0 else LEAKY
    for b in range(len(z)):  # loops of their own: one loop for all three is not vectorised
        for j in range(n_units):
            mean[j] += g[b, j]
    for b in range(len(z)):
        for j in range(n_units):
            slope[j] += g[b, j] * z[b, j]
    for j in range(n_units):
        mean[j] /= n
        slope[j] /= n
    for b in range(len(z)):
        for j in range(n_units):
            g[b, j] = (g[b, j] - mean[j] - z[b, j] * slope[j]) * spread[j]


@compiled
def _to_sphere(z: Matrix, h: Matrix) -> None:
    """Write the rows of z, scaled to length one, to h; column 0 of z becomes the factors."""
    for b in range(len(z)):
        total = TINY
        for j in range(z.shape[1]):
            total += z[b, j] * z[b, j]
        factor = ONE / np.sqrt(total)
        for j in range(z.shape[1]):
            h[b, j] = factor * z[b, j]
        z[b, 0] = factor


@compiled
def _undo_to_sphere(z: Matrix, h: Matrix, g: Matrix) -> None:
    """Turn g, the gradient at h, into that at the rows before."""
    for b in range(len(z)):
        along = F(0)
        for j in range(z.shape[1]):
            along += g[b, j] * h[b, j]
        for j in range(z.shape[1]):
            g[b, j] = (g[b, j] - along * h[b, j]) * z[b, 0]


@compiled
def _sigmoid(values: Vector, power: NDArray[np.int32]) -> None:
    """Replace values by their sigmoids, to single precision.

    e^-v is 2^n e^r with |r| <= ln(2) / 2 and a Taylor polynomial for e^r, 2^n is made of its bits:
    arithmetic that the compiler turns into vector instructions, which it does not with `exp`.
    """
    for i in range(values.size):
        v = min(max(-values[i], -LARGEST_EXPONENT), LARGEST_EXPONENT)
        n = np.floor(v * LOG2_E + F(0.5))
        r = v - n * LN2_HIGH - n * LN2_LOW
        tail = F(1 / 720) + r * F(1 / 5040)
        tail = F(1 / 24) + r * (F(1 / 120) + r * tail)
        values[i] = ONE + r * (ONE + r * (F(1 / 2) + r * (F(1 / 6) + r * tail)))
        power[i] = (np.int32(n) + np.int32(127)) << np.int32(23)
    two_to_n = power.view(F)
    for i in range(values.size):
        values[i] = ONE / (ONE + values[i] * two_to_n[i])


@compiled
def _towards_input(x: Matrix, y: Matrix, w: Vector, norms: bool, g: Matrix) -> float:
    """Write the gradient of the weighted mean error of reconstructions y; return that mean.

    The error is squared (IADC-4) or, with `norms`, its root (IADC-8); y is a sigmoid, g the
    gradient at its argument.
    """
    n, loss = F(len(x)), 0.0
    for b in range(len(x)):
        total = F(0)
        for j in range(x.shape[1]):
            g[b, j] = y[b, j] - x[b, j]
            total += g[b, j] * g[b, j]
        if norms:
            root = np.sqrt(total + TINY)
            factor = w[b] / (root * n)
            loss += w[b] * root
        else:
            factor = TWO * w[b] / n
            loss += w[b] * total
        for j in range(x.shape[1]):
            g[b, j] *= factor * y[b, j] * (ONE - y[b, j])
    return loss / len(x)


@compiled
def _towards_centre(z: Matrix, centre: Vector, w: Vector, g: Matrix) -> float:
    """Write the gradient of the weighted mean squared distance (IADC-6); return that mean."""
    n, loss = F(len(z)), 0.0
    for b in range(len(z)):
        total = F(0)
        factor = TWO * w[b] / n
        for j in range(z.shape[1]):
            away = z[b, j] - centre[j]
            total += away * away
            g[b, j] = factor * away
        loss += w[b] * total
    return loss / len(z)


@compiled
def _subspace(
    z: Matrix, y: Matrix, A: Matrix, w: Vector, aim: Aim, g_z: Matrix, g_A: Matrix
) -> float:
    """Add the gradients of the two terms of IADC-8 that know A; y = z A^T. Return the terms."""
    n, loss = F(len(z)), 0.0
    residual = z - np.dot(y, A)
    for b in range(len(z)):
        total = TINY
        for j in range(z.shape[1]):
            total += residual[b, j] * residual[b, j]
        loss += aim.lambda1 * w[b] * np.sqrt(total) / len(z)
        factor = F(aim.lambda1) * w[b] / (np.sqrt(total) * n)
        for j in range(z.shape[1]):
            residual[b, j] *= factor  # now the gradient at the residual
    projected = np.dot(residual, A.T)
    slant = np.dot(A, A.T)
    for i in range(len(A)):
        slant[i, i] -= ONE
    g_z += residual - np.dot(projected, A)
    g_A += F(4 * aim.lambda2) * np.dot(slant, A)
    g_A -= np.dot(y.T, residual) + np.dot(projected.T, z)
    return loss + aim.lambda2 * np.sum(slant * slant)


@compiled
def _adam(state: State, gradient: Vector, pace: Pace, step: int) -> None:
    """Move the parameters as `torch.optim.Adam` does."""
    rate, root = F(pace.rate / (1 - BETA1**step)), F(1 / np.sqrt(1 - BETA2**step))
    decay = F(pace.decay)
    parameters, first, second = state.parameters, state.moments[0], state.moments[1]
    for i in range(parameters.size):
        g = gradient[i] + decay * parameters[i]
        first[i] += F(1 - BETA1) * (g - first[i])
        second[i] = F(BETA2) * second[i] + F(1 - BETA2) * g * g
        parameters[i] -= rate * first[i] / (np.sqrt(second[i]) * root + ADAM_EPS)


@compiled
def _units(flat: Vector, batch: int, start: int, width: int) -> Matrix:
    """Return the part of a buffer that belongs to some units, (batch, width)."""
    return flat[batch * start : batch * (start + width)].reshape(batch, width)


@compiled
def train_epoch(
    data: Matrix,
    order: NDArray[np.int64],
    weights: Vector,
    batch: int,
    net: Net,
    aim: Aim,
    state: State,
    pace: Pace,
) -> float:
    """Train one member for one epoch, in place; return the mean loss of its batches.

    Parameters
    ----------
    data : (n, d), single precision
    order : (steps x batch,), rows of the data
    weights : (n,)
    batch : int
        Rows a step.
    """
    widths, kinds = net.widths, net.kinds
    n_layers, n_out = len(kinds), widths[-1]
    starts = np.zeros(n_layers + 1, np.int64)  # of the layers' weights among the parameters
    for k in range(n_layers):
        starts[k + 1] = starts[k] + widths[k] * widths[k + 1]
    ends = np.cumsum(widths)  # of the layers' inputs among the units; the data come first
    n_units = ends[-1]
    z, h, g = (
        np.empty(batch * n_units, F),
        np.empty(batch * n_units, F),
        np.empty(batch * n_units, F),
    )
    spread, w = np.empty(n_units, F), np.empty(batch, F)
    gradient, power = np.empty(starts[-1], F), np.empty(batch * n_out, np.int32)
    x = _units(h, batch, 0, widths[0])
    last = _units(h, batch, n_units - n_out, n_out)
    g_last = _units(g, batch, n_units - n_out, n_out)
    n_steps, total = len(order) // batch, 0.0
    for step in range(n_steps):
        for b in range(batch):
            row = order[step * batch + b]
            w[b] = weights[row]
            for j in range(widths[0]):
                x[b, j] = data[row, j]
        for k in range(n_layers):
            a, b, start = widths[k], widths[k + 1], ends[k]
            weight = state.parameters[starts[k] : starts[k + 1]].reshape(b, a)
            h_in, h_out = _units(h, batch, start - a, a), _units(h, batch, start, b)
            z_out = _units(z, batch, start, b)
            if kinds[k] == LINEAR:
                np.dot(h_in, weight.T, h_out)
                continue
            np.dot(h_in, weight.T, z_out)
            if kinds[k] == SPHERE:
                _to_sphere(z_out, h_out)
            else:
                own = slice(start - widths[0], start - widths[0] + b)
                mean, variance = state.statistics[0, own], state.statistics[1, own]
                _normalise(z_out, h_out, spread[start : start + b], mean, variance)
        if aim.centre.size > 0:
            total += _towards_centre(last, aim.centre, w, g_last)
        else:
            _sigmoid(h[batch * (n_units - n_out) :], power)
            total += _towards_input(x, last, w, aim.subspace >= 0, g_last)
        for k in range(n_layers - 1, -1, -1):
            a, b, start = widths[k], widths[k + 1], ends[k]
            weight = state.parameters[starts[k] : starts[k + 1]].reshape(b, a)
            g_weight = gradient[starts[k] : starts[k + 1]].reshape(b, a)
            h_in, g_in = _units(h, batch, start - a, a), _units(g, batch, start - a, a)
            h_out, g_out = _units(h, batch, start, b), _units(g, batch, start, b)
            if kinds[k] == SPHERE:
                _undo_to_sphere(_units(z, batch, start, b), h_out, g_out)
            elif kinds[k] == NORMALISED:
                _undo_normalise(_units(z, batch, start, b), spread[start : start + b], g_out)
            np.dot(g_out.T, h_in, g_weight)
            if k > 0:
                np.dot(g_out, weight, g_in)
            if k == aim.subspace:
                total += _subspace(h_in, h_out, weight, w, aim, g_in, g_weight)
        _adam(state, gradient, pace, pace.done + step + 1)
    return total / n_steps
