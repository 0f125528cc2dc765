"""The contract of the diffusion localisers, and the pure parts under it."""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from torch.nn import functional as F

from aberra import ADDM, DDPM, IADC, AnoDDPM, IntensityThreshold, SpatialAE, load, save
from aberra.contract.maps import foreground, image_scores, upper_quantile
from aberra.data.images import parts
from aberra.errors import DataError, ModelFileError
from aberra.localise.checks import not_finite
from aberra.localise.frame import Frame, FramedImages, frame_for
from aberra.localise.restorers import MapStyle, Restorers, smoothed
from aberra.model_file.derive import kind_of
from aberra.model_file.kinds import Reader

KINDS = [DDPM, AnoDDPM, ADDM]
FAST = {"train_steps": 2, "batch_size": 4, "sampling_steps": 2, "n_draws": 1, "random_state": 0}


def phantoms(n=20, shape=(1, 16, 16), seed=0):
    """Discs of varying brightness on a dark ground, with a little noise."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape[1:])
    radius = np.hypot(rows - shape[1] / 2, columns - shape[2] / 2) / min(shape[1:])
    disc = (radius < 0.4) * rng.uniform(0.6, 0.9, (n, shape[0], 1, 1))
    return (disc + rng.normal(0, 0.02, (n, *shape))).astype(np.float32)


@pytest.fixture(scope="module")
def fitted():
    return {kind: kind(**FAST).fit(phantoms()) for kind in KINDS}


@settings(max_examples=30, deadline=None)
@given(
    h=st.integers(8, 40),
    w=st.integers(8, 40),
    multiple=st.sampled_from([1, 4, 8, 16]),
    channels=st.sampled_from([1, 3]),
)
def test_filling_up_and_cutting_off_is_exact(h, w, multiple, channels):
    images = np.random.default_rng(h * w).random((2, channels, h, w), np.float32)
    frame = frame_for(images, (channels, h, w), 64, multiple)
    x = frame.inward(images)
    assert x.shape[2] % multiple == 0
    assert x.shape[3] % multiple == 0
    assert x.shape[2] - h < multiple
    assert torch.equal(frame.outward(x), frame.cropped(x))
    np.testing.assert_allclose(frame.units(frame.outward(x)).numpy(), images, atol=1e-6)


def test_larger_images_are_reduced_and_maps_come_back_at_full_size():
    images = np.random.default_rng(0).random((2, 1, 100, 60))
    frame = frame_for(images, (1, 100, 60), 50, 8)
    assert frame.grid == (50, 30)
    x = frame.inward(images)
    assert x.shape == (2, 1, 56, 32)
    assert frame.outward(x).shape == (2, 1, 100, 60)
    np.testing.assert_allclose(  # averaging over whole squares
        frame.units(frame.cropped(x))[0, 0, 0, 0], images[0, 0, :2, :2].mean(), rtol=1e-5
    )


def test_maps_come_back_between_the_middles_of_their_pixels():
    frame = frame_for(np.random.default_rng(0).random((1, 1, 100, 60)), (1, 100, 60), 50, 1)
    ramp = torch.arange(30.0).expand(1, 1, 50, 30)
    expected = ((np.arange(60) + 0.5) / 2 - 0.5).clip(0, 29)
    np.testing.assert_allclose(frame.outward(ramp)[0, 0, 0], expected, atol=1e-5)


def test_a_frame_written_out():
    images = np.arange(35.0).reshape(1, 1, 5, 7)
    frame = frame_for(images, (1, 5, 7), 7, 4)
    assert (frame.grid, frame.low, frame.high) == ((5, 7), 0, 34)
    assert frame.padding == (0, 1, 1, 2)  # left, right, above, below
    x = frame.inward(images.reshape(1, 35))
    expected = np.pad(images / 17 - 1, [(0, 0), (0, 0), (1, 2), (0, 1)], "edge")
    np.testing.assert_allclose(x, expected, atol=1e-6)
    np.testing.assert_allclose(frame.outward(x), images / 17 - 1, atol=1e-6)
    np.testing.assert_allclose(
        frame.units(x), np.pad(images[0, 0], [(1, 2), (0, 1)], "edge")[None, None], atol=1e-5
    )
    rows = np.array([1, 0])
    framed = FramedImages(np.concatenate([images, images + 1]), frame, rows)
    assert framed.shape == (2, 1, 8, 8)
    assert len(framed) == 2
    np.testing.assert_array_equal(framed[torch.tensor([1])], x)
    for shape, grid in (((1, 30, 90), (3, 10)), ((1, 90, 31), (10, 3)), ((1, 2, 90), (1, 10)),
                        ((1, 90, 2), (10, 1)), ((1, 10, 10), (10, 10))):  # fmt: skip
        assert frame_for(np.zeros((1, *shape)), shape, 10, 1).grid == grid
    flat = frame_for(np.full((1, 1, 2, 2), 3.0), (1, 2, 2), 8, 1)
    assert (flat.low, flat.high) == (3, 4)


def test_a_frame_from_a_file_has_sides_that_a_network_can_take():
    sound = {"image_shape": [1, 4096, 4096], "grid": [512, 512], "multiple": 256,
             "low": 0.0, "high": 1.0}  # fmt: skip
    small = {**sound, "image_shape": [1, 1, 1], "grid": [1, 1], "multiple": 1}
    kind = kind_of(Frame)
    for node in (sound, small):
        assert kind.decode(node, Reader({}), "x").image_shape == tuple(node["image_shape"])
    for name, wrong in (("image_shape", [1, 1, 4097]), ("image_shape", [0, 1, 1]),
                        ("grid", [513, 1]), ("grid", [1, 0]), ("multiple", 257)):  # fmt: skip
        with pytest.raises(ModelFileError, match="is what a model may ask for"):
            kind.decode({**sound, name: wrong}, Reader({}), "x")


def test_images_of_weight_zero_neither_train_nor_place_the_thresholds(monkeypatch):
    images, trained = phantoms(12), []
    odd = np.roll(images[:4], 5, axis=3)  # of the same intensities, elsewhere
    train = IntensityThreshold._train
    monkeypatch.setattr(
        IntensityThreshold, "_train", lambda *given: trained.append(given[2]) or train(*given)
    )
    model = IntensityThreshold(holdout=0, random_state=0)
    alone = (model.fit(images).threshold_, model.map_threshold_)
    model.fit(np.concatenate([odd, images]), sample_weight=[0] * 4 + [1] * 12)
    assert (model.threshold_, model.map_threshold_) == alone
    assert [rows.tolist() for rows in trained] == [[[*range(12)]], [[*range(4, 16)]]]


@pytest.mark.parametrize(("holdout", "n_held"), [(0.0, 0), (0.1, 0), (0.5, 2), (0.99, 3)])
def test_at_least_one_image_trains(holdout, n_held):
    model, rng = IntensityThreshold(holdout=holdout), np.random.default_rng(0)
    assert model._held_out(4, None, np.ones(4), rng).sum() == n_held
    patients = model._held_out(8, [1, 1, 2, 2, 3, 3, 4, 4], np.ones(8), rng)
    assert patients.sum() == 2 * n_held
    assert (patients[::2] == patients[1::2]).all()  # all images of a patient
    with pytest.raises(DataError, match="`groups` has shape"):
        model._held_out(4, [1, 2], np.ones(4), rng)


def test_bytes_are_scaled_by_their_range_and_others_by_the_data():
    assert frame_for(np.full((1, 1, 8, 8), 7, np.uint8), (1, 8, 8), 64, 8).high == 255
    frame = frame_for(np.array([[[[-2.0, 4.0]]]]), (1, 1, 2), 64, 1)
    assert frame.inward(np.array([[[[-2.0, 4.0]]]])).flatten().tolist() == [-1, 1]


def test_map_styles_in_closed_form():
    x = torch.tensor([[[[0.0, 1.0, 2.0]]]])
    restored = torch.tensor([[[[1.0, 1.0, 0.0]]]])
    expected = {
        "squared": [1.0, 0.0, 4.0],
        "absolute": [1.0, 0.0, 2.0],
        "darker": [1.0, 0.0, 0.0],
        "brighter": [0.0, 0.0, 2.0],
    }
    for error, values in expected.items():
        assert MapStyle(error)(x, restored).flatten().tolist() == values
    outline = torch.zeros(1, 1, 1, 9)
    outline[..., 3], outline[..., 4] = 3.0, -3.0  # an outline that has moved by a pixel
    net = MapStyle("net")(outline, torch.zeros_like(outline)).flatten()
    assert net.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    two = torch.cat([x, torch.zeros_like(x)], dim=1)
    assert MapStyle("absolute")(two, torch.zeros_like(two)).flatten().tolist() == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("side", range(1, 9))
def test_a_square_with_a_pixel_in_its_middle_has_an_odd_side(side):
    if side % 2:
        assert MapStyle("squared", side).smooth == side
    else:
        with pytest.raises(ValueError, match=f"must be odd, but got {side}"):
            MapStyle("squared", side)


def test_smoothing_is_the_mean_of_the_neighbours_that_exist():
    maps = torch.tensor([[[[1.0, 2.0, 6.0]]]])
    assert smoothed(maps, 3).flatten().tolist() == [1.5, 3.0, 4.0]
    assert smoothed(maps, 1) is maps


@pytest.mark.parametrize("side", [1, 3, 63, 65, 81, 139, 141, 16_383])
def test_a_wide_square_is_the_mean_of_the_neighbours_that_exist(side):
    maps = torch.rand(2, 1, 70, 40, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.empty_like(maps)
    for i in range(70):
        for j in range(40):
            top, left = max(0, i - side // 2), max(0, j - side // 2)
            square = maps[:, :, top : i + side // 2 + 1, left : j + side // 2 + 1]
            expected[:, :, i, j] = square.mean(dim=(2, 3))
    torch.testing.assert_close(smoothed(maps, side), expected)


def test_no_square_is_wider_than_the_map(monkeypatch):
    """A model file of 1 MB whose squares were wider than its maps took 39 seconds to load."""
    pooled, pool = [], F.avg_pool2d
    monkeypatch.setattr(
        F, "avg_pool2d", lambda x, k, **more: pooled.append(k) or pool(x, k, **more)
    )
    smoothed(torch.zeros(1, 1, 70, 40), 16_383)
    assert pooled == [(139, 1), (1, 79)]


def test_a_localiser_without_draws_asks_its_network_once():
    model = IntensityThreshold(holdout=0).fit(phantoms(4))
    assert model.members_.n_calls == model.members_.n_members == 1


def test_image_score_is_the_mean_over_the_oddest_pixels():
    maps = np.zeros((2, 10, 10), np.float32)
    maps[1, 0, :2] = [3.0, 1.0]
    assert image_scores(maps).tolist() == [0.0, 2.0]


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.integers(0, 20), min_size=1, max_size=40),
    rate=st.floats(0.01, 0.99),
    seed=st.integers(0, 100),
)
def test_threshold_flags_at_most_the_stated_share_and_no_lower_value_would(values, rate, seed):
    v = np.array(values, np.float32)
    counts = np.random.default_rng(seed).integers(1, 4, len(v)).astype(float)
    t = upper_quantile(v, counts, rate)
    assert counts[v > t].sum() <= rate * counts.sum() + 1e-9
    lower = v[v < t]
    if len(lower):
        assert counts[v > lower.max()].sum() > rate * counts.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_contract(kind, fitted):
    model, images = fitted[kind], phantoms(5, seed=1)
    maps = model.anomaly_map(images)
    assert maps.shape == (5, 16, 16)
    assert maps.dtype == np.float32
    assert (maps >= 0).all()
    assert model.reconstruct(images).shape == images.shape
    assert np.array_equal(model.segment(images), maps > model.map_threshold_)
    assert np.array_equal(model.anomaly_score(images), image_scores(maps))
    both = model.maps_and_scores(images)
    assert np.array_equal(both[0], maps)
    assert np.array_equal(both[1], model.anomaly_score(images))
    mask = np.zeros((5, 16, 16), bool)
    mask[:, 4:8] = True
    assert np.array_equal(model.anomaly_map(images, mask), np.where(mask, maps, 0))
    assert clone(model).get_params() == model.get_params()
    weights = [weight for net in model.members_.nets for weight in net.parameters()]
    assert weights
    assert not any(weight.requires_grad for weight in weights)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_image_is_judged_alone_as_in_company(kind, fitted):
    images = phantoms(20, seed=2)
    together = fitted[kind].anomaly_map(images)
    assert np.array_equal(fitted[kind].anomaly_map(images[:1]), together[:1])
    assert np.array_equal(fitted[kind].anomaly_map(images[::-1])[::-1], together)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bytes_and_nobody_elses_numbers_are_touched(kind, fitted):
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    again = kind(**FAST).fit(phantoms())
    assert torch.equal(torch.get_rng_state(), torch_before)
    assert np.array_equal(np.random.get_state()[1], numpy_before)
    images = phantoms(3, seed=1)
    assert np.array_equal(again.anomaly_map(images), fitted[kind].anomaly_map(images))
    other = kind(**{**FAST, "random_state": 1}).fit(phantoms())
    assert not np.array_equal(other.anomaly_map(images), fitted[kind].anomaly_map(images))


@pytest.mark.slow
def test_without_the_adversarial_weight_addm_is_ddpm(fitted):
    plain = ADDM(adversarial_weight=0.0, start=fitted[DDPM].settings()["start"], **FAST)
    plain.fit(phantoms())
    images = phantoms(3, seed=1)
    assert np.array_equal(plain.anomaly_map(images), fitted[DDPM].anomaly_map(images))
    assert not np.array_equal(fitted[ADDM].anomaly_map(images), plain.anomaly_map(images))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3, 17, 23), (1, 9, 30)])
def test_any_size_and_three_channels(shape):
    images = phantoms(6, shape)
    model = ADDM(**FAST, discriminator_sees_time=True, discriminator_norm="instance").fit(images)
    assert model.reconstruct(images).shape == images.shape
    assert model.anomaly_map(images).shape == (6, *shape[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_answers_the_same_bytes(kind, fitted, tmp_path):
    fitted[kind].set_params(checkpoint=tmp_path)
    save(fitted[kind], tmp_path / "model.aberra")
    again, images = load(tmp_path / "model.aberra"), phantoms(3, seed=1)
    assert np.array_equal(again.anomaly_map(images), fitted[kind].anomaly_map(images))
    assert np.array_equal(again.segment(images), fitted[kind].segment(images))


@pytest.mark.slow
def test_iadc_trains_localisers_and_gives_maps(tmp_path):
    images = phantoms(12)
    images[0, 0, 5:9, 5:9] = 0.0
    model = IADC(DDPM(train_steps=2, batch_size=4, sampling_steps=1), n_members=2, max_rounds=1)
    model.set_params(random_state=0).fit(images)
    assert model.weights_.shape == (12,)
    assert model.anomaly_map(images).shape == (12, 16, 16)
    assert model.reconstruct(images).shape == images.shape
    save(model, tmp_path / "model.aberra")
    again = load(tmp_path / "model.aberra")
    assert np.array_equal(again.anomaly_map(images), model.anomaly_map(images))
    assert not hasattr(IADC(), "anomaly_map")
    with pytest.raises(DataError, match="looks at images"):
        IADC(DDPM()).fit(np.zeros((5, 3)))


def test_background_and_its_noise_are_left_out_and_holes_are_not():
    rng = np.random.default_rng(0)
    images = 0.02 * rng.random((3, 1, 20, 20))
    images[0, :, 4:16, 4:16] += 0.8
    images[0, :, 8:11, 8:11] = 0.0  # as dark as the background, but inside
    images[2] = 0.0
    inside = np.zeros((20, 20), bool)
    inside[4:16, 4:16] = True
    found = foreground(images)
    assert (found[0] == inside).all()
    assert found[1].mean() > 0.9  # noise all over is no background
    assert found[2].all()


def test_what_is_bright_in_any_channel_is_no_background():
    images = np.zeros((4, 3, 12, 12))
    for channel in range(3):
        images[channel, channel, 3:9, 4:10] = 0.8
    images[3] = images[:3].sum(axis=0)
    inside = np.zeros((4, 12, 12), bool)
    inside[:, 3:9, 4:10] = True
    np.testing.assert_array_equal(foreground(images), inside)


def test_the_false_alarm_rate_does_not_count_background():
    rng = np.random.default_rng(0)
    images = np.zeros((40, 1, 20, 20))
    images[:, :, 5:15, 5:15] = 0.5 + 0.1 * rng.random((40, 1, 10, 10))
    model = IntensityThreshold(holdout=0, false_alarm_rate=0.05, smooth=1, random_state=0)
    flagged = model.fit(images).segment(images)
    assert flagged[:, 5:15, 5:15].mean() == pytest.approx(0.05, abs=2e-3)


def test_held_out_patients_do_not_train():
    model = DDPM(holdout=0.5)
    groups = np.repeat(["a", "b", "c", "d"], 5)
    held = model._held_out(20, groups, np.ones(20), np.random.default_rng(0))
    assert held.sum() == 10
    assert all(len(set(held[groups == name])) == 1 for name in "abcd")


@pytest.mark.slow
def test_threshold_meets_the_false_alarm_rate_where_it_was_placed(fitted):
    healthy = phantoms(10, seed=3)
    model = clone(fitted[DDPM]).set_params(false_alarm_rate=0.05).fit(phantoms())
    model.calibrate(healthy)
    assert model.segment(healthy)[foreground(healthy)].mean() == pytest.approx(0.05, abs=1e-3)
    inside = np.zeros((10, 16, 16), bool)
    inside[:, 4:12, 4:12] = True
    model.calibrate(healthy, inside)
    assert model.segment(healthy)[inside].mean() == pytest.approx(0.05, abs=2e-3)


@pytest.mark.parametrize(
    "change", [{"smooth": 3}, {"error": "darker"}, {"start": 0.3}, {"n_draws": 2}]
)
def test_thresholds_of_other_settings_are_refused(change, fitted):
    model = copy(fitted[DDPM])
    before, trained = model.anomaly_map(phantoms(1)), model.members_
    after = model.set_params(**change).anomaly_map(phantoms(1))
    assert not np.array_equal(before, after)
    for ask in (model.segment, model.predict, model.decision_function):
        with pytest.raises(DataError, match="calibrate"):
            ask(phantoms(1))
    model.calibrate(phantoms(2))
    assert model.segment(phantoms(1)).shape == (1, 16, 16)
    assert model.predict(phantoms(1)).shape == (1,)
    assert model.members_ is trained  # scoring changes nothing that was learnt
    back = {name: FAST.get(name) for name in change}
    assert np.array_equal(model.set_params(**back).anomaly_map(phantoms(1)), before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": "gaussian"}, "trained with noise='pyramid'"),
        ({"style": "printed"}, "trained with noise='pyramid'"),
        ({"n_steps": 500}, "trained with n_steps=1000"),
        ({"schedule": "cosine"}, "trained with schedule='linear'"),
        ({"start": 0.6}, "trained on noise up to 0.5 of the steps"),
    ],
)
def test_what_the_training_has_fixed_cannot_change(change, message, fitted):
    model = copy(fitted[DDPM]).set_params(**change)
    for ask in (model.anomaly_map, model.reconstruct, model.anomaly_score, model.segment):
        with pytest.raises(DataError, match=message):
            ask(phantoms(1))
    with pytest.raises(DataError, match=message):
        model.calibrate(phantoms(2))


def test_noise_is_learnt_up_to_where_images_start():
    model = DDPM(**FAST, start=0.7).fit(phantoms())
    assert model.members_.way.highest == 0.7
    assert model.set_params(start=0.2).anomaly_map(phantoms(1)).shape == (1, 16, 16)


def test_a_square_without_a_middle_is_refused_before_training():
    with pytest.raises(ValueError, match="must be odd"):
        DDPM(smooth=4, train_steps=10**9).fit(phantoms())


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((5, 16, 16)), r"takes images of shape \(n, channels, height, width\)"),
        (np.zeros((5, 2, 16, 16)), "1 or 3 channels"),
        (np.full((5, 1, 16, 16), np.nan), "5 of 5 images hold NaN"),
        (np.array([[[["a"]]]]), "takes numbers"),
        (np.zeros((0, 1, 16, 16)), "takes numbers"),
    ],
)
def test_bad_images_are_explained(images, message):
    with pytest.raises(DataError, match=message):
        DDPM(**FAST).fit(images)


def test_a_localiser_that_is_not_fitted_says_so():
    asks = ("anomaly_map", "anomaly_score", "segment", "predict", "decision_function", "calibrate",
            "reconstruct", "maps_and_scores", "adapt")  # fmt: skip
    for ask in asks:
        with pytest.raises(NotFittedError):
            getattr(IntensityThreshold(), ask)(phantoms(2))


def test_intensities_beyond_all_floats_are_named():
    model = IntensityThreshold(holdout=0).fit(phantoms(4))
    with pytest.raises(DataError, match="Look for images of extreme intensities"):
        model.anomaly_map(np.full((1, 1, 16, 16), 3e38, np.float32))


def test_an_image_without_a_score_is_named_whatever_the_mask_covers():
    model, images = IntensityThreshold(holdout=0, smooth=1).fit(phantoms(4)), phantoms(2)
    images[1, 0, 3, 5] = 3e38
    mask = np.ones((2, 16, 16), bool)
    mask[1, 3, 5] = False
    for ask in (model.anomaly_map, model.segment):
        with pytest.raises(DataError, match=r"1 of 2 samples .* position 1"):
            ask(images, mask)


def test_bad_company_is_explained(fitted):
    with pytest.raises(DataError, match=r"fitted on images \(1, 16, 16\)"):
        fitted[DDPM].anomaly_map(np.zeros((1, 1, 8, 8)))
    with pytest.raises(DataError, match=r"mask has shape \(2, 16, 16\)"):
        fitted[DDPM].anomaly_map(phantoms(1), np.ones((2, 16, 16)))
    with pytest.raises(DataError, match="groups"):
        DDPM(**FAST).fit(phantoms(), groups=[1, 2])
    with pytest.raises(ValueError, match="'noise' parameter"):
        DDPM(noise="pink").fit(phantoms())


@pytest.mark.slow
@pytest.mark.parametrize(("style", "steps"), [("best", 160), ("printed", 60)])
def test_a_trained_model_finds_what_does_not_belong(style, steps):
    model = DDPM(style=style, noise="pyramid", start=0.15, sampling_steps=1, random_state=0)
    model.set_params(train_steps=steps, batch_size=8, smooth=1).fit(phantoms(200))
    sick, healthy = phantoms(10, seed=5), phantoms(10, seed=6)
    lesion = np.zeros(sick.shape[2:], bool)
    lesion[6:10, 5:9] = True
    sick[:, 0, lesion] -= 0.5
    maps = model.anomaly_map(sick)
    assert maps[:, lesion].mean() > 2.5 * maps[:, ~lesion].mean()
    scores = model.anomaly_score(sick), model.anomaly_score(healthy)
    assert scores[0].mean() > 1.3 * scores[1].mean()


def test_images_come_into_the_frame_when_they_are_asked_for():
    images = np.random.default_rng(0).random((9, 1, 21, 30), np.float32)
    frame = frame_for(images, (1, 21, 30), 16, 4)
    rows = np.array([7, 2, 2, 5])
    framed = FramedImages(images, frame, rows)
    whole = frame.inward(images)
    assert framed.shape == (4, *whole.shape[1:])
    torch.testing.assert_close(framed[torch.tensor([3, 0])], whole[[5, 7]], rtol=0, atol=0)
    torch.testing.assert_close(torch.cat(list(parts(framed, 3))), whole[rows], rtol=0, atol=0)


def test_images_may_stay_in_a_file(tmp_path):
    images = np.random.default_rng(0).random((12, 1, 16, 16), np.float32)
    np.save(tmp_path / "slices.npy", images)
    on_disk = np.load(tmp_path / "slices.npy", mmap_mode="r")
    for kind in (SpatialAE(train_steps=2, batch_size=4), IntensityThreshold()):
        kind.set_params(random_state=0)
        here = clone(kind).fit(images).anomaly_map(images)
        there = clone(kind).fit(on_disk).anomaly_map(images)
        np.testing.assert_array_equal(here, there)


def test_images_that_are_not_finite_are_named():
    images = np.zeros((600, 1, 8, 8), np.float32)
    images[[300, 599], 0, 3, 3] = np.nan
    assert not_finite(images).tolist() == [300, 599]


def test_a_pixel_as_high_as_the_threshold_is_not_flagged(fitted):
    model, images = copy(fitted[DDPM]), phantoms(2)
    maps = model.anomaly_map(images)
    model.map_threshold_ = float(np.sort(maps.ravel())[-5])
    assert model.segment(images).sum() == 4


@pytest.mark.parametrize("groups", [None, np.repeat(np.arange(10), 4)])
def test_images_that_are_held_out_place_thresholds_and_do_not_train(groups, monkeypatch):
    images = np.random.default_rng(0).random((40, 1, 8, 8), dtype=np.float32)
    images[:, 0, 0, 0] = np.arange(40) / 40  # says which it is
    held = {}

    def trained(self, own, weights, seed):
        held["train"] = own.raw[own.rows][:, 0, 0, 0]
        held["weights"] = weights.numpy()
        return train(self, own, weights, seed)

    def calibrated(self, data, mask, weights):
        held["out"], held["counts"] = data[:, 0, 0, 0], weights
        return calibrate(self, data, mask, weights)

    train, calibrate = IntensityThreshold._train_one, IntensityThreshold._calibrated
    monkeypatch.setattr(IntensityThreshold, "_train_one", trained)
    monkeypatch.setattr(IntensityThreshold, "_calibrated", calibrated)
    weights = np.arange(1, 41) / 20.5
    model = IntensityThreshold(holdout=0.2, random_state=0)
    model.fit(images, sample_weight=weights, groups=groups)
    inside, out = (np.rint(40 * held[part]).astype(int) for part in ("train", "out"))
    assert len(out) == 8
    assert sorted([*inside, *out]) == [*range(40)]
    np.testing.assert_allclose(held["weights"], weights[inside], rtol=1e-6)
    np.testing.assert_allclose(held["counts"], weights[out])
    if groups is not None:
        assert not set(groups[inside]) & set(groups[out])


def test_of_many_images_those_that_place_thresholds_are_drawn(monkeypatch):
    images = np.random.default_rng(0).random((40, 1, 8, 8), dtype=np.float32)
    images[:, 0, 0, 0] = np.arange(40) / 40  # says which it is
    seen = []

    def calibrated(self, data, mask, weights):
        seen.append(np.rint(40 * data[:, 0, 0, 0]).astype(int))
        return calibrate(self, data, mask, weights)

    calibrate = IntensityThreshold._calibrated
    monkeypatch.setattr(IntensityThreshold, "_calibrated", calibrated)
    monkeypatch.setattr("aberra.localise.base.CALIBRATION_IMAGES", 10)
    for seed in (0, 0, 1):
        IntensityThreshold(holdout=0, random_state=seed).fit(images)
    assert [len(which) for which in seen] == [10] * 3
    assert all((np.diff(which) > 0).all() for which in seen)
    assert all(which.max() >= 20 for which in seen)  # files are often sorted by patient
    assert seen[0].tolist() == seen[1].tolist() != seen[2].tolist()


def test_thresholds_on_other_images_do_not_count_background_unless_a_mask_says_so():
    images = phantoms(12)
    model = IntensityThreshold(holdout=0, false_alarm_rate=0.05, random_state=0).fit(images)
    heights = [
        model.calibrate(images, mask).map_threshold_
        for mask in (None, foreground(images), np.ones((12, 16, 16), bool))
    ]
    assert heights[0] == heights[1] != heights[2]


def test_a_denoiser_learns_all_steps_that_it_may_start_from():
    model = DDPM(start=0.9)
    model.image_shape_ = (1, 64, 64)
    assert model._plan(64).highest == 0.9
    assert DDPM(start=0.01).set_params(n_steps=10)._preset().highest > 0.01


def test_a_lower_start_does_not_forget_how_far_the_training_went(fitted):
    trained = fitted[DDPM].members_
    far = replace(trained, way=replace(trained.way, highest=0.9))
    now = replace(trained, way=replace(trained.way, highest=0.4, start=0.2))
    again = now.as_trained(far)
    assert again.way == replace(now.way, highest=0.9)
    back = replace(trained, way=replace(trained.way, highest=0.8, start=0.8))
    assert back.as_trained(again).way.start == 0.8


def test_each_member_has_maps_and_images_of_its_own():
    images = np.random.default_rng(0).random((3, 1, 16, 16), np.float32)
    frame = frame_for(images, (1, 16, 16), 16, 1)

    @dataclass
    class Shift(Restorers):
        def restore(self, x):
            return torch.stack([x - net for net in self.nets])

    members = Shift(frame, MapStyle("absolute"), [0.125, 0.5])
    inward = frame.inward(images)
    maps, scores = members.maps_and_scores(images)
    assert maps.shape == (2, 3, 16, 16)
    np.testing.assert_allclose(maps[0], 0.125, atol=1e-6)
    np.testing.assert_allclose(maps[1], 0.5, atol=1e-6)
    np.testing.assert_allclose(scores, [[0.125] * 3, [0.5] * 3], atol=1e-6)
    expected = [frame.units(frame.outward(inward - net)).numpy() for net in members.nets]
    np.testing.assert_array_equal(members.restored(images), np.stack(expected))
