"""The training loops, in the open: one for perceptrons, one for convolutions.

Notation (shapes): data (n, d); rows (m, k), what each member draws from; weights (m, n), each
member's own; x (m, d, B) a batch of each member's own rows; w (m, B) their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aberra.detectors.aims import Adam, Aim, State, chain_of, to_reconstruct
from aberra.detectors.compiled_training import train_epoch
from aberra.detectors.objectives import ae_iadc, squared_error, unit_sphere
from aberra.detectors.scaling import Scaling
from aberra.errors import DataError
from aberra.nets.conv import ConvStack
from aberra.nets.networks import Stack
from aberra.nets.stacked import LINEAR, SPHERE, Layer, MLPStack
from aberra.progress import advance
from aberra.rng import n_threads

LANES = 16  # batches are multiples of this: whole vectors of numbers
GATHER = 1 << 22  # numbers gathered at once: several steps' batches, some 16 MB

Objective = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Prepared:
    """Training data once scaled: the one copy that all rounds share."""

    data: Tensor  # (n, d), float32
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
    rows: Tensor  # (m, k), drawn from the data
    weights: Tensor  # (m, n)
    generators: Sequence[torch.Generator]  # for each member's shuffling
    schedule: EpochPlan


def batches(
    data: Tensor,
    rows: Tensor,
    weights: Tensor,
    batch_size: int,
    generators: Sequence[torch.Generator],
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield one epoch of batches; every member shuffles its own rows, the odd rest is dropped."""
    size = batch_length(rows.shape[1], batch_size)
    n_steps = rows.shape[1] // size
    order = torch.stack([torch.randperm(rows.shape[1], generator=g) for g in generators])
    shuffled = rows.gather(1, order)[:, : n_steps * size].view(len(rows), n_steps, size)
    w = weights.gather(1, shuffled.flatten(1)).view(shuffled.shape).transpose(0, 1).contiguous()
    at_once = max(1, GATHER // (len(rows) * size * data.shape[1]))
    for start in range(0, n_steps, at_once):
        index = shuffled[:, start : start + at_once].transpose(0, 1)  # (steps, m, B)
        flat = index.reshape(-1)
        x = data.index_select(0, flat).view(*index.shape, -1).transpose(2, 3).contiguous()
        yield from zip(x, w[start : start + at_once], strict=True)


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
    """Train a chain of layers, in place, each member for its aim; return the mean loss per epoch.

    The members of an epoch are shared out among threads. They have nothing in common, so their
    number and order change no bit.
    """
    rows, schedule = lessons.rows, lessons.schedule
    n_members, size = len(rows), batch_length(rows.shape[1], schedule.batch_size)
    n_steps = rows.shape[1] // size
    weight, kinds, mean, variance = (list(part) for part in zip(*layers, strict=True))
    parameters, statistics = _flat(weight), np.stack([_flat(mean), _flat(variance)], axis=1)
    moments = np.zeros((n_members, 2, parameters.shape[1]), dtype=np.float32)
    chain = chain_of([weight[0].shape[2], *(w.shape[1] for w in weight)], kinds)
    data, weights = lessons.prepared.data.numpy(), lessons.weights.contiguous().numpy()

    def one_epoch(j: int, epoch: int) -> float:
        order = torch.randperm(rows.shape[1], generator=lessons.generators[j])[: n_steps * size]
        state = State(parameters[j], moments[j], statistics[j])
        adam = Adam(epoch * n_steps, schedule.learning_rate, schedule.weight_decay)
        drawn = rows[j][order].numpy()
        return train_epoch(data, drawn, weights[j], size, chain, aims[j], state, adam)

    losses = []
    with ThreadPoolExecutor(min(n_threads(), n_members)) as threads:
        for epoch in range(schedule.epochs):
            found = threads.map(one_epoch, range(n_members), [epoch] * n_members)
            losses.append(sum(found) / n_members)
            advance(schedule.task, (epoch + 1) / schedule.epochs, f"loss {losses[-1]:.4g}")
    _write(parameters, weight)
    _write(statistics[:, 0], mean)
    _write(statistics[:, 1], variance)
    return losses


def _flat(parts: Sequence[Tensor]) -> NDArray[np.float32]:
    """Return tensors (m, ...) side by side, (m, numbers)."""
    return torch.cat([part.flatten(1) for part in parts], dim=1).numpy()


def _write(flat: NDArray[np.float32], parts: Sequence[Tensor]) -> None:
    """Write the numbers back to the tensors that `_flat` took them from."""
    pieces = torch.from_numpy(flat).split([part[0].numel() for part in parts], dim=1)
    for part, piece in zip(parts, pieces, strict=True):
        part.copy_(piece.view(part.shape))


def train_convolutions(
    stacks: Sequence[ConvStack],
    objective: Objective,
    lessons: Lessons,
    extra: Sequence[Tensor] = (),
) -> list[float]:
    """Minimise `objective(x, w)` over the stacks' parameters; return the mean loss per epoch."""
    data, rows, schedule = lessons.prepared.data, lessons.rows, lessons.schedule
    parameters = [p for stack in stacks for p in stack.parameters()] + list(extra)
    optimiser = torch.optim.Adam(
        parameters, schedule.learning_rate, weight_decay=schedule.weight_decay, fused=True
    )
    losses = []
    for epoch in range(schedule.epochs):
        total, n_steps = torch.zeros(()), 0
        drawn = batches(data, rows, lessons.weights, schedule.batch_size, lessons.generators)
        for x, w in drawn:
            loss = objective(x, w)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.detach()
            n_steps += 1
        losses.append(float(total) / (n_steps * len(rows)))
        advance(schedule.task, (epoch + 1) / schedule.epochs, f"loss {losses[-1]:.4g}")
    return losses


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
    assert isinstance(encoder, ConvStack)
    assert isinstance(decoder, ConvStack)

    def objective(x: Tensor, w: Tensor) -> Tensor:
        z = encoder(x)
        x_hat = torch.sigmoid(decoder(unit_sphere(z) if on_sphere else z))
        return ae_iadc(squared_error(x, x_hat), w)

    return train_convolutions([encoder, decoder], objective, lessons)


def as_tensors(rows: NDArray[np.int64], weights: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    """Bring rows and weights to torch, weights in the precision of training."""
    single = np.ascontiguousarray(weights, dtype=np.float32)
    return torch.from_numpy(np.ascontiguousarray(rows)), torch.from_numpy(single)
