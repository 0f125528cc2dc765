"""The localisers beside the diffusion models: their equations, and what they all must keep."""

from copy import copy
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from aberra import loop
from aberra.contract.maps import foreground
from aberra.localise.fanogan import (
    AnoGANRun,
    AnoGANSettings,
    FAnoGAN,
    critic_loss,
    izif_loss,
    slopes,
)
from aberra.localise.healing import CodeHealers, healed
from aberra.localise.intensity import IntensityThreshold, weighted_median
from aberra.localise.nearest import NearestHealthy
from aberra.localise.patch_finder import PatchFinder
from aberra.localise.reconstruction import (
    BAUR_PRESETS,
    DenseRun,
    DenseVAE,
    SpatialAE,
    SpatialRun,
    kl_to_normal,
    reconstruction_loss,
    vae_loss,
)
from aberra.localise.restorers import Restorers
from aberra.localise.vqvae_transformer import (
    VQRun,
    VQTransformer,
    code_loss,
    code_usage,
)
from aberra.loop import batch_of
from aberra.nets.anogan import AnoGANPlan
from aberra.nets.baur import DensePlan, SpatialPlan
from aberra.nets.place import Place
from aberra.nets.vq import VQPlan
from aberra.rng import torch_generator

CPU = Place(torch.device("cpu"))
TINY = {"train_steps": 3, "batch_size": 4, "random_state": 0, "device": "cpu"}
QUICK = {
    "SpatialAE": SpatialAE(**TINY),
    "DenseVAE": DenseVAE(**TINY),
    "FAnoGAN": FAnoGAN(encoder_steps=3, **TINY),
    "VQTransformer": VQTransformer(transformer_steps=3, **TINY),
    "PatchFinder": PatchFinder(**TINY),
    "IntensityThreshold": IntensityThreshold(random_state=0),
    "NearestHealthy": NearestHealthy(random_state=0),
}
NETWORKS = [name for name in QUICK if name not in ("IntensityThreshold", "NearestHealthy")]
every = pytest.mark.parametrize("name", QUICK)
each_network = pytest.mark.parametrize("name", NETWORKS)


def discs(n, seed=0, side=16, channels=1):
    """Bright discs of changing size and place on a dark ground."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side] + 0.5
    middle = side / 2 + rng.uniform(-1, 1, size=(n, 2, 1, 1))
    radius = side * rng.uniform(0.34, 0.42, size=(n, 1, 1))
    inside = (y - middle[:, 0]) ** 2 + (x - middle[:, 1]) ** 2 < radius**2
    images = 0.8 * inside[:, None] + 0.02 * rng.normal(size=(n, channels, side, side))
    return images.astype(np.float32)


def with_lesions(images):
    """Plant a dark square in each disc."""
    side = images.shape[-1]
    low, high = round(0.44 * side), round(0.69 * side)
    planted, mask = images.copy(), np.zeros((len(images), side, side), bool)
    planted[:, :, low:high, low:high] = 0.05
    mask[:, low:high, low:high] = True
    return planted, mask


# Equations


def test_kl_of_the_latent_against_torch():
    mu, log_sigma = torch.randn(5, 3), torch.randn(5, 3)
    found = kl_to_normal(mu, log_sigma)
    posterior = torch.distributions.Normal(mu, log_sigma.exp())
    wanted = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0))
    torch.testing.assert_close(found, wanted.sum(dim=1))
    assert kl_to_normal(torch.zeros(1, 4), torch.zeros(1, 4)).item() == 0


def test_vae_loss_is_error_plus_divergence_per_pixel():
    x, x_hat = torch.zeros(2, 1, 2, 3), torch.ones(2, 1, 2, 3)
    mu = torch.tensor([[2.0], [0.0]])
    loss = vae_loss(x, x_hat, mu, torch.zeros(2, 1), torch.ones(2), kl_weight=3.0)
    assert loss.item() == pytest.approx(1 + 3 * (2.0 / 6) / 2)


@pytest.mark.parametrize("direction", [0.25, 1.0, 3.0])
def test_gradient_penalty_of_a_linear_critic(direction):
    critic = nn.Sequential(nn.Flatten(), nn.Linear(12, 1))
    critic[1].weight.data = torch.full((1, 12), direction)
    slope = slopes(critic, torch.randn(5, 3, 2, 2))
    torch.testing.assert_close(slope, torch.full((5,), direction * 12**0.5))
    zero = torch.zeros(5)
    loss = critic_loss(zero, zero, slope, torch.ones(5), penalty=10.0)
    assert loss.item() == pytest.approx(10 * (direction * 12**0.5 - 1) ** 2, rel=1e-5)


def test_critic_loss_falls_as_real_rises_above_fake():
    one, zero, w = torch.ones(4), torch.zeros(4), torch.ones(4)
    assert critic_loss(one, zero, one, w, 10.0).item() == -1
    assert critic_loss(zero, one, one, w, 10.0).item() == 1


def test_izif_counts_features_kappa_times():
    x, features = torch.zeros(2, 1, 2, 2), torch.zeros(2, 3)
    loss = izif_loss(x, x + 1, features, features + 2, torch.ones(2), kappa=0.5)
    assert loss.item() == pytest.approx(1 + 0.5 * 4)


def test_code_loss_of_a_uniform_guess():
    codes = torch.randint(0, 8, (3, 5))
    log_p = torch.full((3, 5, 8), 1 / 8).log()
    assert code_loss(log_p, codes, torch.ones(3)).item() == pytest.approx(np.log(8))


def test_code_usage_against_a_loop():
    flat, codes, w = torch.randn(20, 3), torch.randint(0, 4, (20,)), torch.rand(20)
    number, total = code_usage(flat, codes, w, 5)
    for k in range(5):
        of_k = codes == k
        torch.testing.assert_close(number[k], w[of_k].sum())
        torch.testing.assert_close(total[k], (w[of_k, None] * flat[of_k]).sum(dim=0))


def test_weight_zero_has_no_gradient_in_any_loss():
    w = torch.tensor([1.0, 0.0])
    x, x_hat = torch.zeros(2, 1, 2, 2), torch.rand(2, 1, 2, 2, requires_grad=True)
    reconstruction_loss(x, x_hat, w).backward()
    features = torch.rand(2, 3, requires_grad=True)
    izif_loss(x, x_hat, torch.zeros(2, 3), features, w, 1.0).backward()
    mu = torch.rand(2, 3, requires_grad=True)
    vae_loss(x, x_hat, mu, torch.zeros(2, 3), w, 1.0).backward()
    values = torch.rand(2, requires_grad=True)
    critic_loss(values, values.square(), values + 2, w, 10.0).backward()
    log_p = torch.rand(2, 4, 3, requires_grad=True)
    code_loss(log_p, torch.zeros(2, 4, dtype=torch.long), w).backward()
    for leaf in (x_hat, features, mu, values, log_p):
        assert leaf.grad[0].abs().sum() > 0
        assert leaf.grad[1].abs().sum() == 0


def one_after_the_other(codes, log_probs, unlikely):
    """Heal the slow way."""
    clean, given = codes.clone(), log_probs(codes)
    for i in range(codes.shape[1]):
        own = given[:, i].gather(1, codes[:, i : i + 1])[:, 0]
        likeliest = log_probs(clean)[:, i].argmax(dim=1)
        clean[:, i] = torch.where(own.exp() < unlikely, likeliest, codes[:, i])
    return clean


@pytest.mark.parametrize("unlikely", [0.0, 0.1, 0.3, 1.0])
def test_healing_in_parallel_ends_as_one_code_after_the_other(unlikely):
    generator = torch_generator(3)
    table = torch.randn(30, 6, generator=generator)

    def log_probs(codes):  # of all codes before the place, in a way that none can foresee
        places = torch.arange(codes.shape[1])
        before = ((codes + 1) * (places + 1)).cumsum(dim=1).roll(1, dims=1)
        before[:, 0] = 0
        return table[(before + places) % 30].log_softmax(dim=2)

    codes = torch.randint(0, 6, (8, 20), generator=generator)
    found = healed(codes, log_probs, lambda log_p: log_p.argmax(dim=2), unlikely)
    assert torch.equal(found, one_after_the_other(codes, log_probs, unlikely))
    assert torch.equal(found, codes) == (unlikely == 0)


def test_weighted_median():
    values = torch.tensor([[3.0, 0.0], [1.0, 5.0], [2.0, 7.0]])
    assert weighted_median(values, torch.ones(3)).tolist() == [2.0, 5.0]
    assert weighted_median(values, torch.tensor([1.0, 0.0, 0.0])).tolist() == [3.0, 0.0]
    repeated = values[[0, 0, 0, 1, 2]]
    heavy = weighted_median(values, torch.tensor([3.0, 1.0, 1.0]))
    assert torch.equal(heavy, weighted_median(repeated, torch.ones(5)))


# Training


def runs():
    flat = AnoGANPlan(1, (8, 8, 16), 2, 8, (2, 2))
    gan = AnoGANSettings(0, 1, 10.0, 1.0, 1e-3, 1e-3)
    codes = VQPlan(1, (8, 16), 1, 8, 8, 16, 1, 2, (4, 4))
    return {
        "SpatialAE": lambda: SpatialRun(SpatialPlan(1, (8, 16), (8, 8), 4), 3e-3, 0, CPU),
        "DenseVAE": lambda: DenseRun(
            DensePlan(1, (8, 16), (8, 8), 4, 8, (4, 4)), 3e-3, 1.0, 0, CPU
        ),
        "encoder of FAnoGAN": lambda: AnoGANRun(flat, gan, 0, CPU),
        "VQ-VAE": lambda: VQRun(codes, 60, (3e-3, 3e-3), 0, CPU),
        "transformer": lambda: VQRun(codes, 0, (3e-3, 3e-3), 0, CPU),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", runs())
def test_loss_falls(name):
    images, run = torch.from_numpy(discs(64)) * 2 - 1, runs()[name]()
    weights = torch.ones(64)
    steps = []
    for k in range(60):
        losses = run.step(k, batch_of(images, weights, 8, 0, k, CPU))
        steps.append(next(iter(losses.values())).item())
    assert np.mean(steps[-10:]) < 0.9 * np.mean(steps[:10])


@pytest.mark.slow
def test_critic_learns_to_tell_generated_images_apart():
    settings = AnoGANSettings(60, 100, 10.0, 1.0, 1e-3, 1e-3)
    run = AnoGANRun(AnoGANPlan(1, (8, 8, 16), 2, 8, (2, 2)), settings, 0, CPU)
    images = torch.from_numpy(discs(64)) * 2 - 1
    for k in range(60):
        run.step(k, batch_of(images, torch.ones(64), 8, 0, k, CPU))
    with torch.no_grad():
        fake = run.net.generator(torch.randn(64, 8, generator=torch_generator(1)))
        assert run.critic(images).mean() > run.critic(fake).mean() + 0.5


def test_codes_follow_the_images_of_weight():
    run = runs()["VQ-VAE"]()
    good, bad = torch.from_numpy(discs(32)) * 2 - 1, 20 * torch.randn(32, 1, 16, 16)
    weights = torch.cat([torch.ones(32), torch.zeros(32)])
    for k in range(40):
        run.step(k, batch_of(torch.cat([good, bad]), weights, 16, 0, k, CPU))
    book = run.net.book.embedding.weight
    with torch.no_grad():
        reach = run.net.vqvae.encode(good).abs().amax()
    assert book.abs().amax() < 2 * reach
    assert len(run.net.codes(run.net.vqvae.encode(good)).unique()) > 3


LEARNT = {
    "SpatialAE": SpatialAE(
        train_steps=100, batch_size=8, code_channels=2, learning_rate=3e-3, smooth=3
    ),
    "DenseVAE": DenseVAE(train_steps=100, batch_size=8, learning_rate=3e-3, smooth=3),
    "FAnoGAN": FAnoGAN(
        train_steps=80, encoder_steps=60, batch_size=8, learning_rate=1e-3, smooth=3
    ),
    "VQTransformer": VQTransformer(
        train_steps=60, transformer_steps=100, batch_size=8, unlikely=0.02, smooth=3
    ),
    "IntensityThreshold": IntensityThreshold("dark", smooth=3),
    "NearestHealthy": NearestHealthy(smooth=3),
}


@cache
def learnt(name):
    """Return a model that has seen enough; not to be changed."""
    return clone(LEARNT[name]).set_params(random_state=0).fit(discs(80))


@pytest.mark.parametrize("name", LEARNT)  # a patch finder takes too many steps for a test
@pytest.mark.slow
def test_map_is_high_inside_a_planted_lesion(name):
    model = learnt(name)
    planted, mask = with_lesions(discs(12, seed=1))
    maps = model.anomaly_map(planted)
    assert maps[mask].mean() > 2 * maps[~mask].mean()
    scores = model.anomaly_score(planted), model.anomaly_score(discs(12, seed=2))
    assert scores[0].mean() > scores[1].mean()
    found = model.segment(planted)
    assert found[mask].mean() > 3 * found[~mask].mean()


# What all of them keep


@pytest.mark.slow
@every
@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 33, 47), (1, 9, 70)])
def test_any_size_and_channels(name, shape):
    images = np.random.default_rng(0).random((20, *shape), dtype=np.float32)
    model = clone(QUICK[name]).fit(images)
    assert model.reconstruct(images[:2]).shape == (2, *shape)
    assert model.anomaly_map(images[:2]).shape == (2, *shape[1:])
    assert model.segment(images[:2]).dtype == bool
    assert np.isfinite(model.anomaly_score(images)).all()
    assert len(np.unique(model.anomaly_map(images))) > 20 or name == "VQTransformer"


@pytest.mark.slow
@every
def test_one_seed_gives_the_same_bytes_and_another_others(name):
    images = discs(24)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    first = clone(QUICK[name]).fit(images)
    again = clone(QUICK[name]).fit(images)
    other = clone(QUICK[name]).set_params(random_state=1).fit(images)
    assert first.reconstruct(images).tobytes() == again.reconstruct(images).tobytes()
    assert first.threshold_ == again.threshold_
    assert first.map_threshold_ == again.map_threshold_
    assert first.reconstruct(images).tobytes() != other.reconstruct(images).tobytes()
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


@every
def test_a_localiser_answers_as_every_scorer_does(name):
    images, model = discs(20), clone(QUICK[name]).fit(discs(24))
    assert model.localises
    scores = model.anomaly_score(images)
    assert np.array_equal(model.score_samples(images), -scores)
    assert np.array_equal(model.decision_function(images), model.threshold_ - scores)
    assert np.array_equal(model.predict(images), np.where(scores > model.threshold_, -1, 1))
    assert model.offset_ == -model.threshold_
    assert model.threshold_rule_ == "knee"
    model.set_params(threshold=0.25).calibrate(images)
    assert model.threshold_rule_ == "share"
    assert model.contamination_ == np.mean(scores > model.threshold_) == 0.25
    held = model.fit_predict(images)
    assert set(held) <= {-1, 1}


@every
def test_training_and_scoring_take_one_thread_and_leave_the_others(name, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    model, seen, before = clone(QUICK[name]), [], torch.get_num_threads()
    train = type(model)._train_one
    monkeypatch.setattr(type(model), "_train_one", watching(train, seen))
    monkeypatch.setattr(Restorers, "maps", watching(Restorers.maps, seen))
    torch.set_num_threads(3)
    try:
        model.fit(discs(12))
        assert set(seen) == {1}
        seen.clear()
        model.anomaly_map(discs(2))
        assert seen[-1] == 1
        assert torch.get_num_threads() == 3
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        model.anomaly_map(discs(2))
        assert seen[-1] == 3
    finally:
        torch.set_num_threads(before)


def watching(ask, seen):
    def watched(*given):
        seen.append(torch.get_num_threads())
        return ask(*given)

    return watched


@pytest.mark.slow
@every
def test_an_image_is_answered_alike_alone_and_in_company(name):
    images = discs(20)
    model = clone(QUICK[name]).fit(images)
    together = model.anomaly_map(images), model.reconstruct(images)
    for k in (0, 7, 19):
        assert model.anomaly_map(images[k : k + 1]).tobytes() == together[0][k].tobytes()
        assert model.reconstruct(images[k : k + 1]).tobytes() == together[1][k].tobytes()


def test_drawn_codes_are_the_same_for_every_image():
    images = discs(20)
    model = clone(QUICK["VQTransformer"]).set_params(n_draws=2, unlikely=0.5).fit(images)
    together = model.reconstruct(images)
    assert model.reconstruct(images[3:4]).tobytes() == together[3].tobytes()
    likeliest = model.set_params(n_draws=None).reconstruct(images)
    assert likeliest.tobytes() != together.tobytes()


def test_a_map_may_be_the_difference_times_how_unlikely_each_code_is():
    images = discs(20)
    model = clone(QUICK["VQTransformer"]).set_params(error="absolute", smooth=1).fit(images)
    plain = model.set_params(emphasis="none").anomaly_map(images)
    unlikely = model.set_params(emphasis="likelihood").anomaly_map(images)
    assert np.ptp(unlikely) > 0
    np.testing.assert_allclose(unlikely, plain * model.likelihood_map(images), rtol=1e-4)


@every
def test_clone_keeps_all_settings(name):
    model = QUICK[name]
    assert repr(clone(model).get_params()) == repr(model.get_params())
    with pytest.raises(ValueError, match="holdout"):
        clone(model).set_params(holdout=2.0).fit(discs(4))


@pytest.mark.slow
@every
def test_images_of_weight_zero_are_as_good_as_absent(name):
    good, bad = discs(24), np.random.default_rng(0).random((8, 1, 16, 16), dtype=np.float32) * 0.8
    model = clone(QUICK[name]).set_params(holdout=0)
    alone = model.fit(good).reconstruct(good)
    everything = np.concatenate([good, bad])
    weights = np.repeat([1.0, 0.0], [24, 8])
    beside = clone(model).fit(everything, sample_weight=weights).reconstruct(good)
    assert alone.tobytes() == beside.tobytes()


class InterruptedFitError(Exception):
    """Stands for a power cut."""


@pytest.mark.slow
@each_network
@pytest.mark.parametrize("last", [2, 4])
def test_training_goes_on_after_an_interruption(name, last, tmp_path, monkeypatch):
    images = discs(12)
    whole = clone(QUICK[name]).fit(images)
    model = clone(whole).set_params(checkpoint=tmp_path, checkpoint_minutes=0.0)
    asked = []

    def draw_and_fail(*given):
        asked.append(given[4])
        if given[4] == last:
            raise InterruptedFitError
        return batch_of(*given)

    if last >= 3 and name in ("SpatialAE", "DenseVAE", "PatchFinder"):
        model.set_params(train_steps=6)
        whole = clone(QUICK[name]).set_params(train_steps=6).fit(images)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "batch_of", draw_and_fail)
        with pytest.raises(InterruptedFitError):
            model.fit(images)
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(loop, "batch_of", lambda *given: asked.append(given[4]) or batch_of(*given))
    model.fit(images)
    assert asked[last + 1] == last  # it did not begin again
    assert model.reconstruct(images).tobytes() == whole.reconstruct(images).tobytes()
    assert list(tmp_path.iterdir()) == []


@each_network
def test_a_failure_after_the_training_does_not_cost_it(name, tmp_path, monkeypatch):
    images = discs(12)
    whole = clone(QUICK[name]).fit(images)
    model = clone(whole).set_params(checkpoint=tmp_path)

    def fail(*given):
        raise InterruptedFitError

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_calibrated", fail)
        with pytest.raises(InterruptedFitError):
            model.fit(images)
    monkeypatch.setattr(loop, "batch_of", fail)  # no step is taken again
    model.fit(images)
    assert model.reconstruct(images).tobytes() == whole.reconstruct(images).tobytes()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_likelihood_map_is_high_where_codes_are_unlikely():
    model = copy(learnt("VQTransformer"))
    planted, mask = with_lesions(discs(12, seed=1))
    maps = model.likelihood_map(planted)
    assert maps.shape == mask.shape
    assert maps[mask].mean() > maps[~mask].mean()
    nothing = model.set_params(unlikely=0.0, emphasis="replaced").anomaly_map(planted)
    assert (nothing == 0).all()
    plain = model.set_params(emphasis="none", error="absolute", smooth=1).anomaly_map(planted)
    gap = np.abs(planted - model.reconstruct(planted))[:, 0]
    scale = 2 / (model.members_.frame.high - model.members_.frame.low)
    np.testing.assert_allclose(plain, gap * scale, atol=1e-5)


@pytest.mark.parametrize(("side", "sign"), [("dark", -1), ("bright", 1)])
def test_intensity_looks_at_one_side(side, sign):
    images = discs(30)
    model = IntensityThreshold(side, holdout=0, random_state=0).fit(images)
    middle = np.sort(images, axis=0)[14]  # the lower of the two in the middle
    np.testing.assert_allclose(model.reconstruct(images[:1])[0], middle, atol=1e-6)
    moved = images + 0.3 * sign
    assert (model.anomaly_map(moved) >= model.anomaly_map(images)).all()
    assert model.anomaly_map(images - 2.0 * sign).max() == 0
    flat = IntensityThreshold(side, reference="overall", random_state=0).fit(images)
    assert len(np.unique(flat.reconstruct(images))) == 1


def test_intensity_flags_the_stated_share_of_healthy_pixels():
    images = np.random.default_rng(0).random((50, 1, 16, 16))
    model = IntensityThreshold(holdout=0, false_alarm_rate=0.05, random_state=0).fit(images)
    assert model.segment(images)[foreground(images)].mean() == pytest.approx(0.05, abs=1e-3)


def test_sizes_and_widths_of_the_presets():
    found = {
        name: (one.image_size, one.multiple, one.code_channels, one.down, one.up)
        for name, one in BAUR_PRESETS.items()
    }
    assert found == {
        "small": (64, 8, 8, (32, 64, 128), (64, 32, 32)),
        "medium": (128, 16, 32, (32, 64, 128, 128), (128, 64, 32, 32)),
        "paper": (256, 32, 128, (32, 64, 128, 128, 128), (128, 64, 32, 32, 32)),
    }


def test_whoever_watches_sees_images_and_what_a_network_makes_of_them():
    batch = SimpleNamespace(x=torch.arange(8.0).reshape(2, 1, 2, 2))
    dense = SimpleNamespace(encode=lambda x: (x + 1, x - 99), decode=lambda z: 10 * z)
    parts = SimpleNamespace(encoder=lambda x: x + 1, generator=lambda z: 10 * z)
    codes = SimpleNamespace(
        vqvae=SimpleNamespace(encode=lambda x: x + 3, decode=lambda e: 5 * e),
        codes=lambda z: z - 2,
        embedded=lambda codes: 2 * codes,
    )
    nets = {SpatialRun: lambda x: 10 * (x + 1), DenseRun: dense, AnoGANRun: parts, VQRun: codes}
    for run, net in nets.items():
        images, restored = run.shown(SimpleNamespace(net=net), batch)
        assert images is batch.x
        assert torch.equal(restored, 10 * (batch.x + 1))


def test_where_nothing_is_too_unlikely_no_code_is_replaced():
    codes, log_p = torch.zeros(1, 1, dtype=torch.long), torch.tensor([[[-200.0, 0.0]]])
    kept = healed(codes, lambda _: log_p, lambda p: p.argmax(dim=2), unlikely=0.0)
    assert torch.equal(kept, codes)


def test_without_draws_a_place_gets_its_likeliest_code():
    own = SimpleNamespace(healing=SimpleNamespace(n_draws=None))
    (choose,) = CodeHealers._choices(own, SimpleNamespace())
    log_p = torch.tensor([[[-1.0, -0.5, -9.0], [-3.0, -2.0, -0.1]]])
    assert choose(log_p).tolist() == [[1, 2]]


def test_codes_are_drawn_by_the_seeds_that_files_were_promised():
    seen = []
    own = SimpleNamespace(
        healing=SimpleNamespace(n_draws=3), _drawn=lambda *asked: seen.append(asked)
    )
    net = SimpleNamespace(plan=SimpleNamespace(map_size=(2, 5), n_codes=3))
    CodeHealers._choices(own, net)
    assert seen == [(20220504, (10, 3)), (20220505, (10, 3)), (20220506, (10, 3))]
