"""Rounds of several ensembles at once, what a history counts, and what a stream calls odd."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, OutlierMixin

from aberra import ADC, IADC, OCSVM, MultiView
from aberra.detectors.foreign import as_trainer
from aberra.errors import RoundsExhaustedWarning
from aberra.progress import listening
from aberra.robust.committee import Committee
from aberra.robust.history import History, Round
from aberra.robust.iadc import _content
from aberra.robust.rounds import Setup, Turn, train_round
from aberra.robust.sample import MOST_ROWS, ranks_of
from aberra.thresholds import threshold

ROWS = np.random.default_rng(0).normal(size=(60, 2))


class Middle(OutlierMixin, BaseEstimator):
    """Scores by the distance from the weighted mean of the rows that it drew."""

    def fit(self, X, y=None, sample_weight=None):
        self.seen_, self.mean_ = X, np.average(X, axis=0, weights=sample_weight)
        return self

    def score_samples(self, X):
        return -np.linalg.norm(X - self.mean_, axis=1)


def setup_of(detector, n_members=3, resample=True):
    trainer = as_trainer(detector, None)
    return Setup(trainer, trainer._prepare(ROWS), ROWS, n_members, resample)


def test_ensembles_that_train_together_do_not_influence_each_other():
    setup = setup_of(Middle())
    turns = [Turn(seed, number, w) for seed, number, w in
             ((5, 0, np.ones(60)), (6, 2, ROWS[:, 0] ** 2), (5, 1, np.ones(60)))]  # fmt: skip
    together, rounds = train_round(setup, turns)
    assert together.n_members == 9
    every = together.scores(ROWS)
    assert len(np.unique(every[:, 0])) == 9  # all draw for themselves, in every round anew
    for k, turn in enumerate(turns):
        alone, (found,) = train_round(setup, [turn])
        np.testing.assert_array_equal(rounds[k].scores, found.scores)
        np.testing.assert_array_equal(every[3 * k : 3 * k + 3], alone.scores(ROWS))
        np.testing.assert_allclose(found.scores, alone.scores(ROWS).mean(axis=0))
    started = time.perf_counter()
    seconds = sum(found.seconds for found in train_round(setup, turns)[1])
    assert 0 < seconds < time.perf_counter() - started  # they share out what has passed
    assert train_round(setup, turns[:2])[0].n_members == 6


@pytest.mark.parametrize("resample", [True, "subsample", False])
def test_no_member_sees_a_row_of_weight_zero(resample):
    weights = np.where(np.arange(60) < 40, 0.0, 1.0)
    members, _ = train_round(setup_of(Middle(), resample=resample), [Turn(0, 0, weights)])
    for detector in members.parts[0].detectors:
        assert (detector.seen_[:, None] == ROWS[40:]).all(axis=2).any(axis=1).all()
        assert len(detector.seen_) == (30 if resample == "subsample" else 60)


def test_a_detector_that_draws_rows_itself_is_given_all_of_them():
    drawn = []

    class Watched(MultiView):
        def _train(self, prepared, rows, weights, seeds):
            drawn.append(rows)
            return super()._train(prepared, rows, weights, seeds)

    weights = np.where(np.arange(60) < 10, 0.0, 1.0)
    for model in (ADC(Watched(n_trees=3), 2), ADC(Watched(n_trees=3), 2, resample=True)):
        model.set_params(random_state=0).fit(ROWS, sample_weight=weights)
    np.testing.assert_array_equal(drawn[0], [np.arange(60)] * 2)
    assert drawn[1].min() >= 10


def part_of_committee(height, n=2, **more):
    """Stands for members that were trained somewhere: each gives its height for everything."""
    said = []
    given = {"n_members": n, "in_threads": True, "tile_rows": 8, **more}
    return SimpleNamespace(
        **given,
        said=said,
        scores=lambda tile: np.full((n, len(tile)), height),
        maps=lambda tile: np.full((n, len(tile), 2, 2), height),
        maps_and_scores=lambda tile: (np.full((n, len(tile), 2, 2), height),
                                      np.full((n, len(tile)), height)),
        restored=lambda tile: np.full((n, len(tile), 1, 2, 2), height),
        why_not_finite=lambda model: f"{model} {height}",
        why_all_equal=lambda: f"equal {height}",
        probe=lambda n_features, image_shape: said.append((n_features, image_shape)),
    )  # fmt: skip


def test_a_committee_answers_for_all_its_parts():
    parts = [part_of_committee(1.0), part_of_committee(5.0, 1)]
    both = Committee(parts)
    assert (both.n_members, both.in_threads, both.tile_rows) == (3, True, 8)
    tile = np.zeros((4, 2))
    heights = [1.0, 1.0, 5.0]
    maps, scores = both.maps_and_scores(tile)
    assert both.scores(tile)[:, 0].tolist() == scores[:, 3].tolist() == heights
    assert both.maps(tile)[:, 3, 1, 1].tolist() == maps[:, 0, 0, 1].tolist() == heights
    assert both.restored(tile)[:, 0, 0, 0, 0].tolist() == heights
    assert both.why_not_finite("M") == "M 1.0"
    assert both.why_all_equal() == "equal 1.0"
    both.probe(7, None)
    assert [part.said for part in parts] == [[(7, None)]] * 2
    alone = Committee(parts[1:])
    assert alone.why_all_equal() == "equal 5.0"
    assert not Committee([parts[0], part_of_committee(2.0, in_threads=False)]).in_threads
    assert Committee([parts[0], part_of_committee(2.0, tile_rows=None)]).tile_rows is None


def history_of(*rounds, trust="median", **more):
    history = History(0.5, 2, 0.5, trust, **more)
    for scores in rounds:
        history.append(Round(np.asarray(scores, dtype=float), 1.0))
    return history


def test_low_trust_is_less_than_a_quarter():
    scores = np.linspace(-1, 1, 41)  # the trust is 1 / (1 + exp(2 s)), a quarter at log(3) / 2
    history = history_of(scores)
    assert history.n_low(0) == np.count_nonzero(scores > np.log(3) / 2) == 10
    kept = history[0].of_rows(np.array([0, 38], np.int32), np.array([0.25, 0.2499, 0.3] * 41))
    assert (kept.sample.n_low, kept.n_rows) == (41, 123)
    assert history_of(scores).rounds[0].n_rows == 41
    file = replace(history, rounds=[kept])
    assert file.n_low(0) == 41
    np.testing.assert_array_equal(file.weights(0), np.float32([0.25, 0.3]))
    assert file.sampled
    assert not history.sampled
    assert not history_of().sampled


def test_a_file_keeps_all_of_ten_thousand_rows_and_some_of_more():
    assert MOST_ROWS == 10_000
    for n, all_of_them in ((MOST_ROWS, True), (MOST_ROWS + 1, False)):
        history = history_of(np.arange(n), np.arange(n)[::-1])
        saved = history.as_saved()
        assert (saved is history) == all_of_them
        assert saved.as_saved() is saved
        assert len(saved[0].scores) == (n if all_of_them else 4100)
        assert saved[1].crossings == (n + 1) // 2 - (n % 2)
        model = IADC()
        model.history_ = saved
        assert (model.training_sample() is None) == all_of_them
        assert (model.training_scores() is not None) == all_of_them
        ensemble = ADC()
        ensemble.round_ = history[0]
        assert (ensemble.as_saved() is ensemble) == all_of_them
        model.history_ = history
        for one in (model, ensemble):  # of a sample of a longer table: where its rows stood there
            one.positions_ = 3 * np.arange(n)
            file = one.as_saved()
            sample = (file.history_[0] if one is model else file.round_).sample
            rows = np.arange(n) if sample is None else sample.rows
            np.testing.assert_array_equal(file.positions_, 3 * rows)
            assert len(one.positions_) == n
    for t in range(2):  # of the longer one: what was known about the rows that are kept
        rows = saved[t].sample.rows
        np.testing.assert_array_equal(saved[t].sample.ranks, ranks_of(history[t].scores)[rows])
        np.testing.assert_allclose(saved.weights(t), history.weights(t)[rows], rtol=1e-6)
    n = MOST_ROWS + 1
    calm = history_of(np.arange(n), np.arange(n), np.arange(n)[::-1])
    assert calm.kept == 1
    assert set(range(n - 100, n)) <= set(calm.as_saved()[2].sample.rows)  # the oddest of that round
    empty = history_of()
    assert empty.as_saved() is empty


def test_a_file_keeps_the_trust_of_the_round_that_is_kept():
    n = MOST_ROWS + 1
    model = IADC()
    model.history_ = history_of(np.arange(n), np.arange(n), np.arange(n)[::-1])
    assert model.history_.kept == 1
    model.weights_ = model.history_.weights(1)
    file = model.as_saved()
    rows = file.history_[1].sample.rows
    np.testing.assert_allclose(file.weights_, model.weights_[rows], rtol=1e-6)


def test_another_ratio_is_replayed_with_the_patience_of_the_fit(monkeypatch):
    history = history_of(*np.zeros((7, 400)))
    monkeypatch.setattr(History, "crossings", lambda self, ratio: [20, 9, 12, 5, 6, 4])
    for patience, kept in ((1, 2), (2, 6), (9, 6)):
        assert replace(history, patience=patience).replay(0.5) == kept


def test_a_row_that_is_just_half_trusted_is_not_in_doubt(monkeypatch):
    for trust, clean, low in (
        (0.5, True, 0),
        (0.499, False, 0),
        (0.25, False, 0),
        (0.249, False, 1),
    ):
        said = np.array([1.0, trust, 1.0])
        monkeypatch.setattr("aberra.robust.history.apart_weights", lambda s, said=said: said)
        history = history_of(np.zeros(3), trust="apart")
        assert (history.clean, history.n_low(0)) == (clean, low)


def test_a_clean_round_of_a_file_is_known_by_its_reason():
    clean, odd = np.random.default_rng(1).normal(size=300), np.r_[np.zeros(150), np.ones(150)]
    sample = history_of(clean)[0].of_rows(np.arange(9, dtype=np.int32), np.ones(300))
    for reason, expected in (("clean", True), ("settled", False)):
        file = history_of(trust="apart", reason=reason, rounds=[sample])
        assert file.clean is expected
    assert history_of(clean, trust="apart").clean
    assert not history_of(clean).clean
    assert not history_of(clean, clean, trust="apart").clean
    assert not history_of(np.r_[clean, 90.0], trust="apart").clean
    assert history_of(odd, trust="apart").crossings() == []


def test_a_round_says_itself_in_a_few_words():
    assert history_of(ROWS[:, 0]).note() == "round 1: first round"
    assert history_of(ROWS[:, 0], -ROWS[:, 0]).note() == "round 2: 30 rows crossed"


def test_whoever_listens_hears_of_every_round_and_of_the_end():
    heard = []
    with listening(lambda *said: heard.append(said)):
        model = IADC(Middle(), 2, max_rounds=8, resample=False, random_state=0).fit(ROWS)
    *rounds, last = [said for said in heard if said[0] == "rounds"]
    assert len(rounds) == len(model.history_) < 8
    assert [share for _, share, _ in rounds] == [(k + 1) / 8 for k in range(len(rounds))]
    assert rounds[0][2] == "round 1: first round"
    assert last[1] == 1.0  # the ranking settled before all rounds were used


def test_the_names_of_rows_are_not_their_content():
    rows = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"]})
    assert bytes(_content(rows)) == bytes(_content(rows.set_axis([7, 8, 9])))
    assert bytes(_content(rows)) != bytes(_content(rows.iloc[::-1]))


def test_one_round_that_was_asked_for_is_no_reason_to_warn():
    given = {"n_members": 2, "random_state": 0}
    one = IADC(Middle(), max_rounds=1, **given).fit(ROWS)  # a warning would be an error here
    assert one.history_.reason == "max_rounds"
    with pytest.warns(RoundsExhaustedWarning, match="max_rounds=2 rounds"):
        IADC(Middle(), max_rounds=2, outlier_ratio=0.05, **given).fit(ROWS)


def test_rows_of_a_file_have_no_weights_and_are_read_block_by_block(tmp_path):
    path = tmp_path / "rows.csv"
    pd.DataFrame(ROWS, columns=["a", "b"]).to_csv(path, index=False)
    model = ADC(MultiView(n_trees=3), 2, random_state=0)
    with pytest.raises(ValueError, match="sample_weight is for tables in memory"):
        model.fit(path, sample_weight=np.ones(60))
    assert model.fit(path).n_features_in_ == 2


@pytest.mark.filterwarnings("ignore:The ranking had not settled")
def test_a_warm_start_leaves_the_rounds_of_the_fit_before_as_they_were():
    model = IADC(Middle(), 2, max_rounds=2, patience=9, warm_start=True, random_state=0).fit(ROWS)
    before, seen = model.history_, list(model.history_)
    model.set_params(max_rounds=4).fit(ROWS)
    assert [*before] == seen == [*model.history_[:2]]
    assert len(before) == 2 < len(model.history_)
    assert model.set_params(patience=5).fit(ROWS).history_.patience == 5  # may change on the way


def test_members_that_are_shared_out_keep_their_rows_weights_and_seeds(monkeypatch):
    setup = setup_of(OCSVM(solver="nystroem", n_landmarks=6), 5)
    turns = [Turn(4, 0, ROWS[:, 1] ** 2)]
    here, (found,) = train_round(setup, turns)
    monkeypatch.setattr("joblib.effective_n_jobs", lambda: 3)
    there, (again,) = train_round(replace(setup, engine="threading"), turns)
    assert [part.n_members for part in there.parts] == [1, 2, 2]
    np.testing.assert_array_equal(there.scores(ROWS), here.scores(ROWS))
    np.testing.assert_array_equal(again.scores, found.scores)


class Seeded(Middle):
    """Remembers its seed."""

    def __init__(self, random_state=None):
        self.random_state = random_state


def test_every_member_of_every_round_has_a_seed_of_its_own():
    def seeds(entropy):
        turns = [Turn(entropy, number, np.ones(60)) for number in (0, 1)]
        members, _ = train_round(setup_of(Seeded(), resample=False), turns)
        return [detector.random_state for part in members.parts for detector in part.detectors]

    assert len({*seeds(5), *seeds(6)}) == 12
    assert seeds(5) == seeds(5)


def test_threshold_and_trust_are_those_of_the_round_that_is_kept():
    model = IADC(Middle(), 1, patience=1, random_state=7).fit(ROWS)
    history = model.history_
    kept, last = history[history.kept].scores, history[-1].scores
    assert history.kept == len(history) - 2
    assert model.threshold_ == threshold(kept, "knee")[0] != threshold(last, "knee")[0]
    np.testing.assert_array_equal(model.weights_, history.weights(history.kept))
    np.testing.assert_array_equal(model.anomaly_score(ROWS), kept)
