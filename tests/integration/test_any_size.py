"""Tables that are read block by block: fitted and scored as one table would be."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from aberra import ADC, IADC, load, save, thresholds
from aberra.data.blocks.opening import blocks_of
from aberra.metrics import auroc
from aberra.progress import listening
from aberra.robust.by_blocks import first_look, survey
from aberra.workflow.outcome import save_with_recipe

N, SEEN = 6_000, 2_000


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    found = generator.normal(size=(N, 4)) @ generator.normal(size=(4, 4))
    found[::40] += 6 * generator.normal(size=(N // 40, 4))
    return pd.DataFrame(found, columns=list("abcd"))


def folder(place, rows, pieces):
    place.mkdir()
    for k, some in enumerate(np.array_split(np.arange(len(rows)), pieces)):
        rows.iloc[some].to_parquet(place / f"{k:03d}.parquet", row_group_size=50)
    return place


def model_bytes(model, place):
    save_with_recipe(model, None, place)
    return place.read_bytes()


def fitted(source, engine=None, **settings):
    blocks = blocks_of(source, sample_rows=SEEN)
    return IADC(random_state=0, engine=engine, **settings).fit(blocks)


@pytest.fixture(scope="module")
def one(rows, tmp_path_factory):
    place = tmp_path_factory.mktemp("any-size")
    return model_bytes(fitted(folder(place / "one", rows, 1)), place / "one.aberra")


def test_same_bytes_however_the_rows_are_cut(rows, one, tmp_path):
    model = fitted(folder(tmp_path / "rows", rows, 64))
    assert model_bytes(model, tmp_path / "m.aberra") == one


@pytest.mark.slow
def test_same_bytes_with_another_engine_and_other_sources(rows, one, tmp_path):
    place = folder(tmp_path / "rows", rows, 5)
    spread = fitted(place, engine="threading")
    spread.set_params(engine=None)
    assert model_bytes(spread, tmp_path / "m.aberra") == one
    assert model_bytes(fitted(ds.dataset(place)), tmp_path / "m.aberra") == one
    assert model_bytes(fitted(rows), tmp_path / "m.aberra") == one


@pytest.mark.slow
def test_a_table_no_longer_than_the_sample_is_fitted_as_in_memory(rows, tmp_path):
    place = folder(tmp_path / "rows", rows, 3)
    model, held = IADC(random_state=0).fit(place), IADC(random_state=0).fit(rows)
    assert model_bytes(model, tmp_path / "a") == model_bytes(held, tmp_path / "b")
    assert not hasattr(model, "positions_")


def test_all_rows_place_the_threshold_and_are_portrayed(rows):
    model = fitted(rows)
    scores = model.anomaly_score(rows)
    assert len(model.weights_) == len(model.positions_) == SEEN
    np.testing.assert_allclose(model.training_scores(), scores[model.positions_])
    assert model.portrait_.n_rows == N
    assert model.portrait_.n_flagged == (scores > model.threshold_).sum()
    assert model.contamination_ == np.mean(scores > model.threshold_)
    exact = thresholds.threshold(scores, "fdr", 0.1)[0]
    assert abs(np.mean(scores > exact) - model.contamination_) < 0.001
    assert abs(model.bulk_.middle - np.median(scores)) < 0.002


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["knee", "tail", 0.03])
def test_other_rules_stand_on_all_scores_too(rule, rows):
    model = fitted(rows, threshold=rule)
    exact = thresholds.threshold(model.anomaly_score(rows), rule)[0]
    assert model.threshold_ == pytest.approx(exact, abs=0.05)


@pytest.mark.slow
def test_a_sample_finds_the_dirt_as_well_as_all_rows(rows):
    dirty = np.arange(N) % 40 == 0
    few, every = fitted(rows), IADC(random_state=0).fit(rows)
    found = [auroc(dirty, model.anomaly_score(rows)) for model in (few, every)]
    assert abs(found[0] - found[1]) < 0.01
    assert found[0] > 0.9


@pytest.mark.slow
def test_adc_and_long_memory_maps_take_sources(rows, tmp_path, monkeypatch):
    monkeypatch.setattr("aberra.data.blocks.given.LARGE_ROWS", SEEN)
    np.save(tmp_path / "rows.npy", rows.to_numpy())
    held = np.load(tmp_path / "rows.npy", mmap_mode="r")
    by_path = ADC(random_state=0).fit(tmp_path / "rows.npy")
    by_map = ADC(random_state=0).fit(held)
    assert by_map.column_names() is None
    assert (by_map.anomaly_score(held) == by_path.anomaly_score(_named(held))).all()


def _named(array):
    return pd.DataFrame(np.asarray(array), columns=[f"x{j}" for j in range(array.shape[1])])


def test_weights_of_rows_are_refused_for_a_source(rows, tmp_path):
    with pytest.raises(ValueError, match="sample_weight"):
        IADC().fit(folder(tmp_path / "rows", rows, 2), sample_weight=np.ones(N))


def test_whoever_listens_hears_how_far_a_pass_is(rows, tmp_path):
    blocks, heard = blocks_of(folder(tmp_path / "rows", rows, 3), sample_rows=SEEN), []
    with listening(lambda *said: heard.append(said)):
        first_look(blocks)
    *steps, last = heard
    assert len(steps) == len(blocks.tasks())
    assert {name for name, _, _ in heard} == {last[0]}
    shares = [share for _, share, _ in steps]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(blocks.tasks()[0].n_rows / N)
    assert steps[-1][2].startswith("6,000 of 6,000 rows")
    assert last[1] == 1.0


@pytest.mark.slow
def test_an_ordinary_fit_forgets_the_positions_of_a_sample(rows):
    model = fitted(rows)
    assert not hasattr(model.fit(rows[:500]), "positions_")


@pytest.mark.slow
def test_tasks_that_are_done_are_not_worked_on_again(rows, tmp_path):
    blocks = blocks_of(folder(tmp_path / "rows", rows, 4), sample_rows=SEEN)
    model = IADC(random_state=0).fit(first_look(blocks).sample.drawn()[1])
    held = {}
    whole = survey(model, blocks, keep=held.__setitem__)
    assert set(held) == set(blocks.tasks())
    first = {task: held[task] for task in blocks.tasks()[:3]}
    worked = []
    again = survey(model, blocks, done=first, keep=lambda task, _: worked.append(task))
    assert worked == blocks.tasks()[3:]
    assert (again.scores.counts == whole.scores.counts).all()
    assert replace(again, scores=whole.scores).portrait.n_rows == N


@pytest.mark.parametrize("ensemble", [IADC, ADC])
def test_a_model_of_a_large_sample_comes_back_from_its_file(ensemble, tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(12_000, 3)), columns=list("abc"))
    table.to_parquet(tmp_path / "rows.parquet")
    blocks = blocks_of(str(tmp_path / "rows.parquet"), sample_rows=10_500)
    model = ensemble(n_members=1, random_state=0).fit(blocks)
    save(model, tmp_path / "m.aberra")
    again = load(tmp_path / "m.aberra")
    np.testing.assert_array_equal(again.anomaly_score(table), model.anomaly_score(table))
    assert len(model.positions_) == 10_500
    rounds = again.history_[again.history_.kept] if ensemble is IADC else again.round_
    np.testing.assert_array_equal(again.positions_, model.positions_[rounds.sample.rows])
