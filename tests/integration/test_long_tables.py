"""A model of a long table keeps what is asked for later, and no more."""

import json
from dataclasses import replace

import numpy as np
import pytest

from aberra import ADC, IADC, MultiView, load, save
from aberra.errors import DataError
from aberra.explain.doubts import learnt_doubts
from aberra.explain.subject import Subject
from aberra.model_file import container
from aberra.robust.sample import MOST_ROWS

N = 2 * MOST_ROWS


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(N, 3))
    X[:40] += 8
    return X


@pytest.fixture(scope="module")
def model(rows):
    return IADC(MultiView(n_trees=8), n_members=2, random_state=0).fit(rows)


@pytest.fixture(scope="module")
def loaded(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "long.aberra"
    save(model, path)
    return load(path)


@pytest.mark.slow
def test_the_file_does_not_grow_with_the_table(model, tmp_path):
    save(model, tmp_path / "long.aberra")
    _, arrays = container.read_model(tmp_path / "long.aberra")
    assert max(len(array) for array in arrays.values() if array.ndim) < N / 2
    assert (tmp_path / "long.aberra").stat().st_size < 1_000_000


def test_scores_flags_and_drift_are_as_before(model, loaded, rows):
    assert loaded.anomaly_score(rows).tobytes() == model.anomaly_score(rows).tobytes()
    assert loaded.threshold_ == model.threshold_
    assert loaded.compare(rows[::7]).verdict == model.compare(rows[::7]).verdict == "steady"


def test_what_is_said_about_the_training_is_as_before(model, loaded):
    whole, part = Subject(model), Subject(loaded)
    assert len(model.history_) == len(loaded.history_) > 1
    assert loaded.history_.kept == model.history_.kept
    assert repr(loaded.history_) == repr(model.history_)
    assert part.story.lines == whole.story.lines
    assert part.story.sentences() == whole.story.sentences()
    assert part.n_samples == whole.n_samples == N
    assert part.about_low_trust() == whole.about_low_trust() != []
    assert [fact.value for fact in part.facts()] == [fact.value for fact in whole.facts()]


def test_the_least_trusted_rows_are_the_same(model, loaded):
    expected, found = learnt_doubts(model, 25), learnt_doubts(loaded, 25)
    assert [doubt.row for doubt in found] == [doubt.row for doubt in expected]
    assert [doubt.name for doubt in found] == [doubt.name for doubt in expected]
    assert [doubt.score for doubt in found] == [doubt.score for doubt in expected]


def test_percentiles_hardly_move(model, loaded):
    known, about = Subject(model).reference, Subject(loaded).reference
    assert len(about) == len(known)
    np.testing.assert_array_equal(about[-100:], known[-100:])
    ranks = np.searchsorted(about, known) / N
    assert np.abs(ranks - np.searchsorted(known, known) / N).max() < 0.001


def test_the_training_rows_are_recognised_with_their_trust(model, loaded, rows):
    scores = model.anomaly_score(rows)
    part = Subject(loaded)
    assert part.are_training_scores(scores)
    np.testing.assert_allclose(part.trust_of(scores), model.weights_, atol=1e-9)
    assert not part.are_training_scores(scores[::-1])
    assert part.trust_of(scores[:-1]) is None


def test_what_is_no_longer_there_is_said(loaded, rows):
    assert loaded.training_scores() is None
    assert loaded.training_trust() is None
    assert len(loaded.weights_) == len(loaded.history_[0].sample.rows)
    with pytest.raises(DataError, match="only some rows"):
        loaded.set_params(warm_start=True).fit(rows)
    loaded.set_params(warm_start=False)
    by_median = replace(loaded.history_, trust="median")
    with pytest.raises(DataError, match="another outlier ratio"):
        by_median.replay(0.1)


def test_saving_again_gives_the_same_bytes(model, loaded, tmp_path):
    save(model, tmp_path / "one")
    save(load(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_adc_too(rows, tmp_path):
    model = ADC(MultiView(n_trees=8), n_members=1, random_state=0).fit(rows)
    save(model, tmp_path / "adc")
    found = load(tmp_path / "adc")
    assert found.training_scores() is None
    assert Subject(found).n_samples == N
    assert Subject(found).n_low_trust is None
    assert learnt_doubts(found) == []
    assert Subject(found).are_training_scores(model.training_scores())


def test_a_short_table_keeps_everything_in_the_old_form(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    save(IADC(random_state=0).fit(X), tmp_path / "short")
    manifest = container.read_manifest(tmp_path / "short")
    assert set(manifest["learnt"]["history_"]["rounds"][0]) == {"scores", "seconds", "crossings"}
    assert len(load(tmp_path / "short").weights_) == 60
    assert json.dumps(manifest)
