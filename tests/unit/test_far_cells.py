"""Cells beyond a gap in their column."""

import numpy as np
import pytest

from aberra import IADC
from aberra.detectors.far_cells import NOWHERE, FarCells, far_cells


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
        FarCells(np.zeros(1), np.ones((2, 1)), np.zeros((2, 1)), np.ones((2, 1)))


@pytest.mark.parametrize("d", [3, 8])
def test_rows_eight_deviations_out_in_one_column_are_flagged_and_no_others(d):
    X = np.random.default_rng(0).normal(size=(300, d))
    X[:15, 1] += 8
    flags = IADC(random_state=0).fit(X).predict(X) < 0
    assert flags[:15].all()
    assert not flags[15:].any()
