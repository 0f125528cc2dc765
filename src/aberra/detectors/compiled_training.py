"""The compiled training of perceptrons: one call is an epoch of one member.

The objectives are those of `aberra.detectors.objectives`. Here they have a second form, with their
gradients written out by hand, because that trains several times as fast as autograd does
(results/stacking.md): the matrix products are left to the BLAS, and everything between them is
fused into loops that stay in the cache. `tests/reference` compares value and gradient of this form
with those of the tagged functions.

All that is compiled is in one module, because compiled code is kept on disk, and is renewed only
when its own file changes.

Notation (shapes): B rows in a batch; z (B, out) the product of a layer, h (B, out) its output, g
the gradient of the loss with respect to one of them. All that a member learns is one flat vector,
its layers (out, in) one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import announce, compiled
from aberra.detectors.aims import Adam, Aim, Chain, Matrix, State, Vector
from aberra.nets.stacked import BN_EPS, BN_MOMENTUM, LEAK, LINEAR, NORMALISED, SPHERE

F = np.float32
ONE, TWO, LEAKY, EPS, NORM_EPS = F(1), F(2), F(LEAK), F(BN_EPS), F(1e-12)
BETA1, BETA2, ADAM_EPS = 0.9, 0.999, F(1e-8)
LOG2_E, LN2_HIGH, LN2_LOW = F(1.4426950408889634), F(0.693359375), F(-2.12194440e-4)
LARGEST_EXPONENT = F(87)  # e^88 is beyond single precision


class Room(NamedTuple):
    """Where a training step writes its intermediate numbers, so that no step asks for memory."""

    z: Vector  # (B * units,): products of all layers
    h: Vector  # (B * units,): their outputs, the data first
    g: Vector  # (B * units,): gradients with respect to them
    spread: Vector  # (units,): one over the deviation of each unit of a normalised layer
    w: Vector  # (B,): weights of the rows
    gradient: Vector  # (p,)
    power: NDArray[np.int32]  # (B * outputs,), for the sigmoid


@compiled
def _room(chain: Chain, batch: int) -> Room:
    n_units, n_out = chain.units[-1], chain.widths[-1]
    return Room(
        np.empty(batch * n_units, F),
        np.empty(batch * n_units, F),
        np.empty(batch * n_units, F),
        np.empty(n_units, F),
        np.empty(batch, F),
        np.empty(chain.weights[-1], F),
        np.empty(batch * n_out, np.int32),
    )


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
        total = NORM_EPS
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
def sigmoids(values: Vector, power: NDArray[np.int32]) -> None:
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
            root = np.sqrt(total + NORM_EPS)
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
        total = NORM_EPS
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
def adam_step(state: State, gradient: Vector, adam: Adam, step: int) -> None:
    """Move the parameters as `torch.optim.Adam` does."""
    rate, root = F(adam.rate / (1 - BETA1**step)), F(1 / np.sqrt(1 - BETA2**step))
    decay = F(adam.decay)
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
def _layer(flat: Vector, chain: Chain, k: int) -> Matrix:
    """Return the part of a flat vector that belongs to the weights of a layer, (out, in)."""
    own = flat[chain.weights[k] : chain.weights[k + 1]]
    return own.reshape(chain.widths[k + 1], chain.widths[k])


@compiled
def _forward(chain: Chain, state: State, room: Room) -> None:
    """Bring the batch through all layers; running statistics follow its own."""
    z, h, batch = room.z, room.h, len(room.w)
    for k in range(len(chain.kinds)):
        a, b, start = chain.widths[k], chain.widths[k + 1], chain.units[k]
        weight = _layer(state.parameters, chain, k)
        h_in, h_out = _units(h, batch, start - a, a), _units(h, batch, start, b)
        if chain.kinds[k] == LINEAR:
            np.dot(h_in, weight.T, h_out)
            continue
        z_out = _units(z, batch, start, b)
        np.dot(h_in, weight.T, z_out)
        if chain.kinds[k] == SPHERE:
            _to_sphere(z_out, h_out)
        else:
            own = slice(start - chain.widths[0], start - chain.widths[0] + b)
            mean, variance = state.statistics[0, own], state.statistics[1, own]
            _normalise(z_out, h_out, room.spread[start : start + b], mean, variance)


@compiled
def _objective(chain: Chain, aim: Aim, room: Room) -> float:
    """Return the loss at the outputs, and write its gradient there."""
    batch, n_out = len(room.w), chain.widths[-1]
    first = chain.units[-1] - n_out
    last, g_last = _units(room.h, batch, first, n_out), _units(room.g, batch, first, n_out)
    if aim.centre.size > 0:
        return _towards_centre(last, aim.centre, room.w, g_last)
    sigmoids(room.h[batch * first :], room.power)
    x = _units(room.h, batch, 0, chain.widths[0])
    return _towards_input(x, last, room.w, aim.subspace >= 0, g_last)


@compiled
def _backward(chain: Chain, aim: Aim, state: State, room: Room) -> float:
    """Bring the gradient back through all layers; return the part of the loss that knows A."""
    z, h, g, batch, loss = room.z, room.h, room.g, len(room.w), 0.0
    for k in range(len(chain.kinds) - 1, -1, -1):
        a, b, start = chain.widths[k], chain.widths[k + 1], chain.units[k]
        weight, g_weight = _layer(state.parameters, chain, k), _layer(room.gradient, chain, k)
        h_in, g_in = _units(h, batch, start - a, a), _units(g, batch, start - a, a)
        h_out, g_out = _units(h, batch, start, b), _units(g, batch, start, b)
        if chain.kinds[k] == SPHERE:
            _undo_to_sphere(_units(z, batch, start, b), h_out, g_out)
        elif chain.kinds[k] == NORMALISED:
            _undo_normalise(_units(z, batch, start, b), room.spread[start : start + b], g_out)
        np.dot(g_out.T, h_in, g_weight)
        if k > 0:
            np.dot(g_out, weight, g_in)
        if k == aim.subspace:
            loss += _subspace(h_in, h_out, weight, room.w, aim, g_in, g_weight)
    return loss


@compiled
def _gather(
    data: Matrix, rows: NDArray[np.int64], weights: Vector, chain: Chain, room: Room
) -> None:
    """Copy the rows of a batch, and their weights, to where the step works."""
    d, w = chain.widths[0], room.w
    x = _units(room.h, len(rows), 0, d)
    for b in range(len(rows)):
        row = rows[b]
        w[b] = weights[row]
        for j in range(d):
            x[b, j] = data[row, j]


@compiled
def train_epoch(
    chain: Chain,
    data: Matrix,
    order: NDArray[np.int64],
    weights: Vector,
    batch: int,
    aim: Aim,
    state: State,
    adam: Adam,
) -> float:
    """Train one member for one epoch, in place; return the mean loss of its batches.

    Parameters
    ----------
    data : (n, d), single precision
    order : (steps x batch,), rows of the data
    weights : (n,)
    batch : int
        Number of rows in a step.
    """
    room = _room(chain, batch)
    n_steps, total = len(order) // batch, 0.0
    for step in range(n_steps):
        _gather(data, order[step * batch : (step + 1) * batch], weights, chain, room)
        _forward(chain, state, room)
        total += _objective(chain, aim, room)
        total += _backward(chain, aim, state, room)
        adam_step(state, room.gradient, adam, adam.done + step + 1)
    return total / n_steps


announce(train_epoch, "Compiling the training code once; this takes about 15 s ...")


def loss_and_gradient(
    x: Matrix, w: Vector, chain: Chain, aim: Aim, state: State
) -> tuple[float, Vector]:
    """Return the loss of one batch (B, d) of weights (B,) and its gradient (p,).

    These are the steps of `train_epoch` but for the last, so that they can be compared with the
    tagged functions.
    """
    room = _room(chain, len(x))
    _gather(x, np.arange(len(x)), w, chain, room)
    _forward(chain, state, room)
    loss = _objective(chain, aim, room)
    loss += _backward(chain, aim, state, room)
    return loss, room.gradient
