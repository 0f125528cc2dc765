"""The weighted one-class machine against a plain quadratic program."""

import io
import logging

import numpy as np
import pytest
from scipy.optimize import minimize

from aberra import OCSVM
from aberra.detectors.ocsvm import (
    _inverse_root,
    _rounded_objective,
    fit_one_class,
    gaussian_kernel,
    ocsvm_iadc,
    ocsvm_landmarks,
    resolve_solver,
    scale_gamma,
)


def solve_dual(kernel, w, nu):
    """Minimise a K a / 2 under 0 <= a <= w / (nu sum w), sum a = 1, with a general solver."""
    box = w / (nu * w.sum())
    start = box / box.sum()
    result = minimize(
        lambda a: 0.5 * a @ kernel @ a,
        start,
        jac=lambda a: kernel @ a,
        bounds=[(0, b) for b in box],
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return result.x


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_iadc_2_is_the_weighted_dual(nu):
    generator = np.random.default_rng(0)
    x, w = generator.normal(size=(40, 3)), generator.random(40)
    expansion = ocsvm_iadc(x, w, nu, 0.3)
    kernel = gaussian_kernel(x, x, 0.3)
    a = solve_dual(kernel, w, nu)
    found = expansion.rho - expansion.score(x)
    np.testing.assert_allclose(found, kernel @ a, atol=2e-4)
    np.testing.assert_allclose(expansion.coefficients.sum(), 1)


def test_iadc_2s_is_rho_minus_the_weighted_kernels():
    generator = np.random.default_rng(2)
    x, new = generator.normal(size=(30, 2)), generator.normal(size=(5, 2))
    machine = ocsvm_iadc(x, generator.random(30), 0.5, 0.3)
    by_hand = [
        machine.rho
        - sum(
            a * np.exp(-0.3 * np.sum((row - vector) ** 2))
            for a, vector in zip(machine.coefficients, machine.vectors, strict=True)
        )
        for row in new
    ]
    np.testing.assert_allclose(machine.score(new), by_hand)


def test_iadc_2_with_unit_weights_is_the_plain_machine():
    x = np.random.default_rng(1).normal(size=(60, 2))
    plain = ocsvm_iadc(x, np.ones(60), 0.5, 0.5)
    scaled = ocsvm_iadc(x, np.full(60, 7.0), 0.5, 0.5)
    np.testing.assert_allclose(plain.score(x), scaled.score(x), atol=1e-6)


def test_iadc_2_weights_matter():
    # As printed the weights cancel; in the objective alone they must move the boundary.
    x = np.concatenate([np.zeros((20, 1)), np.full((20, 1), 3.0)]) + np.linspace(0, 1, 40)[:, None]
    w = np.repeat([1.0, 0.01], 20)
    score = ocsvm_iadc(x, w, 0.5, 0.5).score(x)
    assert score[:20].max() < score[20:].min()


def test_a_row_drawn_twice_is_a_row_of_weight_two():
    generator = np.random.default_rng(2)
    x, weights = generator.normal(size=(50, 3)), generator.random(50)
    counts = generator.integers(0, 3, size=50).astype(float)
    merged = fit_one_class(x, counts, weights, 0.4, 0.5, "exact", 0, 0)
    repeated = np.repeat(np.arange(50), counts.astype(int))
    plain = ocsvm_iadc(x[repeated], weights[repeated], 0.4, 0.5)
    np.testing.assert_allclose(merged.score(x), plain.score(x), atol=1e-3)


def test_landmarks_on_all_rows_find_the_exact_solution():
    generator = np.random.default_rng(3)
    x, w = generator.normal(size=(200, 2)), 0.1 + generator.random(200)
    exact = ocsvm_iadc(x, w, 0.5, 0.5)
    landmarks = ocsvm_landmarks(x, w, 0.5, 0.5, 200, generator)
    gap = np.abs(exact.score(x) - landmarks.score(x)).max()
    assert gap < 0.01 * np.ptp(exact.score(x))


def test_scale_gamma_is_scikit_learns():
    x = np.random.default_rng(4).normal(size=(30, 4)) * 5
    np.testing.assert_allclose(scale_gamma(x, np.ones(30)), 1 / (4 * x.var()))


def test_solver_is_chosen_by_size_and_named():
    generator = np.random.default_rng(5)
    assert OCSVM().fit(generator.normal(size=(300, 2))).solver_ == "exact"
    large = OCSVM(n_landmarks=32, random_state=0).fit(generator.normal(size=(2500, 2)))
    assert large.solver_ == "nystroem"


def test_choice_of_the_approximation_is_logged(monkeypatch):
    logger, said = logging.getLogger("aberra"), io.StringIO()
    monkeypatch.setattr(logger, "handlers", [logging.StreamHandler(said)])
    logger.setLevel(logging.INFO)
    try:
        OCSVM(n_landmarks=16, random_state=0).fit(np.random.default_rng(6).normal(size=(2500, 2)))
    finally:
        logger.setLevel(logging.NOTSET)
    assert "2500 distinct rows are over 2000" in said.getvalue()


@pytest.mark.parametrize("n", [400, 420, 2000])
def test_weights_survive_where_the_landmark_solver_looks_at_some_rows(monkeypatch, n):
    monkeypatch.setattr("aberra.detectors.ocsvm.NYSTROEM_ROWS", 400)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    X[: n // 4] = 5 + 0.2 * rng.normal(size=(n // 4, 2))
    w = np.ones(n)
    w[: n // 4] = 1e-3
    found = OCSVM(solver="nystroem", random_state=0).fit(X, sample_weight=w).anomaly_score(X)
    assert found[: n // 4].min() > np.quantile(found[n // 4 :], 0.9)


@pytest.mark.parametrize("n", [50_000, 50_001])
def test_the_landmark_solver_looks_at_fifty_thousand_rows(n, monkeypatch):
    drawn, generator = [], np.random.default_rng(0)
    solved = "aberra.detectors.ocsvm._linear_one_class"  # takes long, and is not asked here
    monkeypatch.setattr(solved, lambda features, cost: (np.zeros(features.shape[1]), 0.0))

    class Watched:
        def choice(self, n, size, **more):
            drawn.append((n, size))
            return generator.choice(n, size, **more)

    rows = np.random.default_rng(1).normal(size=(n, 1))
    ocsvm_landmarks(rows, np.ones(n), 0.5, 0.5, 2, Watched())
    assert drawn[:-1] == ([] if n == 50_000 else [(50_001, 50_000)])
    assert drawn[-1][1] == 2


def test_the_kernel_and_its_width_are_written_out():
    generator = np.random.default_rng(3)
    x, v = generator.normal(size=(7, 3)), generator.normal(size=(4, 3))
    expected = [[np.exp(-0.7 * np.sum((a - b) ** 2)) for b in v] for a in x]
    np.testing.assert_allclose(gaussian_kernel(x, v, 0.7), expected)
    assert (gaussian_kernel(1e8 * x, 1e8 * x, 0.7).diagonal() <= 1).all()  # no rounding above 1
    counts = np.array([1.0, 2, 0, 1, 1, 3, 1])
    every = np.repeat(x, counts.astype(int), axis=0)
    assert scale_gamma(x, counts) == pytest.approx(1 / (3 * every.var()))
    assert scale_gamma(np.ones((4, 2)), np.ones(4)) == 1


def test_two_thousand_distinct_rows_are_solved_exactly():
    assert [resolve_solver("auto", n) for n in (2, 2000, 2001)] == ["exact", "exact", "nystroem"]
    assert resolve_solver("exact", 10**6) == "exact"
    assert resolve_solver("nystroem", 2) == "nystroem"
    model = OCSVM(solver="nystroem", n_landmarks=8, random_state=0)
    assert model.fit(np.random.default_rng(0).normal(size=(30, 2))).solver_ == "nystroem"
    assert len(model.members_.machines[0].vectors) == 8


def test_the_rounded_objective_has_its_gradient_and_nears_the_hinge():
    generator = np.random.default_rng(4)
    features = generator.normal(size=(50, 3)).astype(np.float32)
    cost, point = generator.uniform(0.1, 1, 50), np.array([0.3, -0.5, 0.2, 0.4])
    for width in (0.5, 0.05):
        _, gradient = _rounded_objective(point, features, cost, width)
        for k in range(4):
            step = np.zeros(4)
            step[k] = 1e-3
            up, down = (_rounded_objective(point + s, features, cost, width)[0]
                        for s in (step, -step))  # fmt: skip
            assert gradient[k] == pytest.approx((up - down) / 2e-3, abs=2e-2)
    u, rho = point[:3], point[3]
    hinge = np.maximum(rho - features @ u, 0)
    sharp, _ = _rounded_objective(point, features, cost, 1e-6)
    assert sharp == pytest.approx(0.5 * u @ u - rho + cost @ hinge, rel=1e-5)
    # Half of a hinge's corner: at zero the rounded one is a quarter of its width.
    assert _rounded_objective(np.zeros(4), features, cost, 0.2)[0] == pytest.approx(
        0.05 * cost.sum()
    )


def test_directions_without_weight_in_the_kernel_are_left_out():
    kernel = np.diag([4.0, 1.0, 1e-9])
    root = _inverse_root(kernel)
    assert root.shape == (3, 2)
    np.testing.assert_allclose(root.T @ kernel @ root, np.eye(2), atol=1e-12)


def test_of_many_rows_some_are_drawn_by_weight_and_count_as_often_as_they_came(monkeypatch):
    generator = np.random.default_rng(0)
    x, w = generator.normal(size=(120, 2)), generator.random(120)
    monkeypatch.setattr("aberra.detectors.ocsvm.NYSTROEM_ROWS", 80)
    found = ocsvm_landmarks(x, w, 0.5, 0.4, 12, np.random.default_rng(7))
    twin = np.random.default_rng(7)
    chosen, counts = np.unique(twin.choice(120, 80, p=w / w.sum()), return_counts=True)
    expected = ocsvm_landmarks(x[chosen], counts.astype(float), 0.5, 0.4, 12, twin)
    np.testing.assert_array_equal(found.score(x), expected.score(x))


def test_flagged_is_what_lies_above_the_threshold_and_not_at_it():
    x = np.random.default_rng(0).normal(size=(50, 2))
    model = OCSVM().fit(x)
    score = model.anomaly_score(x[:1])[0]
    for model.threshold_, said in ((score, 1), (np.nextafter(score, -np.inf), -1)):
        assert model.predict(x[:1]).tolist() == [said]
