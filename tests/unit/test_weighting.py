"""The importance weights and the crossings against their closed forms."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from aberra.ordinary import bulk
from aberra.robust.history import History, Round, kept_round, settled
from aberra.robust.sample import Sampled, ranks_of, some_rows
from aberra.robust.weighting import (
    apart_weights,
    crossings,
    importance_weights,
    newly_doubted,
    top_rows,
)

finite_scores = hnp.arrays(
    np.float64, st.integers(3, 40), elements=st.floats(-100, 100, allow_subnormal=False)
)


def test_iad_w_is_half_at_the_median_and_known_at_the_smallest_score():
    s = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    w = importance_weights(s, temperature=0.5)
    assert w[2] == 0.5
    # min(beta - min, max - beta) = 2, so alpha = 1 and the smallest score has w = sigmoid(2).
    np.testing.assert_allclose(w[0], 1 / (1 + np.exp(-2)))
    np.testing.assert_allclose(w[3], 1 / (1 + np.exp(1)))
    assert w[4] < 1e-40


@given(finite_scores)
def test_weights_fall_with_the_score_and_stay_in_the_unit_interval(s):
    w = importance_weights(s)
    assert ((w >= 0) & (w <= 1)).all()
    assert (np.diff(w[np.argsort(s)]) <= 0).all()


@given(
    hnp.arrays(np.int64, st.integers(3, 40), elements=st.integers(-1000, 1000)),
    st.sampled_from([0.25, 1.0, 2.0, 1024.0]),
    st.integers(-64, 64),
)
def test_iad_w_does_not_change_with_an_affine_change_of_the_scores(s, scale, shift):
    # Powers of two and integers: the scaled scores are exact, so the weights must be too.
    s = s.astype(np.float64)
    np.testing.assert_allclose(
        importance_weights(scale * s + shift), importance_weights(s), rtol=1e-12, atol=1e-300
    )


def test_scores_one_apart_are_told_apart():
    np.testing.assert_allclose(importance_weights(np.array([0.0, 1, 2])), expit([2, 0, -2]))
    np.testing.assert_allclose(apart_weights(np.zeros(1)), expit(3 / 0.35))  # a row by itself


def test_equal_scores_keep_half_the_trust():
    np.testing.assert_array_equal(importance_weights(np.full(5, 3.0)), np.full(5, 0.5))


def test_median_at_the_edge_uses_the_other_distance():
    w = importance_weights(np.array([0.0, 0.0, 0.0, 0.0, 4.0]), temperature=0.5)
    np.testing.assert_allclose(w, [0.5] * 4 + [1 / (1 + np.exp(2))])


def test_scores_as_close_or_as_far_as_floats_can_be():
    np.testing.assert_array_equal(importance_weights(np.array([5e-324, 0, 0])), expit([-2, 0, 0]))
    far = importance_weights(np.array([0.0, 1e-320, 1e-320, 1e3]))
    np.testing.assert_allclose(far, [expit(2), 0.5, 0.5, 0])


def test_iad_h_counts_rows_that_entered_the_top():
    before = np.array([0.0, 1.0, 2.0, 3.0])
    after = np.array([3.0, 1.0, 2.0, 0.0])
    assert crossings(after, before, 0.5) == 1  # row 0 came in, row 3 went out
    assert crossings(before, before, 0.5) == 0
    assert crossings(-before, before, 0.5) == 2


def test_the_top_are_the_rows_with_the_largest_scores():
    s = np.array([3.0, 1.0, 5.0, 5.0, 2.0])
    assert top_rows(s, 0.2).tolist() == [False, False, True, False, False]  # ties: the earlier row
    assert top_rows(s, 0.5).tolist() == [True, False, True, True, False]
    # The top three stay the top three while the rest changes places: no crossing.
    assert crossings(np.array([6.0, 2.0, 5.0, 4.0, 1.0]), s, 0.5) == 0
    assert crossings(np.array([3.0, 9.0, 5.0, 5.0, 2.0]), s, 0.2) == 1


@given(finite_scores, st.floats(0.01, 0.99))
def test_top_share_has_the_stated_size(s, r):
    assert top_rows(s, r).sum() == int(np.ceil(r * len(s)))


def test_stop_and_keep_on_a_written_example():
    h = [50, 30, 20, 25, 22]
    assert not settled(h[:4], patience=2, by_chance=100)
    assert settled(h, patience=2, by_chance=100)
    assert kept_round(h, by_chance=100) == 3  # h[2] belongs to the fourth round, index 3
    assert settled([5, 0], patience=9, by_chance=100)
    assert not settled([0, 5], patience=2, by_chance=100)  # only the last round counts
    assert not settled([], patience=1, by_chance=100)


def test_a_ranking_that_is_still_restless_has_not_settled():
    assert settled([50, 20, 25, 25], patience=2, by_chance=80)
    assert not settled([50, 21, 25, 25], patience=2, by_chance=80)
    assert kept_round([50, 20, 25, 25], by_chance=80) == 2
    assert kept_round([50, 21, 25, 25], by_chance=80) == 4  # the last round
    rng = np.random.default_rng(0)
    restless = _history([rng.normal(size=200) for _ in range(9)], 0.5)
    assert not restless.settled()
    assert restless.goes_on(max_rounds=10)
    assert restless.kept == restless.replay(0.5) == 8


@pytest.mark.parametrize(("ratio", "calm"), [(0.5, 12), (0.2, 8)])
def test_at_rest_is_a_quarter_of_the_crossings_of_unrelated_rankings(ratio, calm):
    base = np.arange(200.0)  # by chance: r (1 - r) 200, which is 50 or 32
    for swapped, at_rest in ((calm, True), (calm + 1, False)):
        other = base.copy()
        other[:swapped], other[-swapped:] = base[-swapped:], base[:swapped]
        history = _history([base, other, base, other], ratio)
        assert history.crossings() == [swapped] * 3
        assert history.settled() is at_rest
        assert history.kept == (1 if at_rest else 3)


@pytest.mark.parametrize(("ratio", "at_rest"), [(0.5, True), (0.2, False)])
def test_another_ratio_expects_other_crossings_by_chance(ratio, at_rest):
    base = np.arange(200.0)  # by chance 50 at one half, of which ten are little, and 32 at a fifth
    other = np.r_[base[-10:], base[10:-10], base[:10]]
    history = _history([base, other, base, other], 0.5)
    assert history.crossings(ratio) == [10] * 3
    assert history.settled(ratio) is at_rest
    assert history.settled() is True
    assert history.replay(ratio) == (1 if at_rest else 3)


def _history(rounds, outlier_ratio, patience=2):
    history = History(outlier_ratio, patience, temperature=0.5)
    for s in rounds:
        history.append(Round(s, 0.0))
    return history


def test_history_says_itself_in_one_line():
    assert repr(History(0.5, 2, 0.5)) == "History(no rounds yet)"
    history = _history([np.arange(9.0)], 0.5)
    assert repr(history) == "History(1 round, kept number 1)"
    history = _history([np.arange(9.0), -np.arange(9.0), -np.arange(9.0)], 0.5)
    history.reason = "settled"
    assert repr(history) == "History(3 rounds, kept number 3, settled)"
    assert [line.crossings for line in history] == [None, 4, 0]
    assert repr(history[1]) == "Round(seconds=0.0, crossings=4)"
    assert history[-1] in history
    assert history[1:] == [history[1], history[2]]


def test_replay_equals_a_run_with_that_ratio():
    generator = np.random.default_rng(0)
    base = generator.normal(size=300)
    rounds = [base + generator.normal(size=300) / (t + 1) for t in range(12)]
    long = _history(rounds, 0.5, patience=2)
    for r in (0.05, 0.1, 0.3, 0.5):
        live = History(r, 2, 0.5)
        for s in rounds:
            if live.goes_on(max_rounds=12):
                live.append(Round(s, 0.0))
        assert long.replay(r) == live.kept
        assert live.crossings() == long.crossings(r)[: len(live) - 1]
    still = _history([base, base, *rounds], 0.5)
    assert still.replay(0.3) == 1  # a ranking that stands still at once
    assert _history(rounds[:1], 0.5).replay(0.3) == 0


def test_a_file_keeps_the_oddest_rows_and_some_at_even_distances_in_the_ranking():
    scores = np.random.default_rng(0).permutation(20_000).astype(float)
    rows = some_rows(scores)
    ranks = np.sort(scores[rows]).astype(int)
    assert len(np.unique(rows)) == len(rows) == 4100
    assert (np.diff(rows) > 0).all()
    assert ranks[-100:].tolist() == list(range(19_900, 20_000))
    assert (ranks[0], ranks[-101]) == (0, 19_899)
    assert set(np.diff(ranks[:4000])) == {4, 5}
    np.testing.assert_array_equal(ranks_of(scores), scores)
    held = Sampled(20_000, 7, rows, ranks_of(scores)[rows], np.ones(4100, np.float32))
    np.testing.assert_allclose(held.every_score(scores[rows]), np.arange(20_000))
    ends = np.array([0, 2_999_999], np.int32)
    many = Sampled(3_000_000, 0, ends, ends, np.ones(2, np.float32)).every_score(np.array([0, 1.0]))
    assert len(many) == 1_000_000  # enough for any picture of them
    np.testing.assert_allclose(many[[0, 499_999, -1]], [0, 0.5, 1], atol=1e-6)
    for places in ([0, 20_000], [-1, 5], []):
        wrong = np.array(places, np.int32)
        for changed in ({"rows": wrong}, {"ranks": wrong}):
            with pytest.raises(ValueError, match="not one of the training rows"):
                replace(held, **changed)


# Trust that only rows lose which lie apart


def test_clean_scores_keep_their_trust_and_far_ones_lose_it():
    rng = np.random.default_rng(0)
    for n in (200, 20_000):
        for s in (rng.normal(size=n), np.exp(0.4 * rng.normal(size=n)), rng.random(n)):
            assert np.mean(apart_weights(s) > 0.8) >= 0.985
    s = np.r_[rng.normal(size=900), np.full(100, 40.0)]
    w = apart_weights(s)
    assert w[900:].max() < 1e-3
    assert w[:900].mean() > 0.98
    np.testing.assert_allclose(apart_weights(5 * s + 2), w, atol=1e-9)


def test_trust_is_one_half_where_the_oddest_of_so_many_rows_lies():
    s = np.linspace(-1, 1, 1001)
    edge = bulk(s).score_of(1 / 1002)
    w = apart_weights(np.r_[s, edge])
    np.testing.assert_allclose(w[-1], 0.5, atol=0.02)


def test_newly_doubted_rows_are_those_that_fell_below_one_half():
    assert newly_doubted(np.array([0.1, 0.4, 0.6]), np.array([0.2, 0.6, 0.4])) == 1
    assert newly_doubted(np.array([0.5, 0.4]), np.array([0.6, 0.5])) == 1  # one half is no doubt


def history_of(*rounds):
    history = History(0.5, 2, 0.5, "apart")
    for scores in rounds:
        history.append(Round(np.asarray(scores, dtype=float), 0.0))
    return history


def test_a_clean_first_round_is_the_last():
    clean = np.random.default_rng(1).normal(size=300)
    assert history_of(clean).clean
    assert not history_of(clean).goes_on(30)
    odd = np.r_[clean, 50.0]
    assert history_of(odd).goes_on(30)
    assert history_of(odd, odd).crossings() == [0]
    assert not history_of(odd, odd).goes_on(30)


def test_rounds_under_our_rule_go_on_while_rows_lose_trust():
    clean = np.random.default_rng(1).normal(size=300)
    first, second = np.r_[clean, 50.0, 1.0], np.r_[clean, 50.0, 60.0]
    found = history_of(first, second)
    assert found.crossings() == [1]
    assert found.crossings(0.3) == [1]  # no share of the ranking is watched
    assert found.goes_on(30)
    np.testing.assert_array_equal(found.next_weights(302), apart_weights(second))
