"""The localiser without a network: neighbours, blends, and intensities set right."""

import numpy as np
import pytest
import torch
from scipy import ndimage
from sklearn.cluster import KMeans

from aberra import IADC, IntensityThreshold, NearestHealthy, load, save
from aberra.errors import DataError, RoundsExhaustedWarning
from aberra.localise.harmonise import harmonised
from aberra.localise.intensity import weighted_median
from aberra.localise.nearest import (
    Atlases,
    Comparison,
    atlas_of,
    averages,
    blended,
    nearest_rows,
    spread_of,
    thumbnails,
)
from aberra.localise.restorers import MapStyle

ONES = torch.ones(8)


def heads(n, seed=0, side=32):
    """Ellipses of changing size, with brightness that falls off and a fold or two."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side] / (side - 1) * 2 - 1
    wide, tall = rng.uniform(0.6, 0.9, (2, n, 1, 1))
    slope = rng.uniform(-0.2, 0.2, (n, 1, 1))
    inside = (x / wide) ** 2 + (y / tall) ** 2 < 1
    fold = 0.1 * np.sin(6 * x + rng.uniform(0, 6, (n, 1, 1)))
    images = inside * (0.6 + slope * y + fold) + 0.01 * rng.standard_normal((n, side, side))
    return images[:, None].clip(0, 1).astype(np.float32)


def with_lesion(images, level):
    """Plant a square of one brightness in each image."""
    sick, mask = images.copy(), np.zeros(images[:, 0].shape, bool)
    sick[:, :, 12:18, 12:18] = level
    mask[:, 12:18, 12:18] = True
    return sick, mask


def test_the_nearest_are_found_in_spite_of_a_lesion():
    images = torch.from_numpy(heads(50))
    sick = images[7:8].clone()
    sick[:, :, 10:16, 10:16] = 0
    small = thumbnails(images)
    assert int(nearest_rows(thumbnails(sick), small, 3)[0]) == 7


def test_a_blend_of_healthy_images_is_found_and_a_lesion_is_left_out():
    nearest = torch.from_numpy(heads(8)) * 2 - 1
    image = nearest[:3].mean(dim=0)
    assert (blended(image, nearest, ONES) - image).abs().mean() < 0.02
    sick = image.clone()
    sick[:, 12:18, 12:18] = -1
    inside = blended(sick, nearest, ONES)[:, 12:18, 12:18]
    assert (inside - image[:, 12:18, 12:18]).abs().mean() < 0.1
    assert (inside - sick[:, 12:18, 12:18]).abs().mean() > 0.5


def neighbours_by_hand(image, images, k):
    """Return the nearest rows by thumbnails of 16 x 16 pixels, the worst 15 % left out."""
    small = [x.reshape(16, 2, 16, 2).mean(axis=(1, 3)).ravel() for x in (image, *images)]
    gaps = [np.sort(np.abs(one - small[0]))[: 256 - 38].sum() for one in small[1:]]
    return np.argsort(gaps, kind="stable")[:k]


def blend_by_hand(image, nearest, trust):
    mean = np.average(nearest, axis=0, weights=trust)
    basis, wanted = (nearest - mean).reshape(len(nearest), -1), (image - mean).ravel()
    hold = np.diag(0.03 * 1024 * trust.mean() / trust)
    w, ones = np.ones(1024), np.ones((32, 32))
    for _ in range(6):
        shares = np.linalg.solve((w * basis) @ basis.T + hold, basis @ (w * wanted))
        found = mean + (shares @ basis).reshape(32, 32)
        gap, there = (
            ndimage.uniform_filter(a, 3, mode="constant") for a in (np.abs(image - found), ones)
        )
        w = 1 / (1 + (gap / there / 0.2) ** 2).ravel()
    return found


def test_an_image_is_compared_as_written_out():
    images, new = heads(40), with_lesion(heads(3, seed=1), 0.1)[0]
    trust = np.random.default_rng(0).uniform(0.2, 1, 40)
    model = NearestHealthy(15, holdout=0, smooth=1, error="absolute", random_state=0)
    model.fit(images, sample_weight=trust)
    inward = model.members_.frame.inward
    known, seen = (inward(x).numpy()[:, 0].astype(float) for x in (images, new))
    for k, image in enumerate(seen):
        rows = neighbours_by_hand(image, known, 15)
        blend = blend_by_hand(image, known[rows], trust[rows])
        close, share = known[rows[:3]], trust[rows[:3]] / trust[rows[:3]].sum()
        middle = weighted_median(torch.tensor(close.reshape(3, -1)), torch.tensor(share))
        spread = (share[:, None, None] * np.abs(close - middle.numpy().reshape(32, 32))).sum(axis=0)
        expected = np.abs(image - blend) / (spread + 0.2)
        np.testing.assert_allclose(model.anomaly_map(new)[k], expected, atol=2e-3)
    plain = model.set_params(relative=False).anomaly_map(new)[-1]
    np.testing.assert_allclose(plain, np.abs(image - blend), atol=2e-3)


def test_the_reference_of_intensities_is_the_weighted_median_of_each_channel():
    images = np.random.default_rng(0).random((7, 3, 4, 5))
    times = np.array([1, 2, 1, 3, 1, 2, 1])
    for reference in ("pixel", "overall"):
        model = IntensityThreshold(reference=reference, holdout=0, random_state=0)
        members = model.fit(images, sample_weight=times).members_
        x = np.repeat(members.frame.inward(images).numpy(), times, axis=0)
        expected = np.median(x, axis=0)
        if reference == "overall":  # 220 numbers: the lower of the two in the middle
            flat = np.sort(x.swapaxes(0, 1).reshape(3, -1), axis=1)
            expected = np.broadcast_to(flat[:, 109, None, None], (3, 4, 5))
        np.testing.assert_allclose(members.nets[0].level, expected, atol=1e-6)


@pytest.mark.parametrize("at_a_time", [4, 20, 1 << 22])
def test_a_reference_is_the_same_however_many_numbers_are_sorted_at_a_time(at_a_time, monkeypatch):
    images = np.random.default_rng(0).random((7, 1, 4, 5))  # 4 numbers are less than one pixel's
    monkeypatch.setattr("aberra.localise.intensity.CHUNK", at_a_time)
    members = IntensityThreshold(holdout=0).fit(images).members_
    expected = np.median(members.frame.inward(images).numpy(), axis=0)
    np.testing.assert_array_equal(members.nets[0].level, expected)


def test_a_neighbour_that_is_not_trusted_hardly_takes_part():
    nearest = torch.from_numpy(heads(8)) * 2 - 1
    nearest[0] = 1.0
    trust = ONES.clone()
    trust[0] = 1e-6
    image = nearest[1:].mean(dim=0)
    assert (blended(image, nearest, trust) - image).abs().max() < 0.1
    assert spread_of(nearest.repeat(5, 1, 1, 1), trust.repeat(5)).max() < 1


def test_one_neighbour_in_five_says_what_varies_at_a_place():
    nearest = torch.from_numpy(heads(10)) * 2 - 1
    for n in (1, 9):  # a single image does not vary
        assert not spread_of(nearest[:n], torch.ones(n)).any()
    torch.testing.assert_close(
        spread_of(nearest, torch.ones(10)), (nearest[0] - nearest[1]).abs() / 2
    )


def test_few_neighbours_set_intensities_right_by_the_nearest_alone():
    model = NearestHealthy(4, harmonise=True, holdout=0, random_state=0).fit(heads(30))
    net, image = model.members_.nets[0], model.members_.frame.inward(np.sqrt(heads(1, seed=1)))[0]
    small, seen = thumbnails(net.images), image
    for _ in range(2):
        (row,) = nearest_rows(thumbnails(seen[None]), small, 1)
        seen = harmonised(image, net.images[row])
    assert torch.equal(model.members_.compared(net, image[None])[0][0], seen)


def test_an_average_is_that_of_four_images_or_more_by_their_weights():
    levels = torch.tensor([-0.9] * 4 + [0.0] * 3 + [0.9] * 6)
    levels += torch.linspace(-0.01, 0.01, 13)
    images = levels[:, None, None, None].expand(13, 1, 16, 16).contiguous()
    weights = torch.linspace(0.1, 1, 13)
    means, trust = averages(images, weights, 3, seed=2**40)
    order = means[:, 0, 0, 0].argsort()
    for k, own in zip(order, (slice(4), slice(7, 13)), strict=True):
        expected = (weights[own] * levels[own]).sum() / weights[own].sum()
        torch.testing.assert_close(means[k], expected.expand(1, 16, 16))
        torch.testing.assert_close(trust[k], weights[own].mean())


def test_images_are_grouped_by_the_seed(monkeypatch):
    seen = []

    class Groups(KMeans):
        def __init__(self, n_clusters, **settings):
            seen.append((settings["random_state"], settings["n_init"], settings["max_iter"]))
            super().__init__(n_clusters, **settings)

    monkeypatch.setattr("sklearn.cluster.KMeans", Groups)
    images = torch.linspace(-1, 1, 8)[:, None, None, None].expand(8, 1, 16, 16).contiguous()
    for seed in (5, 5 + 64, 2**32 + 7):  # scikit-learn takes 32 bits
        averages(images, torch.ones(8), 1, seed)
    assert seen == [(5, 1, 50), (69, 1, 50), (7, 1, 50)]


def test_net_differences_cancel_at_a_shifted_outline_and_stay_in_a_lesion():
    x = torch.zeros(1, 1, 16, 16)
    stripes = x.clone()
    stripes[..., ::2] = 1.0
    lesion = x.clone()
    lesion[..., 4:12, 4:12] = 1.0
    net = MapStyle("net", 1)
    assert torch.allclose(net(stripes, stripes.roll(1, 3))[..., 4:12], torch.tensor(1 / 3))
    assert torch.allclose(net(lesion, x)[..., 5:11, 5:11], torch.tensor(1.0))


def test_intensities_are_set_right_and_a_lesion_keeps_its_contrast():
    healthy = torch.from_numpy(heads(1)[0]) * 2 - 1
    image = ((healthy.clamp(-1, 1) + 1) / 2).sqrt() * 2 - 1  # another contrast
    inside = healthy > -0.5
    right = harmonised(image, healthy)
    assert (right - healthy)[inside].abs().mean() < 0.2 * (image - healthy)[inside].abs().mean()
    sick = image.clone()
    sick[:, 12:18, 12:18] = -0.6
    gap = (healthy - harmonised(sick, healthy))[:, 12:18, 12:18]
    assert gap.mean() > 0.5
    assert torch.equal(harmonised(image, torch.full_like(image, -1.0)), image)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.1, 1.0])
def test_dark_and_bright_lesions_stand_out(level):
    model = NearestHealthy(smooth=3, random_state=0).fit(heads(120))
    sick, mask = with_lesion(heads(6, seed=1), level)
    maps = model.anomaly_map(sick)
    assert maps[mask].mean() > 4 * maps[~mask].mean()
    found = model.segment(sick)
    assert found[mask].mean() > 0.8
    assert found[~mask].mean() < 0.15


@pytest.mark.slow
def test_another_contrast_needs_harmonising():
    model = NearestHealthy(smooth=3, random_state=0).fit(heads(120))
    other = np.sqrt(heads(6, seed=1))
    plain = model.anomaly_map(other).mean()
    assert model.set_params(harmonise=True).anomaly_map(other).mean() < 0.6 * plain


def test_no_more_than_n_kept_images_are_kept_and_those_without_weight_never():
    images = heads(40)
    weights = np.r_[np.ones(20), np.zeros(20)]
    model = NearestHealthy(n_kept=12, holdout=0, random_state=0).fit(images, sample_weight=weights)
    kept = model.members_.nets[0].images.numpy()
    frame = model.members_.frame
    assert len(kept) == 12
    trusted = frame.inward(images[:20]).numpy()
    assert all((one == trusted).all(axis=(1, 2, 3)).any() for one in kept)


def test_intensities_are_set_right_by_those_that_are_trusted(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "aberra.localise.nearest.harmonised",
        lambda image, middle: asked.append(float(middle[0, 0, 0])) or image,
    )
    levels = torch.tensor([0.0, 0.1, 0.2, 0.9, 1.0])  # the three nearest of 15 say what is right
    trust = torch.tensor([0.1, 0.1, 1.0, 1.0, 1.0])
    net = atlas_of(levels[:, None, None, None].expand(5, 1, 8, 8), trust)
    members = Atlases(frame=None, style=None, comparison=Comparison(15, True, True), nets=[net])
    members.compared(net, torch.zeros(1, 1, 8, 8))
    assert asked == pytest.approx([0.2, 0.2])


def test_one_image_is_enough_and_a_saved_model_gives_the_same_bytes(tmp_path):
    alone = NearestHealthy(holdout=0).fit(heads(1))
    assert np.isfinite(alone.anomaly_map(heads(2))).all()
    model = NearestHealthy(random_state=0).fit(heads(30))
    save(model, tmp_path / "near.aberra")
    sick, _ = with_lesion(heads(3, seed=1), 0.1)
    again = load(tmp_path / "near.aberra")
    assert again.anomaly_map(sick).tobytes() == model.anomaly_map(sick).tobytes()


def test_averages_show_no_single_image_and_find_lesions_all_the_same():
    images = heads(120)
    model = NearestHealthy(n_neighbours=20, n_kept=25, keep="averages", random_state=0, smooth=3)
    kept = model.fit(images).members_.nets[0].images.numpy()
    trained = model.members_.frame.inward(images).numpy()
    gaps = [np.abs(trained - one).mean(axis=(1, 2, 3)).min() for one in kept]
    assert 5 < len(kept) <= 25
    assert min(gaps) > 0.02
    sick, mask = with_lesion(heads(6, seed=1), 0.1)
    maps = model.anomaly_map(sick)
    assert maps[mask].mean() > 3 * maps[~mask].mean()


def test_averages_need_a_few_images():
    with pytest.raises(DataError, match="at least 4 images"):
        NearestHealthy(keep="averages", holdout=0).fit(heads(3))
    model = NearestHealthy(keep="averages", holdout=0, random_state=0).fit(heads(5))  # one average
    assert np.isfinite(model.anomaly_map(heads(2, seed=1))).all()


@pytest.mark.slow
def test_an_ensemble_trusts_dirty_images_less():
    images = heads(60)
    images[:6] = with_lesion(images[:6], 0.1)[0]
    model = IADC(NearestHealthy(n_neighbours=20), n_members=2, max_rounds=2, random_state=0)
    with pytest.warns(RoundsExhaustedWarning):
        weights = model.fit(images).weights_
    assert weights[:6].mean() < 0.5 * weights[6:].mean()


def test_thumbnails_of_one_pixel_are_compared():
    others = torch.tensor([[0.1], [0.5], [0.4]])
    assert nearest_rows(torch.tensor([[0.48]]), others, 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("side", "grid"), [((48, 64), (48, 64)), ((128, 96), (64, 48)), ((33, 21), (33, 21))]
)
def test_images_are_kept_with_64_pixels_along_their_longest_side(side, grid):
    images = np.random.default_rng(0).random((5, 1, *side))
    model = NearestHealthy(holdout=0, random_state=0).fit(images)
    assert model.members_.frame.grid == grid
    assert model.members_.nets[0].images.shape == (5, 1, *grid)
    small = NearestHealthy(holdout=0, image_size=16, random_state=0).fit(images)
    assert max(small.members_.frame.grid) == 16


@pytest.mark.parametrize(("shape", "n"), [((3, 16, 20), 768), ((1, 8, 40), 128), ((2, 5, 4), 40)])
def test_a_thumbnail_has_16_pixels_a_side_or_as_many_as_there_are(shape, n):
    assert thumbnails(torch.rand(2, *shape)).shape == (2, n)


def test_the_worst_pixels_choose_no_neighbour_and_equals_come_in_their_order():
    image = torch.zeros(1, 20)
    others = torch.zeros(4, 20)
    others[0, :3] = 9.0  # three of twenty are left out
    others[1, :4] = 0.1
    others[2, :4] = 9.0
    assert nearest_rows(image, others, 4).tolist() == [0, 3, 1, 2]
    assert nearest_rows(image, others[[3, 3, 3]], 2).tolist() == [0, 1]


@pytest.mark.parametrize(("n", "n_kept", "groups"), [(4, 9, 1), (11, 9, 2), (12, 9, 3), (40, 7, 7)])
def test_there_are_four_images_for_every_average_and_no_more_than_n_kept(
    n, n_kept, groups, monkeypatch
):
    monkeypatch.setattr("aberra.localise.nearest.averages", lambda *given: given[2])
    model = NearestHealthy(keep="averages", n_kept=n_kept)
    assert model._kept(torch.zeros(n, 1, 4, 4), torch.ones(n), 0) == groups


def test_images_are_drawn_in_proportion_to_their_weights():
    images = torch.arange(100.0)[:, None, None, None]
    weights = torch.where(torch.arange(100) < 50, 9.0, 1.0)
    kept = []
    for seed in range(40):
        drawn, trust = NearestHealthy(n_kept=10)._kept(images, weights, seed)
        assert (drawn.flatten().diff() > 0).all()  # in their order, each once
        kept += trust.tolist()
    assert len(kept) == 400
    assert np.mean(np.array(kept) == 9) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize(("k", "median_of"), [(1, 1), (5, 1), (9, 1), (15, 3)])
def test_intensities_are_set_right_twice_each_time_by_the_neighbours_found_last(
    k, median_of, monkeypatch
):
    levels = torch.linspace(-1, 1, 41)
    asked = []

    def brighter(image, middle):
        asked.append((float(image[0, 0, 0]), float(middle[0, 0, 0])))
        return middle + 0.25

    monkeypatch.setattr("aberra.localise.nearest.harmonised", brighter)
    net = atlas_of(levels[:, None, None, None].expand(41, 1, 8, 8), torch.ones(41))
    members = Atlases(frame=None, style=None, comparison=Comparison(k, True, True), nets=[net])
    image = torch.full((1, 8, 8), -0.4)
    ((seen, _, _),) = members.compared(net, image[None])
    assert median_of == max(1, k // 5)
    assert [one for one, _ in asked] == pytest.approx([-0.4, -0.4])  # always the image as it was
    assert [middle for _, middle in asked] == pytest.approx([-0.4, -0.15])
    torch.testing.assert_close(seen, torch.full((1, 8, 8), 0.1))
