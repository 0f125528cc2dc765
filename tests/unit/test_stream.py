"""A stream of rows: what is remembered, when the model is fitted again, and whether it keeps up."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from aberra import OCSVM, MultiView, Stream
from aberra.errors import DataError
from aberra.robust.levels import Levels
from aberra.robust.stream import _numeric


def small(**changed):
    given = {"n_rows": 200, "half_life": 100, "refit_every": 100, "random_state": 0}
    return Stream(MultiView(n_trees=6, n_landmarks=8), **{**given, **changed})


def batches(n=6, size=100, step=1.0):
    rng = np.random.default_rng(0)
    return [step * k + rng.normal(size=(size, 2)) for k in range(n)]


def seen(days, **changed):
    stream = small(**changed)
    for rows in days:
        stream.partial_fit(rows)
    return stream


def false_flags(stream, rows):
    return (stream.predict(rows) == -1).mean()


def test_it_keeps_up_with_a_world_that_moves():
    *days, tomorrow = batches(9)
    still = small().partial_fit(days[0])
    assert false_flags(still, tomorrow) > 0.5
    both = np.concatenate([days[0], tomorrow])
    flags = np.where(still.anomaly_score(both) > still.model_.threshold_, -1, 1)
    assert set(flags) == {-1, 1}
    np.testing.assert_array_equal(still.predict(both), flags)
    moving = seen(days)
    assert false_flags(moving, tomorrow) < 0.05
    assert moving.compare(tomorrow).verdict == "moved"
    np.testing.assert_allclose(moving.level_, 7, atol=0.7)


def test_rows_that_follow_are_ahead_of_rows_that_are_only_forgotten():
    *days, tomorrow = batches(9, step=0.7)
    odd = 5.6 + np.array([[0, -5.0], [-5.0, 0], [5.0, 0]])  # five deviations off tomorrow's middle
    follows, forgets = (seen(days, follow=follow) for follow in (True, False))
    assert (follows.anomaly_score(odd) > follows.anomaly_score(tomorrow).max()).all()
    assert not (forgets.anomaly_score(odd) > forgets.anomaly_score(tomorrow).max()).all()
    assert not forgets.level_.any()


def test_after_a_jump_both_worlds_are_known_until_the_old_one_is_forgotten():
    rng = np.random.default_rng(0)
    old, new = (lambda: rng.normal(size=(100, 2))), (lambda: 8 + rng.normal(size=(100, 2)))
    stream = seen([old() for _ in range(4)] + [new()])
    assert false_flags(stream, new()) < 0.05
    assert false_flags(stream, old()) < 0.05
    for _ in range(8):
        stream.partial_fit(new())
    assert stream.anomaly_score(old()).min() > stream.anomaly_score(new()).max()


def numbered(n):
    """Return n times a hundred rows whose first value is their day."""
    return np.column_stack([np.repeat(np.arange(n, dtype=float), 100), np.tile(range(100), n)])


def test_old_rows_leave_but_not_all_at_once():
    stream = small(follow=False).partial_fit(numbered(30))
    ages = 29 - stream.rows_[:, 0]
    assert len(ages) == 200
    assert stream.n_seen_ == 3000
    counts = np.bincount(ages.astype(int), minlength=30)
    assert counts[0] > counts[2] > counts[5] > 0
    assert counts[12:].sum() < 5
    # A row waits for a time with the mean 2^-(place / half-life); the first 200 stay, in order.
    waits = -np.log(1 - np.random.default_rng(stream._entropy).random(3000))
    waits *= 0.5 ** (np.arange(3000) / 100)
    expected = np.sort(np.argsort(waits)[:200])
    np.testing.assert_array_equal(stream.rows_ @ [100, 1], expected)


def test_a_long_half_life_remembers_all_times_alike():
    stream = small(half_life=1e9, follow=False).partial_fit(numbered(20))
    counts = np.bincount(stream.rows_[:, 0].astype(int), minlength=20)
    assert counts.min() > 0
    assert counts.max() < 30


def test_the_model_is_fitted_again_after_enough_rows_and_not_before():
    stream = small(refit_every=150).partial_fit(batches(1)[0])
    fits = []
    for rows in batches(6, size=50):
        fits.append(stream.partial_fit(rows).n_fits_)
    assert fits == [1, 1, 2, 2, 2, 3]


def test_a_seed_decides_everything():
    scores = []
    for _ in range(2):
        stream = small()
        for rows in batches(4):
            stream.partial_fit(rows)
        scores.append(stream.anomaly_score(batches()[2]).tobytes())
    assert scores[0] == scores[1]


def test_dirty_batches_do_not_become_the_norm():
    rng = np.random.default_rng(0)
    stream = small()
    for rows in batches(5, step=0.0):
        rows[rng.choice(100, 10, replace=False)] = 9.0 + rng.normal(size=(10, 2))
        stream.partial_fit(rows)
    odd = stream.anomaly_score(9.0 + rng.normal(size=(50, 2)))
    assert odd.min() > np.quantile(stream.anomaly_score(rng.normal(size=(500, 2))), 0.99)


def test_data_frames_with_text_and_gaps():
    rng = np.random.default_rng(0)
    detector = MultiView(n_trees=6, encode="auto", missing="impute")
    stream = Stream(detector, n_rows=150, refit_every=100, random_state=0)
    for _ in range(3):
        rows = pd.DataFrame({"a": rng.normal(size=100), "b": rng.choice(["x", "y"], 100)})
        rows.loc[3, "a"] = np.nan
        stream.partial_fit(rows)
    assert isinstance(stream.rows_, pd.DataFrame)
    assert stream.rows_.index.is_unique  # though every batch counts from 0
    assert stream.anomaly_score(rows).shape == (100,)
    with pytest.raises(DataError, match="other columns"):
        stream.partial_fit(rows.rename(columns={"a": "c"}))
    with pytest.raises(DataError, match="not of both"):
        stream.partial_fit(np.zeros((5, 2)))


def test_numbers_of_a_frame_follow_and_the_rest_stays():
    rng = np.random.default_rng(0)
    stream = Stream(MultiView(n_trees=6, encode="auto"), refit_every=100, random_state=0)
    for day in range(6):
        rows = pd.DataFrame({"b": rng.choice(["x", "y"], 100), "a": 3 * day + rng.normal(size=100)})
        stream.partial_fit(rows)
    assert stream.level_ == pytest.approx([15], abs=0.7)
    shown = stream.aligned(rows.assign(a=rows["a"] + 3))
    assert shown["a"].mean() == pytest.approx(15, abs=0.7)
    assert shown["b"].tolist() == rows["b"].tolist()


def test_a_score_as_high_as_the_threshold_is_not_flagged():
    rows = batches(1)[0]
    stream = small().partial_fit(rows)
    scores = stream.anomaly_score(rows)
    stream.model_.threshold_ = np.sort(scores)[-3]
    assert (stream.predict(rows) == -1).sum() == 2


def test_only_numbers_have_a_level():
    def day(k):
        return pd.DataFrame(
            {
                "when": pd.date_range("2024-01-01", periods=50) + pd.Timedelta(k, "D"),
                "yes": np.arange(50) % (k + 2) == 0,
                "count": np.arange(50) + 100 * k,
                "much": np.arange(50) / 7,
            }
        )

    stream = Stream(MultiView(n_trees=3, encode="auto"), refit_every=50, random_state=0)
    for k in range(3):
        stream.partial_fit(day(k))
    assert stream.level_ == pytest.approx([200, 0], abs=0.1)
    trained = stream.aligned(day(0))
    assert trained["count"].tolist() == (np.arange(50) + 0.0).tolist()  # one jump is no pace
    pd.testing.assert_frame_equal(trained.drop(columns="count"), day(0).drop(columns="count"))
    words = np.array([["x", "y"]] * 4, object)
    assert _numeric(words).tolist() == []
    assert _numeric(np.zeros((4, 2), int)).tolist() == [0, 1]


def test_remembered_rows_are_trained_on_at_the_level_of_the_last_ones():
    seen_by = []

    class Watched(MultiView):
        def fit(self, X, y=None, sample_weight=None):
            seen_by.append(X)
            return super().fit(X)

    given = {"n_rows": 150, "refit_every": 50, "half_life": 1e9, "random_state": 0}
    stream = Stream(Watched(n_trees=3, n_landmarks=8), **given)
    rows = np.column_stack([np.tile(np.arange(50.0), 3), np.repeat([0.0, 30, 70], 50)])
    for k in range(3):
        stream.partial_fit(rows[50 * k : 50 * k + 50])
    assert stream.level_.tolist() == [0, 70]
    np.testing.assert_array_equal(stream.rows_, rows)
    np.testing.assert_array_equal(seen_by[-1], rows * [1, 0] + [0, 70])
    frames = clone(stream)
    for k in range(3):  # of a frame those columns move that have moved since any of the rows
        frames.partial_fit(pd.DataFrame(rows[50 * k : 50 * k + 50], columns=["a", "b"]))
    np.testing.assert_array_equal(seen_by[-1], rows * [1, 0] + [0, 70])
    # They may come next at the pace, or return to what was left: each as the last fit wants it.
    worlds = stream._aligned(rows[:1])
    assert [world[0, 1] for world in worlds] == [0, 70, 40]
    assert stream.anomaly_score(rows[:1]) == min(
        stream.model_.anomaly_score(world)[0] for world in worlds
    )
    assert stream.model_.random_state == stream._entropy
    kept = Stream(MultiView(n_trees=3, random_state=7), refit_every=50, random_state=0)
    assert kept.partial_fit(rows).model_.random_state == 7
    assert kept.n_fits_ == 1


def test_rows_wait_until_a_piece_is_complete():
    whole, by_ten = small(), small()
    rows = np.concatenate(batches(4))
    whole.partial_fit(rows[:100]).partial_fit(rows[100:])
    by_ten.partial_fit(rows[:100])
    for k in range(100, 400, 10):
        by_ten.partial_fit(rows[k : k + 10])
    np.testing.assert_array_equal(whole.rows_, by_ten.rows_)
    np.testing.assert_array_equal(whole.anomaly_score(rows), by_ten.anomaly_score(rows))
    assert (whole.n_fits_, by_ten.n_fits_) == (2, 4)


def test_fit_begins_anew_and_clones_are_unfitted():
    stream = small().partial_fit(batches()[0]).partial_fit(batches()[1])
    assert stream.fit(batches()[2]).n_seen_ == 100
    for ask in ("anomaly_score", "predict", "aligned", "compare"):
        with pytest.raises(NotFittedError):
            getattr(clone(stream), ask)(batches()[0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [({"n_rows": 1}, "n_rows"), ({"half_life": 0}, "half_life"), ({"refit_every": 0}, "refit")],
)
def test_nonsense_is_refused(changed, words):
    with pytest.raises(ValueError, match=words):
        small(**changed).partial_fit(batches()[0])


def test_batches_of_another_width_are_refused():
    stream = small().partial_fit(batches()[0])
    with pytest.raises(DataError, match="3 columns, but the stream has 2"):
        stream.partial_fit(np.zeros((4, 3)))
    with pytest.raises(DataError, match="3 columns, but the stream has 2"):
        stream.anomaly_score(np.zeros((4, 3)))
    with pytest.raises(DataError, match="at least one row"):
        stream.partial_fit(np.zeros((0, 2)))


def test_a_level_is_forgotten_when_a_tenth_of_the_remembered_rows_is_older(monkeypatch):
    asked = []
    monkeypatch.setattr(Levels, "forget", lambda levels, place: asked.append(place))
    stream = small(half_life=1e9, refit_every=50, n_rows=100)
    stream.partial_fit(numbered(1))
    assert asked == [4, 9]  # a tenth of the way into 50 rows, and into 100
    assert stream._places.tolist() == list(range(100))
    stream.partial_fit(numbered(1))
    assert asked[-1] == int(np.quantile(stream._places, 0.1))


def test_rows_that_stay_where_they_are_keep_their_type():
    rows = np.arange(200).reshape(100, 2) % 7
    stream = small().partial_fit(rows)
    assert stream.rows_.dtype == stream.aligned(rows).dtype == rows.dtype
    frame = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1] / 2})
    known = small().partial_fit(frame)
    assert known.aligned(frame) is frame
    assert known.rows_.dtypes.tolist() == frame.dtypes.tolist()


def test_the_first_batch_is_fitted_at_once_and_only_what_is_complete_later():
    stream = small(refit_every=30)
    sizes = []
    for rows in np.split(np.concatenate(batches(2)), [70, 99, 100, 129, 160]):
        stream.partial_fit(rows)
        sizes.append((stream.n_seen_, stream._n_taken, stream.n_fits_))
    assert sizes == [(70, 70, 1), (99, 70, 1), (100, 100, 2), (129, 100, 2), (160, 160, 3),
                     (200, 190, 4)]  # fmt: skip


def test_half_of_the_rows_that_are_remembered_are_younger_than_the_half_life():
    class Model(BaseEstimator):
        random_state = 0

        def fit(self, X):
            return self

    stream = Stream(Model(), n_rows=1000, half_life=10_000, refit_every=80_000, random_state=0)
    stream.fit(np.arange(80_000.0)[:, None])
    ages = 80_000 - stream.rows_[:, 0]
    assert np.median(ages) == pytest.approx(10_000, rel=0.15)
    assert np.quantile(ages, 0.75) == pytest.approx(20_000, rel=0.15)


def test_the_model_that_was_given_is_a_pattern_and_never_fitted_itself():
    given, rows = OCSVM(), np.random.default_rng(0).normal(size=(40, 2))
    stream = Stream(given, refit_every=20, random_state=0).partial_fit(rows[:20])
    first = stream.model_
    assert stream.partial_fit(rows[20:]).model_ is not first
    assert "members_" not in vars(given)
    assert given.random_state is None
