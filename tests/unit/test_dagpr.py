"""Gaussian process regression against its textbook form."""

import numpy as np

from aberra import DAGPR
from aberra.detectors.dagpr import (
    first_labels,
    gp_kernel,
    gp_regression,
    refined_labels,
    sparse_gp_regression,
)


def sphere(n, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, 4))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def test_regression_is_the_predictive_mean():
    z, new = sphere(40), sphere(9, seed=1)
    y = (z[:, 0] > 0).astype(float)
    expected = gp_kernel(new, z) @ np.linalg.inv(gp_kernel(z, z) + np.eye(40)) @ y
    np.testing.assert_allclose(gp_regression(z, y).mean(new), expected, rtol=1e-10)


def test_kernel_is_gaussian_plus_linear_plus_one():
    a, b = sphere(3), sphere(2, seed=5)
    for i in range(3):
        for j in range(2):
            square = ((a[i] - b[j]) ** 2).sum()
            expected = np.exp(-square / (2 * 0.3**2)) + a[i] @ b[j] + 1
            np.testing.assert_allclose(gp_kernel(a, b)[i, j], expected)


def test_two_thousand_rows_are_solved_exactly(monkeypatch):
    asked = []

    def noted(name):
        return lambda z, y, *more: asked.append((name, len(z), *more[:1]))

    for name in ("gp_regression", "sparse_gp_regression"):
        monkeypatch.setattr(f"aberra.detectors.dagpr.{name}", noted(name))
    for n in (2000, 2001):
        DAGPR()._solve(np.zeros((n, 1)), np.zeros(n), np.random.default_rng(0))
    assert asked == [("gp_regression", 2000), ("sparse_gp_regression", 2001, 512)]


def test_many_rows_are_carried_by_as_many_as_was_asked_for(monkeypatch):
    monkeypatch.setattr("aberra.detectors.dagpr.EXACT_ROWS", 9)
    z, y = np.random.default_rng(0).normal(size=(10, 2)), np.arange(10.0)
    found = DAGPR(n_inducing=3)._solve(z, y, np.random.default_rng(5))
    expected = sparse_gp_regression(z, y, 3, np.random.default_rng(5))
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert found.vectors.shape == (3, 2)


def test_labels_are_drawn_for_different_rows():
    order = np.random.default_rng(0).permutation(200)
    for seed in range(3):
        chosen, _ = refined_labels(order.astype(float), np.random.default_rng(seed))
        assert len(np.unique(chosen)) == len(chosen)


def test_sparse_regression_on_all_rows_is_the_exact_one():
    z = sphere(60)
    y = (z[:, 1] > 0.3).astype(float)
    exact = gp_regression(z, y).mean(z)
    sparse = sparse_gp_regression(z, y, 60, np.random.default_rng(0)).mean(z)
    np.testing.assert_allclose(sparse, exact, atol=1e-4)


def test_labels_take_the_stated_shares():
    generator = np.random.default_rng(0)
    mu = generator.normal(size=1000)
    rows, y = refined_labels(mu, generator)
    assert (y == 0).sum() == 160
    assert (y == 1).sum() == 50
    assert mu[rows[y == 0]].max() <= np.quantile(mu, 0.2)
    assert mu[rows[y == 1]].min() >= np.quantile(mu, 0.94)
    features = generator.normal(size=(1000, 3))
    rows, y = first_labels(features, generator)
    distance = np.linalg.norm(features - features.mean(axis=0), axis=1)
    assert (y == 0).sum() == 120
    assert (y == 1).sum() == 55
    assert distance[rows[y == 0]].max() < distance[rows[y == 1]].min()
    for _ in range(9):  # of three rows the nearest and the farthest
        rows, y = first_labels(np.array([[4.0], [0.0], [1.0]]), generator)
        assert rows.tolist() == [2, 0]
        assert y.tolist() == [0, 1]


def test_codes_that_occur_many_times_are_regressed_on():
    z = np.repeat(np.eye(2), 30, axis=0)
    y = np.repeat([0.0, 1.0], 30)
    found = sparse_gp_regression(z, y, 40, np.random.default_rng(0))
    np.testing.assert_allclose(found.mean(z), y, atol=0.05)


def test_members_regress_on_what_they_drew_each_row_once(monkeypatch):
    asked = []

    def noted(self, codes, errors, drawn, seed):
        asked.append((drawn.tolist(), seed))
        return gp_regression(codes[drawn], np.zeros(len(drawn)))

    monkeypatch.setattr(DAGPR, "_regress", noted)
    model = DAGPR(hidden=(8, 4), pretrain_epochs=1)
    model.image_shape_ = None
    prepared = model._prepare(np.random.default_rng(0).normal(size=(40, 3)))
    rows = np.stack([np.r_[np.arange(20), np.arange(20)], np.arange(40)[::-1]])
    model._train(prepared, rows, np.ones((2, 40)), [5, 6])
    assert asked == [(list(range(20)), 5), (list(range(40)), 6)]
