"""What the localisers with a network of their own share: keywords, and the loop that trains them.

Every random number of a step belongs to the step, as in `aberra.diffusion.training`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from aberra.data.images import TrainingImages, parts
from aberra.diffusion.training import LOSS_EVERY, report
from aberra.localise.base import Localiser
from aberra.nets.checkpoint import Checkpoint, fingerprint
from aberra.nets.place import Place, Precision, find_place
from aberra.progress import time_is_up
from aberra.rng import batch_rows, draw_seeds, torch_generator
from aberra.scikit import Interval, StrOptions


@dataclass(frozen=True)
class Pace:
    """How long and how fast a network trains."""

    train_steps: int
    batch_size: int
    learning_rate: float


@dataclass(frozen=True)
class Batch:
    """One process's share of the images of a step, and the step's random numbers."""

    x: Tensor  # (B, c, h, w) on the device
    w: Tensor  # (B,)
    generator: torch.Generator
    size: int  # of the whole batch
    mine: slice

    def normal(self, *shape: int) -> Tensor:
        """Draw normal numbers (B, *shape)."""
        drawn = torch.randn((self.size, *shape), generator=self.generator)
        return drawn[self.mine].to(self.x.device)

    def uniform(self, *shape: int) -> Tensor:
        """Draw uniform numbers (B, *shape)."""
        drawn = torch.rand((self.size, *shape), generator=self.generator)
        return drawn[self.mine].to(self.x.device)


class Training(ABC):
    """The networks of one training, their optimisers, and what one step does to them."""

    place: Place
    nets: Mapping[str, nn.Module]
    optimisers: Mapping[str, Optimizer]

    @abstractmethod
    def step(self, step: int, batch: Batch) -> Tensor:
        """Take one step; return the loss to watch."""

    def update(self, name: str, loss: Tensor) -> None:
        """Move one network downhill; several processes average their gradients."""
        optimiser = self.optimisers[name]
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if self.place.fabric is not None:
            learnt = [p for group in optimiser.param_groups for p in group["params"]]
            for p in learnt:
                if p.grad is not None:
                    p.grad = self.place.fabric.all_reduce(p.grad, reduce_op="mean")
        optimiser.step()

    def gathered(self, part: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the whole batch."""
        fabric = self.place.fabric
        return part if fabric is None else fabric.all_gather(part).flatten(0, 1)


class NetworkLocaliser(Localiser):
    """Base of the localisers that train networks; the keywords are documented in each of them."""

    train_steps: int | None
    batch_size: int | None
    learning_rate: float | None
    checkpoint: str | Path | None
    checkpoint_minutes: float
    device: str
    precision: Precision

    _parameter_constraints: dict[str, list[Any]] = {
        **Localiser._localiser_constraints,
        "train_steps": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "checkpoint": [str, Path, None],
        "checkpoint_minutes": [Interval(Real, 0, None, closed="left")],
        "device": [str],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
    }

    def _place(self) -> Place:
        return find_place(self.device, self.precision)

    def _pace(self, usual: Pace) -> Pace:
        """Return the preset's pace, with the keywords that were given in its stead."""
        names = ("train_steps", "batch_size", "learning_rate")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(usual, **given)

    def _train_through(
        self,
        run: Training,
        settings: object,
        pace: Pace,
        images: TrainingImages,
        weights: Tensor,
        seed: int,
    ) -> None:
        """Take all steps of a training; `settings` are what its result depends on besides."""
        mark = fingerprint((settings, pace, seed, run.place.half), parts(images), [weights])
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        writes = run.place.rank == 0
        minutes = self.checkpoint_minutes
        keeper = Checkpoint(folder, mark, run.nets, run.optimisers, minutes, writes)
        done = keeper.resume()
        for step in range(done, pace.train_steps):
            loss = run.step(step, draw(images, weights, pace.batch_size, seed, step, run.place))
            if (step + 1) % LOSS_EVERY == 0 or step + 1 == pace.train_steps:
                report([loss], step + 1, pace.train_steps)
            done = step + 1
            keeper.step_done(done, pace.train_steps)
            if time_is_up(done / pace.train_steps):
                break
        keeper.finish(done)


def draw(
    images: TrainingImages, weights: Tensor, size: int, seed: int, step: int, place: Place
) -> Batch:
    """Return this process's share of the images of one step."""
    mine = place.share(size)
    rows = torch.from_numpy(batch_rows(seed, len(images), size, step))[mine]
    x = images[rows].to(place.device, memory_format=torch.channels_last)
    generator = torch_generator(draw_seeds(seed, 1, step, n=1)[0])
    return Batch(x, weights[rows].to(place.device), generator, size, mine)


def per_image(values: Tensor) -> Tensor:
    """Return the mean of each image's values, (B, ...) in and (B,) out."""
    return values.reshape(len(values), -1).mean(dim=1)
