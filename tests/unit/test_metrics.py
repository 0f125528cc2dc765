"""Measures against closed forms and scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from aberra.errors import DataError
from aberra.metrics import anomaly_std, auroc, average_precision, dice, rank_std


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=30))
def test_auroc_is_the_share_of_ordered_pairs(pairs):
    y = np.array([odd for odd, _ in pairs])
    s = np.array([score for _, score in pairs], dtype=float)
    if y.all() or not y.any():
        assert math.isnan(auroc(y, s))
        return
    wins = [(a > b) + 0.5 * (a == b) for a in s[y] for b in s[~y]]
    np.testing.assert_allclose(auroc(y, s), np.mean(wins))
    np.testing.assert_allclose(auroc(y, s), roc_auc_score(y, s))


def test_average_precision_of_a_perfect_ranking_is_one():
    assert average_precision([0, 0, 1], [0.1, 0.2, 0.9]) == 1.0


def test_iadc_9_is_the_population_deviation_of_the_sigmoid():
    s = np.array([[0.0, 1.0], [2.0, 1.0]])
    low, high = 0.5, 1 / (1 + math.exp(-2))
    np.testing.assert_allclose(anomaly_std(s), [(high - low) / 2, 0.0])


def test_spread_of_ranks_does_not_depend_on_the_scale():
    s = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 30.0, 20.0, 1e9]])
    np.testing.assert_allclose(rank_std(s), [0.0, 0.125, 0.125, 0.0])
    np.testing.assert_allclose(rank_std(s**3), rank_std(s))
    tied = [[1.0, 1.0, 2.0], [1.0, 2.0, 1.0]]  # equal scores share their places: 1.5, 1.5 and 3
    np.testing.assert_allclose(rank_std(tied), [0.0, 0.25, 0.25])


def test_labels_are_nought_and_one():
    said = np.array([1, -1, 1, 1])  # by `predict`: the second row is odd
    for measure in (dice, auroc, average_precision):
        with pytest.raises(DataError, match=r"Labels must be 0 and 1.*== -1"):
            measure(said, said)
    assert dice([0, 1, 0, 0], said == -1) == auroc([0.0, 1.0, 0.0, 0.0], -said) == 1.0
