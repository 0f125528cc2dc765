"""The best settings are the defaults, and what is printed has a name."""

import pytest
import torch

from aberra import ADDM, DDPM, AnoDDPM, DenseVAE, FAnoGAN, SpatialAE
from aberra.localise.frame import Frame
from aberra.loop import Tempo
from aberra.nets.discriminator import DiscriminatorPlan
from aberra.nets.unet import UNetPlan


def plan_of(model, side):
    model.image_shape_ = (1, side, side)
    return model._plan(side)


def test_the_style_stands_for_all_settings_that_are_left_open():
    printed = {
        "noise": "gaussian",
        "start": 0.25,
        "sampling_steps": 10,
        "n_draws": 1,
        "norm_groups": 32,
        "error": "squared",
        "smooth": 1,
        "adversarial_weight": 0.05,
        "adversarial_stride": 1,
    }
    best = {"noise": "pyramid", "start": 0.1, "sampling_steps": 1, "n_draws": 4, "norm_groups": 8}
    best |= {"error": "absolute", "smooth": 5, "adversarial_weight": 0.5}
    assert {name: ADDM().settings()[name] for name in best} == best  # as the parameters say
    model = ADDM(style="printed")
    assert {name: model.settings()[name] for name in printed} == printed
    assert {name: ADDM().settings()[name] for name in printed} != printed
    assert ADDM("paper").settings() == {
        **ADDM("paper", style="printed").settings(),
        "style": None,
    }
    assert ADDM("paper").settings()["sampling_steps"] == "all"
    assert ADDM("paper", style="best").settings()["noise"] == "pyramid"
    assert ADDM(style="printed", start=0.4).settings()["start"] == 0.4


@pytest.mark.parametrize("style", ["best", "printed"])
def test_anoddpm_always_has_simplex_noise(style):
    assert plan_of(AnoDDPM(style=style), 64).noise == "simplex"


def test_the_discriminator_judges_the_restored_image_by_default():
    for n_steps in (300, 1000):
        assert plan_of(ADDM(n_steps=n_steps), 64).adversarial_stride == n_steps


def test_the_preset_of_the_paper_is_what_the_papers_say():
    plan = plan_of(ADDM("paper"), 256)
    assert plan.tempo == Tempo(train_steps=3000 * 25, batch_size=4, learning_rate=1e-4)
    assert (plan.decay, plan.decay_every) == (0.999, 200 * 25)  # an epoch is 25 steps
    assert (plan.n_steps, plan.schedule, plan.noise) == (1000, "linear", "gaussian")
    assert (plan.adversarial_weight, plan.adversarial_stride) == (0.05, 1)
    assert (plan.discriminator_rate, plan.discriminator) == (1e-4, DiscriminatorPlan(1, 64, 3))
    assert (plan.highest, plan.ema, plan.clip) == (0.8, 0.9999, 1.0)
    widths, attention = (128, 128, 256, 256, 512, 512), (False,) * 3 + (True,) * 3
    assert plan.unet == UNetPlan(1, widths, 2, attention, patch=1)
    assert plan_of(ADDM("paper", style="best"), 256).adversarial_weight == 0.5
    assert (plan.unet.head_width, plan.unet.groups) == (32, 32)
    assert (plan.discriminator.norm, plan.discriminator.sees_time) == ("spectral", False)
    plain = plan_of(DDPM("paper"), 256)
    assert plain.discriminator is None
    assert (plain.adversarial_weight, plain.adversarial_stride) == (0, 1)
    assert UNetPlan(1, (8,), 1, (False,), 1) == UNetPlan(1, (8,), 1, (False,), 1, 32, 32)


def test_the_paper_has_images_of_256_pixels():
    assert ADDM("paper")._preset().image_size == 256


def test_presets_for_smaller_images_stay_what_they_were():
    for name, size, tempo, ema, unet in (
        ("small", 64, Tempo(1500, 8, 4e-4), 0.995, ((32, 64, 128), 1, (False, False, True))),
        ("medium", 128, Tempo(20_000, 16, 2e-4), 0.999,
         ((32, 64, 128, 128), 2, (False, False, False, True))),
    ):  # fmt: skip
        plan = plan_of(ADDM(name), size)
        assert (plan.tempo, plan.ema, plan.highest, plan.decay) == (tempo, ema, 0.5, 1.0)
        assert plan.unet == UNetPlan(1, *unet, patch=2, groups=8)
        assert plan.discriminator == DiscriminatorPlan(1, 32 if size == 64 else 64, 3)
        assert ADDM(name)._preset().image_size == size
        assert ADDM(name)._preset().multiple == 2 ** len(plan.unet.widths)  # 2 x 2 pixels a patch
        assert ADDM(name, style="printed").settings()["sampling_steps"] == 10


def test_the_maps_of_networks_that_rebuild_follow_the_style_too():
    for kind in (SpatialAE, DenseVAE, FAnoGAN):
        found = {style: kind(style=style).settings() for style in ("best", "printed")}
        assert (found["best"]["error"], found["best"]["smooth"]) == ("absolute", 5)
        assert (found["printed"]["error"], found["printed"]["smooth"]) == ("squared", 1)
        assert kind("paper").settings()["smooth"] == 1
        assert kind().settings()["smooth"] == 5


def test_the_walk_back_is_that_of_the_style():
    frame = Frame((1, 64, 64), (64, 64), 8, 0.0, 1.0)
    for model, steps in ((DDPM(sampling_steps="all"), None), (DDPM(style="printed"), 10)):
        way = model._members(frame, []).way
        assert way.sampling_steps == steps
        assert (way.start, way.highest) == (model.settings()["start"], 0.5)
    assert DDPM(start=0.7)._members(frame, []).way.highest == 0.7


def test_small_images_are_not_halved_to_nothing_by_the_discriminator():
    found = {side: plan_of(ADDM(), side).discriminator.n_layers for side in (8, 16, 32, 64)}
    assert found == {8: 1, 16: 2, 32: 3, 64: 3}


@pytest.mark.parametrize("shape", [(3, 1, 16, 64), (3, 1, 64, 16)])
def test_the_shorter_side_of_an_image_decides_how_often_it_is_halved(shape, monkeypatch):
    layers, model, images = [], ADDM(), torch.zeros(shape)
    model.image_shape_ = shape[1:]
    monkeypatch.setattr(
        "aberra.localise.diffusion.train_denoiser",
        lambda images, weights, plan, *more: layers.append(plan.discriminator.n_layers),
    )
    model._train_one(images, torch.ones(3), 0)
    model._train_further(None, images, torch.ones(3), 0)
    assert layers == [2, 2]
