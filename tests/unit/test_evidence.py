"""What is counted rather than measured: codes, pairs of codes, copies, constants."""

import itertools

import numpy as np
import pytest

from aberra import IADC
from aberra.detectors.evidence import evidence


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_rare_code_counts_below_the_ordinary_ones(rng):
    column = np.r_[np.repeat([0.0, 1.0, 2.0], 400), 7.0]
    found = evidence(column[:, None])
    ordinary = 400
    np.testing.assert_allclose(found.nats(np.array([[7.0]])), 0.5 * (np.log(ordinary) - 3.5))
    np.testing.assert_allclose(found.nats(np.array([[9.0]])), 0.5 * (np.log(2 * ordinary) - 3.5))
    np.testing.assert_array_equal(found.nats(column[:1200, None]), 0.0)
    few = evidence(np.repeat([0.0, 1.0, 2.0], 10)[:, None])  # too few to say that one is rare
    np.testing.assert_array_equal(few.nats(np.array([[2.5]])), 0.0)


def test_numbers_are_no_codes(rng):
    assert evidence(rng.normal(size=(500, 2))).coded == []


def test_codes_that_never_meet(rng):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])  # a never meets a + 2
    nats = evidence(X).nats(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0]]))
    assert nats[0] == nats[1] == 0.0
    expected = (X[:, 0] == 0).sum() * (X[:, 1] == 2).sum() / 900
    np.testing.assert_allclose(nats[2], 0.5 * (np.log(expected / 0.5) - 1))


@pytest.mark.parametrize("lonely", [-1.0, 3.0])
def test_a_code_that_only_occurs_beside_gaps(rng, lonely):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])  # a never meets a + 2
    gaps = np.column_stack([np.full(50, lonely), np.full(50, np.nan)])
    asked = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [lonely, 1.0]])
    nats = evidence(np.concatenate([X, gaps])).nats(asked)
    np.testing.assert_array_equal(nats, evidence(X).nats(asked) * [1, 1, 1, 0])


def test_copies_stand_out_among_unique_rows_only(rng):
    X = rng.normal(size=(1000, 4))
    X[:60] = 0.0
    np.testing.assert_allclose(evidence(X).nats(X[:1]), np.log(60))
    np.testing.assert_array_equal(evidence(X).nats(X[60:]), 0.0)
    coarse = np.round(X)
    assert len(evidence(coarse).copied) == 0
    codes = rng.integers(0, 10, size=(1000, 7)).astype(float)  # unique rows of coarse columns
    codes[:60] = 5.0
    assert len(evidence(codes).copied) == 0


def test_codes_that_are_too_rare_to_meet_are_no_evidence(rng):
    a = rng.integers(0, 3, 900).astype(float)
    X = np.column_stack([a, (a + rng.integers(0, 2, 900)) % 3])
    X[:10, 0] = X[10:20, 1] = 3.0  # expected to meet 0.1 times
    found = evidence(X)
    assert len(found.pairs) == 1
    np.testing.assert_array_equal(found.nats(np.array([[3.0, 3.0]])), 0.0)


@pytest.mark.parametrize(("n", "fewest"), [(500, 5), (2000, 8)])
def test_a_row_is_copied_if_it_is_there_five_times_and_in_four_of_a_thousand(rng, n, fewest):
    X = rng.normal(size=(n, 2))
    for times in (fewest - 1, fewest):
        X[:times] = 0.0
        assert len(evidence(X).copied) == (times == fewest)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_a_dead_sensor_is_odd_although_it_is_in_the_middle(rng, share):
    X = rng.normal(size=(2000, 8))
    dead = np.arange(2000) < 2000 * share
    X[dead] = 0.0
    scores = IADC(random_state=0).fit(X).anomaly_score(X)
    assert scores[dead].min() > np.quantile(scores[~dead], 0.95)


def test_gaps_scattered_at_random_say_nothing_but_an_outage_does(rng):
    rows = rng.normal(size=(2000, 20))
    rows[rng.random(rows.shape) < 0.1] = np.nan
    rows[:20, :10] = np.nan
    nats = evidence(rows).nats(rows)
    assert nats[:20].min() > 10
    for x in (0.0, 1.0, 2.0, 4.0):  # what is x nats odd happens in at most exp(-x) of the rows
        assert np.mean(nats[20:] > x) < 1.5 * np.exp(-x) * 0.1
    together = rng.normal(size=(2000, 20))
    together[:600, :5] = np.nan  # three rows in ten have not been asked
    assert not evidence(together).nats(together).any()


def test_gaps_of_all_patterns_are_no_odder_than_they_are_rare(rng):
    rows = rng.normal(size=(4000, 3))
    rows[rng.random(rows.shape) < [0.02, 0.1, 0.2]] = np.nan
    found, share = evidence(rows), (np.isnan(rows).sum(axis=0) + 0.5) / 4001
    patterns = np.array(list(itertools.product([False, True], repeat=3)))
    chance = np.where(patterns, share, 1 - share).prod(axis=1)
    nats = found.nats(np.where(patterns, np.nan, 0.1))
    tails = np.array([chance[nats >= x].sum() for x in nats])
    seen = (nats > 0) & (tails > 0.004)  # often enough to be among the 4096 rows that are drawn
    assert (tails < 1.4 * np.exp(-nats))[seen].all()
    assert seen.sum() >= 2
    assert nats.max() > 4
