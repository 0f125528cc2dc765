"""How a denoiser learns: alone (DDPM), or against a discriminator (ADDM).

`DiffusionRun.step` is the whole method; the loop around it is `aberra.loop.train`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam

from aberra.data.images import TrainingImages
from aberra.diffusion.losses import addm_loss, ddpm_loss, discriminator_loss
from aberra.diffusion.noise import NOISES
from aberra.diffusion.process import SCHEDULES, NoiseSchedule, p_sample, predict_x0, q_sample
from aberra.loop import Batch, Keeping, Losses, Run, Tempo, train
from aberra.nets.checkpoint import training_mark
from aberra.nets.discriminator import Discriminator, DiscriminatorPlan, discriminator
from aberra.nets.place import Place
from aberra.nets.unet import Denoiser, UNetPlan, denoiser
from aberra.rng import draw_seeds

ADAM_BETAS = (0.9, 0.999)
DISCRIMINATOR_BETAS = (0.5, 0.999)

SHOWN_AT = 0.2  # share of all steps whose noise is taken away for whoever watches


@dataclass(frozen=True)
class DiffusionPlan:
    """Everything that decides what is learnt, besides the images and the seed."""

    unet: UNetPlan
    discriminator: DiscriminatorPlan | None  # None: DDPM
    n_steps: int
    schedule: str
    noise: str
    highest: float  # steps are drawn from 1 to this share of T
    tempo: Tempo
    decay: float  # factor on the learning rate ...
    decay_every: int  # ... every so many training steps
    ema: float
    clip: float
    adversarial_weight: float
    adversarial_stride: int
    discriminator_rate: float = 1e-4


@dataclass(frozen=True)
class Draws:
    """The random numbers of one training step, for one process's share of the batch."""

    t: Tensor  # (B,) steps of the diffusion
    eps: Tensor  # (B, c, h, w) noise that the denoiser has to find
    eps_real: Tensor  # noise of the real x_s
    z: Tensor  # noise of the reverse step


class DiffusionRun(Run):
    """The networks of one training, with their optimisers and the denoiser's running average."""

    def __init__(self, plan: DiffusionPlan, seed: int, place: Place) -> None:
        self.plan, self.place, self.clip = plan, place, plan.clip
        self.schedule = SCHEDULES[plan.schedule](plan.n_steps)
        seeds = draw_seeds(seed, 2, n=2)
        self.denoiser = denoiser(plan.unet, seeds[0]).to(place.device)
        self.average = denoiser(plan.unet, seeds[0]).to(place.device).requires_grad_(False)
        rate = plan.tempo.learning_rate
        self.nets: dict[str, nn.Module] = {"denoiser": self.denoiser, "average": self.average}
        self.optimisers = {"denoiser": Adam(self.denoiser.parameters(), rate, ADAM_BETAS)}
        self.judge: Discriminator | None = None
        if plan.discriminator is not None:
            self.judge = discriminator(plan.discriminator, seeds[1]).to(place.device)
            judge = Adam(self.judge.parameters(), plan.discriminator_rate, DISCRIMINATOR_BETAS)
            self.nets["discriminator"], self.optimisers["discriminator"] = self.judge, judge

    def step(self, step: int, batch: Batch) -> Losses:
        """Update all networks on one batch; return the losses, the denoiser's first."""
        plan, x0, w, d = self.plan, batch.x, batch.w, self.draw(batch)
        xt = q_sample(self.schedule, x0, d.t, d.eps)  # ADDM-1
        eps_hat = self.guess(xt, d.t)
        if self.judge is None:
            loss = ddpm_loss(d.eps, eps_hat, w)  # ADDM-4
            self.update("denoiser", loss)
            return {"loss": loss}
        s = (d.t - plan.adversarial_stride).clamp(min=0)  # t - 1 in print
        fake = denoised(self.schedule, xt, d, s, eps_hat)  # ADDM-2
        real = q_sample(self.schedule, x0, s, d.eps_real)  # ADDM-1
        # (1) The discriminator learns to tell real images from denoised ones.
        loss_d = discriminator_loss(*self.verdicts(self.judge, real, fake.detach(), s), w)
        self.update("discriminator", loss_d)
        # (2) The denoiser learns to predict the noise, and to pass for real.
        verdict = self.frozen_verdict(self.judge, fake, s)
        loss = addm_loss(d.eps, eps_hat, verdict, w, plan.adversarial_weight)  # ADDM-5
        self.update("denoiser", loss)
        return {"loss": loss, "discriminator": loss_d}

    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return images, and what one call of the running average makes of noisy ones."""
        plan = self.plan
        t = torch.full_like(batch.w, max(1, round(SHOWN_AT * plan.n_steps)), dtype=torch.long)
        xt = q_sample(self.schedule, batch.x, t, batch.fields(NOISES[plan.noise]))
        eps_hat = self.average(xt, t / plan.n_steps)
        return batch.x, predict_x0(self.schedule, xt, t, eps_hat).clamp(-1, 1)

    def draw(self, batch: Batch) -> Draws:
        """Draw the steps t and the noise; without a discriminator one field is enough."""
        plan = self.plan
        t = batch.integers(1, max(1, round(plan.highest * plan.n_steps)) + 1)
        noise = NOISES[plan.noise]
        eps = batch.fields(noise)
        if plan.discriminator is None:
            return Draws(t, eps, eps, eps)
        z = batch.fields(noise)
        return Draws(t, eps, batch.fields(noise), z)

    def guess(self, xt: Tensor, t: Tensor) -> Tensor:
        """Return the noise that the denoiser sees in x_t."""
        with self.place.autocast():
            eps_hat: Tensor = self.denoiser(xt, t / self.plan.n_steps)
        return eps_hat.float()

    def verdicts(
        self, judge: Discriminator, real: Tensor, fake: Tensor, s: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the discriminator's logits on real and on denoised images, in one call."""
        time = s / self.plan.n_steps
        with self.place.autocast():
            logits = judge(torch.cat([real, fake]), torch.cat([time, time]))
        on_real, on_fake = logits.float().chunk(2)
        return on_real, on_fake

    def frozen_verdict(self, judge: Discriminator, fake: Tensor, s: Tensor) -> Tensor:
        """Let gradients flow through the discriminator, but not into it."""
        judge.requires_grad_(False)
        with self.place.autocast():
            logits: Tensor = judge(fake, s / self.plan.n_steps)
        judge.requires_grad_(True)
        return logits.float()

    def set_rates(self, step: int) -> None:
        """Lower the denoiser's learning rate as the plan says."""
        plan = self.plan
        rate = plan.tempo.learning_rate * plan.decay ** (step // plan.decay_every)
        for group in self.optimisers["denoiser"].param_groups:
            group["lr"] = rate

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move the running average a little towards the denoiser, at first a little faster."""
        keep = min(self.plan.ema, (1 + step) / (10 + step))
        own, new = tuple(self.average.parameters()), tuple(self.denoiser.parameters())
        torch._foreach_lerp_(own, new, 1 - keep)


def train_denoiser(
    images: TrainingImages,
    weights: Tensor,
    plan: DiffusionPlan,
    seed: int,
    place: Place,
    keeping: Keeping | None = None,
    start: Denoiser | None = None,
) -> Denoiser:
    """Train a denoiser on images (n, c, h, w) in [-1, 1]; return its running average.

    The arguments are those of `aberra.loop.train`; `start` is a trained denoiser to begin with.
    """
    run = DiffusionRun(plan, seed, place)
    settings: object = plan
    if start is not None:
        for own in (run.denoiser, run.average):
            own.load_state_dict(start.state_dict())
        settings = (plan, training_mark("start", start.state_dict().values()))
    train(run, settings, plan.tempo, images, weights, seed, keeping)
    return run.average.eval()


def denoised(schedule: NoiseSchedule, xt: Tensor, d: Draws, s: Tensor, eps_hat: Tensor) -> Tensor:
    """Take the reverse step that the discriminator judges; gradients flow to eps_hat."""
    x0_hat = predict_x0(schedule, xt, d.t, eps_hat).clamp(-1, 1)
    return p_sample(schedule, xt, d.t, s, x0_hat, d.z)
