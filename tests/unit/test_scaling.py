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
