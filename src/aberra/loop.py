"""The one training loop of every localiser.

A training is a `Run`: its networks, their optimisers, and what one step does to them. `train` takes
the steps, keeps the state of the training on disk, shows the losses and watches the clock.

Every random number of a step belongs to the step, not to what came before it. So a training that
was killed goes on with the bytes it would have had, and several processes that share a batch draw
the same numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from aberra.data.images import TrainingImages, parts
from aberra.errors import DivergenceError
from aberra.nets.checkpoint import Checkpoint, training_mark
from aberra.nets.place import Place
from aberra.progress import advance, time_is_up
from aberra.rng import batch_rows, draw_seeds, torch_generator
from aberra.watching import SHOWN, Watch, open_watch

LOSS_EVERY = 20  # steps between looks at the losses: each one waits for the device

Losses = dict[str, Tensor]  # what one step returns: the losses to watch, the main one first


@dataclass(frozen=True)
class Tempo:
    """How long and how fast a network trains."""

    train_steps: int
    batch_size: int
    learning_rate: float


@dataclass(frozen=True)
class Keeping:
    """Where an unfinished training is kept, and how many minutes lie between two copies of it."""

    folder: Path | None = None  # None keeps nothing
    minutes: float = 5.0


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
        return self.share(torch.randn((self.size, *shape), generator=self.generator))

    def uniform(self, *shape: int) -> Tensor:
        """Draw uniform numbers (B, *shape)."""
        return self.share(torch.rand((self.size, *shape), generator=self.generator))

    def integers(self, low: int, high: int) -> Tensor:
        """Draw integers (B,) from `low` up to but not including `high`."""
        return self.share(torch.randint(low, high, (self.size,), generator=self.generator))

    def fields(self, draw: Callable[..., Tensor]) -> Tensor:
        """Draw one field of noise for each image, in the shape of the images."""
        _, c, h, w = self.x.shape
        return self.share(draw((self.size, c, h, w), self.generator, self.x.device))

    def share(self, whole: Tensor) -> Tensor:
        """Return this process's part of what was drawn for the whole batch."""
        return whole[self.mine].to(self.x.device)


class Run(ABC):
    """The networks of one training, their optimisers, and what one step does to them."""

    place: Place
    nets: Mapping[str, nn.Module]
    optimisers: Mapping[str, Optimizer]
    clip: float | None = None  # longest gradient; None leaves gradients as they are

    @abstractmethod
    def step(self, step: int, batch: Batch) -> Losses:
        """Take one step; return the losses to watch, the main one first."""

    @abstractmethod
    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return a few images and what the networks make of them by now, for whoever watches.

        It may draw from the batch, whose random numbers end with its step.
        """

    def set_rates(self, step: int) -> None:  # noqa: B027  most trainings have none
        """Set the learning rates of a step that is about to begin; most never change."""

    def follow(self, step: int) -> None:  # noqa: B027
        """Let running averages follow the networks after a step; most trainings have none."""

    def update(self, name: str, loss: Tensor) -> None:
        """Move one network downhill; several processes average their gradients."""
        optimiser = self.optimisers[name]
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        learnt = [p for group in optimiser.param_groups for p in group["params"]]
        self.place.average([p.grad for p in learnt if p.grad is not None])
        if self.clip is not None:
            nn.utils.clip_grad_norm_(learnt, self.clip)
        optimiser.step()

    def gathered(self, part: Tensor) -> Tensor:
        """Return the rows of all processes, in the order of the whole batch."""
        fabric = self.place.fabric
        return part if fabric is None else fabric.all_gather(part).flatten(0, 1)


def train(
    run: Run,
    settings: object,
    tempo: Tempo,
    images: TrainingImages,
    weights: Tensor,
    seed: int,
    keeping: Keeping | None = None,
) -> None:
    """Take all steps of a training, or those that are left of it.

    Parameters
    ----------
    run : Run
        The networks, and what a step does to them.
    settings : object
        All that the result depends on besides the other arguments. Together they are the name
        under which an unfinished training is kept, so that no other training takes it up.
    tempo : Tempo
        Number of steps and size of a batch.
    images, weights
        The training images (n, c, h, w) in [-1, 1] and how far each is trusted, on the CPU.
    seed : int
        Decides every random number.
    keeping : Keeping, optional
        Where the state of the training is kept every few minutes. The same training, started
        again, goes on from there. When it is over, its file is deleted (see
        `aberra.progress.keeping_trainings`). By default nothing is kept.
    """
    mark = training_mark((settings, tempo, seed, run.place.half), parts(images), [weights])
    keep = keeping or Keeping()
    writes = run.place.rank == 0
    keeper = Checkpoint(keep.folder, mark, run.nets, run.optimisers, keep.minutes, writes)
    done, n_steps = keeper.resume(), tempo.train_steps
    watch = open_watch() if writes else None
    if watch is not None:
        watch.begin()
    for step in range(done, n_steps):
        batch = batch_of(images, weights, tempo.batch_size, seed, step, run.place)
        run.set_rates(step)
        losses = run.step(step, batch)
        run.follow(step)
        done = step + 1
        if step == 0 or done % LOSS_EVERY == 0 or done == n_steps:
            values = show(losses, done, n_steps)
            if watch is not None:
                watch.losses(done, values)
                look_in(watch, run, batch, done, n_steps)
        keeper.step_done(done, n_steps)
        if time_is_up(done / n_steps):
            break
    keeper.finish(done)


def batch_of(
    images: TrainingImages, weights: Tensor, size: int, seed: int, step: int, place: Place
) -> Batch:
    """Return this process's share of the images of one step."""
    mine = place.share(size)
    rows = torch.from_numpy(batch_rows(seed, len(images), size, step))[mine]
    x = images[rows].to(place.device, memory_format=torch.channels_last)
    generator = torch_generator(draw_seeds(seed, 1, step, n=1)[0])
    return Batch(x, weights[rows].to(place.device), generator, size, mine)


def show(losses: Losses, step: int, n_steps: int) -> dict[str, float]:
    """Show the losses, and stop where they are no numbers any more; return them."""
    values = {name: float(loss.detach()) for name, loss in losses.items()}
    if not all(map(math.isfinite, values.values())):
        raise DivergenceError(
            f"Training diverged at step {step}: the loss is not finite. Lower the learning rate."
        )
    note = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
    advance("training steps", step / n_steps, note)
    return values


@torch.no_grad()
def look_in(watch: Watch, run: Run, batch: Batch, step: int, n_steps: int) -> None:
    """Draw what the networks make of a few images, if it is time for it."""
    if watch.wants_picture(last=step == n_steps):
        n = min(SHOWN, len(batch.x))
        few = replace(batch, x=batch.x[:n], w=batch.w[:n], size=n, mine=slice(n))
        images, restored = run.shown(few)
        watch.picture(step, images.float().cpu().numpy(), restored.float().cpu().numpy())
