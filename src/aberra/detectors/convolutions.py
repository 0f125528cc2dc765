"""The training of convolutions: in torch, or compiled where the networks are small.

Torch is fast where a layer has many maps. The LeNets of MNIST have eight at most, and there the
compiled loop takes a fifth of the time (results/stacking.md).

Notation (shapes): data (n, d); rows (m, k), what each member draws from; weights (m, n), each
member's own; x (m, d, B) a batch of each member's own rows; w (m, B) their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from aberra.detectors.aims import Aim, to_centre, to_reconstruct
from aberra.detectors.conv_chain import can_be_compiled, chain_of_convolutions
from aberra.detectors.objectives import (
    ae_iadc,
    dsvdd_iadc,
    rsrae_iadc,
    squared_error,
    unit_sphere,
)
from aberra.detectors.training import Lessons, batch_length, train_members, write_back
from aberra.nets.conv import ConvStack
from aberra.nets.conv_plan import ConvPlan
from aberra.nets.networks import Stack
from aberra.progress import advance
from aberra.twister import Single, Twister

FEW_MAPS = 16
STATISTICS = ("means", "variances")  # of the stacks' layers
GATHER = 1 << 22  # numbers gathered at once: several steps' batches, some 16 MB

Objective = Callable[[Tensor, Tensor], Tensor]


def batches(
    data: Tensor,
    rows: Tensor,
    weights: Tensor,
    batch_size: int,
    generators: Sequence[Twister],
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield one epoch of batches; every member shuffles its own rows, the odd rest is dropped."""
    size = batch_length(rows.shape[1], batch_size)
    n_steps = rows.shape[1] // size
    order = torch.stack([torch.from_numpy(g.permutation(rows.shape[1])) for g in generators])
    shuffled = rows.gather(1, order)[:, : n_steps * size].view(len(rows), n_steps, size)
    w = weights.gather(1, shuffled.flatten(1)).view(shuffled.shape).transpose(0, 1).contiguous()
    at_once = max(1, GATHER // (len(rows) * size * data.shape[1]))
    for start in range(0, n_steps, at_once):
        index = shuffled[:, start : start + at_once].transpose(0, 1)  # (steps, m, B)
        flat = index.reshape(-1)
        x = data.index_select(0, flat).view(*index.shape, -1).transpose(2, 3).contiguous()
        yield from zip(x, w[start : start + at_once], strict=True)


def train_convolutions(
    stacks: Sequence[ConvStack],
    objective: Objective,
    lessons: Lessons,
    extra: Sequence[Tensor] = (),
) -> list[float]:
    """Minimise `objective(x, w)` over the stacks' parameters; return the mean loss per epoch."""
    data, rows = torch.from_numpy(lessons.prepared.data), torch.from_numpy(lessons.rows)
    weights, schedule = torch.from_numpy(lessons.single_weights()), lessons.schedule
    parameters = [p for stack in stacks for p in stack.parameters()] + list(extra)
    optimiser = torch.optim.Adam(
        parameters, schedule.learning_rate, weight_decay=schedule.weight_decay, fused=True
    )
    losses = []
    for epoch in range(schedule.epochs):
        total, n_steps = torch.zeros(()), 0
        drawn = batches(data, rows, weights, schedule.batch_size, lessons.generators)
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


def is_small(*plans: ConvPlan) -> bool:
    """Say whether networks of these plans train faster in the compiled loop than in torch."""
    few = all(layer.n_out <= FEW_MAPS for plan in plans for layer in plan.layers)
    return few and can_be_compiled(*plans)


def train_compiled(
    stacks: Sequence[ConvStack], aims: Sequence[Aim], lessons: Lessons
) -> list[float]:
    """Train an encoder, or it and its decoder, in place, in the compiled loop."""
    from aberra.detectors.compiled_convolutions import train_epoch  # scoring does without

    chain = chain_of_convolutions(*(stack.plan for stack in stacks))
    kernels = [_in_order([stack.members[j] for stack in stacks]) for j in range(len(aims))]
    means, variances = ([_joined(stacks, of, j) for j in range(len(aims))] for of in STATISTICS)
    parameters = np.stack([_flat(own) for own in kernels])
    statistics = np.stack([[_flat(m), _flat(v)] for m, v in zip(means, variances, strict=True)])
    losses = train_members(partial(train_epoch, chain), aims, parameters, statistics, lessons)
    for j in range(len(aims)):
        for numbers, parts in (
            (parameters[j], kernels[j]),
            (statistics[j, 0], means[j]),
            (statistics[j, 1], variances[j]),
        ):
            write_back(numbers[None], [part[None] for part in parts])
    return losses


def _in_order(members: Sequence[Sequence[Tensor]]) -> list[Single]:
    """Return the kernels of one member, those of the code behind all others, in their memory."""
    encoder, *decoder = members
    ordered = [*encoder[:-1], *(kernel for own in decoder for kernel in own), encoder[-1]]
    return [kernel.detach().numpy() for kernel in ordered]


def _joined(stacks: Sequence[ConvStack], of: str, j: int) -> list[Single]:
    return [part.numpy() for stack in stacks for part in getattr(stack, of)[j]]


def _flat(parts: Sequence[Single]) -> Single:
    return np.concatenate([part.ravel() for part in parts])


def train_to_reconstruct(
    encoder: Stack, decoder: Stack, lessons: Lessons, on_sphere: bool
) -> list[float]:
    """Train encoder and decoder on the weighted reconstruction error; codes may be unit vectors."""
    assert isinstance(encoder, ConvStack)
    assert isinstance(decoder, ConvStack)
    if not on_sphere and is_small(encoder.plan, decoder.plan):
        return train_compiled([encoder, decoder], [to_reconstruct()] * len(lessons.rows), lessons)

    def objective(x: Tensor, w: Tensor) -> Tensor:
        z = encoder(x)
        x_hat = torch.sigmoid(decoder(unit_sphere(z) if on_sphere else z))
        return ae_iadc(squared_error(x, x_hat), w)

    return train_convolutions([encoder, decoder], objective, lessons)


def train_to_centre(encoder: ConvStack, centre: Single, lessons: Lessons) -> list[float]:
    """Train the encoder on the weighted distance to each member's centre (m, k, 1)."""
    if is_small(encoder.plan):
        return train_compiled([encoder], [to_centre(own[:, 0]) for own in centre], lessons)
    c = torch.from_numpy(centre)

    def objective(x: Tensor, w: Tensor) -> Tensor:
        return dsvdd_iadc(encoder(x), c, w)

    return train_convolutions([encoder], objective, lessons)


def train_subspace(
    encoder: Stack, decoder: Stack, A: Single, lessons: Lessons, lambdas: tuple[float, float]
) -> list[float]:
    """Train encoder, decoder and the subspace A (m, k', k) between them, in place."""
    assert isinstance(encoder, ConvStack)
    assert isinstance(decoder, ConvStack)
    learnt = torch.from_numpy(A).requires_grad_()  # the same memory

    def objective(x: Tensor, w: Tensor) -> Tensor:
        z = encoder(x)
        error = squared_error(x, torch.sigmoid(decoder(learnt @ z)))
        return rsrae_iadc(error, z, learnt, w, *lambdas)

    return train_convolutions([encoder, decoder], objective, lessons, extra=[learnt])
