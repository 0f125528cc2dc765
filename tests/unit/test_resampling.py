"""Rows that members draw."""

import numpy as np

from aberra.rng import stream
from aberra.robust.resampling import resampled_rows, with_weight


def test_iadc_a1_3_draws_n_of_n_and_leaves_a_third_out():
    rows = resampled_rows(2000, 3, True, stream(0))
    assert rows.shape == (3, 2000)
    shares = [len(np.unique(line)) / 2000 for line in rows]
    np.testing.assert_allclose(shares, 1 - np.exp(-1), atol=0.03)
    assert (rows[0] != rows[1]).any()


def test_subsample_draws_half_without_replacement():
    rows = resampled_rows(101, 4, "subsample", stream(0))
    assert rows.shape == (4, 50)
    assert all(len(np.unique(line)) == 50 for line in rows)
    assert [resampled_rows(n, 1, "subsample", stream(0)).shape[1] for n in (3, 6)] == [2, 3]


def test_without_resampling_every_member_sees_all_rows():
    rows = resampled_rows(7, 2, False, stream(0))
    np.testing.assert_array_equal(rows, [np.arange(7)] * 2)


def test_rows_of_weight_zero_are_never_trained_on():
    weights = np.array([1.0, 0.0, 2.0, 0.0, 1.0])
    rows = with_weight(resampled_rows(5, 3, True, stream(1)), weights)
    assert rows.shape == (3, 5)
    assert (weights[rows] > 0).all()
    one = with_weight(np.array([[0, 1], [1, 4]]), weights)  # of its own draw, however little
    np.testing.assert_array_equal(one, [[0, 0], [4, 4]])
    low = with_weight(np.array([[0, 1, 3, 2]]), np.array([0.0, 0.01, 1.0, 9.0]))
    np.testing.assert_array_equal(low, [[1, 3, 2, 1]])  # with little weight is with weight
    none = with_weight(np.array([[0, 2], [1, 3]]), weights)  # a member drew nothing of weight
    np.testing.assert_array_equal(none, [[0, 2], [0, 2]])
