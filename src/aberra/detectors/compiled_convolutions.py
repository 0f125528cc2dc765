"""The compiled training of the LeNets of images: one call is an epoch of one member.

The objectives are the tagged ones of `aberra.detectors.objectives`, with their gradients written
out by hand, as in `compiled_training`, and compared with autograd in `tests/reference`. On the
small networks of MNIST that trains several times as fast as torch (results/stacking.md).

Notation (shapes): B images in a batch; maps (channels, height, width * B); z what a kernel leaves,
h its output, g the gradient of the loss with respect to one of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.compiled import announce, compiled
from aberra.detectors.aims import Adam, Aim, Matrix, State, Vector
from aberra.detectors.compiled_maps import (
    Kernels,
    Maps,
    activate,
    activate_largest,
    convolve,
    correlate,
    enlarge,
    normalise,
    turned,
    undo_activate,
    undo_enlarge,
)
from aberra.detectors.compiled_training import adam_step, sigmoids
from aberra.detectors.conv_chain import ConvChain
from aberra.nets.stacked import LEAK

F = np.float32
ZERO, ONE, TWO, LEAKY = F(0), F(1), F(2), F(LEAK)


class Room(NamedTuple):
    """Where a training step writes its intermediate numbers, so that no step asks for memory."""

    padded: Vector  # what the kernels see, layer after layer
    z: Vector  # what they leave
    g_z: Vector  # the gradient there, with a border of zeros
    h: Vector  # the maps between two layers, of one layer at a time
    g_h: Vector  # the gradient there
    g_side: Vector  # the gradient at enlarged maps
    features: Matrix  # (features, B): what leaves the encoder's last layer
    code: Matrix  # (code, B)
    g_code: Matrix  # (code, B)
    centre: Vector  # (channels,): the mean of each map
    spread: Vector  # (channels,): one over its deviation
    w: Vector  # (B,): weights of the images
    error: Vector  # (B,)
    gradient: Vector  # (p,)
    power: NDArray[np.int32]  # for the sigmoid


@compiled
def _room(chain: ConvChain, batch: int) -> Room:
    most, most_side, n = chain.n_code, 1, len(chain.n_in)
    for k in range(n):
        left = chain.n_out[k] * chain.side_out[k, 0] * chain.side_out[k, 1]
        came = chain.n_in[k] * chain.side[k, 0] * chain.side[k, 1]
        most, most_side = max(most, left), max(most_side, came)
    return Room(
        np.zeros(batch * chain.padded[-1], F),
        np.empty(batch * chain.products[-1], F),
        np.zeros(batch * chain.gradients[-1], F),
        np.empty(batch * most, F),
        np.empty(batch * max(most, most_side), F),
        np.empty(batch * most_side, F),
        np.empty((chain.n_features, batch), F),
        np.empty((chain.n_code, batch), F),
        np.empty((chain.n_code, batch), F),
        np.empty(chain.units[-1], F),
        np.empty(chain.units[-1], F),
        np.empty(batch, F),
        np.empty(batch, F),
        np.empty(chain.weights[-1], F),
        np.empty(batch * (chain.products[-1] - chain.products[-2]), np.int32),
    )


# Places


@compiled
def _maps(flat: Vector, place: int, n: int, height: int, width: int, batch: int) -> Maps:
    """Return maps (n, height, width * B) that begin at a place."""
    start = batch * place
    return flat[start : start + n * height * width * batch].reshape(n, height, width * batch)


@compiled
def _padded(chain: ConvChain, room: Room, k: int) -> Maps:
    border, batch = 2 * chain.pad[k], len(room.w)
    height, width = chain.side[k, 0] + border, chain.side[k, 1] + border
    return _maps(room.padded, chain.padded[k], chain.n_in[k], height, width, batch)


@compiled
def _products(chain: ConvChain, room: Room, k: int) -> Maps:
    height, width = chain.side_out[k]
    return _maps(room.z, chain.products[k], chain.n_out[k], height, width, len(room.w))


@compiled
def _bordered(chain: ConvChain, room: Room, k: int) -> Maps:
    border = 2 * (4 - chain.pad[k])
    height, width = chain.side_out[k, 0] + border, chain.side_out[k, 1] + border
    return _maps(room.g_z, chain.gradients[k], chain.n_out[k], height, width, len(room.w))


@compiled
def _outputs(chain: ConvChain, flat: Vector, k: int, batch: int) -> Maps:
    """Return the part of a buffer that holds what a layer hands on."""
    height, width = chain.side_out[k]
    if chain.pool[k]:
        height, width = height // 2, width // 2
    return _maps(flat, 0, chain.n_out[k], height, width, batch)


@compiled
def _kernels(flat: Vector, chain: ConvChain, k: int) -> Kernels:
    """Return the part of a flat vector that belongs to the kernels of a layer, as they lie."""
    own = flat[chain.weights[k] : chain.weights[k + 1]]
    first, second = chain.n_out[k], chain.n_in[k]
    if chain.transposed[k]:
        first, second = second, first
    return own.reshape(first, second, 5, 5)


@compiled
def _dense(flat: Vector, chain: ConvChain) -> Matrix:
    """Return the part that belongs to the code's weights, (code, features)."""
    own = flat[chain.weights[-2] :]
    return own.reshape(chain.n_code, chain.n_features)


# A step


@compiled
def _layer_forward(chain: ConvChain, state: State, room: Room, k: int) -> None:
    """Bring what is in the layer's room through it; what it hands on is in h, if it is not last."""
    batch, own = len(room.w), slice(chain.units[k], chain.units[k + 1])
    x, z = _padded(chain, room, k), _products(chain, room, k)
    kernels = _kernels(state.parameters, chain, k)
    convolve(x, turned(kernels) if chain.transposed[k] else kernels, z, batch)
    if not chain.normalised[k]:
        return
    centre, spread = room.centre[own], room.spread[own]
    normalise(z, centre, spread, state.statistics[0, own], state.statistics[1, own])
    h = _outputs(chain, room.h, k, batch)
    if chain.pool[k]:
        activate_largest(z, centre, spread, h, batch)
    else:
        activate(z, centre, spread, h)


@compiled
def _forward(chain: ConvChain, state: State, room: Room) -> None:
    """Bring the batch through all layers; running statistics follow its own."""
    batch = len(room.w)
    for k in range(len(chain.n_in)):
        if k == chain.n_encoder:
            features = room.h[: room.features.size].reshape(room.features.shape)
            room.features[:] = features
            np.dot(_dense(state.parameters, chain), room.features, room.code)
            h = room.h[: room.code.size].reshape(room.code.shape)
            for j in range(len(h)):
                for b in range(batch):
                    value = room.code[j, b]
                    h[j, b] = value if value > ZERO else LEAKY * value
        if k > 0:
            height, width = chain.side_in[k]
            h_in = _maps(room.h, 0, chain.n_in[k], height, width, batch)
            enlarge(h_in, chain.side[k], chain.pad[k], _padded(chain, room, k), batch)
        _layer_forward(chain, state, room, k)
    if len(chain.n_in) == chain.n_encoder:
        room.features[:] = room.h[: room.features.size].reshape(room.features.shape)
        np.dot(_dense(state.parameters, chain), room.features, room.code)


@compiled
def _towards_input(chain: ConvChain, room: Room) -> float:
    """Write the gradient of the weighted mean squared error (IADC-4); return that mean."""
    batch, k, w, error = len(room.w), len(chain.n_in) - 1, room.w, room.error
    start, n, loss = batch * chain.products[k], F(batch), 0.0
    sigmoids(room.z[start:], room.power)
    x, y, g = _padded(chain, room, 0), _products(chain, room, k), _bordered(chain, room, k)
    pad, border = chain.pad[0], 4 - chain.pad[k]
    for b in range(batch):
        error[b] = ZERO
    for c in range(len(y)):
        for v in range(y.shape[1]):
            own, out = y[c, v], g[c, v + border][border * batch :]
            given = x[c, v + pad][pad * batch :]
            for u in range(len(own) // batch):
                for b in range(batch):
                    i = u * batch + b
                    away = own[i] - given[i]
                    error[b] += away * away
                    out[i] = TWO * w[b] / n * away * own[i] * (ONE - own[i])
    for b in range(batch):
        loss += w[b] * error[b]
    return loss / batch


@compiled
def _towards_centre(centre: Vector, room: Room) -> float:
    """Write the gradient of the weighted mean squared distance (IADC-6); return that mean."""
    n, loss = F(len(room.w)), 0.0
    for j in range(len(room.code)):
        for b in range(len(room.w)):
            away = room.code[j, b] - centre[j]
            room.g_code[j, b] = TWO * room.w[b] / n * away
            loss += room.w[b] * away * away
    return loss / len(room.w)


@compiled
def _layer_backward(chain: ConvChain, state: State, room: Room, k: int) -> None:
    """Find the gradient of the layer's kernels; leave that at what came in in g_h."""
    batch, border = len(room.w), 4 - chain.pad[k]
    x, g = _padded(chain, room, k), _bordered(chain, room, k)
    found = np.empty((chain.n_out[k], chain.n_in[k], 5, 5), F)
    correlate(x, g, border, found, batch)
    gradient = _kernels(room.gradient, chain, k)
    gradient[:] = turned(found) if chain.transposed[k] else found
    if k == 0:
        return
    kernels = _kernels(state.parameters, chain, k)
    height, width = chain.side[k]
    g_side = _maps(room.g_side, 0, chain.n_in[k], height, width, batch)
    convolve(g, kernels if chain.transposed[k] else turned(kernels), g_side, batch)
    height, width = chain.side_in[k]
    g_h = _maps(room.g_h, 0, chain.n_in[k], height, width, batch)
    undo_enlarge(g_side, chain.side[k], g_h, batch)


@compiled
def _before_kernels(chain: ConvChain, room: Room, k: int) -> None:
    """Turn the gradient g_h at what a layer handed on into that at what its kernels left."""
    batch, own = len(room.w), slice(chain.units[k], chain.units[k + 1])
    z, centre, spread = _products(chain, room, k), room.centre[own], room.spread[own]
    h, g_h = _outputs(chain, room.h, k, batch), _outputs(chain, room.g_h, k, batch)
    if chain.pool[k]:
        activate_largest(z, centre, spread, h, batch)
    else:
        activate(z, centre, spread, h)
    border = 4 - chain.pad[k]
    undo_activate(z, centre, spread, h, g_h, border, _bordered(chain, room, k), batch)


@compiled
def _backward(chain: ConvChain, state: State, room: Room) -> None:
    """Bring the gradient back through all layers, from the outputs or from the code."""
    batch = len(room.w)
    for k in range(len(chain.n_in) - 1, chain.n_encoder - 1, -1):
        if chain.normalised[k]:
            _before_kernels(chain, room, k)
        _layer_backward(chain, state, room, k)
    if len(chain.n_in) > chain.n_encoder:
        g_h = room.g_h[: room.code.size].reshape(room.code.shape)
        for j in range(len(g_h)):
            for b in range(batch):
                slope = ONE if room.code[j, b] > ZERO else LEAKY
                room.g_code[j, b] = slope * g_h[j, b]
    weight = _dense(state.parameters, chain)
    np.dot(room.g_code, room.features.T, _dense(room.gradient, chain))
    g_features = room.g_h[: room.features.size].reshape(room.features.shape)
    np.dot(weight.T, room.g_code, g_features)
    for k in range(chain.n_encoder - 1, -1, -1):
        _before_kernels(chain, room, k)
        _layer_backward(chain, state, room, k)


@compiled
def _gather(
    data: Matrix, rows: NDArray[np.int64], weights: Vector, chain: ConvChain, room: Room
) -> None:
    """Copy the images of a batch, and their weights, to where the step works."""
    x, pad, batch = _padded(chain, room, 0), chain.pad[0], len(rows)
    height, width = chain.side[0]
    for b in range(batch):
        image = data[rows[b]]
        room.w[b] = weights[rows[b]]
        for c in range(len(x)):
            for v in range(height):
                for u in range(width):
                    value = image[(c * height + v) * width + u]
                    x[c, v + pad, (u + pad) * batch + b] = value


@compiled
def _loss(chain: ConvChain, aim: Aim, state: State, room: Room) -> float:
    """Return the loss of the batch that was gathered, and leave its gradient."""
    _forward(chain, state, room)
    loss = _towards_centre(aim.centre, room) if aim.centre.size else _towards_input(chain, room)
    _backward(chain, state, room)
    return loss


@compiled
def train_epoch(
    chain: ConvChain,
    data: Matrix,
    order: NDArray[np.int64],
    weights: Vector,
    batch: int,
    aim: Aim,
    state: State,
    adam: Adam,
) -> float:
    """Train one member for one epoch, in place; return the mean loss of its batches.

    As `aberra.detectors.compiled_training.train_epoch`, for a chain of convolutions.
    """
    room = _room(chain, batch)
    n_steps, total = len(order) // batch, 0.0
    for step in range(n_steps):
        _gather(data, order[step * batch : (step + 1) * batch], weights, chain, room)
        total += _loss(chain, aim, state, room)
        adam_step(state, room.gradient, adam, adam.done + step + 1)
    return total / n_steps


announce(train_epoch, "Compiling the training code of images once; this takes about 20 s ...")


def loss_and_gradient(
    x: Matrix, w: Vector, chain: ConvChain, aim: Aim, state: State
) -> tuple[float, Vector]:
    """Return the loss of one batch (B, d) of weights (B,) and its gradient (p,)."""
    room = _room(chain, len(x))
    _gather(x, np.arange(len(x)), w, chain, room)
    return _loss(chain, aim, state, room), room.gradient
