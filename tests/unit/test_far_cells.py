"""Cells beyond a gap in their column."""

import numpy as np
import pytest

from aberra import IADC, MultiView
from aberra.detectors.far_cells import CELLS, NOWHERE, FarCells, far_cells


@pytest.fixture
def column():
    return np.random.default_rng(0).normal(size=400)


def test_a_few_rows_beyond_a_gap_are_rare_by_their_share_and_far_by_their_distance(column):
    column[:8], last = 9.0, np.sort(column[8:])[-1]
    found = far_cells(column[:, None])
    middle = np.median(column)
    reach = last - middle
    nats = np.log(400 / 8) - 1 + np.log((np.array([9.0, 18.0]) - middle) / reach)
    np.testing.assert_allclose(found.evidence(np.array([[9.0], [18.0]])), nats)
    np.testing.assert_array_equal(found.evidence(column[8:, None]), 0.0)
    np.testing.assert_array_equal(found.evidence(np.array([[np.nan], [-3.0]])), 0.0)
    mirrored = far_cells(-column[:, None])
    np.testing.assert_allclose(mirrored.evidence(-column[:, None]), found.evidence(column[:, None]))


@pytest.mark.parametrize("size", [1e-310, 5e-324])
def test_numbers_that_all_but_vanish_leave_every_score_finite(size):
    generator = np.random.default_rng(0)
    rows = np.column_stack([size * (generator.random((100, 2)) < 0.3), generator.normal(size=100)])
    new = np.array([[1.0, 0.0, 0.0], [0.0, -1e149, 0.0]])  # times the column: beyond all numbers
    model = MultiView(random_state=0).fit(rows)
    assert model.anomaly_score(new).min() > model.anomaly_score(rows).max()


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x,  # nobody is beyond a gap
        lambda x: np.where(np.arange(400) < 60, 9.0, x),  # a kind of its own
        lambda x: np.round(3 * x),  # too few values to speak of gaps
        lambda x: np.where(np.arange(400) < 320, 0.0, x),  # the bulk is one value
    ],
)
def test_columns_without_such_a_gap(column, change):
    rows = change(column)[:, None]
    found = far_cells(rows)
    np.testing.assert_array_equal(found.evidence(rows), 0.0)
    last = rows.max() - np.median(rows)  # but a new row may lie beyond all of them
    far = np.log(400) - 1 + np.log(1e6 / last)
    np.testing.assert_allclose(found.evidence(np.array([[1e6]])), far, rtol=1e-3)
    np.testing.assert_array_equal(found.evidence(rows.max(keepdims=True) * 1.5), 0.0)


def test_thirty_values_are_enough_to_speak_of_gaps():
    for n, gap in ((29, False), (30, True)):
        x = np.r_[np.arange(1.0, n), 100.0]
        found = far_cells(x[:, None]).evidence(np.array([[60.0], [100.0]]))
        assert (found > 0).tolist() == [False, gap]


def test_a_constant_column_has_no_far_cells():
    found = far_cells(np.full((50, 1), 3.0))
    assert (found.edge == NOWHERE).all()
    np.testing.assert_array_equal(found.evidence(np.array([[1e6]])), 0.0)


def test_a_new_row_far_beyond_a_clean_table_is_flagged():
    X = np.random.default_rng(0).normal(size=(200, 12))
    model = IADC(random_state=0).fit(X)
    X[:20, 4] = 40.0
    assert (model.predict(X[:20]) == -1).all()
    assert (model.explain(X[:20]).argmax(axis=1) == 4).all()


def test_forged_gaps_are_refused():
    with pytest.raises(ValueError, match="median"):
        FarCells(np.zeros(1), np.ones((2, 1)), np.array([[1.0], [0.0]]), np.ones((2, 1)))


def test_a_gap_may_begin_at_the_quartile_itself():
    x = np.r_[np.linspace(-10, 10, 95), [40.0] * 5]
    x[55:95] = 10.0  # the last value before the gap, which a quarter of the rows have
    found = far_cells(x[:, None]).evidence(x[:, None])
    np.testing.assert_array_equal(found > 0, x == 40)


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 8])
def test_rows_eight_deviations_out_in_one_column_are_flagged_and_no_others(d):
    X = np.random.default_rng(0).normal(size=(300, d))
    X[:15, 1] += 8
    flags = IADC(random_state=0).fit(X).predict(X) < 0
    assert flags[:15].all()
    assert not flags[15:].any()


def far_by_hand(x):
    """Return edge, reach and nats above and below the median, written out with a loop."""
    x = np.sort(x[~np.isnan(x)])
    n, found = len(x), []
    for away in (x - np.median(x), np.sort(np.median(x) - x)):
        last = away[-1]
        one = (1.75 * last, last, max(np.log(n) - 1, 0)) if last > 0 else (NOWHERE, 1.0, 0.0)
        quartile = away[3 * n // 4]
        for k in range(int(0.9 * n), n - 1):
            low, high = away[k], away[k + 1]
            if len(set(x)) >= 30 and 0 < quartile <= low and high - low >= 0.75 * low:
                one = (high, low, max(np.log(n / (n - 1 - k)) - 1, 0))
                break
        found.append(one)
    return np.array(found).T


def test_gaps_are_what_is_written_out():
    rng, gaps = np.random.default_rng(1), 0
    for n in (1, 2, 3, 29, 30, 31, 57, 100, 100, 100, 203):
        for _ in range(4):
            x = rng.normal(size=n) ** 3
            x[: int(rng.uniform(0, 0.15) * n)] *= 8
            x[rng.random(n) < 0.05] = np.nan
            if np.isnan(x).all():
                continue
            found = far_cells(x[:, None])
            edge, reach, nats = far_by_hand(x)
            np.testing.assert_allclose(found.edge[:, 0], edge)
            np.testing.assert_allclose(found.reach[:, 0], reach)
            np.testing.assert_allclose(found.nats[:, 0], nats)
            gaps += (edge <= np.nanmax(np.abs(x - np.nanmedian(x)))).any()
    assert 8 < gaps < 40


def test_a_gap_is_three_quarters_of_the_way_to_it_and_at_most_a_tenth_lie_beyond():
    for last, there in ((14.0, True), (13.9, False)):
        x = np.r_[np.linspace(-8, 8, 91), np.full(9, last), np.full(9, -last)]
        edge = last if there else 1.75 * last
        np.testing.assert_allclose(far_cells(x[:, None]).edge[:, 0], edge)
    x = np.r_[np.linspace(-8, 8, 100 - 21), np.full(21, 99.0)]
    assert far_cells(x[:, None]).edge[0, 0] > 99  # a kind of its own


def test_the_most_striking_cell_of_a_row_counts():
    X = np.random.default_rng(0).normal(size=(400, 3))
    found = far_cells(X)
    row = np.array([[0.0, 50.0, -90.0], [0.0, 50.0, 0.0], [0.0, 0.0, -90.0]])
    both, first, second = found.evidence(row)
    assert both == max(first, second) > min(first, second) > 0
    assert found.evidence(np.full((1, 3), np.nan)) == 0
    edge = found.middle[0] + found.edge[0, 0]
    on_it, before = found.evidence(np.array([[edge * (1 + 1e-12), 0, 0], [edge - 1e-6, 0, 0]]))
    assert on_it > 0 == before


def one_cell_after_the_other(found, rows):
    best = np.zeros(len(rows))
    for i, j in np.ndindex(rows.shape):
        away = float(rows[i, j]) - found.middle[j]
        for side, x in enumerate((away, -away)):
            if x >= found.edge[side, j]:
                far = found.nats[side, j] + np.log(np.array([x / found.reach[side, j]]))[0]
                best[i] = max(best[i], far)
    return best


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("shape", [(9, 3), (40, 4000), (CELLS + 2, 2)])
def test_many_columns_are_looked_at_together(shape, kind, monkeypatch):
    """One at a time, thousands of columns took time by the square of their number."""
    rng = np.random.default_rng(0)
    found = far_cells(rng.normal(size=(60, shape[1])))
    rows = 30 * rng.standard_t(2, size=shape)
    if kind is not np.int64:
        rows[rng.random(shape) < 0.01] = np.nan
    rows[:, -1] = found.middle[-1]
    rows = rows.astype(kind)
    asked, log = [], np.log
    monkeypatch.setattr(np, "log", lambda x: asked.append(1) or log(x))
    given = found.evidence(rows)
    assert len(asked) <= 2 * (rows.size // CELLS + 1)
    monkeypatch.undo()
    some = slice(0, 2000)
    np.testing.assert_array_equal(given[some], one_cell_after_the_other(found, rows[some]))
    assert (given > 0).any()
