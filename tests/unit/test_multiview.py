"""The four views against their definitions, written out with loops."""

import numpy as np
import pytest

from aberra import ADC, IADC, MultiView, load, save
from aberra.detectors.inverse_covariance import ridge_precision, wide_ridge_precision
from aberra.detectors.multiview import (
    bin_surprise,
    lenses,
    moments,
    neighbour_distance,
    ridge_precisions,
)
from aberra.detectors.scaling import robust


@pytest.fixture
def data():
    return np.random.default_rng(0).normal(size=(300, 4)) ** 3


def test_robust_scaling_has_the_quartiles_of_a_normal(data):
    scaled = robust(data)(data)
    np.testing.assert_allclose(np.median(scaled, axis=0), 0, atol=1e-12)
    low, high = np.percentile(scaled, (25, 75), axis=0)
    np.testing.assert_allclose(high - low, 1.349)
    mostly_zero = np.zeros((100, 1))
    mostly_zero[:10] = np.arange(1, 11)[:, None]
    np.testing.assert_allclose(robust(mostly_zero)(mostly_zero).std(), 1.0)


def test_moments_are_weighted_means(data):
    lens = lenses(data)
    trust = np.random.default_rng(1).random((3, 300))
    means, counts = moments(data, lens, trust)
    r = lens.robust(data)
    precisions = ridge_precisions(data, lens, trust, means, 0.1)
    for c, mean, count, precision in zip(trust, means, counts, precisions, strict=True):
        np.testing.assert_allclose(mean, np.average(r, axis=0, weights=c))
        expected = ridge_precision(np.cov(r.T, aweights=c, bias=True), 0.1)
        np.testing.assert_allclose(precision.matrix, expected.matrix)
        np.testing.assert_allclose(count.sum(axis=1), c.sum())
        for j in range(4):
            z = np.arcsinh(r[:, j])
            expected, _ = np.histogram(z, lens.n_bins, weights=c)
            np.testing.assert_allclose(count[j], expected, atol=1e-9)


def test_cells_outside_the_training_range_fall_into_the_outer_bins(data):
    lens = lenses(data)
    low, high = data.min(axis=0), data.max(axis=0)
    bins = lens.bins(lens.robust(np.stack([low - 1, low, high, high + 1])))
    assert (bins[0] == 0).all()
    assert (bins[1] == 1).all()
    assert (bins[2] == lens.n_bins).all()
    assert (bins[3] == lens.n_bins + 1).all()


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


def test_far_more_columns_than_rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3000))
    X[:3] += 1
    w = np.ones(60)
    w[:3] = 0
    model = MultiView(random_state=0).fit(X, sample_weight=w)
    view = model.members_.members[0]
    assert view.precision.basis.shape == (57, 3000)  # rows without trust have no part in it
    scores = model.anomaly_score(X)
    assert set(np.argsort(scores)[-3:]) == {0, 1, 2}
    save(model, tmp_path / "m.aberra")
    np.testing.assert_array_equal(load(tmp_path / "m.aberra").anomaly_score(X), scores)


def test_neighbour_distance_is_the_kth_smallest():
    generator = np.random.default_rng(3)
    x, landmarks = generator.normal(size=(20, 3)), generator.normal(size=(9, 3))
    expected = [np.sort(np.linalg.norm(landmarks - row, axis=1))[2] for row in x]
    np.testing.assert_allclose(neighbour_distance(x, landmarks, 3), expected)
    farthest = [np.linalg.norm(landmarks - row, axis=1).max() for row in x]
    np.testing.assert_allclose(neighbour_distance(x, landmarks, 50), farthest)


@pytest.mark.parametrize("shape", [(300, 4), (20, 50)])
def test_hidden_cells_are_scored_as_rows_with_other_cells(shape):
    X = np.random.default_rng(5).normal(size=shape) ** 3
    X[0, 1], X[1, 2:4] = 1e9, -1e8  # all but nothing of the rest is left in their squares
    model = ADC(MultiView(), n_members=2, random_state=0).fit(X)
    reference = np.quantile(X, 0.25, axis=0)
    found = model.members_.hidden_scores(X[:9], reference)
    assert found.shape == (2, 9, shape[1])
    for j in range(shape[1]):
        variant = X[:9].copy()
        variant[:, j] = reference[j]
        np.testing.assert_allclose(found[:, :, j], model.members_.scores(variant), atol=1e-6)


def test_surprise_is_lowest_where_rows_are_densest():
    surprise = bin_surprise(np.array([[0.0, 10.0, 80.0, 10.0, 0.0]]))[0]
    assert surprise.argmin() == 3
    assert surprise[0] == surprise[-1] == surprise.max()
    density = np.exp(-surprise[1:-1]) / 5
    assert 0.9 < density.sum() <= 1.0


def test_a_row_is_odd_by_any_of_the_views():
    X = np.random.default_rng(4).multivariate_normal([0, 0], [[1, 0.95], [0.95, 1]], size=500)
    against_the_correlation, far, near = [1.5, -1.5], [6.0, 6.0], [0.1, 0.1]
    model = MultiView(random_state=0).fit(X)
    crossed, distant, usual = model.anomaly_score([against_the_correlation, far, near])
    assert min(crossed, distant) > model.threshold_ > usual


def test_change_of_units_changes_no_score(data):
    units = np.array([1.0, 1024.0, 2.0**-20, 8.0])
    plain = IADC(random_state=0).fit(data).anomaly_score(data)
    scaled = IADC(random_state=0).fit(data * units).anomaly_score(data * units)
    np.testing.assert_allclose(plain, scaled, rtol=1e-7)


def test_scores_known_from_training_are_those_of_scoring_and_are_not_kept():
    X = np.random.default_rng(6).normal(size=(2500, 3))
    model = ADC(MultiView(), n_members=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.round_.scores, model.anomaly_score(X))
    assert model.members_.take_training_scores() is None


def test_constant_columns_are_harmless_until_they_change(data):
    constant = np.column_stack([data, np.full(300, 7.0)])
    model = MultiView(random_state=0).fit(constant)
    assert np.isfinite(model.anomaly_score(constant)).all()
    moved = constant[:1].copy()
    moved[0, -1] = 8.0
    assert model.anomaly_score(moved) > model.anomaly_score(constant[:1])


def test_a_distrusted_cluster_of_a_small_table_is_no_neighbour_of_its_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[:30] = 4 + 0.1 * rng.normal(size=(30, 3))
    w = np.ones(200)
    w[:30] = 1e-9
    views = MultiView(random_state=0).fit(X, sample_weight=w).members_
    assert len(views.members[0].robust_landmarks) == 170
    for seen in views.members[0].views(views.lenses.look(X)):
        assert seen[:30].min() > np.median(seen[30:])


@pytest.mark.parametrize("n", range(3, 120))
def test_all_of_a_few_equal_rows_are_landmarks(n):
    rows = np.arange(2.0 * n).reshape(n, 2)
    assert len(MultiView(random_state=0).fit(rows).members_.members[0].robust_landmarks) == n
