"""ADC and IADC around a localiser: they draw maps, and segment, as a single one does."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from aberra import ADC, IADC, OCSVM, IntensityThreshold, load, save
from aberra.contract.maps import CALIBRATION_IMAGES, foreground, upper_quantile
from aberra.errors import DataError
from aberra.robust.committee import Committee
from aberra.robust.weighting import importance_weights

pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")

RATE = 0.02
FLOOR = IntensityThreshold(side="bright", smooth=1, holdout=0.1, false_alarm_rate=RATE)


@pytest.fixture(scope="module")
def images():
    """Return 150 noisy images, of which the first 15 have a very bright corner."""
    found = np.random.default_rng(0).random((150, 1, 12, 12))
    found[:15, :, :6, :6] += 10
    return found


def fitted(kind, images, weight=None):
    rounds = {"max_rounds": 3} if kind is IADC else {}
    model = kind(FLOOR, n_members=2, random_state=0, **rounds)
    return model.fit(images, sample_weight=weight)


def test_members_see_images_of_their_own_unless_they_are_told_otherwise(images):
    scores = {
        resample: ADC(FLOOR, n_members=2, resample=resample, random_state=0)
        .fit(images)
        .anomaly_score(images)
        for resample in ("auto", True, False)
    }
    np.testing.assert_array_equal(scores["auto"], scores[True])
    assert (scores["auto"] != scores[False]).any()


@pytest.mark.parametrize("kind", [ADC, IADC])
def test_the_map_threshold_counts_training_images_by_the_trust_in_them(kind, images):
    model = fitted(kind, images)
    trust = importance_weights(model.training_scores()) if kind is ADC else model.weights_
    rows = np.unique(np.linspace(0, 149, CALIBRATION_IMAGES).astype(int))
    maps = model.anomaly_map(images[rows])
    counts = trust[rows][:, None, None] * foreground(images[rows])
    assert model.map_threshold_ == upper_quantile(maps, counts, RATE)
    # Ten percent of the images are a quarter bright, but nobody trusts them.
    assert model.map_threshold_ < 1
    assert model.segment(images)[:15, :6, :6].all()
    assert model.segment(images)[15:].mean() < 3 * RATE


@pytest.mark.parametrize("kind", [ADC, IADC])
def test_images_of_weight_zero_do_not_place_the_threshold(kind, images):
    weight = np.where(np.arange(150) < 140, 0.0, 1.0)
    model = fitted(kind, images, weight)
    maps = model.anomaly_map(images[140:])
    counts = importance_weights(model.training_scores())[140:, None, None]
    expected = upper_quantile(maps, counts * foreground(images[140:]), RATE)
    assert model.map_threshold_ == expected


def test_the_channels_of_an_image_place_one_threshold_together():
    images = np.random.default_rng(0).random((20, 3, 12, 12))
    images[:, :, :5] = 0.0  # black in all channels: no pixel that counts
    images[:, 1:, 5:8] = 0.0  # black in two
    model = fitted(ADC, images)
    counts = importance_weights(model.training_scores())[:, None, None] * foreground(images)
    assert (counts > 0).any(axis=(0, 2)).tolist() == [False] * 5 + [True] * 7
    assert model.map_threshold_ == upper_quantile(model.anomaly_map(images), counts, RATE)


def test_segments_are_where_the_map_is_above_its_threshold_and_inside_the_mask(images):
    model = fitted(IADC, images)
    maps = model.anomaly_map(images)
    np.testing.assert_array_equal(model.segment(images), maps > model.map_threshold_)
    mask = np.zeros(maps.shape)
    mask[:, :3] = 1
    np.testing.assert_array_equal(model.anomaly_map(images, mask), np.where(mask, maps, 0))
    assert not model.segment(images, mask)[:, 3:].any()
    np.testing.assert_array_equal(
        model.segment(images, mask)[:, :3], (maps > model.map_threshold_)[:, :3]
    )
    with pytest.raises(DataError, match=r"mask has shape \(1, 12, 12\)"):
        model.segment(images, mask[:1])


def test_maps_and_scores_are_those_of_the_two_methods(images):
    model = fitted(IADC, images)
    maps, scores = model.maps_and_scores(images)
    assert maps.tobytes() == model.anomaly_map(images).tobytes()
    assert scores.tobytes() == model.anomaly_score(images).tobytes()
    np.testing.assert_allclose(scores, model.training_scores())


@pytest.mark.parametrize(("at_a_time", "asked"), [(4, [4, 4, 4]), (10, [10]), (None, [10])])
def test_members_are_asked_about_as_many_images_at_a_time_as_they_take(
    images, at_a_time, asked, monkeypatch
):
    model, sizes = fitted(ADC, images), []
    ten, ways = images[:10], ("maps", "restored", "maps_and_scores")
    before = [ask(ten) for ask in (model.anomaly_map, model.reconstruct, model.maps_and_scores)]

    def counted(answer):
        return lambda members, tile: sizes.append(len(tile)) or answer(members, tile)

    for name in ways:
        monkeypatch.setattr(Committee, name, counted(getattr(Committee, name)))
    monkeypatch.setattr(model.members_, "tile_rows", at_a_time)
    after = [ask(ten) for ask in (model.anomaly_map, model.reconstruct, model.maps_and_scores)]
    assert sizes == 3 * asked
    for one, other in zip((*before[:2], *before[2]), (*after[:2], *after[2]), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_images_of_another_size_are_refused_and_change_nothing(images):
    model = fitted(ADC, images)
    before = model.anomaly_map(images[:2])
    for ask in ("anomaly_map", "reconstruct", "maps_and_scores", "anomaly_score", "segment"):
        with pytest.raises(DataError):
            getattr(model, ask)(images[:, :, :6])
        assert model.image_shape_ == (1, 12, 12)
    np.testing.assert_array_equal(model.anomaly_map(images[:2]), before)
    np.testing.assert_allclose(model.reconstruct(images[:2]), [model.reconstruct(images)[0]] * 2)


def test_a_saved_ensemble_segments_the_same(images, tmp_path):
    model = fitted(IADC, images)
    save(model, tmp_path / "model.aberra")
    again = load(tmp_path / "model.aberra")
    assert again.map_threshold_ == model.map_threshold_
    assert again.segment(images).tobytes() == model.segment(images).tobytes()


def test_only_ensembles_of_localisers_segment(images):
    assert fitted(ADC, images).localises
    table = ADC(OCSVM(), n_members=2, random_state=0)
    assert not table.localises
    assert not hasattr(table, "segment")
    for ask in ("segment", "anomaly_map", "reconstruct", "maps_and_scores", "anomaly_score"):
        with pytest.raises(NotFittedError):
            getattr(ADC(FLOOR), ask)(images)
    # Refitted on a table, a model has no threshold of maps left over.
    model = fitted(ADC, images).set_params(detector=OCSVM())
    assert not hasattr(model.fit(images[:, 0, 0]), "map_threshold_")
