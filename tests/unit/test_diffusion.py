"""The diffusion process and the losses against closed forms."""

import math

import pytest
import torch

from aberra.diffusion.losses import addm_loss, ddpm_loss, discriminator_loss
from aberra.diffusion.process import (
    SCHEDULES,
    cosine_schedule,
    ddim_step,
    linear_schedule,
    p_sample,
    predict_x0,
    q_sample,
    walk,
)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def step(value, n=1):
    return torch.full((n,), value)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("n_steps", [50, 300, 1000])
def test_levels_fall_from_one_to_almost_nothing(name, n_steps):
    schedule = SCHEDULES[name](n_steps)
    assert schedule.n_steps == n_steps
    assert schedule.alpha_bar.dtype == torch.float64
    assert schedule.alpha_bar[0] == 1
    assert (schedule.alpha_bar.diff() < 0).all()
    assert schedule.alpha_bar[-1] < 1e-3


def test_a_quarter_of_the_steps_is_the_same_noise_for_every_length():
    levels = [linear_schedule(T).alpha_bar[T // 4].sqrt().item() for T in (300, 500, 1000)]
    assert max(levels) - min(levels) < 0.002
    assert abs(levels[-1] - 0.724) < 0.001


def test_addm_1_one_jump_is_many_small_steps():
    schedule = linear_schedule(100)
    ratio = schedule.alpha_bar[1:] / schedule.alpha_bar[:-1]
    mean, variance = 1.0, 0.0
    for t in range(40):  # the forward process, one printed step at a time
        mean, variance = mean * ratio[t].sqrt(), variance * ratio[t] + (1 - ratio[t])
    x0 = normal(1, 1, 4, 4)
    zero = q_sample(schedule, x0, step(40), torch.zeros_like(x0))
    torch.testing.assert_close(zero, mean * x0)
    one = q_sample(schedule, torch.zeros_like(x0), step(40), torch.ones_like(x0))
    torch.testing.assert_close(one, variance.sqrt() * torch.ones_like(x0))


@pytest.mark.parametrize(("t", "s"), [(555, 554), (555, 444), (250, 0), (1, 0), (1000, 1)])
def test_addm_2_with_the_true_image_a_step_lands_on_the_marginal(t, s):
    schedule = linear_schedule(1000)
    n = 200_000
    x0 = torch.full((n, 1), 0.7, dtype=torch.float64)
    xt = q_sample(schedule, x0, step(t, n), normal(n, 1, seed=1))
    xs = p_sample(schedule, xt, step(t, n), step(s, n), x0, normal(n, 1, seed=2))
    level = schedule.alpha_bar[s]
    tolerance = 5 / math.sqrt(n)
    assert abs(xs.mean() - level.sqrt() * 0.7) < tolerance
    assert abs(xs.var() - (1 - level)) < tolerance


def test_true_noise_gives_back_the_image():
    schedule = cosine_schedule(200)
    x0, eps = normal(3, 1, 5, 5), normal(3, 1, 5, 5, seed=3)
    t = torch.tensor([1, 77, 150])
    xt = q_sample(schedule, x0, t, eps)
    torch.testing.assert_close(predict_x0(schedule, xt, t, eps), x0)
    for s in (0, 1):
        there = ddim_step(schedule, xt, t, step(s, 3), x0)
        torch.testing.assert_close(there, q_sample(schedule, x0, step(s, 3), eps))


def test_ddim_with_all_steps_reaches_the_limit_of_the_flow_on_a_gaussian():
    # Data N(0, v): the best guess of x0 is linear, and the probability flow maps x_T to
    # x_T * sqrt(v / (a_T v + 1 - a_T)).
    v, T = 0.25, 4000
    schedule = linear_schedule(T)
    x = normal(64, 1, seed=4)
    start = x.clone()
    for t, s in walk(T, T):
        a = schedule.alpha_bar[t]
        x0_hat = a.sqrt() * v / (a * v + 1 - a) * x
        x = ddim_step(schedule, x, step(t, 64), step(s, 64), x0_hat)
    a = schedule.alpha_bar[T]
    torch.testing.assert_close(x, start * math.sqrt(v / (a * v + 1 - a)), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize(("start", "n"), [(250, 250), (250, 25), (250, 7), (3, 10), (1, 1)])
def test_walk_goes_from_start_to_zero_in_even_strides(start, n):
    pairs = walk(start, n)
    assert pairs[0][0] == start
    assert pairs[-1][1] == 0
    assert all(t > s for t, s in pairs)
    assert len(pairs) == min(start, n)
    strides = [t - s for t, s in pairs]
    assert max(strides) - min(strides) <= 1


def test_addm_4_is_the_weighted_mean_squared_error():
    eps, guess = normal(4, 1, 3, 3), normal(4, 1, 3, 3, seed=5)
    w = torch.tensor([1.0, 0.0, 2.0, 0.5], dtype=torch.float64)
    expected = sum(w[i] * ((eps[i] - guess[i]) ** 2).mean() for i in range(4)) / 4
    torch.testing.assert_close(ddpm_loss(eps, guess, w), expected)


def test_addm_5_with_weight_zero_is_ddpm_and_the_weight_reaches_the_denoiser():
    eps, w = normal(4, 1, 3, 3), torch.ones(4, dtype=torch.float64)
    guess = normal(4, 1, 3, 3, seed=6).requires_grad_()
    fake = guess.flatten(1).sum(dim=1)  # a discriminator that sees the denoiser's output
    torch.testing.assert_close(addm_loss(eps, guess, fake, w, 0.0), ddpm_loss(eps, guess, w))
    plain = torch.autograd.grad(ddpm_loss(eps, guess, w), guess)[0]
    full = torch.autograd.grad(addm_loss(eps, guess, fake, w, 0.05), guess)[0]
    expected = -0.05 * torch.sigmoid(-fake.detach()).view(-1, 1, 1, 1) / 4
    torch.testing.assert_close(full - plain, expected.expand_as(plain))


def test_discriminator_is_undecided_at_log_four():
    zero, w = torch.zeros(5), torch.ones(5)
    torch.testing.assert_close(discriminator_loss(zero, zero, w), torch.tensor(2 * math.log(2)))
    sure = discriminator_loss(torch.full((5,), 9.0), torch.full((5,), -9.0), w)
    assert sure < 1e-3
