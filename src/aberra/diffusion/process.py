"""The forward and reverse process of a denoising diffusion model, from any step to any other.

Notation (shapes): x0 an image batch (B, c, h, w) on the scale [-1, 1]; xt the same after t steps of
noise; eps the noise in it, eps_hat the model's guess; t, s (B,) integer steps, 0 <= s < t <= T;
alpha_bar (T + 1,) the share of signal variance left after t steps, alpha_bar[0] = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

FIRST_BETA, LAST_BETA = 1e-4, 0.02  # for a thousand steps
COSINE_OFFSET = 0.008
LARGEST_BETA = 0.999


@dataclass(frozen=True)
class NoiseSchedule:
    """Noise levels in double precision; cast at each use, never in place."""

    alpha_bar: Tensor  # (T + 1,), float64

    @property
    def n_steps(self) -> int:
        """Number of steps T."""
        return len(self.alpha_bar) - 1

    def at(self, t: Tensor, like: Tensor) -> Tensor:
        """Return `alpha_bar[t]` on the device and in the type of `like`, ready to broadcast."""
        level = self.alpha_bar.to(like.device)[t].to(like.dtype)
        return level.view(-1, *[1] * (like.ndim - 1))


def linear_schedule(n_steps: int) -> NoiseSchedule:
    """Return betas that grow linearly, scaled by 1000 / T.

    The scaling makes t = T / 4 the same noise level for every T.
    """
    scale = 1000 / n_steps
    beta = torch.linspace(FIRST_BETA * scale, LAST_BETA * scale, n_steps, dtype=torch.float64)
    return _from_betas(beta.clamp(max=LARGEST_BETA))


def cosine_schedule(n_steps: int) -> NoiseSchedule:
    """Return the squared-cosine schedule of Nichol and Dhariwal (2021)."""
    share = torch.linspace(0, 1, n_steps + 1, dtype=torch.float64)
    level = torch.cos((share + COSINE_OFFSET) / (1 + COSINE_OFFSET) * math.pi / 2).square()
    return _from_betas((1 - level[1:] / level[:-1]).clamp(max=LARGEST_BETA))


def _from_betas(beta: Tensor) -> NoiseSchedule:
    one = torch.ones(1, dtype=torch.float64)
    return NoiseSchedule(torch.cat([one, torch.cumprod(1 - beta, dim=0)]))


SCHEDULES = {"linear": linear_schedule, "cosine": cosine_schedule}


def q_sample(schedule: NoiseSchedule, x0: Tensor, t: Tensor, eps: Tensor) -> Tensor:
    """Noise an image to step t at once [ADDM-1]."""
    a_t = schedule.at(t, x0)
    return a_t.sqrt() * x0 + (1 - a_t).sqrt() * eps


def predict_x0(schedule: NoiseSchedule, xt: Tensor, t: Tensor, eps_hat: Tensor) -> Tensor:
    """Return the clean image that a guess of the noise implies."""
    a_t = schedule.at(t, xt)
    return (xt - (1 - a_t).sqrt() * eps_hat) / a_t.sqrt()


def p_sample(
    schedule: NoiseSchedule,
    xt: Tensor,
    t: Tensor,
    s: Tensor,
    x0_hat: Tensor,
    noise: Tensor,
) -> Tensor:
    """Denoise from step t to any earlier step s by the true posterior given x0_hat [ADDM-2].

    Deviation: the variance is the posterior's, (1 - a_s)(1 - a_t / a_s) / (1 - a_t), also for
    s = t - 1, so that a walk in strides lands on the right noise level; at s = 0 it is zero.
    """
    a_t, a_s = schedule.at(t, xt), schedule.at(s, xt)
    kept = a_t / a_s  # signal kept between s and t; alpha_t when s = t - 1
    mean = (a_s.sqrt() * (1 - kept) * x0_hat + kept.sqrt() * (1 - a_s) * xt) / (1 - a_t)
    variance = (1 - a_s) * (1 - kept) / (1 - a_t)
    return mean + variance.sqrt() * noise


def ddim_step(schedule: NoiseSchedule, xt: Tensor, t: Tensor, s: Tensor, x0_hat: Tensor) -> Tensor:
    """Walk from step t to any earlier step s without noise (Song et al. 2021, eta = 0)."""
    a_t, a_s = schedule.at(t, xt), schedule.at(s, xt)
    eps = (xt - a_t.sqrt() * x0_hat) / (1 - a_t).sqrt()
    return a_s.sqrt() * x0_hat + (1 - a_s).sqrt() * eps


def walk(start: int, n_steps: int) -> list[tuple[int, int]]:
    """Return the (t, s) pairs of a walk from `start` to 0 in at most `n_steps` even strides."""
    n_steps = min(n_steps, start)
    edges = [round(start * k / n_steps) for k in range(n_steps, -1, -1)]
    return list(pairwise(edges))
