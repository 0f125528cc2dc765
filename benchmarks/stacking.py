"""What stacking brings: members in one tensor program against the same members one by one.

    python -m benchmarks.stacking         writes results/stacking.md

Perceptrons (36-32-16-8, batch 128): plain PyTorch modules in a loop, the members as one tensor
program of batched products, and our compiled epoch, which takes the members one after the other.
Convolutions (the encoder of the 28 x 28 LeNet, batch 128): a loop over members against grouped
convolution and against vmap. Autoencoders of digits: a loop in PyTorch against our compiled epoch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aberra.detectors import convolutions
from aberra.detectors.aims import to_reconstruct
from aberra.detectors.objectives import ae_iadc, squared_error
from aberra.detectors.scaling import min_max
from aberra.detectors.training import EpochPlan, Lessons, Prepared, train_autoencoder
from aberra.nets.conv import ConvStack
from aberra.nets.conv_plan import lenet
from aberra.nets.stacked import BN_EPS, LEAK, NORMALISED, MLPStack
from aberra.rng import single_thread
from aberra.twister import Twister
from benchmarks.records import environment

WIDTHS, BATCH, MEMBERS, STEPS = (36, 32, 16, 8), 128, 5, 50
DIGIT, FEW_STEPS = (1, 28, 28), 8
RESULTS = Path("results/stacking.md")


def milliseconds(step: Callable[[], object], n: int) -> float:
    """Return the time of one step: the best of five runs, after one to warm up."""
    times = []
    for _ in range(6):
        started = time.perf_counter()
        for _ in range(n):
            step()
        times.append(time.perf_counter() - started)
    return 1e3 * min(times[1:]) / n


def compiled_step(m: int) -> Callable[[], object]:
    """Return a training step of m autoencoders, as our detectors train them."""
    generators = [Twister(s) for s in range(m)]
    encoder, decoder = MLPStack(WIDTHS, generators), MLPStack(WIDTHS[::-1], generators)
    data = Twister(m).uniform(STEPS * BATCH, WIDTHS[0])
    prepared = Prepared(data, min_max(data), None)
    rows, weights = np.tile(np.arange(len(data)), (m, 1)), np.ones((m, len(data)))
    schedule = EpochPlan(1, BATCH, 1e-3, 1e-6, "benchmark")
    lessons = Lessons(prepared, rows, weights, generators, schedule)
    return lambda: train_autoencoder(encoder, decoder, lessons)


def tensor_program_step(m: int) -> Callable[[], object]:
    """Return a training step of m autoencoders with batched products over all members."""
    generators = [Twister(s) for s in range(m)]
    stacks = MLPStack(WIDTHS, generators), MLPStack(WIDTHS[::-1], generators)
    layers = [layer for stack in stacks for layer in stack.chain()]
    parameters = [torch.from_numpy(layer.weight).requires_grad_() for layer in layers]
    means = [torch.from_numpy(layer.mean).view(-1) for layer in layers]
    variances = [torch.from_numpy(layer.variance).view(-1) for layer in layers]
    optimiser = torch.optim.Adam(parameters, 1e-3, weight_decay=1e-6, fused=True)
    x = torch.rand(m, WIDTHS[0], BATCH)

    def step() -> None:
        h = x
        for k, layer in enumerate(layers):
            h = torch.bmm(parameters[k], h)
            if layer.kind == NORMALISED:
                channels = h.view(1, -1, BATCH)  # every unit of every member is a channel
                mean, variance = means[k], variances[k]
                h = F.batch_norm(channels, mean, variance, training=True, eps=BN_EPS).view(h.shape)
                h = F.leaky_relu(h, LEAK)
        optimiser.zero_grad()
        (x - torch.sigmoid(h)).square().sum().backward()
        optimiser.step()

    return step


def looped_step(m: int) -> Callable[[], object]:
    """Return a training step of m autoencoders as anybody would write them."""

    def half(widths: tuple[int, ...]) -> list[nn.Module]:
        layers: list[nn.Module] = []
        for k, (a, b) in enumerate(pairwise(widths)):
            layers.append(nn.Linear(a, b, bias=False))
            if k < len(widths) - 2:
                layers += [nn.BatchNorm1d(b, eps=BN_EPS, affine=False), nn.LeakyReLU(LEAK)]
        return layers

    nets = [nn.Sequential(*half(WIDTHS), *half(WIDTHS[::-1]), nn.Sigmoid()) for _ in range(m)]
    optimisers = [torch.optim.Adam(net.parameters(), 1e-3, weight_decay=1e-6) for net in nets]
    x = torch.rand(m, BATCH, WIDTHS[0])

    def step() -> None:
        for net, optimiser, rows in zip(nets, optimisers, x, strict=True):
            optimiser.zero_grad()
            (rows - net(rows)).square().sum().backward()
            optimiser.step()

    return step


def conv_loop_step(m: int) -> Callable[[], object]:
    """Return forward and backward of m convolutional encoders, looped."""
    stack = ConvStack(lenet((1, 28, 28))[0], [Twister(s) for s in range(m)])
    x = torch.rand(m, 784, BATCH)
    return lambda: stack(x).square().sum().backward()


def digits_step(m: int, batch: int, compiled: bool) -> Callable[[], object]:
    """Return some training steps of m convolutional autoencoders of digits."""
    generators = [Twister(s) for s in range(m)]
    encoder, decoder = (ConvStack(plan, generators) for plan in lenet(DIGIT))
    data = Twister(m).uniform(FEW_STEPS * batch, 784)
    rows, weights = np.tile(np.arange(len(data)), (m, 1)), np.ones((m, len(data)))
    schedule = EpochPlan(1, batch, 1e-3, 1e-6, "benchmark")
    lessons = Lessons(Prepared(data, min_max(data), DIGIT), rows, weights, generators, schedule)
    if compiled:
        aims = [to_reconstruct()] * m
        return lambda: convolutions.train_compiled([encoder, decoder], aims, lessons)

    def objective(x: Tensor, w: Tensor) -> Tensor:
        return ae_iadc(squared_error(x, torch.sigmoid(decoder(encoder(x)))), w)

    return lambda: convolutions.train_convolutions([encoder, decoder], objective, lessons)


def _encoder(x: Tensor, first: Tensor, second: Tensor, dense: Tensor, groups: int) -> Tensor:
    for weight in (first, second):
        h = F.conv2d(x, weight, padding=2, groups=groups)
        h = F.batch_norm(h, None, None, training=True, eps=BN_EPS)
        x = F.max_pool2d(F.leaky_relu(h, LEAK), 2)
    if groups == 1:
        return x.flatten(1) @ dense.T
    return torch.bmm(x.view(len(x), groups, -1).transpose(0, 1), dense.transpose(1, 2))


def conv_grouped_step(m: int) -> Callable[[], object]:
    """Return the same with the members as groups of one convolution."""
    first = torch.rand(m * 8, 1, 5, 5).requires_grad_()
    second = torch.rand(m * 4, 8, 5, 5).requires_grad_()
    dense = torch.rand(m, 32, 196).requires_grad_()
    x = torch.rand(BATCH, m, 28, 28)
    return lambda: _encoder(x, first, second, dense, m).square().sum().backward()


def conv_vmap_step(m: int) -> Callable[[], object]:
    """Return the same through vmap."""
    first = torch.rand(m, 8, 1, 5, 5).requires_grad_()
    second = torch.rand(m, 4, 8, 5, 5).requires_grad_()
    dense = torch.rand(m, 32, 196).requires_grad_()
    x = torch.rand(m, BATCH, 1, 28, 28)
    batched = torch.func.vmap(lambda a, b, c, d: _encoder(a, b, c, d, groups=1))
    return lambda: batched(x, first, second, dense).square().sum().backward()


def main() -> None:
    """Time every variant on one thread, ours on two as well."""
    lines = ["| what | members | ms a step | ms a member |", "|---|---|---|---|"]

    def add(what: str, m: int, step: Callable[[], object], n: int, steps: int = 1) -> None:
        time_ms = milliseconds(step, n) / steps
        lines.append(f"| {what} | {m} | {time_ms:.2f} | {time_ms / m:.2f} |")
        print(lines[-1], flush=True)

    for m in (1, 5, 15):
        torch.set_num_threads(1)
        with single_thread():
            add("perceptrons, PyTorch, one by one", m, looped_step(m), 60)
            add("perceptrons, PyTorch, one tensor program", m, tensor_program_step(m), 60)
            add("perceptrons, compiled (ours)", m, compiled_step(m), 5, STEPS)
        torch.set_num_threads(2)
        with single_thread():
            add("perceptrons, compiled (ours), two threads", m, compiled_step(m), 5, STEPS)
    with single_thread():
        add("convolutions, looped (ours)", MEMBERS, conv_loop_step(MEMBERS), 8)
        add("convolutions, grouped", MEMBERS, conv_grouped_step(MEMBERS), 8)
        add("convolutions, vmap", MEMBERS, conv_vmap_step(MEMBERS), 8)
        for batch in (16, BATCH):
            for how, compiled in (("PyTorch, looped", False), ("compiled (ours)", True)):
                what = f"autoencoders of digits, {how}, batches of {batch}"
                add(what, MEMBERS, digits_step(MEMBERS, batch, compiled), 2, FEW_STEPS)
    torch.set_num_threads(2)
    with single_thread():
        what = "autoencoders of digits, compiled (ours), batches of 16, two threads"
        add(what, MEMBERS, digits_step(MEMBERS, 16, True), 2, FEW_STEPS)
    text = "# Stacking\n\n`python -m benchmarks.stacking`, one thread unless it says two.\n\n"
    RESULTS.write_text(f"{text}{chr(10).join(lines)}\n\nMade with {environment()}.\n")


if __name__ == "__main__":
    main()
