"""The label-free thresholds: closed forms, invariances, and the odd shapes scores can take."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special, stats
from sklearn.datasets import make_blobs

from aberra import MultiView
from aberra.errors import DataError
from aberra.ordinary import SKEW, Bulk, bulk, discoveries, group_apart, middle_and_upper_spread
from aberra.thresholds import (
    DEFAULT,
    RULES,
    WHERE,
    _top_component,
    consensus,
    described,
    fdr,
    knee,
    mixture,
    robust_z,
    tail,
    target_rate,
    threshold,
)

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
whole_scores = hnp.arrays(np.int64, st.integers(2, 60), elements=st.integers(-1000, 1000))
wild_scores = hnp.arrays(
    np.float64,
    st.integers(2, 40),
    elements=st.one_of(
        st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, 5e-324, -1e300, 1e300])
    ),
)


def contaminated(share, n=2000, distance=8.0, seed=0):
    rng = np.random.default_rng(seed)
    n_odd = int(share * n)
    return np.concatenate([rng.normal(size=n - n_odd), rng.normal(distance, size=n_odd)])


@every_rule
@settings(max_examples=20, deadline=None)
@given(whole_scores, st.sampled_from([0.25, 1.0, 2.0, 1024.0]), st.integers(-64, 64))
def test_threshold_moves_with_the_scores(rule, s, scale, shift):
    # Powers of two and integers: the moved scores are exact.
    s = s.astype(np.float64)
    np.testing.assert_allclose(rule(scale * s + shift), scale * rule(s) + shift, rtol=1e-9)


@every_rule
@pytest.mark.parametrize("n", [2, 3, 9, 10, 31, 80, 3000])
def test_threshold_moves_with_the_scores_under_any_scale(rule, n):
    rng = np.random.default_rng(n)
    for s in (rng.gamma(2.0, size=n), rng.standard_cauchy(n), rng.integers(0, 5, n)):
        for scale, shift in ((1e-6, 0.3), (0.7, -11.0), (3e7, 12345.6)):
            np.testing.assert_allclose(rule(scale * s + shift), scale * rule(s) + shift, rtol=1e-9)


@pytest.mark.slow
@every_rule
@settings(max_examples=20, deadline=None)
@given(whole_scores, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rule, s, random):
    mixed = s.astype(np.float64)
    random.shuffle(mixed)
    assert rule(mixed) == rule(s.astype(np.float64))


@every_rule
@settings(max_examples=20, deadline=None)
@given(wild_scores)
def test_any_scores_give_a_finite_threshold_that_flags_at_most_half(rule, s):
    t = rule(s)
    assert isinstance(t, float)
    assert np.isfinite(t)
    assert (s > t).mean() <= 0.5
    assert rule(s) == t


@every_rule
@pytest.mark.parametrize("value", [0.0, -3.7, 0.1, 1e300])
@pytest.mark.parametrize("n", [1, 2, 3, 1001])
def test_constant_scores_flag_nothing(rule, value, n):
    assert rule(np.full(n, value)) >= value


@every_rule
def test_scores_are_left_alone(rule):
    s = contaminated(0.1)
    before = s.copy()
    rule(s)
    np.testing.assert_array_equal(s, before)


@every_rule
def test_most_rows_tied(rule):
    s = np.concatenate([np.zeros(900), np.arange(1.0, 101.0)])
    assert 0 <= rule(s) < 100


@pytest.mark.parametrize("rule", [mixture, tail, target_rate, robust_z])
def test_a_million_rows_agree_with_a_few_thousand_of_the_same_law(rule):
    many, few = (stats.norm.ppf((np.arange(n) + 0.5) / n) for n in (10**6, 2000))
    np.testing.assert_allclose(rule(many), rule(few), rtol=0.02)


def test_knee_flags_fewer_of_a_clean_law_the_more_rows_there_are():
    # The top of the sample moves out, and the chord with it.
    laws = [stats.norm.ppf((np.arange(n) + 0.5) / n) for n in (100, 1000, 10**6)]
    shares = [(s > knee(s)).mean() for s in laws]
    assert 0.12 > shares[0] > shares[1] > shares[2] > 0.04


def test_robust_z_on_the_normal_law():
    s = stats.norm(5, 2).ppf((np.arange(10001) + 0.5) / 10001)
    np.testing.assert_allclose(robust_z(s), 5 + 3 * 2, rtol=1e-3)
    np.testing.assert_allclose(robust_z(s, z=1.0), 5 + 2, rtol=1e-3)


def test_knee_on_a_written_example():
    # Upper half: 5, 6, 7, 8, 28. Below the chord at x = 0.75: 0.75 - 3 / 23.
    assert knee(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 28.0])) == 8.0


def test_knee_is_where_the_density_falls_to_its_average():
    # The upper half has the density 2 (1 - u) on [0, 1], whose average is 1, reached at u = 1/2.
    upper = 1 - np.sqrt(1 - np.linspace(0, 1, 20001))
    s = np.concatenate([-upper[1:], upper])
    np.testing.assert_allclose(knee(s), 0.5, atol=1e-3)


def test_knee_without_a_knee_is_robust_z():
    even = np.arange(50.0)
    assert knee(even) == robust_z(even) > even.max()
    late = np.concatenate([np.arange(50.0), 1000 - np.arange(45.0)])  # crowded at the top only
    assert knee(late) <= 50.0


def test_one_extreme_row_does_not_hide_the_others():
    s = np.concatenate([contaminated(0.05), [1e12]])
    for rule in (knee, mixture, consensus, tail, robust_z):
        assert 0.04 < (s > rule(s)).mean() < 0.12


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2, 0.3])
def test_mixture_finds_the_share_of_separate_anomalies(share):
    s = contaminated(share)
    np.testing.assert_allclose((s > mixture(s)).mean(), share, atol=0.005)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.1, 0.2, 0.3])
def test_default_catches_separate_anomalies_with_few_false_alarms(share):
    s = contaminated(share)
    flagged = s > RULES[DEFAULT](s)
    odd = np.arange(len(s)) >= len(s) - int(share * len(s))
    assert flagged[odd].mean() > 0.99
    assert flagged[~odd].mean() < 0.06


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.3])
@pytest.mark.parametrize("rate", [0.001, 0.01, 0.05])
def test_tail_is_exact_on_its_own_law(shape, rate):
    levels = np.linspace(0, 1, 8001)[:-1]
    s = stats.genpareto(shape, loc=2.0, scale=3.0).ppf(levels)
    expected = stats.genpareto(shape, loc=2.0, scale=3.0).isf(rate)
    np.testing.assert_allclose(tail(s, rate), expected, rtol=0.01)


def test_tail_does_not_look_at_the_top_eighth():
    s = np.sort(np.random.default_rng(2).gamma(2.0, size=800))
    far = s.copy()
    far[710:] *= 50
    assert tail(far) == tail(s)


def test_target_rate_flags_the_stated_share():
    s = np.random.default_rng(3).normal(size=1000)
    assert (s > target_rate(s, 0.05)).sum() == 50
    assert target_rate(np.array([4.0, 1.0, 2.0]), 0.2) == pytest.approx(3.2)  # on a straight line


def test_consensus_lies_midway():
    s = np.random.default_rng(4).gamma(2.0, size=500)
    np.testing.assert_allclose(consensus(s), (knee(s) + mixture(s)) / 2)


def test_threshold_names_the_rule_it_used():
    s = np.random.default_rng(5).gamma(2.0, size=500)
    assert threshold(s) == (RULES[DEFAULT](s), DEFAULT)
    for name, rule in RULES.items():
        assert threshold(s, name) == (rule(s), name)
    t, name = threshold(list(s), 0.1)
    assert name == "share"
    assert (s > t).sum() == 50


def test_a_new_rule_needs_one_function(monkeypatch):
    monkeypatch.setattr("aberra.thresholds.RULES", dict(RULES))
    monkeypatch.setattr("aberra.thresholds.WHERE", dict(WHERE))

    @described("at the largest training score")
    def largest(scores):
        return float(scores.max())

    assert threshold([1.0, 3.0, 2.0], "largest") == (3.0, "largest")


def test_every_rule_says_where_it_puts_the_threshold():
    assert WHERE.keys() == RULES.keys() | {"share"}


@pytest.mark.parametrize("rule", [0.0, 1.0, -0.1, 3, float("nan"), "best"])
def test_threshold_refuses_what_is_no_rule(rule):
    with pytest.raises(ValueError, match=r"rule|share"):
        threshold(np.arange(10.0), rule)


@pytest.mark.parametrize("s", [[], [[1.0, 2.0]], [1.0, np.nan], [np.inf, 0.0]])
def test_threshold_refuses_scores_that_are_none(s):
    with pytest.raises(DataError, match="finite"):
        threshold(s)


@pytest.mark.parametrize("seed", range(4))
def test_default_flags_some_and_not_most_of_blobs_with_noise(seed):
    # The data of scikit-learn's outlier checks, scored by the distance to the nearest blob.
    rng = np.random.default_rng(seed)
    blobs, _ = make_blobs(n_samples=280, centers=3, n_features=2, random_state=seed)
    rows = np.concatenate([blobs, rng.uniform(-12, 12, size=(20, 2))])
    gaps = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    s = np.sort(gaps, axis=1)[:, 5]
    t, _ = threshold(s)
    assert 0 < (s > t).mean() < 0.5


# Flags with a stated error


def normal_scores(n, seed=0, dirty=0):
    """Return scores of the law that `bulk` assumes, the first `dirty` of them far out."""
    scores = 3.0 + 2.0 * np.expm1(SKEW * np.random.default_rng(seed).normal(size=n)) / SKEW
    scores[:dirty] = 60.0
    return scores


def test_the_bulk_has_normal_deviates_and_dirt_does_not_move_it():
    scores = normal_scores(20_000)
    z = bulk(scores).deviates(scores)
    np.testing.assert_allclose(
        np.quantile(z, (0.1, 0.5, 0.9, 0.99)), [-1.28, 0, 1.28, 2.33], atol=0.1
    )
    dirty = normal_scores(20_000, dirty=2_000)
    moved = np.abs(bulk(dirty).deviates(dirty)[2_000:] - z[2_000:])
    assert np.quantile(moved, 0.99) < 0.6
    found = bulk(scores)
    for p in (0.5, 0.01, 1e-6):
        np.testing.assert_allclose(found.p_values(np.array([found.score_of(p)])), p, rtol=1e-6)
    np.testing.assert_allclose(bulk(7 * scores - 3).deviates(7 * scores - 3), z, atol=1e-9)
    assert np.isfinite(bulk(np.zeros(5)).deviates(np.zeros(5))).all()


def test_discoveries_are_those_of_benjamini_and_hochberg():
    p = np.array([0.001, 0.9, 0.012, 0.03, 0.2, 0.009])
    slow = max((k for k in range(1, 7) if np.sort(p)[k - 1] <= 0.05 * k / 6), default=0)
    np.testing.assert_array_equal(discoveries(p, 0.05), p <= np.sort(p)[slow - 1])
    assert slow == 4
    border = np.array([0.25, 0.5, 0.75, 1.0])  # each is just rate k / n for the rate 1
    assert discoveries(border, 1.0).all()
    assert discoveries(border, 0.5).sum() == 0
    assert discoveries(np.array([0.125, 0.9, 0.9, 0.9]), 0.5).tolist() == [True] + [False] * 3
    assert not discoveries(np.full(5, 0.5), 0.05).any()
    assert discoveries(np.array([0.03, 0.035]), 0.04).all()  # the second stands, so does the first


def test_one_in_ten_flags_is_false():
    false = []
    for seed in range(40):
        scores = normal_scores(2_000, seed, dirty=100)
        flagged = scores > fdr(scores)
        assert flagged[:100].all()
        false.append(flagged[100:].sum() / flagged.sum())
    assert 0.0 < np.mean(false) < 0.13
    clean = [(s > fdr(s)).sum() for s in (normal_scores(2_000, seed) for seed in range(100, 140))]
    assert np.mean(np.array(clean) > 0) < 0.3


def test_the_rate_is_a_parameter_of_every_model():
    X = np.random.default_rng(0).normal(size=(400, 3))
    X[:30] += 5
    strict, lax = (MultiView(fdr=q, random_state=0).fit(X) for q in (0.001, 0.5))
    assert strict.threshold_ >= lax.threshold_
    assert strict.threshold_rule_ == "fdr"
    p = strict.p_values(X)
    np.testing.assert_array_equal(strict.predict(X, fdr=0.2) == -1, discoveries(p, 0.2))
    with pytest.raises(ValueError, match="between 0 and 1"):
        strict.predict(X, fdr=2)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_a_second_hill_of_scores_is_a_group_apart(share):
    s = contaminated(share)
    odd = np.arange(len(s)) >= len(s) - int(share * len(s))
    assert (group_apart(s) == odd).mean() > 0.995
    np.testing.assert_array_equal(group_apart(7 * s - 3), group_apart(s))


@pytest.mark.parametrize("draw", ["normal", "lognormal", "exponential", "uniform", "gumbel"])
def test_scores_with_one_hill_have_no_group_apart(draw):
    for seed in range(20):
        assert not group_apart(getattr(np.random.default_rng(seed), draw)(size=1000)).any()


def test_a_group_apart_is_neither_tiny_nor_most_rows():
    assert not group_apart(contaminated(0.02)).any()
    assert not group_apart(contaminated(0.6)).any()
    assert not group_apart(np.ones(50)).any()


def test_hills_need_fifty_different_scores_in_the_lower_half():
    above = np.r_[np.linspace(1.01, 2, 249), np.full(200, 30.0)]
    for lower, found in ((49, 0), (50, 200)):  # the median among them
        low = np.r_[np.repeat(np.linspace(0, 1, lower), 9), np.full(451 - 9 * lower, 1.0)]
        assert group_apart(np.r_[low, above]).sum() == found


def test_a_fifth_of_dirt_is_flagged():
    s = contaminated(0.2)
    assert abs((s > fdr(s)).mean() - 0.2) < 0.01


def test_where_nothing_is_discovered_nothing_is_flagged():
    s = np.random.default_rng(3).normal(size=300)
    assert fdr(s) >= s.max()
    assert fdr(s) == max(s.max(), bulk(s).score_of(0.1 / 300))


# The same written out


def some_scores(seed, n=300):
    """Return skewed scores with a second hill of any share, distance and width."""
    rng = np.random.default_rng(seed)
    scores = np.exp(rng.uniform(0.1, 0.6) * rng.normal(size=n))
    odd = rng.random(n) < rng.uniform(0, 0.6)
    scores[odd] += rng.uniform(1, 8) + rng.uniform(0.05, 1) * rng.normal(size=odd.sum())
    return scores


def apart_by_hand(scores):
    low, middle = np.quantile(scores, (0.1, 0.5))
    tenth = stats.norm.ppf(0.9)
    z = np.log(np.maximum(1 + 0.4 * (scores - middle) * tenth / (middle - low), 1e-12)) / 0.4
    grid = np.linspace(-4, 15, 191)
    place = np.clip(np.floor((z + 4.05) / 0.1), 0, 190).astype(int)
    counted = np.bincount(place, minlength=191)
    density = [
        sum(counted[j] * np.exp(-((j - k) ** 2) / 24.5) for j in range(max(0, k - 15), k + 16)
            if j < 191)
        for k in range(191)
    ]  # fmt: skip
    top = int(np.argmax(density[:41]))  # up to the median
    best = (1.0, top)
    for k in range(top, 191):
        hill = max(density[k:])
        if hill > 1e-6:
            best = min(best, (min(density[top : k + 1]) / min(hill, density[top]), k))
    beyond = z > grid[best[1]]
    there = best[0] <= 0.2 and 0.03 <= beyond.mean() <= 0.5
    return beyond if there else np.zeros(len(scores), bool)


def test_few_different_scores_have_no_hills():
    generator = np.random.default_rng(0)
    for different, there in ((49, False), (50, True)):
        low = np.resize(-1.0 - np.arange(different) / different, 510)
        s = np.concatenate([low, generator.uniform(-0.9, 0.5, 290), np.full(200, 9.0)])
        s += 1e-9 * generator.normal(size=1000)  # rounding makes no scores different
        assert group_apart(s).any() == there, different


def test_a_group_apart_is_what_is_written_out():
    found = []
    for seed in range(40):
        scores = some_scores(seed)
        expected = apart_by_hand(scores)
        np.testing.assert_array_equal(group_apart(scores), expected)
        found.append(expected.any())
    assert 10 < sum(found) < 30
    scores = np.r_[some_scores(0)[:70] / 10, np.full(30, 9.0)]
    assert group_apart(scores)[70:].all()
    assert not group_apart(scores[1:]).any()  # fewer than a hundred show no hills


def mixture_by_hand(scores):
    s = np.sort(scores)
    middle, n = np.median(s), len(s)
    spread = (middle - np.quantile(s, 0.25)) / 0.6745
    u = np.clip((s - middle) / spread, -20, 20)
    shares = np.zeros((3, n))
    for k, (a, b) in enumerate([(0, n // 2), (n // 2, 9 * n // 10), (9 * n // 10, n)]):
        shares[k, a:b] = 1
    for _ in range(200):
        mass = shares.sum(axis=1)
        mean = (shares * u).sum(axis=1) / mass
        deviation = np.sqrt((shares * (u - mean[:, None]) ** 2).sum(axis=1) / mass + 0.01)
        z = (u - mean[:, None]) / deviation[:, None]
        shares = special.softmax(np.log(mass / deviation)[:, None] - z**2 / 2, axis=0)
    top = shares[mean > mean.max() - 1e-6].max(axis=0)  # two may have become one
    odd = np.flatnonzero((top > 0.5 + 1e-6) & (s > middle))
    return max(s[odd[0] - 1], middle) if len(odd) else middle + 3 * spread


def knee_by_hand(scores):
    s = np.sort(scores)
    middle = np.median(s)
    reach = middle + 20 * (middle - np.quantile(s, 0.25)) / 0.6745
    upper = s[len(s) // 2 :]
    y = np.minimum(upper, reach)
    depth = [k / (len(y) - 1) - (y[k] - y[0]) / (y[-1] - y[0]) for k in range(len(y))]
    return max(upper[int(np.argmax(depth))], middle)


def test_knee_and_mixture_are_what_is_written_out():
    for seed in range(8):
        scores = some_scores(seed, n=150)
        assert mixture(scores) == pytest.approx(mixture_by_hand(scores), rel=1e-9)
        assert knee(scores) == pytest.approx(knee_by_hand(scores), rel=1e-9)
    far = np.r_[some_scores(3), 1e6]
    assert knee(far) == pytest.approx(knee_by_hand(far))
    assert mixture(far) == pytest.approx(mixture_by_hand(far))


def tail_by_hand(scores, rate):
    half, quarter, eighth = np.quantile(scores, [0.5, 0.75, 0.875])
    shape = min(1, max(-1, np.log2((eighth - quarter) / (quarter - half))))
    steps = np.log2(0.5 / rate) if shape == 0 else ((0.5 / rate) ** shape - 1) / (2**shape - 1)
    return half + (quarter - half) * steps


def test_tail_is_what_its_docstring_says():
    for seed in range(20):
        scores = some_scores(seed, n=40)
        for rate in (0.05, 0.2):
            assert tail(scores, rate) == pytest.approx(tail_by_hand(scores, rate), rel=1e-6)
    low = np.arange(5.0)  # the quantiles are the fifth, the seventh and the eighth of nine scores
    for upper, shape in (([4.5, 5.0, 5.0625, 99], -1), ([4.5, 5, 9, 99], 1), ([4.5, 5, 6, 99], 0)):
        steps = np.log2(10) if shape == 0 else (10.0**shape - 1) / (2.0**shape - 1)
        assert tail(np.r_[low, upper]) == pytest.approx(4 + steps)
    for upper in ([4, 4, 5, 99], [4.5, 5, 5, 99]):  # two of the quantiles are equal
        scores = np.r_[low, upper]
        assert tail(scores) == robust_z(scores)


def test_mixtures_of_few_and_of_many_scores():
    few = np.r_[np.arange(8.0), 100.0]
    assert mixture(few) == robust_z(few)
    ten = np.r_[np.arange(9.0), 100.0]
    assert mixture(ten) == pytest.approx(mixture_by_hand(ten)) != robust_z(ten)
    tied = np.r_[np.zeros(20), np.arange(9.0)]
    assert mixture(tied) == robust_z(tied) == 0
    many = some_scores(5, n=1001)
    thousand = np.quantile(many, (np.arange(1000) + 0.5) / 1000)
    assert mixture(many) == pytest.approx(mixture_by_hand(thousand), rel=0.02)
    assert mixture(many) in thousand
    assert mixture(many[:1000]) in many


def test_the_knee_is_the_last_of_several_and_no_score_below_the_median():
    # Upper half: 2, 3, 4, 5, 7, 9, 11: as far below the chord at 5 as nowhere else.
    assert knee(np.r_[-np.arange(6.0), 2, 3, 4, 5, 7, 9, 11]) == 5
    level = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 10, 13])  # upper half 5, 6, 7, 10, 13
    assert knee(level) == 7
    assert knee(np.array([0.0, 1, 2, 2, 3, 3, 4, 6, 8])) == 4  # at 3 and at 4 alike


def test_the_spread_above_the_median():
    assert middle_and_upper_spread(np.array([0.0, 1, 2, 3, 7])) == (2, 1)
    assert middle_and_upper_spread(np.array([0.0, 0, 8, 8, 8])) == (8, 2)  # a quarter of the lower
    assert middle_and_upper_spread(np.full(5, 3.0)) == (3, 0)
    for size in (1.0, 1000.0):  # a spread in the last digits is rounding
        for part, there in ((0.5e-13, False), (4e-13, True)):
            s = size * (1 + part * np.arange(5.0))
            assert (middle_and_upper_spread(s)[1] > 0) is there
    assert bulk(np.array([1.0, 1, 1, 1, 5])) == Bulk(1, bulk(np.array([-3.0, 1, 1, 5, 9])).scale)
    assert bulk(np.full(4, 2.0)).scale == pytest.approx(0.4 / np.expm1(0.4 * 0.67449))


# Settings and edges


def test_the_settings_of_every_rule_are_those_of_its_docstring():
    kept = {
        (name, setting.name): setting.default
        for name, rule in {**RULES, "threshold": threshold}.items()
        for setting in inspect.signature(rule).parameters.values()
        if setting.default is not setting.empty
    }
    assert kept == {
        ("fdr", "rate"): 0.1,
        ("robust_z", "z"): 3.0,
        ("tail", "rate"): 0.05,
        ("target_rate", "rate"): 0.05,
        ("threshold", "rule"): "auto",
        ("threshold", "rate"): 0.1,
    }


def test_the_share_of_false_alarms_reaches_the_rule_that_aims_at_it():
    s = normal_scores(500, dirty=0)
    for rate in (0.01, 0.3):
        assert threshold(s, "fdr", rate) == (fdr(s, rate), "fdr")
    assert threshold(s, "fdr", 0.01)[0] > threshold(s, "fdr", 0.3)[0]


def with_depths(*depths):
    """Return scores whose upper half, five of them from 0 to 1, lies so far below its chord."""
    upper = np.linspace(0, 1, 5) - np.array([0, *depths, 0])
    return np.r_[-np.arange(4.0, 0, -1), upper]


def test_a_knee_is_deeper_than_rounding_and_only_rounding_moves_it_on():
    flat = with_depths(0, 0.5e-9, 0)
    assert knee(flat) == robust_z(flat)
    faint = with_depths(0, 1.5e-9, 0)
    assert knee(faint) == faint[6] != robust_z(faint)
    assert knee(with_depths(0.1, 0.1 - 0.5e-9, 0)) == pytest.approx(0.4)  # the last of those alike
    assert knee(with_depths(0.1, 0.1 - 1.5e-9, 0)) == pytest.approx(0.15)


def top_by_hand(u, rounds=200, fewest=1e-12):
    """Return what the mixture fitted to sorted deviations gives to its highest component."""
    n = len(u)
    shares = np.repeat(np.eye(3), (n // 2, 9 * n // 10 - n // 2, n - 9 * n // 10), axis=1)
    for _ in range(rounds):
        mass = [max(sum(own), fewest) for own in shares]
        mean = np.array([np.dot(own, u) / m for own, m in zip(shares, mass, strict=True)])
        parts = zip(shares, mean, mass, strict=True)
        spread = np.sqrt([np.dot(own, (u - c) ** 2) / m + 0.01 for own, c, m in parts])
        density = [
            np.log(m / d) - ((u - c) / d) ** 2 / 2
            for m, c, d in zip(mass, mean, spread, strict=True)
        ]
        shares = special.softmax(np.maximum(density - np.max(density, axis=0), -700), axis=0)
    return shares[mean > mean.max() - 1e-6].max(axis=0)


@pytest.mark.parametrize("seed", [1, 7, 11])  # whose components move for more than 200 rounds
def test_the_highest_component_is_what_200_rounds_make_of_it(seed):
    s = np.sort(some_scores(seed, n=150))
    middle = np.median(s)
    u = (s - middle) / (middle - np.quantile(s, 0.25)) * 0.6745
    found = _top_component(np.clip(u, -20, 20))
    np.testing.assert_allclose(found, top_by_hand(np.clip(u, -20, 20)), atol=1e-7)
    for rounds in (199, 201):
        assert np.abs(found - top_by_hand(np.clip(u, -20, 20), rounds)).max() > 1e-5


@pytest.mark.parametrize(("values", "counts"), [([0, 20], [90, 10]), ([-1, 1, 20], [50, 40, 10])])
def test_components_that_hold_one_value_each_are_told_apart(values, counts):
    u = np.repeat(np.array(values, float), counts)
    np.testing.assert_allclose(_top_component(u), u == 20, atol=1e-9)
    np.testing.assert_allclose(_top_component(np.zeros(20)), 0.5)  # the two that merged share it


@pytest.mark.parametrize(("beyond", "there"), [(29, 0), (30, 30), (500, 500), (501, 0)])
def test_a_group_apart_has_three_percent_of_the_scores_at_least_and_half_at_most(beyond, there):
    rng = np.random.default_rng(0)
    s = np.r_[0.3 * rng.normal(size=1000 - beyond), 8 + 0.2 * rng.normal(size=beyond)]
    found = group_apart(s)
    assert found.sum() == there == found[1000 - beyond :].sum()


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_what_differs_by_rounding_has_no_group_apart(size):
    pattern = np.r_[np.linspace(-1, 1, 150), np.full(50, 40.0)]
    apart = group_apart(pattern)
    assert apart.sum() == 50
    middle, low = np.quantile(pattern, (0.5, 0.1))
    for part, there in ((0.8e-13, False), (1.6e-13, True)):  # of the median, to the lowest tenth
        s = size * (1 + part * (pattern - middle) / (middle - low))
        assert group_apart(s).any() == there, part


def test_the_deviates_of_the_bulk_are_its_closed_form_and_end_somewhere():
    own = Bulk(2.0, 3.0)
    z = np.linspace(-3, 5, 9)
    s = 2 + 3 * np.expm1(0.4 * z) / 0.4
    np.testing.assert_allclose(own.deviates(s), z, atol=1e-12)
    np.testing.assert_allclose(own.p_values(s), stats.norm.sf(z))
    np.testing.assert_allclose([own.score_of(p) for p in stats.norm.sf(z)], s)
    lowest = 2 - 3 / 0.4  # no ordinary score is as low
    np.testing.assert_allclose(own.deviates(np.array([lowest, -1e300])), np.log(1e-12) / 0.4)
