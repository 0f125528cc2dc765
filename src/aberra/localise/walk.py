"""How a trained denoiser restores an image: noise it up to a step, and walk back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Self

import torch
from torch import Tensor

from aberra.declare import Within
from aberra.diffusion.noise import NOISES
from aberra.diffusion.process import SCHEDULES, ddim_step, p_sample, predict_x0, q_sample, walk
from aberra.errors import DataError
from aberra.localise.restorers import Restorers
from aberra.nets.unet import Denoiser
from aberra.rng import torch_generator

Sampler = Literal["ddpm", "ddim"]
SCORING_SEED = 20231204  # the same noise for every image: a score depends on the image alone
FIXED = ("n_steps", "schedule", "noise")  # what a denoiser was trained for


@dataclass(frozen=True)
class Walk:
    """How an image is noised and restored."""

    n_steps: Annotated[int, Within(1, 100_000)]
    schedule: str
    noise: str
    highest: float  # the training went up to this share of the steps
    start: float
    sampling_steps: Annotated[int, Within(1, 10_000)] | None  # None: every step
    sampler: Sampler
    n_draws: Annotated[int, Within(1, 1000)]


@dataclass
class Denoisers(Restorers):
    """Members that restore by a walk from x_start back to x_0."""

    way: Walk
    nets: list[Denoiser] = field(repr=False)

    @property
    def n_calls(self) -> int:
        """How often a network is asked about a tile of images: in every draw, a walk."""
        first = max(1, round(self.way.start * self.way.n_steps))
        return self.way.n_draws * min(first, self.way.sampling_steps or first)

    @torch.inference_mode()
    def restore(self, x: Tensor) -> Tensor:
        """Return the mean restoration over the draws, (m, n, c, h, w)."""
        device = next(self.nets[0].parameters()).device
        x = x.to(device, memory_format=torch.channels_last)
        total = torch.zeros((self.n_members, *x.shape), device=device)
        for k in range(self.way.n_draws):
            generator = torch_generator(SCORING_SEED + k)
            start = self._noise(x, generator)
            state = generator.get_state()
            for member, net in enumerate(self.nets):
                generator.set_state(state)
                total[member] += self._walk(net, x, start, generator)
        return (total / self.way.n_draws).cpu()

    def as_trained(self, trained: Self) -> Self:
        """Return these settings for the trained denoisers; refuse what they did not train for."""
        now, then = self.way, trained.way
        for name in FIXED:
            new, old = vars(now)[name], vars(then)[name]
            if new != old:
                raise DataError(
                    f"The denoiser was trained with {name}={old!r}, so it cannot restore with "
                    f"{name}={new!r}. Set it back, or fit again."
                )
        if now.start > then.highest:
            raise DataError(
                f"The denoiser was trained on noise up to {then.highest:g} of the steps, so it "
                f"cannot restore from start={now.start:g}. Lower it, or fit again."
            )
        return replace(self, way=replace(now, highest=then.highest))

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Raise an error unless the parts fit; one network call is enough to see."""
        quick = replace(self.way, sampling_steps=1, n_draws=1)
        super(Denoisers, replace(self, way=quick)).probe(n_features, image_shape)

    def _walk(self, net: Denoiser, x0: Tensor, eps: Tensor, generator: torch.Generator) -> Tensor:
        """Noise the images to the start step and walk back."""
        way = self.way
        schedule = SCHEDULES[way.schedule](way.n_steps)
        first = max(1, round(way.start * way.n_steps))
        step = torch.full((len(x0),), first, device=x0.device)
        x = q_sample(schedule, x0, step, eps)
        for t, s in walk(first, way.sampling_steps or first):
            at_t, at_s = torch.full_like(step, t), torch.full_like(step, s)
            eps_hat = net(x, at_t / way.n_steps)
            x0_hat = predict_x0(schedule, x, at_t, eps_hat).clamp(-1, 1)
            if s == 0:
                return x0_hat
            if way.sampler == "ddim":
                x = ddim_step(schedule, x, at_t, at_s, x0_hat)
            else:
                x = p_sample(schedule, x, at_t, at_s, x0_hat, self._noise(x, generator))
        raise AssertionError("a walk ends at 0")

    def _noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return one field for all images, so that none depends on its neighbours."""
        shape = (1, x.shape[1], x.shape[2], x.shape[3])
        return NOISES[self.way.noise](shape, generator, x.device)
