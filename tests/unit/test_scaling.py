"""Scaling of tables and images."""

import numpy as np
import pytest

from aberra.detectors.scaling import min_max, pixels, robust, standard


def test_min_max_maps_columns_to_the_unit_interval():
    data = np.random.default_rng(0).normal(size=(50, 3)) * [1, 100, 1e-6]
    data[:, 1] = 4.0
    scaled = min_max(data)(data)
    np.testing.assert_allclose(scaled.min(axis=0), [0, 0, 0])
    np.testing.assert_allclose(scaled.max(axis=0), [1, 0, 1])


def test_standardising_before_min_max_changes_nothing():
    data = np.random.default_rng(1).normal(size=(40, 2)) * 7 + 3
    first = standard(data, np.ones(40))(data)
    np.testing.assert_allclose(min_max(first)(first), min_max(data)(data), atol=1e-12)


def test_standard_counts_rows_by_their_weight():
    data = np.array([[0.0, 1.0], [4.0, 1.0], [1e6, 1.0]])
    scaled = standard(data, np.array([3.0, 1.0, 0.0]))(data)  # mean 1, variance 3
    np.testing.assert_allclose(scaled[:2], [[-(3**-0.5), 0], [3**0.5, 0]])


@pytest.mark.parametrize(
    ("images", "factor"),
    [
        (np.array([[0, 255]], dtype=np.uint8), 1 / 255),
        (np.array([[0.0, 0.5]]), 1.0),
        (np.array([[0.2, 1.0]]), 1.0),
        (np.array([[-1.0, 3.0]]), 0.25),
    ],
)
def test_pixels_share_one_factor(images, factor):
    scaled = pixels(images)(images)
    assert pixels(images).factor == factor
    assert scaled.min() >= 0
    assert scaled.max() <= 1


def test_training_copy_is_the_scaled_data_in_single_precision():
    data = np.random.default_rng(2).normal(size=(33, 2))
    copy = min_max(data).copy(data, tile=10)
    assert copy.dtype == np.float32
    np.testing.assert_allclose(copy, min_max(data)(data), atol=1e-7)


def evenly(data):
    return standard(data, np.ones(len(data)))


@pytest.mark.parametrize("scaling", [min_max, evenly, robust, pixels])
def test_a_span_whose_inverse_would_overflow_is_none(scaling):
    column = np.array([[0.0], *[[2.3e-308]] * 7]) - 1e-300
    scale = scaling(column)
    assert scale.factor == 1
    assert np.abs(scale(column)).max() < 1e-200


@pytest.mark.parametrize(
    ("low", "high", "shift", "factor"),
    [(0.0, 1.0, 0, 1), (0.0, 1.001, 0, 1 / 1.001), (-0.001, 1.0, -0.001, 1 / 1.001), (2, 2, 2, 1)],
)
def test_images_that_lie_between_nought_and_one_stay_as_they_are(low, high, shift, factor):
    scale = pixels(np.array([[low, high]]))
    np.testing.assert_allclose([scale.shift, scale.factor], [[shift], [factor]])
    np.testing.assert_allclose(scale(np.full((2, 5), high)), (high - shift) * factor)


def test_robust_scaling_of_columns_that_are_mostly_or_wholly_one_value():
    mostly = np.r_[np.zeros(30), 1.0, 2.0, 3.0]
    rounding = 1e6 * (1 + 1e-13 * (np.arange(33) < 3))  # a constant, but for its last digit
    columns = np.column_stack([mostly, np.full(33, 5.0), rounding, np.arange(33.0)])
    scale = robust(columns)
    np.testing.assert_allclose(scale.shift, [0, 5, 1e6, 16])
    np.testing.assert_allclose(scale.factor, [1 / mostly.std(), 1, 1, 1.349 / 16])
    far = robust(100 + mostly[:, None])  # its deviation is small beside its values, and counts
    np.testing.assert_allclose(far.factor, 1 / mostly.std())
    yes = robust(np.array([[True], [False], [True], [True], [False]]))
    assert (yes.shift[0], yes.factor[0]) == (1, 1.349)
    whole = robust(np.arange(9)[:, None])
    assert (whole.shift[0], whole.factor[0]) == (4, 1.349 / 4)


def test_means_and_deviations_of_a_written_example():
    data = np.array([[1.0, 10.0], [3.0, 10.0]])
    weighted = standard(data, np.array([1.0, 3.0]))
    np.testing.assert_allclose(weighted.shift, [2.5, 10])
    np.testing.assert_allclose(weighted.factor, [0.75**-0.5, 1])
    scale = standard(data, np.ones(2))
    assert (scale.shift.tolist(), scale.factor.tolist()) == ([2, 10], [1, 1])
    np.testing.assert_array_equal(scale(np.array([[5, 7]])), [[3, -3]])
    low = min_max(data)
    assert (low.shift.tolist(), low.factor.tolist()) == ([1, 10], [0.5, 1])
    assert scale(np.asfortranarray(data)).flags.c_contiguous


def test_the_least_span_that_counts():
    for span, factor in ((1e-200, 1.0), (2e-200, 5e199)):
        assert min_max(np.array([[0.0], [span]])).factor[0] == pytest.approx(factor)


@pytest.mark.parametrize("gap", [False, True])
def test_what_is_large_in_single_precision_is_not_squared_there(gap):
    wide = np.random.default_rng(0).normal(size=(800, 1)) * 1e20
    wide[np.arange(800) % 10 < 8] = 1e19  # the quartiles coincide, so the deviation counts
    wide[0] = np.nan if gap else 1e19
    one, other = robust(wide), robust(wide.astype(np.float32))
    np.testing.assert_allclose(other.factor, one.factor, rtol=1e-5)
    assert 0 < other.factor[0] < 1e-19
