"""What the compiled training of convolutions is told about a network: its layers and their places.

Notation: a layer takes maps (n_in, side_in), enlarges them to `side`, adds a border of `pad` zeros,
moves a kernel of 5 x 5 over them, which leaves `side_out`, and may keep the largest of each 2 x 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.nets.conv_plan import ConvLayer, ConvPlan, size_of

KERNEL = 5
Numbers = NDArray[np.int64]


class ConvChain(NamedTuple):
    """The convolutions of an encoder, and of a decoder behind it, each with its places.

    Places are those in flat vectors, counted for a batch of one image: a batch of B has B numbers
    wherever one image has one.
    """

    n_in: Numbers  # (layers,), maps that come in
    n_out: Numbers
    side_in: Numbers  # (layers, 2), height and width of what comes in
    side: Numbers  # (layers, 2), after it is enlarged
    side_out: Numbers  # (layers, 2), after the kernel
    pad: Numbers  # (layers,)
    pool: NDArray[np.bool_]
    normalised: NDArray[np.bool_]  # batch norm and leak follow
    transposed: NDArray[np.bool_]  # how the weights lie
    n_encoder: int  # how many layers are the encoder's
    n_features: int  # numbers that leave the encoder's last layer
    n_code: int
    weights: Numbers  # (layers + 2,), where each layer's weights begin, those of the code last
    units: Numbers  # (layers + 1,), where each layer's maps have their running statistics
    padded: Numbers  # (layers + 1,), places of what the kernels see
    products: Numbers  # (layers + 1,), of what they leave
    gradients: Numbers  # (layers + 1,), of the gradients there, with a border


def can_be_compiled(*plans: ConvPlan) -> bool:
    """Say whether the compiled training knows networks of this plan: those of Deep SVDD."""
    layers = [layer for plan in plans for layer in plan.layers]
    plain = all(layer.kernel == KERNEL and layer.stride == 1 for layer in layers)
    return plain and plans[0].dense and not any(plan.dense for plan in plans[1:])


def chain_of_convolutions(encoder: ConvPlan, decoder: ConvPlan | None = None) -> ConvChain:
    """Return the chain of an encoder alone, or of an autoencoder."""
    layers = encoder.layers + (decoder.layers if decoder is not None else ())
    coming = _sides(encoder.image[1:], encoder.layers)
    if decoder is not None:
        coming += _sides(decoder.inner[1:], decoder.layers)
    enlarged = [layer.upsample_to or side for layer, side in zip(layers, coming, strict=True)]
    pad = [KERNEL - 1 - la.padding if la.transposed else la.padding for la in layers]
    n_in, n_out = np.array([la.n_in for la in layers]), np.array([la.n_out for la in layers])
    side, side_out = np.array(enlarged), np.array([la.size for la in layers])
    border = np.array(pad)[:, None]
    behind = side_out + 2 * (KERNEL - 1 - border)  # what the gradient's kernels see
    n_features = size_of(encoder.inner)
    return ConvChain(
        n_in,
        n_out,
        np.array(coming),
        side,
        side_out,
        np.array(pad),
        np.array([la.pool for la in layers]),
        np.array([not la.linear for la in layers]),
        np.array([la.transposed for la in layers]),
        len(encoder.layers),
        n_features,
        encoder.n_code,
        _places([*(n_in * n_out * KERNEL**2), n_features * encoder.n_code]),
        _places(n_out),
        _places(n_in * (side + 2 * border).prod(axis=1)),
        _places(n_out * side_out.prod(axis=1)),
        _places(n_out * behind.prod(axis=1)),
    )


def _sides(first: tuple[int, int], layers: Sequence[ConvLayer]) -> list[tuple[int, int]]:
    """Return height and width of what comes into each layer."""
    left = [(h // 2, w // 2) if la.pool else (h, w) for la in layers for h, w in [la.size]]
    return [first, *left[:-1]]


def _places(sizes: Sequence[int] | Numbers) -> Numbers:
    return np.concatenate([[0], np.cumsum(sizes)])
