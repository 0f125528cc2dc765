"""Explanations on tables where the odd cell is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest

from aberra import ADC, DAGPR, IADC, OCSVM, RSRAE, AutoEncoder, DeepSVDD, HybridOCSVM, MultiView
from aberra.contract.explaining import _hidden, column_shares
from aberra.contract.members import Members

DETECTORS = [
    MultiView(),
    OCSVM(),
    AutoEncoder(epochs=60),
    DeepSVDD(epochs=30, pretrain_epochs=60),
    HybridOCSVM(pretrain_epochs=60),
    RSRAE(epochs=60),
    DAGPR(pretrain_epochs=60),
    ADC(),
    IADC(),
    IADC(AutoEncoder(epochs=30), n_members=3, max_rounds=2),
    ADC(IsolationForest()),
]
N_PLANTED = 40
pytestmark = pytest.mark.filterwarnings("ignore::aberra.errors.RoundsExhaustedWarning")


@pytest.fixture(scope="module")
def planted():
    """Return correlated clean rows, and new ones with one known cell moved by eight deviations."""
    generator = np.random.default_rng(0)
    mixing = generator.normal(size=(3, 6))
    X = generator.normal(size=(640, 3)) @ mixing + 0.5 * generator.normal(size=(640, 6))
    clean, new = X[N_PLANTED:], X[:N_PLANTED]
    columns = generator.integers(6, size=N_PLANTED)
    signs = generator.choice([-1, 1], N_PLANTED)
    new[np.arange(N_PLANTED), columns] += 8 * signs * clean.std(axis=0)[columns]
    return clean, new, columns


@pytest.mark.slow
@pytest.mark.parametrize("detector", DETECTORS, ids=str)
def test_the_moved_column_comes_first(detector, planted):
    clean, new, columns = planted
    shares = clone(detector).set_params(random_state=0).fit(clean).explain(new)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (shares >= 0).all()
    assert (shares.argmax(axis=1) == columns).mean() >= 0.9


@pytest.mark.parametrize("detector", [MultiView(), DeepSVDD()], ids=str)
@pytest.mark.slow
def test_robust_training_explains_rows_it_was_trained_on(detector, planted):
    clean, new, columns = planted
    dirty = np.concatenate([new, clean])
    model = IADC(detector, max_rounds=3, random_state=0).fit(dirty)
    assert (model.explain(new).argmax(axis=1) == columns).mean() >= 0.9


@pytest.mark.parametrize("detector", [MultiView(), OCSVM()], ids=str)
def test_columns_that_moved_together_are_named_and_others_that_belong_together_are_not(detector):
    """With one of them hidden the others are as odd as before: they had no part at all."""
    generator = np.random.default_rng(0)
    one, other = generator.normal(size=(2, 600, 1))
    other[:5] = 1.5
    noise = generator.normal(size=(600, 9))
    X = np.hstack([one + 0.1 * noise[:, :3], other + 0.1 * noise[:, 3:6], noise[:, 6:]])
    X[:5, :3] += 7
    shares = clone(detector).fit(X[5:]).explain(X[:5])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (np.argsort(-shares, axis=1)[:, :3] < 3).all()
    assert (shares[:, :3].sum(axis=1) > 0.5).all()


class Furthest(Members):
    """Scores a row by the larger of its first two cells, with a little of the third."""

    n_members = 1
    tile_rows = 4

    def scores(self, tile):
        return (np.abs(tile[:, :2]).max(axis=1) + 0.1 * np.abs(tile[:, 2]))[None]


@pytest.mark.parametrize(
    ("row", "parts"),
    [
        ([9.0, 0.0, 0.0], [9 - 2 / 3, 0, 0]),  # hidden, it becomes -1, 0 and 1
        ([9.0, 9.0, 0.0], [9, 9, 0]),  # hiding one changes nothing
        ([9.0, 9.0, 2.0], [9, 9, 0.2 + 0.4 / 3]),
        ([9.0, 7.9, 0.0], [1.1, 0, 0]),  # a fall of 1.1 is more than a tenth of 9
        ([9.0, 8.2, 0.0], [9 + 0.8, 8.2, 0]),
        ([0.0, 0.0, 0.0], [1, 1, 1]),
    ],
)
def test_what_falls_with_no_cell_alone_is_divided_by_how_odd_each_is_alone(row, parts):
    references = np.array([[-1.0], [0.0], [1.0]]) * np.ones(3)
    found = column_shares(Furthest(), np.array([row]), references)
    np.testing.assert_allclose(found, [np.array(parts) / np.sum(parts)], atol=1e-12)


def test_frame_in_names_out(planted):
    X, *_ = planted
    frame = pd.DataFrame(X, columns=list("uvwxyz"), index=np.arange(600) + 1000)
    shares = MultiView(random_state=0).fit(frame).explain(frame[:5])
    assert list(shares.columns) == list("uvwxyz")
    assert list(shares.index) == [1000, 1001, 1002, 1003, 1004]


def test_a_list_is_explained_by_the_names_of_the_fit(planted):
    names = [f"c{j}" for j in range(planted[0].shape[1])]
    model = MultiView(random_state=0).fit(pd.DataFrame(planted[0], columns=names))
    with pytest.warns(UserWarning, match="feature names"):
        shares = model.explain(planted[0][:2].tolist())
    assert list(shares.columns) == names
    assert list(shares.index) == [0, 1]


def test_columns_of_wide_rows_are_hidden_in_groups(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(30, 7))
    model = OCSVM(random_state=0).fit(rows)
    wanted = model.explain(rows[:3])
    monkeypatch.setattr("aberra.contract.explaining.STACKED_CELLS", 21)
    np.testing.assert_array_equal(model.explain(rows[:3]), wanted)


@pytest.mark.parametrize("detector", [OCSVM(), ADC(IsolationForest(random_state=0))])
def test_of_very_wide_rows_the_cells_far_from_the_middle_are_hidden(detector, monkeypatch):
    """A row of 60,000 columns took an hour; two of seven here are looked at."""
    rows = np.random.default_rng(0).normal(size=(60, 7)) * [1, 1, 1, 5, 1, 1, 0.1] + 3
    rows[:, 4] = 2.0  # no quartiles: the distance itself counts
    new = rows[:6] + np.eye(6, 7) * [4, 4, 4, 20, 9, 4, 0.4]
    model = clone(detector).set_params(random_state=0).fit(rows)
    whole = model.explain(new)
    monkeypatch.setattr("aberra.contract.explaining.MOST_HIDDEN", 2)
    some = model.explain(new)
    lower, middle, upper = np.quantile(rows, (0.25, 0.5, 0.75), axis=0)
    far = np.abs(new - middle) / np.where(upper > lower, upper - lower, 1)
    kept = far >= np.sort(far, axis=1)[:, [-2]]
    assert kept.sum() == 12
    wanted = np.where(kept, whole, 0.0)
    np.testing.assert_allclose(some, wanted / wanted.sum(axis=1, keepdims=True), rtol=1e-9)


def test_a_gap_of_a_very_wide_row_is_hidden_first(monkeypatch):
    monkeypatch.setattr("aberra.contract.explaining.MOST_HIDDEN", 2)
    quartiles = np.array([[-1.0], [0.0], [1.0]]) * np.ones(4)
    assert _hidden(np.array([[3.0, 9.0, np.nan, 1.0]]), quartiles).tolist() == [[2], [1]]


def test_a_row_without_a_cause_has_equal_shares():
    model = OCSVM().fit(np.ones((20, 4)))
    np.testing.assert_allclose(model.explain(np.ones((1, 4))), 1 / 4)
