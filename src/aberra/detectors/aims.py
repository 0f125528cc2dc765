"""What the compiled training is told: the layers, the aim, the state of a member, the optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]


class Chain(NamedTuple):
    """The layers of a network in a row, each with its place in the flat vectors."""

    widths: NDArray[np.int64]  # (layers + 1,), the width of the data first
    kinds: NDArray[np.int64]  # (layers,): LINEAR, NORMALISED or SPHERE
    weights: NDArray[np.int64]  # (layers + 1,): where each layer's weights begin
    units: NDArray[np.int64]  # (layers + 1,): where each layer's outputs begin, after the data


def chain_of(widths: Sequence[int], kinds: Sequence[int]) -> Chain:
    """Return the chain of layers of these widths, the first being that of the data."""
    sizes = np.array(widths)
    weights = np.concatenate([[0], np.cumsum(sizes[:-1] * sizes[1:])])
    return Chain(sizes, np.array(kinds), weights, np.cumsum(sizes))


class Aim(NamedTuple):
    """What a member is trained for.

    With a `centre` (widths[-1],) it moves its outputs there; with an empty one it reconstructs its
    rows through a sigmoid. `subspace` is the number of the layer that is RSRAE's A, or -1.
    """

    centre: Vector
    subspace: int
    lambda1: float
    lambda2: float


def to_reconstruct(subspace: int = -1, lambda1: float = 0.0, lambda2: float = 0.0) -> Aim:
    """Return the aim of an autoencoder, or of RSRAE if a layer is its A."""
    return Aim(np.empty(0, np.float32), subspace, lambda1, lambda2)


def to_centre(centre: Vector) -> Aim:
    """Return the aim of Deep SVDD."""
    return Aim(centre, -1, 0.0, 0.0)


class State(NamedTuple):
    """What a member has learnt so far."""

    parameters: Vector  # (p,)
    moments: Matrix  # (2, p), Adam's
    statistics: Matrix  # (2, units): running means and variances


class Adam(NamedTuple):
    """The settings of the optimiser, and how many steps it took before this epoch."""

    done: int
    rate: float
    decay: float
