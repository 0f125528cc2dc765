"""How a denoiser learns: alone (DDPM), or against a discriminator (ADDM).

Every random number of a step belongs to the step, not to what came before it. So a training that
was killed goes on with the bytes it would have had, and several processes can share a batch.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from aberra.data.images import TrainingImages, parts
from aberra.diffusion.losses import addm_loss, ddpm_loss, discriminator_loss
from aberra.diffusion.noise import NOISES
from aberra.diffusion.process import SCHEDULES, Schedule, p_sample, predict_x0, q_sample
from aberra.errors import DivergenceError
from aberra.nets.checkpoint import Checkpoint, fingerprint
from aberra.nets.discriminator import Discriminator, DiscriminatorPlan, discriminator
from aberra.nets.place import Place
from aberra.nets.unet import Denoiser, UNetPlan, denoiser
from aberra.progress import advance, time_is_up
from aberra.rng import batch_rows, draw_seeds, torch_generator

ADAM_BETAS = (0.9, 0.999)
DISCRIMINATOR_BETAS = (0.5, 0.999)
LOSS_EVERY = 20  # steps between looks at the losses: each one waits for the device


@dataclass(frozen=True)
class DiffusionPlan:
    """Everything that decides what is learnt, besides the images and the seed."""

    unet: UNetPlan
    discriminator: DiscriminatorPlan | None  # None: DDPM
    n_steps: int
    schedule: str
    noise: str
    highest: float  # steps are drawn from 1 to this share of T
    train_steps: int
    batch_size: int
    learning_rate: float
    decay: float  # factor on the learning rate ...
    decay_every: int  # ... every so many training steps
    ema: float
    clip: float
    adversarial_weight: float = 0.0
    adversarial_stride: int = 1
    discriminator_rate: float = 1e-4


@dataclass(frozen=True)
class Draw:
    """The random numbers of one training step; images of the whole batch first."""

    rows: Tensor
    t: Tensor
    eps: Tensor
    eps_real: Tensor
    z: Tensor

    def part(self, which: slice, device: torch.device) -> Draw:
        """Return one process's share, on its device."""
        return Draw(*(getattr(self, name)[which].to(device) for name in self.__annotations__))


def draw(
    plan: DiffusionPlan, shape: tuple[int, ...], seed: int, step: int, device: torch.device
) -> Draw:
    """Draw rows, noise levels and noise for one step from images of `shape` (n, c, h, w)."""
    generator = torch_generator(draw_seeds(seed, 1, step, n=1)[0])
    size = plan.batch_size
    rows = torch.from_numpy(batch_rows(seed, shape[0], size, step))
    highest = max(1, round(plan.highest * plan.n_steps))
    t = torch.randint(1, highest + 1, (size,), generator=generator)
    batch = (size, shape[1], shape[2], shape[3])
    fields = 3 if plan.discriminator is not None else 1
    eps = [NOISES[plan.noise](batch, generator, device) for _ in range(fields)]
    return Draw(rows, t, eps[0], eps[-1], eps[fields // 2])


class Training:
    """The networks of one training, with their optimisers and the denoiser's running average."""

    def __init__(self, plan: DiffusionPlan, seed: int, place: Place) -> None:
        self.plan, self.place = plan, place
        self.schedule = SCHEDULES[plan.schedule](plan.n_steps)
        seeds = draw_seeds(seed, 2, n=2)
        self.denoiser = denoiser(plan.unet, seeds[0]).to(place.device)
        self.average = denoiser(plan.unet, seeds[0]).to(place.device).requires_grad_(False)
        self.optimiser = Adam(self.denoiser.parameters(), plan.learning_rate, ADAM_BETAS)
        self.nets: dict[str, nn.Module] = {"denoiser": self.denoiser, "average": self.average}
        self.optimisers = {"denoiser": self.optimiser}
        self.predict = place.set_up(self.denoiser)
        self.judge: Discriminator | None = None
        if plan.discriminator is not None:
            self.judge = discriminator(plan.discriminator, seeds[1]).to(place.device)
            rate, betas = plan.discriminator_rate, DISCRIMINATOR_BETAS
            self.judge_optimiser = Adam(self.judge.parameters(), rate, betas)
            self.tell_apart = place.set_up(self.judge)
            self.nets["discriminator"] = self.judge
            self.optimisers["discriminator"] = self.judge_optimiser

    def step(self, x0: Tensor, w: Tensor, d: Draw) -> list[Tensor]:
        """Update all networks on one batch; return the losses, the denoiser's first."""
        plan, place = self.plan, self.place
        xt = q_sample(self.schedule, x0, d.t, d.eps)
        with place.autocast():
            eps_hat = self.predict(xt, d.t / plan.n_steps)
        eps_hat = eps_hat.float()
        if self.judge is None:
            losses = [ddpm_loss(d.eps, eps_hat, w)]
        else:
            s = (d.t - plan.adversarial_stride).clamp(min=0)
            fake = denoised(self.schedule, xt, d, s, eps_hat)
            real = q_sample(self.schedule, x0, s, d.eps_real)
            # (1) The discriminator learns to tell them apart.
            loss_d = self._judge_step(real, fake.detach(), s / plan.n_steps, w)
            # (2) The denoiser learns to predict the noise, and to pass for real.
            logits = self._frozen_judgement(self.judge, fake, s / plan.n_steps)
            losses = [addm_loss(d.eps, eps_hat, logits, w, plan.adversarial_weight), loss_d]
        _update(self.optimiser, self.denoiser, losses[0], place, plan.clip)
        return losses

    def _judge_step(self, real: Tensor, fake: Tensor, time: Tensor, w: Tensor) -> Tensor:
        assert self.judge is not None
        with self.place.autocast():
            # One call for both: half the work of the layers' bookkeeping, and of DDP's.
            logits = self.tell_apart(torch.cat([real, fake]), torch.cat([time, time]))
        on_real, on_fake = logits.float().chunk(2)
        loss = discriminator_loss(on_real, on_fake, w)
        _update(self.judge_optimiser, self.judge, loss, self.place, self.plan.clip)
        return loss

    def _frozen_judgement(self, judge: Discriminator, fake: Tensor, time: Tensor) -> Tensor:
        """Let gradients flow through the discriminator, but not into it."""
        judge.requires_grad_(False)
        with self.place.autocast():
            logits: Tensor = judge(fake, time)
        judge.requires_grad_(True)
        return logits.float()


def train(
    images: TrainingImages,
    weights: Tensor,
    plan: DiffusionPlan,
    seed: int,
    place: Place,
    folder: Path | None = None,
    minutes: float = 5.0,
) -> Denoiser:
    """Train a denoiser on images (n, c, h, w) in [-1, 1]; return its running average.

    Parameters
    ----------
    images, weights
        The training images and how far each is trusted, on the CPU.
    plan : DiffusionPlan
        Networks and settings.
    seed : int
        Decides every random number.
    place : Place
        Device, precision and share of the batch.
    folder : path, optional
        Keeps the state of the training every `minutes`. The same training, started again, goes on
        from there; when it is over, its file is deleted (see `aberra.progress.keeping_trainings`).
    """
    run = Training(plan, seed, place)
    mark = fingerprint((asdict(plan), seed, place.half), parts(images), [weights])
    keeper = Checkpoint(folder, mark, run.nets, run.optimisers, minutes, place.rank == 0)
    mine = place.share(plan.batch_size)
    done = keeper.resume()
    for step in range(done, plan.train_steps):
        d = draw(plan, images.shape, seed, step, place.device).part(mine, place.device)
        x0 = images[d.rows.cpu()].to(place.device, memory_format=torch.channels_last)
        w = weights[d.rows.cpu()].to(place.device)
        set_rate(run.optimiser, plan.learning_rate * plan.decay ** (step // plan.decay_every))
        losses = run.step(x0, w, d)
        follow(run.average, run.denoiser, min(plan.ema, (1 + step) / (10 + step)))
        if (step + 1) % LOSS_EVERY == 0 or step + 1 == plan.train_steps:
            report(losses, step + 1, plan.train_steps)
        done = step + 1
        keeper.step_done(done, plan.train_steps)
        if time_is_up(done / plan.train_steps):
            break
    keeper.finish(done)
    return run.average.eval()


def denoised(schedule: Schedule, xt: Tensor, d: Draw, s: Tensor, eps_hat: Tensor) -> Tensor:
    """Take the reverse step that the discriminator judges; gradients flow to eps_hat."""
    x0_hat = predict_x0(schedule, xt, d.t, eps_hat).clamp(-1, 1)
    return p_sample(schedule, xt, d.t, s, x0_hat, d.z)


def _update(optimiser: Optimizer, net: nn.Module, loss: Tensor, place: Place, clip: float) -> None:
    optimiser.zero_grad(set_to_none=True)
    place.backward(loss)
    nn.utils.clip_grad_norm_(net.parameters(), clip)
    optimiser.step()


@torch.no_grad()
def follow(average: nn.Module, net: nn.Module, keep: float) -> None:
    """Move the running average a little towards the network."""
    torch._foreach_lerp_(list(average.parameters()), list(net.parameters()), 1 - keep)


def set_rate(optimiser: Optimizer, rate: float) -> None:
    """Give an optimiser its learning rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate


def report(losses: list[Tensor], step: int, n_steps: int) -> None:
    """Show the losses, and stop where they are no numbers any more."""
    values = [float(loss.detach()) for loss in losses]
    if not all(map(math.isfinite, values)):
        raise DivergenceError(
            f"Training diverged at step {step}: the loss is not finite. Lower the learning rate."
        )
    names = ("loss", "discriminator")
    note = ", ".join(f"{name} {value:.4f}" for name, value in zip(names, values, strict=False))
    advance("training steps", step / n_steps, note)
