"""Columns of few values: where a normal has each, and that a flag is as odd as it is rare."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest, norm
from sklearn.covariance import oas

from aberra import IADC, MultiView, load, save
from aberra.detectors.inverse_covariance import shrinkage
from aberra.detectors.lumps import Lump, lumps, put_in_place
from aberra.detectors.multiview import ELLIPSE, lens
from aberra.detectors.robust_covariance import _ridge, distances_left_out, robust_ellipse

FLAG = Lump(0, np.array([0.0, 2.0]), np.array([0.9, 0.1]))
CODES = Lump(0, np.array([-1.0, 0.0, 3.0]), np.array([0.2, 0.7, 0.1]))


def column(*counts):
    """Return a column with the values 0, 1, ... so often, in no order."""
    x = np.repeat(np.arange(len(counts), dtype=float), counts)
    return np.random.default_rng(0).permutation(x)[:, None]


def test_a_value_lies_in_the_middle_of_its_part_of_a_normal():
    np.testing.assert_allclose(FLAG.places, norm.ppf([0.45, 0.95]))
    np.testing.assert_allclose(CODES.places, norm.ppf([0.1, 0.55, 0.95]))
    np.testing.assert_array_equal(CODES.settled(CODES.values), CODES.places)


def test_other_values_lie_on_a_line_between_or_beyond():
    low, middle, high = CODES.places
    slope = (high - low) / 4.0
    found = CODES.settled(np.array([-3.0, -0.5, 1.0, 5.0]))
    expected = [low - 2 * slope, (low + middle) / 2, middle + (high - middle) / 3, high + 2 * slope]
    np.testing.assert_allclose(found, expected)


def test_rows_of_a_value_are_spread_over_its_part():
    x = column(2000, 7000, 1000)[:, 0]
    lump = lumps(x[:, None])[0]
    found = lump.spread(x, np.random.default_rng(1))
    assert kstest(found, "norm").pvalue > 0.01
    ends = norm.ppf([0.0, 0.2, 0.9, 1.0])
    for value in range(3):
        own = found[x == value]
        assert ends[value] < own.min() < own.max() < ends[value + 1]
        np.testing.assert_allclose(np.median(own), lump.places[value], atol=0.05)
    unknown = lump.spread(np.array([0.5, 9.0]), np.random.default_rng(1))
    np.testing.assert_array_equal(unknown, lump.settled(np.array([0.5, 9.0])))


@pytest.mark.parametrize(
    ("x", "is_lumped"),
    [
        (column(90, 10), True),
        (column(998, 2), True),  # however rare: it is as odd as that
        (column(50, 50), True),
        (column(49, 30, 21), False),  # no value is held by most
        (column(100), False),
        (column(*[60] + [5] * 11), True),
        (column(*[60] + [5] * 12), False),  # a count
        (np.r_[column(900, 80, 17), [[6.0]] * 3], True),  # up to three times as far out
        (np.r_[column(900, 80, 17), [[7.0]] * 3], False),  # an error
        (np.r_[column(900, 80), [[7.0]] * 20], True),  # no error: it is not rare
        (np.r_[column(995, 3), [[3.0]] * 2], True),  # all are rare: by the nearest of them
        (np.r_[column(995, 3), [[4.0]] * 2], False),
        (np.r_[column(70, 20, 5), [[9.0]] * 4], False),  # in a small table four rows are few
        (np.r_[column(70, 20, 5), [[9.0]] * 5], True),
        (1e-190 * column(90, 10), True),
        (np.r_[5e-324 * column(90, 5), [[1.0]] * 5], True),
        (5e-324 * column(90, 10), False),  # no number says how far a unit beyond it leads
    ],
)
def test_which_columns_hold_few_values(x, is_lumped):
    found = lumps(x - np.median(x))
    assert [lump.column for lump in found] == [0] * is_lumped
    if is_lumped:
        values, counts = np.unique(x, return_counts=True)
        np.testing.assert_allclose(found[0].shares, counts / len(x))
        np.testing.assert_allclose(found[0].values, values - np.median(x))


def test_only_columns_of_few_values_are_moved():
    rows = np.column_stack([np.linspace(-1, 1, 100), column(90, 10)[:, 0]])
    found = lumps(rows)
    placed = put_in_place(rows.copy(), found)
    np.testing.assert_array_equal(placed[:, 0], rows[:, 0])
    np.testing.assert_array_equal(placed[:, 1], found[0].settled(rows[:, 1]))
    assert [lump.column for lump in found] == [1]


@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ([0.0], [1.0]),
        ([1.0, 0.0], [0.5, 0.5]),
        ([0.0, 2.0, 1.0], [0.2, 0.4, 0.4]),
        ([0.0, np.inf], [0.5, 0.5]),
        ([0.0, 1.0], [1.0, 0.0]),
        ([0.0, 1.0], [0.5, 0.6]),
        ([0.0, np.nan, 1.0], [0.2, 0.4, 0.4]),
    ],
)
def test_what_does_not_fit_is_refused(values, shares):
    with pytest.raises(ValueError, match="values"):
        Lump(0, np.array(values), np.array(shares))
    seen = lens(column(90, 10))
    with pytest.raises(ValueError, match="is not there"):
        replace(seen, lumps=[replace(FLAG, column=1)])


def with_flag(share, seed=0):
    """Return rows with an ordinary flag, and which twenty of them have a number far out."""
    generator = np.random.default_rng(seed)
    rows = np.column_stack([generator.normal(size=(1000, 4)), generator.random(1000) < share])
    odd = generator.choice(1000, 20, replace=False)
    rows[odd, 1] = generator.choice([-1, 1], 20) * generator.uniform(6, 8, 20)
    return rows, odd


@pytest.mark.parametrize("share", [0.01, 0.1, 0.2])
def test_an_ordinary_flag_is_not_flagged_and_hides_nothing(share):
    rows, odd = with_flag(share)
    model = IADC(n_members=2, random_state=0).fit(rows)
    flagged = model.predict(rows) == -1
    ordinary = np.setdiff1d(np.arange(1000), odd)
    assert flagged[ordinary].mean() < 0.02
    assert np.median(model.weights_[ordinary][rows[ordinary, 4] == 1]) > 0.5
    ranks = (-model.anomaly_score(rows)).argsort().argsort()
    assert np.median(ranks[odd]) < 15


def test_a_flag_is_as_odd_as_it_is_rare():
    generator = np.random.default_rng(0)
    flags = generator.random((4000, 4)) < [0.3, 0.1, 0.02, 0.003]
    rows = np.column_stack([generator.normal(size=(4000, 2)), flags])
    scores = MultiView(random_state=0).fit(rows).anomaly_score(rows)
    alone = flags.sum(axis=1) == 1
    medians = [np.median(scores[alone & flags[:, k]]) for k in range(4)]
    assert medians == sorted(medians)
    assert medians[3] - medians[0] > 1


def test_where_no_rows_are_left_out_the_covariance_sees_values_and_not_their_spread():
    generator = np.random.default_rng(0)
    rows = np.column_stack([generator.normal(size=(60, 28)), column(40, 20), column(50, 10)])
    for some, same in ((rows, True), (rows[:, 24:], False)):
        members = MultiView(random_state=0).fit(some).members_
        found = members.members[0].ellipse
        expected = robust_ellipse(members.lens.look(some).precise, np.ones(60), 0.02)
        assert np.allclose(found.centre, expected.centre, atol=1e-9) == same


def test_the_covariance_of_few_rows_is_shrunk_as_scikit_learn_does():
    generator = np.random.default_rng(0)
    for n, d in ((30, 10), (10, 30)):
        rows = generator.normal(size=(n, d)) @ generator.normal(size=(d, d))
        A = (rows - rows.mean(axis=0)) / np.sqrt(n)
        expected = oas(rows)[1]
        for product in (A.T @ A, A @ A.T, 1e-6 * A @ A.T):
            assert shrinkage(product, n, d) == pytest.approx(expected)
    assert shrinkage(np.eye(3), 5, 3) == 1.0


@pytest.mark.parametrize(("n", "is_shrunk"), [(39, True), (40, False)])
def test_the_covariance_of_fewer_than_four_rows_a_column_is_shrunk(n, is_shrunk):
    rows = np.random.default_rng(2).normal(size=(n, 10)) * np.arange(1, 11)
    product = np.cov(rows.T, bias=True)
    used = _ridge(product, np.ones(n), rows, 1e-6)
    assert used == (shrinkage(product, n, 10) if is_shrunk else 1e-6)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
def test_a_row_lies_where_it_would_if_the_covariance_had_been_fitted_without_it(shape):
    generator = np.random.default_rng(3)
    rows = generator.normal(size=shape) @ generator.normal(size=(shape[1], shape[1]))
    trust = generator.integers(1, 4, shape[0]).astype(float)
    ellipse, share = robust_ellipse(rows, trust, 0.05), trust / trust.sum()
    x = rows - ellipse.centre
    covariance = (x * share[:, None]).T @ x
    ridge = _ridge(covariance, trust, rows, 0.05)
    level = ridge * np.trace(covariance) / shape[1] * np.eye(shape[1])
    left_out = [
        (1 - ridge) * (covariance - part * np.outer(one, one)) + level
        for one, part in zip(x, share, strict=True)
    ]
    expected = [np.sqrt(one @ np.linalg.solve(C, one)) for one, C in zip(x, left_out, strict=True)]
    found = distances_left_out(ellipse.oddness(rows), rows, trust, 0.05)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert np.median(found / ellipse.oddness(rows)) > 1.1


@pytest.mark.parametrize(("n", "d", "factors"), [(100, 300, 4), (300, 300, 4), (60, 30, 0)])
def test_new_rows_lie_in_the_bulk_of_a_covariance_of_few_rows(n, d, factors):
    generator = np.random.default_rng(4)
    pull = 2 * generator.normal(size=(factors, d))
    rows = generator.normal(size=(n + 400, factors)) @ pull + generator.normal(size=(n + 400, d))
    members = MultiView(random_state=0).fit(rows[:n]).members_
    (member,) = members.members
    distances = member.oddness(members.lens.look(rows[n:]))[ELLIPSE]
    middle, low = member.middle[ELLIPSE], member.low[ELLIPSE]
    assert abs(np.median(distances) - middle) < (middle - low) / 2
    model = IADC(n_members=2, random_state=0).fit(rows[:n])
    assert (model.predict(rows[n:]) == -1).mean() < 0.1


def test_new_rows_of_a_wide_table_are_as_ordinary_as_those_that_trained():
    generator = np.random.default_rng(1)
    for d in (60, 100, 300):
        rows = generator.normal(size=(150, d))
        model = IADC(n_members=2, random_state=0).fit(rows)
        new = generator.normal(size=(200, d))
        assert (model.predict(new) == -1).mean() < 0.1


def test_a_file_keeps_where_values_lie(tmp_path):
    rows, _ = with_flag(0.1)
    model = MultiView(random_state=0).fit(rows)
    save(model, tmp_path / "m.aberra")
    again = load(tmp_path / "m.aberra")
    assert len(again.members_.lens.lumps) == 1
    assert again.anomaly_score(rows).tobytes() == model.anomaly_score(rows).tobytes()


def test_every_member_looks_at_the_columns_of_the_lens():
    rows, _ = with_flag(0.1)
    views = MultiView(random_state=0).fit(rows).members_
    fewer = MultiView(random_state=0).fit(rows[:, :3]).members_.members[0]
    for some in ([views.members[0], fewer], [fewer, views.members[0]]):
        with pytest.raises(ValueError, match="other columns than the lens"):
            replace(views, members=some)
