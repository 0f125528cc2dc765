"""What members learn from, and the training loop of perceptrons, in the open.

The loop of convolutions is in `aberra.detectors.convolutions`; it needs torch, this one does not.

Notation (shapes): data (n, d); rows (m, k), what each member draws from; weights (m, n), each
member's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from aberra.detectors.aims import Adam, Aim, State, chain_of, to_reconstruct
from aberra.detectors.scaling import Scaling
from aberra.errors import DataError
from aberra.nets.networks import Stack
from aberra.nets.stacked import LINEAR, SPHERE, Layer, MLPStack
from aberra.progress import advance, in_threads
from aberra.rng import n_threads
from aberra.twister import Single, Twister

LANES = 16  # batches are multiples of this: whole vectors of numbers


@dataclass(frozen=True)
class Prepared:
    """Training data once scaled: the one copy that all rounds share."""

    data: Single  # (n, d)
    scaling: Scaling
    image: tuple[int, int, int] | None


@dataclass(frozen=True)
class EpochPlan:
    """How long and how fast to train."""

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    task: str


@dataclass(frozen=True)
class Lessons:
    """What m members learn from, each its own way, and for how long."""

    prepared: Prepared
    rows: NDArray[np.int64]  # (m, k), drawn from the data
    weights: NDArray[np.float64]  # (m, n)
    generators: Sequence[Twister]  # for each member's shuffling
    schedule: EpochPlan

    def single_weights(self) -> Single:
        """Return the weights in the precision of training."""
        return np.ascontiguousarray(self.weights, dtype=np.float32)


def batch_length(n_rows: int, batch_size: int) -> int:
    """Return the rows a batch really has: no more than there are, and whole vector lanes."""
    if n_rows < 2:
        raise DataError(
            f"A network needs at least 2 rows of positive weight to train on, but got {n_rows}."
        )
    size = min(batch_size, n_rows)
    return size - size % LANES if size >= LANES else size


def train_perceptrons(
    layers: Sequence[Layer],
    aims: Sequence[Aim],
    lessons: Lessons,
) -> list[float]:
    """Train a chain of layers, in place, each member for its aim; return each epoch's loss."""
    from aberra.detectors.compiled_training import train_epoch  # scoring does without

    weight, kinds, mean, variance = (list(part) for part in zip(*layers, strict=True))
    parameters, statistics = flat(weight), np.stack([flat(mean), flat(variance)], axis=1)
    chain = chain_of([weight[0].shape[2], *(w.shape[1] for w in weight)], kinds)
    losses = train_members(partial(train_epoch, chain), aims, parameters, statistics, lessons)
    write_back(parameters, weight)
    write_back(statistics[:, 0], mean)
    write_back(statistics[:, 1], variance)
    return losses


def train_members(
    train_epoch: Callable[..., float],
    aims: Sequence[Aim],
    parameters: Single,
    statistics: Single,
    lessons: Lessons,
) -> list[float]:
    """Train members with a compiled loop, each for its aim; return the mean loss per epoch.

    `parameters` (m, p) and `statistics` (m, 2, units) are what they learn, in place. The members of
    an epoch are shared out among threads. They have nothing in common, so their number and order
    change no bit.
    """
    rows, schedule = lessons.rows, lessons.schedule
    n_members, size = len(rows), batch_length(rows.shape[1], schedule.batch_size)
    n_steps = rows.shape[1] // size
    moments = np.zeros((n_members, 2, parameters.shape[1]), dtype=np.float32)
    data, weights = lessons.prepared.data, lessons.single_weights()

    def one_epoch(j: int, epoch: int) -> float:
        order = lessons.generators[j].permutation(rows.shape[1])[: n_steps * size]
        state = State(parameters[j], moments[j], statistics[j])
        adam = Adam(epoch * n_steps, schedule.learning_rate, schedule.weight_decay)
        return train_epoch(data, rows[j][order], weights[j], size, aims[j], state, adam)

    losses = []
    with ThreadPoolExecutor(min(n_threads(), n_members)) as threads:
        for epoch in range(schedule.epochs):
            found = threads.map(in_threads(one_epoch), range(n_members), [epoch] * n_members)
            losses.append(sum(found) / n_members)
            advance(schedule.task, (epoch + 1) / schedule.epochs, f"loss {losses[-1]:.4g}")
    return losses


def flat(parts: Sequence[Single]) -> Single:
    """Return arrays (m, ...) side by side, (m, numbers)."""
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def write_back(numbers: Single, parts: Sequence[Single]) -> None:
    """Write the numbers back to the arrays that `flat` took them from."""
    ends = np.cumsum([part[0].size for part in parts])
    for part, piece in zip(parts, np.split(numbers, ends[:-1], axis=1), strict=True):
        part[...] = piece.reshape(part.shape)


def train_autoencoder(
    encoder: Stack,
    decoder: Stack,
    lessons: Lessons,
    on_sphere: bool = False,
) -> list[float]:
    """Train encoder and decoder on the weighted reconstruction error; codes may be unit vectors."""
    if isinstance(encoder, MLPStack) and isinstance(decoder, MLPStack):
        layers = encoder.chain(SPHERE if on_sphere else LINEAR) + decoder.chain()
        return train_perceptrons(layers, [to_reconstruct()] * encoder.n_members, lessons)
    from aberra.detectors.convolutions import train_to_reconstruct

    return train_to_reconstruct(encoder, decoder, lessons, on_sphere)
