"""Training and walking back, against the same written out by hand from the papers' formulas.

The twin shares networks, noise fields and random streams with the library, and nothing else: noise
levels, losses, clipping, rates, the running average and Adam's moments are written here again.
"""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from aberra.diffusion.noise import NOISES
from aberra.diffusion.process import linear_schedule, p_sample
from aberra.diffusion.training import DiffusionPlan, train_denoiser
from aberra.localise.frame import frame_for
from aberra.localise.patch_finder import FinderPlan, train_finder
from aberra.localise.patches import blurred, pasted, recontrasted
from aberra.localise.restorers import MapStyle
from aberra.localise.walk import SCORING_SEED, Denoisers, Walk
from aberra.loop import Tempo, batch_of
from aberra.nets.discriminator import DiscriminatorPlan, discriminator
from aberra.nets.place import Place
from aberra.nets.unet import UNetPlan, denoiser, finder
from aberra.progress import deadline
from aberra.rng import draw_seeds, torch_generator

CPU = Place(torch.device("cpu"))
SEED, T = 5, 40
PLAN = DiffusionPlan(
    unet=UNetPlan(1, (8, 8), 1, (False, False), 1, 4),
    discriminator=DiscriminatorPlan(1, 4, 1, sees_time=True),
    n_steps=T,
    schedule="linear",
    noise="pyramid",
    highest=0.75,
    tempo=Tempo(train_steps=6, batch_size=4, learning_rate=2e-3),
    decay=0.5,
    decay_every=2,
    ema=0.3,
    clip=0.05,
    adversarial_weight=0.8,
    adversarial_stride=7,
    discriminator_rate=3e-3,
)
IMAGES = torch.rand((8, 1, 8, 8), generator=torch.Generator().manual_seed(0)) * 2 - 1
WEIGHTS = torch.linspace(0.05, 1, 8)


class Adam:
    """Adam (Kingma and Ba 2015), line by line, after clipping the gradient's length."""

    def __init__(self, net, betas, clip=PLAN.clip):
        self.parameters, self.betas, self.k, self.clip = list(net.parameters()), betas, 0, clip
        self.m = [torch.zeros_like(p) for p in self.parameters]
        self.v = [torch.zeros_like(p) for p in self.parameters]

    def step(self, loss, rate):
        found = torch.autograd.grad(loss, self.parameters, retain_graph=True)
        length = torch.sqrt(sum((g**2).sum() for g in found))
        self.k += 1
        b1, b2 = self.betas
        for p, g, m, v in zip(self.parameters, found, self.m, self.v, strict=True):
            g = g * min(1.0, self.clip / (float(length) + 1e-6))
            m.copy_(b1 * m + (1 - b1) * g)
            v.copy_(b2 * v + (1 - b2) * g**2)
            corrected = (v / (1 - b2**self.k)).sqrt() + 1e-8
            p.data -= rate * m / (1 - b1**self.k) / corrected


def alpha_bar():
    beta = torch.linspace(1e-4, 0.02, T, dtype=torch.float64) * 1000 / T
    return torch.cat([torch.ones(1), torch.cumprod(1 - beta, 0)]).float()


def level(t):
    return alpha_bar()[t].reshape(-1, 1, 1, 1)


def mean_of(values, w):
    """Return the mean over the batch of w times the mean over each image."""
    return (w * values.flatten(1).mean(1)).mean()


def by_hand(plan):
    """Return the running average of the denoiser after all steps."""
    first, second = draw_seeds(SEED, 2, n=2)
    net, average = denoiser(plan.unet, first), denoiser(plan.unet, first)
    optimiser = Adam(net, (0.9, 0.999))
    judge = None if plan.discriminator is None else discriminator(plan.discriminator, second)
    judges = None if judge is None else Adam(judge, (0.5, 0.999))
    for step in range(plan.tempo.train_steps):
        batch = batch_of(IMAGES, WEIGHTS, plan.tempo.batch_size, SEED, step, CPU)
        x0, w = batch.x, batch.w
        t = batch.integers(1, 31)  # up to three quarters of T, the last one included
        eps = batch.fields(NOISES["pyramid"])
        xt = level(t).sqrt() * x0 + (1 - level(t)).sqrt() * eps
        eps_hat = net(xt, t / T)
        loss = mean_of((eps_hat - eps) ** 2, w)
        if judge is not None:
            z, eps_real = batch.fields(NOISES["pyramid"]), batch.fields(NOISES["pyramid"])
            s = torch.clamp(t - 7, min=0)
            x0_hat = ((xt - (1 - level(t)).sqrt() * eps_hat) / level(t).sqrt()).clamp(-1, 1)
            one_step = level(t) / level(s)
            mean = level(s).sqrt() * (1 - one_step) / (1 - level(t)) * x0_hat
            mean = mean + one_step.sqrt() * (1 - level(s)) / (1 - level(t)) * xt
            fake = mean + ((1 - level(s)) / (1 - level(t)) * (1 - one_step)).sqrt() * z
            real = level(s).sqrt() * x0 + (1 - level(s)).sqrt() * eps_real
            # One call on both, because batch norms see both.
            on_both = judge(torch.cat([real, fake.detach()]), torch.cat([s, s]) / T)
            truth = torch.cat([torch.ones(4), torch.zeros(4)]).view(-1, 1, 1, 1)
            wrong = F.binary_cross_entropy_with_logits(
                on_both, truth.expand_as(on_both), reduction="none"
            )
            judges.step(2 * mean_of(wrong, torch.cat([w, w])), 3e-3)
            verdict = judge(fake, s / T)
            passed = F.binary_cross_entropy_with_logits(
                verdict, torch.ones_like(verdict), reduction="none"
            )
            loss = loss + 0.8 * mean_of(passed, w)
        optimiser.step(loss, 2e-3 * 0.5 ** (step // 2))
        keep = min(plan.ema, (1 + step) / (10 + step))
        for old, new in zip(average.parameters(), net.parameters(), strict=True):
            old.data = keep * old.data + (1 - keep) * new.data
    return average


@pytest.mark.parametrize("adversarial", [True, False], ids=["ADDM", "DDPM"])
def test_training_is_the_method_written_out(adversarial):
    plan = PLAN if adversarial else replace(PLAN, discriminator=None)
    t = torch.linspace(0.02, 0.75, 8)
    found = train_denoiser(IMAGES, WEIGHTS, plan, SEED, CPU)(IMAGES, t).detach()
    expected = by_hand(plan).eval()(IMAGES, t).detach()
    untrained = denoiser(plan.unet, draw_seeds(SEED, 2, n=2)[0])(IMAGES, t).detach()
    moved = float((expected - untrained).abs().mean())
    # Not the parameters: a shift before a norm has no gradient but rounding, which Adam enlarges.
    assert float((found - expected).abs().mean()) < 2e-3 * moved


def test_a_training_that_goes_on_has_the_average_of_where_it_began():
    plan = replace(PLAN, tempo=replace(PLAN.tempo, train_steps=1, learning_rate=1e-9))
    start = denoiser(PLAN.unet, 99)
    found = train_denoiser(IMAGES, WEIGHTS, plan, SEED, CPU, start=start)
    for own, begun in zip(found.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(own, begun, rtol=0, atol=1e-6)


def test_a_training_from_another_start_is_another_training(monkeypatch):
    named = []
    monkeypatch.setattr(
        "aberra.diffusion.training.train", lambda run, settings, *_: named.append(repr(settings))
    )
    for start in (None, denoiser(PLAN.unet, 98), denoiser(PLAN.unet, 98), denoiser(PLAN.unet, 99)):
        train_denoiser(IMAGES, WEIGHTS, PLAN, SEED, CPU, start=start)
    assert named[1] == named[2]
    assert len(set(named)) == 3


def test_a_training_whose_time_is_up_has_taken_some_of_its_steps():
    plan = replace(PLAN, discriminator=None)
    with deadline(0.0) as limit:
        stopped = train_denoiser(IMAGES, WEIGHTS, plan, SEED, CPU)
    assert limit.stopped_at == 1 / 6
    with deadline(600.0) as limit:
        one = replace(plan, tempo=replace(plan.tempo, train_steps=1))
        whole = train_denoiser(IMAGES, WEIGHTS, one, SEED, CPU)
    assert limit.stopped_at is None
    for a, b in zip(stopped.parameters(), whole.parameters(), strict=True):
        assert torch.equal(a, b)


FINDER = FinderPlan(
    UNetPlan(1, (8, 8), 1, (False, False), 1, 4), Tempo(4, 4, 2e-3), ema=0.2, contrast=0.7
)


def finder_by_hand():
    """Return the running average of a network that finds patches, after all steps."""
    (own,) = draw_seeds(SEED, 2, n=1)
    net, average = finder(FINDER.unet, own), finder(FINDER.unet, own)
    optimiser = Adam(net, (0.9, 0.999), clip=1.0)
    for step in range(4):
        batch = batch_of(IMAGES, WEIGHTS, 4, SEED, step, CPU)
        x = recontrasted(batch.x, batch, 0.7, (0.85, 1.1), 0.15)
        y, cover = pasted(x, batch)
        added, logit = net.found(y)
        visible = blurred((y - x).abs(), 5) / 0.2  # a change of a tenth of the range is plain
        target = torch.where(cover > 0, visible.clamp(max=1), 0)
        crossed = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
        loss = 0
        for k in range(4):
            gap, inside = (y - added - x)[k].abs(), cover[k] > 0
            covered = gap[inside].mean() if inside.any() else 0
            loss = loss + batch.w[k] * (crossed[k].mean() + covered / 2 + gap.mean() / 2) / 4
        optimiser.step(loss, 2e-3)
        keep = min(0.2, (1 + step) / (10 + step))
        for old, new in zip(average.parameters(), net.parameters(), strict=True):
            old.data = keep * old.data + (1 - keep) * new.data
    return average.eval()


def test_finding_patches_is_learnt_as_written_out():
    found = train_finder(IMAGES, WEIGHTS, FINDER, SEED, CPU)(IMAGES).detach()
    expected = finder_by_hand()(IMAGES).detach()
    moved = float((expected - IMAGES).abs().mean())
    assert float((found - expected).abs().mean()) < 2e-3 * moved


def backwards(xt, t, s, x0_hat, z):
    """Take one reverse step by the posterior, or without noise if z is None."""
    if z is None:
        eps = (xt - level(t).sqrt() * x0_hat) / (1 - level(t)).sqrt()
        return level(s).sqrt() * x0_hat + (1 - level(s)).sqrt() * eps
    kept = level(t) / level(s)
    mean = level(s).sqrt() * (1 - kept) * x0_hat + kept.sqrt() * (1 - level(s)) * xt
    return mean / (1 - level(t)) + ((1 - level(s)) * (1 - kept) / (1 - level(t))).sqrt() * z


def walked(net, sampler):
    """Return the mean of two restorations from step 20 in three strides; all images share noise."""
    total = torch.zeros_like(IMAGES)
    for draw in range(2):
        generator = torch_generator(SCORING_SEED + draw)

        def field(generator=generator):
            return NOISES["pyramid"]((1, 1, 8, 8), generator, IMAGES.device)

        x = level(20).sqrt() * IMAGES + (1 - level(20)).sqrt() * field()
        for t, s in ((20, 13), (13, 7), (7, 0)):
            eps_hat = net(x, torch.full((8,), t / T))
            x0_hat = ((x - (1 - level(t)).sqrt() * eps_hat) / level(t).sqrt()).clamp(-1, 1)
            x = backwards(x, t, s, x0_hat, field() if sampler == "ddpm" and s else None)
        total += x0_hat
    return total / 2


@pytest.mark.parametrize("sampler", ["ddpm", "ddim"])
def test_restoring_is_the_walk_written_out(sampler):
    nets = [denoiser(PLAN.unet, seed).eval() for seed in (1, 2)]
    for net in nets:  # an untrained one answers nothing
        for k, p in enumerate(net.parameters()):
            p.data += 0.2 * torch.randn(p.shape, generator=torch.Generator().manual_seed(k))
    way = Walk(T, "linear", "pyramid", 0.75, 0.5, 3, sampler, 2)
    frame = frame_for(IMAGES.numpy(), (1, 8, 8), 8, 1)
    members = Denoisers(frame=frame, style=MapStyle("absolute"), way=way, nets=nets)
    found = members.restore(IMAGES)
    with torch.no_grad():
        expected = torch.stack([walked(net, sampler) for net in nets])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)
    assert members.n_calls == 6
    assert replace(members, way=replace(way, sampling_steps=None)).n_calls == 40


def test_the_reverse_step_has_the_mean_and_variance_of_the_posterior():
    """Of many pairs (x_s, x_t) of one image, those with x_t near a value have x_s as p_sample."""
    generator, n = torch.Generator().manual_seed(0), 400_000
    schedule, t, s, x0, at = linear_schedule(T), 20, 12, 0.4, 0.1
    a_t, a_s = alpha_bar()[t], alpha_bar()[s]
    x_s = a_s.sqrt() * x0 + (1 - a_s).sqrt() * torch.randn(n, generator=generator)
    kept = a_t / a_s
    x_t = kept.sqrt() * x_s + (1 - kept).sqrt() * torch.randn(n, generator=generator)
    near = x_s[(x_t - at).abs() < 0.02]
    ones = torch.ones((len(near), 1, 1, 1))
    steps = torch.full((len(near),), t), torch.full((len(near),), s)
    noise = torch.randn(ones.shape, generator=generator)
    drawn = p_sample(schedule, at * ones, *steps, x0 * ones, noise)
    assert float(drawn.mean()) == pytest.approx(float(near.mean()), abs=0.02)
    assert float(drawn.std()) == pytest.approx(float(near.std()), rel=0.05)
