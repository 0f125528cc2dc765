"""The six views against their definitions, written out with loops, and what they are for."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from aberra import ADC, IADC, MultiView, load, save
from aberra.detectors import multiview
from aberra.detectors.column_tails import column_tails
from aberra.detectors.compiled_forest import best_cut, grown, parted, path_length, slope, sort, walk
from aberra.detectors.compiled_views import mean_surprise, pooled_nats
from aberra.detectors.gain_forest import grow
from aberra.detectors.inverse_covariance import (
    ridge_precision,
    shrinkage,
    wide_ridge_precision,
)
from aberra.detectors.landmarks import Landmarks, landmarks
from aberra.detectors.multiview import (
    ELLIPSE,
    Lens,
    lens,
    some_rows,
    surprise,
    surprises,
    with_bulk,
)
from aberra.detectors.robust_covariance import distances_left_out, robust_ellipse
from aberra.detectors.scaling import robust
from aberra.detectors.weighted import quantiles
from aberra.ordinary import SKEW, TENTH


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(300, 4)) ** 3


def test_the_bulk_of_a_view_has_its_own_scale_and_that_of_a_flat_one_is_its_spread():
    @dataclass
    class Member:
        low: np.ndarray | None = None
        middle: np.ndarray | None = None

        def oddness(self, seen):
            wide = np.linspace(0.0, 1.0, 101)
            flat = np.r_[np.zeros(91), np.ones(10)]
            return np.stack([wide, wide * 1e-9, 5.0 + wide * 1e6, flat, np.full(101, 3.0)])

    seen = SimpleNamespace(precise=np.zeros((101, 2)))
    found = with_bulk(Member(), seen, np.ones(101), 0.02)
    np.testing.assert_allclose(found.middle, [0.5, 0.5e-9, 5.0 + 0.5e6, 0.0, 3.0])
    np.testing.assert_allclose(found.middle[:3] - found.low[:3], np.array([1, 1e-9, 1e6]) * 0.404)
    flat = Member().oddness(seen)[3].std()
    np.testing.assert_allclose(found.low[3:], [-flat, 2.0])


def single(rows):
    return np.ascontiguousarray(rows, dtype=np.float32)


def test_robust_scaling_has_the_quartiles_of_a_normal(data):
    scaled = robust(data)(data)
    np.testing.assert_allclose(np.median(scaled, axis=0), 0, atol=1e-12)
    low, high = np.percentile(scaled, (25, 75), axis=0)
    np.testing.assert_allclose(high - low, 1.349)
    mostly_zero = np.zeros((100, 1))
    mostly_zero[:10] = np.arange(1, 11)[:, None]
    np.testing.assert_allclose(robust(mostly_zero)(mostly_zero).std(), 1.0)
    gaps = np.concatenate([data, np.full((50, 4), np.nan)])
    np.testing.assert_array_equal(robust(gaps)(data), scaled)


def test_weighted_quantiles_are_those_of_repeated_rows():
    values, weights = np.array([3.0, 1.0, 2.0, 5.0]), np.array([1.0, 2.0, 4.0, 1.0])
    assert quantiles(values, weights, (0.5,)) == pytest.approx([2.0])
    assert quantiles(values, 7 * weights, (0.2, 0.9)) == pytest.approx(
        quantiles(values, weights, (0.2, 0.9))
    )
    normal = np.random.default_rng(1).normal(size=100_001)
    np.testing.assert_allclose(
        quantiles(normal, np.ones(len(normal)), (0.1, 0.5)),
        np.quantile(normal, (0.1, 0.5)),
        atol=1e-4,
    )


@pytest.mark.parametrize("pooled", [True, False])
def test_the_best_cut_is_the_best_of_all_cuts(pooled):
    tied = np.r_[-3, -1, np.zeros(40), 1, 3.5]  # no cut runs between equal values
    for values in (np.sort(np.random.default_rng(2).normal(size=30) ** 3), tied):
        n, gains = len(values), {}
        for k, (low, high) in enumerate(pairwise(values), 1):
            sides = values[:k].std(), values[k:].std()
            even = (k * sides[0] + (n - k) * sides[1]) / n if pooled else sum(sides) / 2
            gains[0.5 * (low + high)] = 1 - even / values.std() if low < high else -1
        gain, place = best_cut(values, pooled, np.empty((3, n)))
        assert gain == pytest.approx(max(gains.values()))
        assert place == pytest.approx(max(gains, key=gains.get))
    assert best_cut(np.ones(5), pooled, np.empty((3, 5)))[0] == -1.0


def test_path_length_is_the_mean_depth_of_a_random_tree():
    def depth(n, generator):
        total = 0
        while n > 1:
            low = generator.integers(1, n)
            n = low if generator.random() < low / n else n - low
            total += 1
        return total

    generator = np.random.default_rng(3)
    for n in (2, 200):
        mean = np.mean([depth(n, generator) for _ in range(4000)])
        assert path_length(n) == pytest.approx(mean, rel=0.1)
    assert path_length(1) == 0.0


def walked_depth(forest, row):
    """Walk one row down all trees, as the pictures in a textbook do."""
    depths = []
    for root in forest.roots:
        node = root
        while forest.left[node] != node:
            (i, j), (a, b, height) = forest.columns[node], forest.planes[node]
            node = forest.left[node] + (np.float32(a * row[i]) + np.float32(b * row[j]) > height)
        depths.append(forest.depths[node])
    return float(np.mean(depths))


def test_rows_are_walked_down_the_trees(data):
    rows, generator = single(data), np.random.default_rng(4)
    forest = grow(rows, np.ones(300), generator, 5, n_planes=2, pooled=True)
    assert len(forest.roots) == 5
    found = [-walked_depth(forest, row) for row in rows]
    # Fused multiply-adds may send a row that lies on a plane to the other side.
    assert np.mean(np.abs(forest.oddness(rows) - found) < 1e-5) > 0.98


@pytest.mark.parametrize("pooled", [True, False])
def test_a_tight_cluster_is_cut_off_early_unless_it_is_trusted_alone(pooled):
    generator = np.random.default_rng(5)
    rows = single(generator.normal(size=(400, 3)))
    rows[:20] = 6 + 0.01 * rows[:20]
    odd = grow(rows, np.ones(400), generator, 20, 5, pooled).oddness(rows)
    assert odd[:20].min() > np.quantile(odd[20:], 0.9)
    trust = np.where(np.arange(400) < 20, 1.0, 1e-9)
    others = grow(rows, trust, generator, 20, 5, pooled).oddness(rows)
    assert others[20:].max() <= others[:20].max() + 1e-6  # they end in the cluster's outer leaves


def test_forged_trees_are_refused(data):
    forest = grow(single(data), np.ones(300), np.random.default_rng(4), 2, 1, pooled=True)
    far = forest.left.copy()
    far[0] = len(far)
    below = forest.left.copy()
    below[-1] = -1
    endless = forest.planes.copy()
    endless[forest.left == np.arange(len(far)), 2] = -1.0
    for change in ({"left": far}, {"left": below}, {"planes": endless}, {"steps": 10**9}):
        with pytest.raises(ValueError, match="tree"):
            replace(forest, **change)
    with pytest.raises(ValueError, match="column"):
        forest.check_columns(int(forest.columns.max()))


def test_the_robust_covariance_is_that_of_the_clean_rows():
    generator = np.random.default_rng(6)
    A = generator.normal(size=(4, 4))
    clean = generator.normal(size=(900, 4)) @ A
    dirty = np.concatenate([clean, 30 + generator.normal(size=(100, 4))])
    found = robust_ellipse(dirty, np.ones(1000), 1e-6)
    np.testing.assert_allclose(found.centre, 0, atol=0.6)
    assert found.oddness(dirty)[900:].min() > found.oddness(dirty)[:900].max()
    trust = np.r_[np.ones(900), np.zeros(100)] + 1e-12
    trusted = robust_ellipse(dirty, trust, 1e-6)
    alone = robust_ellipse(clean, np.ones(900), 1e-6)
    np.testing.assert_allclose(trusted.oddness(clean), alone.oddness(clean), rtol=0.1)


def test_of_two_rows_a_column_none_is_left_out():
    rows = np.random.default_rng(1).normal(size=(8, 4))
    rows[0] += 50
    np.testing.assert_allclose(robust_ellipse(rows, np.ones(8), 1e-6).centre, rows.mean(axis=0))
    more = np.concatenate([rows, rows[1:] + 1e-3])
    assert (robust_ellipse(more, np.ones(15), 1e-6).centre < 5).all()


def test_rows_without_trust_change_no_ellipse_of_few_rows():
    rows = np.random.default_rng(3).normal(size=(18, 10)) @ np.diag(np.arange(1.0, 11))
    trust = np.where(np.arange(18) < 12, 1.0, 0.0)  # ten columns: either number of rows is few
    found, alone = robust_ellipse(rows, trust, 0.02), robust_ellipse(rows[:12], trust[:12], 0.02)
    np.testing.assert_allclose(found.precision.matrix, alone.precision.matrix, rtol=1e-9)


def test_precision_inverts_the_ridged_covariance():
    C = np.cov(np.random.default_rng(2).normal(size=(50, 5)).T)
    ridged = 0.9 * C + (0.1 * np.trace(C) / 5 + 1e-9) * np.eye(5)
    np.testing.assert_allclose(ridge_precision(C, 0.1).matrix @ ridged, np.eye(5), atol=1e-10)


@pytest.mark.parametrize("ridge", [1e-6, 0.1, 1.0])
def test_the_wide_precision_is_the_other_one_without_its_matrix(ridge):
    generator = np.random.default_rng(2)
    A, x = generator.normal(size=(7, 30)), generator.normal(size=(40, 30))
    wide, full = wide_ridge_precision(A, ridge), ridge_precision(A.T @ A, ridge)
    np.testing.assert_allclose(wide.squares(x), full.squares(x), rtol=1e-6)
    np.testing.assert_allclose(wide.squares(A), full.squares(A), rtol=1e-4)
    np.testing.assert_allclose(wide.times(x), full.times(x), rtol=1e-4, atol=1e-4 / ridge)
    np.testing.assert_allclose(wide.diagonal(), full.diagonal(), rtol=1e-4)


def test_far_more_columns_than_rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 900))
    X[:3] += 1
    w = np.ones(60)
    w[:3] = 0
    model = MultiView(random_state=0).fit(X, sample_weight=w)
    view = model.members_.members[0]
    assert view.ellipse.precision.basis.shape == (57, 900)  # rows without trust have no part in it
    scores = model.anomaly_score(X)
    assert set(np.argsort(scores)[-3:]) == {0, 1, 2}
    save(model, tmp_path / "m.aberra")
    np.testing.assert_array_equal(load(tmp_path / "m.aberra").anomaly_score(X), scores)


def test_tails_are_ranks_from_both_ends_counted_by_trust():
    x, trust = single([[0.0], [1.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0, 4.0])
    tails = column_tails(x, trust)
    shares = np.array([1, 6, 6, 4])  # of 10, at or beyond each value on its rarer side
    np.testing.assert_allclose(tails.oddness(x), -np.log((shares + 0.5) / 10.5), rtol=1e-6)
    outside = tails.oddness(single([[-0.1], [2.1]]))
    np.testing.assert_allclose(outside, -np.log(0.5 / 10.5), rtol=1e-6)
    constant = column_tails(single([[7.0], [7.0]]), np.ones(2))
    odd = -np.log(0.5 / 2.5)
    np.testing.assert_allclose(constant.oddness(single([[7], [8], [6]])), [0, odd, odd], rtol=1e-6)
    two = column_tails(single([[0.0, 1.0], [1.0, 3.0]]), np.ones(2))
    for name in ("start", "per_unit"):  # compiled code would look for a place that is not there
        for wrong in ([np.nan, 1.0], [1.0, np.inf]):
            with pytest.raises(ValueError, match="not finite"):
                replace(two, **{name: np.float32(wrong)})


def test_neighbour_distance_is_that_to_the_third_landmark():
    generator = np.random.default_rng(3)
    rows = single(generator.normal(size=(200, 3)))
    crowd = landmarks(rows, np.ones(200), 50, generator)
    assert len(crowd.rows) == 50
    expected = np.array([np.sort(np.linalg.norm(crowd.rows - row, axis=1)) for row in rows])
    np.testing.assert_allclose(crowd.oddness(rows), expected[:, 2], rtol=1e-4, atol=1e-3)
    with pytest.raises(ValueError, match="no landmarks"):
        Landmarks(rows[:0])
    trust = np.r_[np.ones(30), np.full(170, 1e-12)]
    assert len(landmarks(rows, trust, 50, generator).rows) == 30  # no more than is trusted
    alone = np.where(np.arange(200) == 7, 1.0, 1e-9)  # the others amount to nothing
    np.testing.assert_array_equal(landmarks(rows, alone, 50, generator).rows, rows[7:8])


def test_surprise_is_minus_the_log_of_a_normal_tail_and_grows_slowly_at_last():
    from scipy.stats import norm

    z = np.array([-2.0, 0.0, 1.0, 3.0])
    np.testing.assert_allclose(surprise(z), -norm.logsf(z))
    far = surprise(np.array([10.0, 20.0, 40.0]))
    np.testing.assert_allclose(np.diff(far), 8 * np.log(4), rtol=0.05)


def test_views_come_to_one_scale_by_their_bulk():
    generator = np.random.default_rng(7)
    z = np.sort(generator.normal(size=(2, 4000)), axis=1)
    scale, middle = np.array([2.0, 50.0]), np.array([-1.0, 300.0])
    views = middle[:, None] + scale[:, None] * np.expm1(SKEW * z) / SKEW
    table = surprise(np.arange(-8 * 64, 40 * 64 + 1) / 64)
    half, none = np.full(2, 0.5), np.zeros(2)
    found = pooled_nats(views, middle, scale, SKEW, table, half, none)
    np.testing.assert_allclose(found, surprise(z).mean(axis=0), atol=1e-3)
    low = np.quantile(views[0], 0.1)
    assert (middle[0] - low) / TENTH == pytest.approx(scale[0], rel=0.25)


def test_the_bulk_of_a_view_is_its_median_and_lowest_tenth_or_its_deviation_where_these_are_one():
    X = np.random.default_rng(0).normal(size=(200, 2))
    for n_same in (0, 150):
        X[:n_same] = 0.3
        views = MultiView(random_state=0).fit(X).members_
        view, odd = views.members[0], views.members[0].oddness(views.lens.look(X))
        low, middle = quantiles_of(odd)
        np.testing.assert_allclose(view.middle, middle)
        alone = middle - low <= 1e-9 * odd.std(axis=1)
        assert not alone.all() if n_same == 0 else alone.any()
        np.testing.assert_allclose(view.low, np.where(alone, middle - odd.std(axis=1), low))


def quantiles_of(odd):
    return np.array([quantiles(view, np.ones(len(view)), (0.1, 0.5)) for view in odd]).T


def test_a_view_that_may_lift_adds_its_part_of_what_it_is_above_the_mean():
    nats = np.array([[1.0, 5.0], [3.0, 1.0], [8.0, 0.5]])  # of three views, for two rows
    table = np.arange(-8 * 64, 40 * 64 + 1) / 64  # nats that are the deviate itself
    views = np.expm1(SKEW * nats) / SKEW
    counts, lifts = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.25, 0.5])
    found = pooled_nats(views, np.zeros(3), np.ones(3), SKEW, table, counts, lifts)
    np.testing.assert_allclose(found, [2 + 0.25 * (3 - 2) + 0.5 * (8 - 2), 3], atol=1e-9)


def test_deviates_beyond_the_table_count_as_its_ends():
    table = np.arange(-8 * 64, 40 * 64 + 1) / 64  # nats that are the deviate itself
    for z, ends in (((-7.99, -8.0, -9.0), (-7.99, -8, -8)), ((39.5, 41.0, 60.0), (39.5, 40, 40))):
        views = np.expm1(SKEW * np.array([z])) / SKEW
        one, none = np.ones(1), np.zeros(1)
        found = pooled_nats(views, none, one, SKEW, table, one, none)
        np.testing.assert_allclose(found, ends, atol=1 / 64 + 1e-9)
        np.testing.assert_allclose(found[0], z[0], atol=1e-9)
        assert found[1] == found[2]
    lowest = pooled_nats(np.array([[-1e9, -2.4]]), none, one, SKEW, table, one, none)
    np.testing.assert_allclose(lowest, [-8, max(-8, np.log1p(-2.4 * SKEW) / SKEW)], atol=1e-9)


def test_the_table_of_surprise_ends_at_40():
    np.testing.assert_array_equal(surprises()[[0, -1]], surprise(np.array([-8.0, 40.0])))
    assert len(surprises()) == (8 + 40) * 64 + 1


def test_of_a_long_table_as_many_rows_as_stated_are_looked_at_each_once(monkeypatch):
    for n in (16_384, 16_385):
        rows = np.arange(n)[:, None]
        seen = some_rows(rows)
        assert (seen is rows) == (n == 16_384)
        assert len(seen) == 16_384
        assert (np.diff(seen[:, 0]) > 0).all()
    looked, look = [], Lens.look
    monkeypatch.setattr("aberra.detectors.multiview.MOST_ROWS", 50)
    monkeypatch.setattr(Lens, "look", lambda lens, x: looked.append(x) or look(lens, x))
    rows = np.random.default_rng(0).normal(size=(200, 2))
    rows[:, 0].sort()
    MultiView(n_trees=3, random_state=0).fit(rows, sample_weight=np.arange(200) >= 100)
    assert len(looked[0]) == 50
    assert (np.diff(looked[0][:, 0]) > 0).all()
    assert looked[0][0, 0] >= rows[100, 0]  # those before have no weight


def test_a_row_is_odd_by_any_of_the_views():
    X = np.random.default_rng(4).multivariate_normal([0, 0], [[1, 0.95], [0.95, 1]], size=500)
    against_the_correlation, far, near = [2.5, -2.5], [9.0, 9.0], [0.1, 0.1]
    model = MultiView(random_state=0).fit(X)
    crossed, distant, usual = model.anomaly_score([against_the_correlation, far, near])
    assert min(crossed, distant) > np.quantile(model.anomaly_score(X), 0.99) > usual


@pytest.mark.slow
def test_change_of_units_changes_no_score(data):
    units = np.array([1.0, 1024.0, 2.0**-20, 8.0])
    plain = IADC(random_state=0).fit(data).anomaly_score(data)
    scaled = IADC(random_state=0).fit(data * units).anomaly_score(data * units)
    np.testing.assert_allclose(plain, scaled, rtol=1e-7)


def test_training_scores_are_those_of_scoring():
    X = np.random.default_rng(6).normal(size=(2500, 3))
    model = ADC(MultiView(), n_members=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.round_.scores, model.anomaly_score(X))


def test_a_row_without_trust_is_as_if_it_were_not_there_and_one_drawn_twice_has_weight_two():
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(size=(96, 5)), 1)
    view, shared = MultiView(n_trees=8, n_landmarks=8), lens(X)
    trust = np.where(np.arange(96) < 32, 0.0, rng.integers(1, 4, 96) / 2)
    found, alone = (
        view._member(X[some], shared, trust[some], 7) for some in (slice(96), slice(32, 96))
    )
    seen = shared.look(X)
    np.testing.assert_array_equal(found.score(seen), alone.score(seen))
    rows = np.repeat(np.arange(96), (2 * trust).astype(int))
    (drawn,) = view._train((X, shared), rows[None], np.full((1, 96), 0.5), [7]).members
    np.testing.assert_array_equal(drawn.score(seen), found.score(seen))


def test_constant_columns_are_harmless_until_they_change(data):
    constant = np.column_stack([data, np.full(300, 7.0)])
    model = MultiView(random_state=0).fit(constant)
    plain = MultiView(random_state=0).fit(data)
    np.testing.assert_array_equal(model.anomaly_score(constant), plain.anomaly_score(data))
    moved = constant[:1].copy()
    moved[0, -1] = 8.0
    change = model.anomaly_score(moved) - model.anomaly_score(constant[:1])
    np.testing.assert_allclose(change, np.log(301))


def test_one_constant_column_is_all_there_is():
    model = MultiView(random_state=0).fit(np.ones((50, 1)))
    assert model.anomaly_score([[2.0]]) > model.anomaly_score([[1.0]])


def test_a_distrusted_cluster_of_a_small_table_is_no_neighbour_of_its_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:30] = 4 + 0.1 * rng.normal(size=(30, 3))
    w = np.ones(200)
    w[:30] = 1e-9
    views = MultiView(n_landmarks=500, random_state=0).fit(X, sample_weight=w).members_
    assert len(views.members[0].crowd.rows) == 170
    for seen in views.members[0].oddness(views.lens.look(X)):
        assert seen[:30].min() > np.median(seen[30:])


def test_gaps_count_as_the_median_and_as_evidence():
    X = np.random.default_rng(8).normal(size=(300, 3))
    X[:3, 1] = np.nan
    shared = lens(X)
    seen = shared.look(X)
    np.testing.assert_array_equal(seen.raw[:3, 1], 0.0)
    rate = (np.array([0, 3, 0]) + 0.5) / 301
    usual = shared.evidence.usual_gaps  # a gap in any of the columns is more frequent than in one
    assert -(rate * np.log(rate)).sum() < usual < np.log(rate.sum() / rate.min())
    nats = shared.evidence.nats(X)
    np.testing.assert_allclose(nats[:3], -np.log(rate[1]) - usual)
    np.testing.assert_array_equal(nats[3:], 0.0)
    two = shared.evidence.nats(np.array([[np.nan, np.nan, 0.1]]))  # together they count double
    np.testing.assert_allclose(two, -np.log(rate[0]) - 2 * np.log(rate[1]) - usual)
    empty = np.full((1, 3), np.nan)
    for model in (MultiView(missing="impute"), IADC(missing="impute")):
        model.set_params(random_state=0).fit(X)
        assert model.anomaly_score(empty) > model.anomaly_score(X).max()
    shares = model.explain(X[:1])
    assert shares.argmax() == 1


def mahalanobis(rows, some, trust, ridge):
    """Return distances by the mean and the ridged covariance of some rows, written out."""
    centre = np.average(some, axis=0, weights=trust)
    S = np.cov(some.T, aweights=trust, bias=True)
    n = trust.sum() ** 2 / np.square(trust).sum()
    if n < 4 * len(S):
        ridge = max(ridge, shrinkage(S, n, len(S)))
    S = (1 - ridge) * S + ridge * np.trace(S) / len(S) * np.eye(len(S))
    apart = rows - centre
    return np.sqrt((apart @ np.linalg.inv(S) * apart).sum(axis=1))


def test_of_few_rows_none_is_left_out_of_the_covariance():
    generator = np.random.default_rng(0)
    rows, trust = generator.normal(5, 2, size=(7, 4)), generator.uniform(0.2, 1, 7)
    found = robust_ellipse(rows, trust, 0.1).oddness(rows)
    np.testing.assert_allclose(found, mahalanobis(rows, rows, trust, 0.1), rtol=1e-6)


@pytest.mark.parametrize("d", [128, 129])
def test_of_many_columns_two_steps_from_the_median_have_to_do(d):
    generator = np.random.default_rng(0)
    rows, trust = generator.normal(size=(1200, d)) ** 3, generator.uniform(0.5, 1.5, 1200)
    far, steps = np.abs(rows - np.median(rows, axis=0)).sum(axis=1), []
    for _ in range(3):
        near = far <= quantiles(far, trust, (0.8,))[0]
        far = mahalanobis(rows, rows[near], trust[near], 0.1)
        steps.append(far)
    found = robust_ellipse(rows, trust, 0.1).oddness(rows)
    same = [np.allclose(found, step, rtol=1e-6) for step in steps]
    assert same == [False, d > 128, False]


def test_of_a_few_more_rows_a_fifth_is_left_out():
    generator = np.random.default_rng(1)
    rows = np.r_[generator.normal(size=(8, 3)), [[9.0, 9.0, 9.0]]]
    found = robust_ellipse(rows, np.ones(9), 0.1).oddness(rows)
    near = np.sort(np.argsort(found)[:7])
    expected = mahalanobis(rows, rows[near], np.ones(7), 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("start", [0, 40])
def test_the_covariance_is_that_of_the_nearest_four_fifths_of_the_trust(start):
    generator = np.random.default_rng(start)
    mix = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [0.2, 0.1, 1.0]])
    rows = 30 + generator.normal(size=(400, 3)) @ mix.T
    rows[:60] = generator.normal(90, 0.1, size=(60, 3))  # a group that is denser than the rest
    trust = generator.uniform(0.5, 1.5, 400)
    found = robust_ellipse(rows, trust, 0.02).oddness(rows)
    near = found <= quantiles(found, trust, (0.8,))[0]
    expected = mahalanobis(rows, rows[near], trust[near], 0.02)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[:60].min() > 5 * found[60:].max()


@pytest.mark.parametrize("seed", [0, 2])
def test_eight_steps_from_two_starts_and_the_smaller_volume_wins(seed):
    generator = np.random.default_rng(seed)  # of rows that fill a square steps take long to end
    rows, trust = generator.uniform(-1, 1, size=(1000, 2)), generator.uniform(0.5, 1.5, 1000)
    starts = (
        mahalanobis(rows, rows, trust, 1e-6),
        np.abs(rows - np.median(rows, axis=0)).sum(axis=1),
    )
    found = robust_ellipse(rows, trust, 1e-6).oddness(rows)
    for n_steps in (7, 8, 9):
        ends = []
        for far in starts:
            for _ in range(n_steps):
                near = far <= quantiles(far, trust, (0.8,))[0]
                far = mahalanobis(rows, rows[near], trust[near], 1e-6)
            volume = np.linalg.slogdet(np.cov(rows[near].T, aweights=trust[near], bias=True))[1]
            ends.append((volume, far))
        best = min(ends, key=lambda end: end[0])[1]
        assert np.allclose(found, best, rtol=1e-5) == (n_steps == 8)


def test_what_varies_by_rounding_only_is_not_cut():
    own, half = np.arange(2), np.repeat([0.0, 1.0], 10)
    for gap, there in ((1.8e-6, False), (2.4e-6, True)):  # the variance is a quarter of its square
        rows = np.float32([[0, 1], [gap, 1]])
        assert (slope(rows, own, 0) != 0) == there
        assert slope(rows, own, 1) == 0
    for size, there in ((1.8e-9, False), (2.4e-9, True)):  # the deviation is half of it
        gain, place = best_cut(size * half, True, np.empty((3, 20)))
        assert (gain, place) == (pytest.approx((1, size / 2)) if there else (-1, 0))
    large = np.float32([[0, 0], [3e6, 3e6]])  # relative to what is there, however large
    assert slope(large, own, 0) != 0


@pytest.mark.parametrize("n", [31, 32, 33, 70])
def test_the_loops_are_the_same_in_python_where_views_have_an_end(n):
    rng = np.random.default_rng(n)
    rows = single(rng.normal(size=(n, 3)))
    values = rng.integers(0, 9, n) / 2
    for function in (sort, sort.py_func):
        given = values.copy()
        function(given)
        np.testing.assert_array_equal(given, np.sort(values))
    for pooled in (True, False):
        cuts = [
            cut(np.sort(values), pooled, np.empty((3, n))) for cut in (best_cut, best_cut.py_func)
        ]
        np.testing.assert_allclose(*cuts, rtol=1e-12)
    columns, plane = np.int32([0, 2]), np.float32([0.5, -1.0, 0.1])
    below = rows[:, 0] * plane[0] + rows[:, 2] * plane[1] <= plane[2]
    for part in (parted, parted.py_func):
        order = np.arange(n)
        assert part(rows, order, columns, plane) == below.sum()
        assert set(order[: below.sum()]) == set(np.flatnonzero(below))
    nodes = columns[None].repeat(3, 0), plane[None].repeat(3, 0), np.int32([1, 1, 2])
    nodes[1][1:] = 0  # two leaves, which lead to themselves
    for way in (walk, walk.py_func):
        total = np.ones(n)
        way(rows, *nodes, np.float32([9, 2, 3]), np.int32([0, 1]), 2, total)
        np.testing.assert_array_equal(total, 1 + np.where(below, 2, 3) + 2)


@pytest.mark.parametrize("n", [1, 5])
def test_rows_are_scored_the_same_in_python_where_views_have_an_end(n):
    rng = np.random.default_rng(n)
    rows, start = single(rng.normal(size=(n, 3))), np.float32([-1, 0, 0.5])
    per_unit, nats = np.float32([4, 4, 0]), single(rng.random((3, 10)))
    found = np.empty((2, n))
    for one, way in zip(found, (mean_surprise, mean_surprise.py_func), strict=True):
        way(rows, start, per_unit, nats, one)
    np.testing.assert_allclose(*found)
    views, table = rng.normal(size=(2, n)), np.linspace(0, 9, 48 * 64 + 1)
    given = np.zeros(2), np.ones(2), SKEW, table, np.full(2, 0.5), np.array([0.0, 0.4])
    np.testing.assert_allclose(pooled_nats(views, *given), pooled_nats.py_func(views, *given))


def test_each_view_learns_with_the_trust_and_is_asked_about_its_own_columns(monkeypatch):
    rng = np.random.default_rng(0)
    X, trust, heard = rng.normal(size=(200, 3)) ** 3, rng.integers(1, 4, 200) / 2, []

    def spied(made, rows, c, *args, **more):
        heard.append((rows, args))
        np.testing.assert_allclose(c, trust / trust.mean())
        return made(rows, c, *args, **more)

    for name in ("grow", "robust_ellipse", "column_tails", "landmarks"):
        monkeypatch.setattr(multiview, name, partial(spied, getattr(multiview, name)))
    shared, asked = lens(X), []
    member, seen = MultiView()._member(X, shared, trust, 0), shared.look(X)
    columns = [seen.raw, seen.tamed, seen.raw, seen.precise, seen.tamed, seen.tamed]
    for (rows, _), own in zip(heard, columns, strict=True):
        np.testing.assert_array_equal(rows, own)
    assert [args[1] for _, args in heard[:3]] == [12, 8, 12]  # of 32 trees

    class Part:
        centre = np.zeros(3)
        check_columns = print

        def oddness(self, rows):
            asked.append(rows)
            return np.zeros(len(rows))

    parts = ("tight", "tight_tamed", "parted", "ellipse", "tails", "crowd")
    replace(member, **{part: Part() for part in parts}).oddness(seen)
    assert [id(rows) for rows in asked] == [id(own) for own in columns]


def test_a_leaf_is_as_deep_as_the_cuts_until_one_of_its_rows_would_be_alone():
    rows = single(np.random.default_rng(0).normal(size=(50, 2)))
    assert grown(rows, 0, 0, 3, False)[3].tolist() == [np.float32(path_length(50))]
    columns, planes, left, depths = grown(rows, 0, 1, 3, False)
    n = parted(rows, np.arange(50), columns[0], planes[0])
    assert left.tolist() == [1, 1, 2]
    np.testing.assert_allclose(depths[1:], [1 + path_length(n), 1 + path_length(50 - n)], rtol=1e-6)


def test_members_draw_from_all_rows_of_a_long_table(monkeypatch):
    monkeypatch.setattr(multiview, "MOST_ROWS", 100)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(100, 2)), rng.normal(20.0, 1.0, size=(900, 2))])
    scores = MultiView(n_trees=12, random_state=0).fit(X).anomaly_score(X)
    assert np.median(scores[:100]) > np.quantile(scores[100:], 0.9)  # the first are the few


def test_of_few_rows_the_bulk_is_where_each_would_be_without_it_by_the_trust_in_all():
    rows, trust = np.random.default_rng(0).normal(size=(12, 8)), np.linspace(0.1, 1.9, 12)
    shared = lens(rows)
    member, seen = MultiView()._member(rows, shared, trust, 3), shared.look(rows).precise
    far = distances_left_out(member.ellipse.oddness(seen), seen, trust, 0.02)
    expected = quantiles(far, trust, (0.1, 0.5))
    found = (member.low[ELLIPSE], member.middle[ELLIPSE])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
