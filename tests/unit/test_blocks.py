"""Sources of blocks, and states that do not depend on how the rows were cut."""

import os
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest
from pyarrow import feather

from aberra import ADC, OCSVM, thresholds
from aberra.data.blocks.counts import counted, together
from aberra.data.blocks.keys import key_bound, row_keys
from aberra.data.blocks.opening import blocks_of
from aberra.data.blocks.parts import BLOCK_ROWS
from aberra.data.blocks.sample import Sample
from aberra.data.blocks.scores import MOST_TOP, ScoreSketch
from aberra.data.blocks.source import PartError
from aberra.data.drift.packed import packed
from aberra.data.sources.staged import table_at
from aberra.errors import DataError
from aberra.ordinary import Bulk, bulk
from aberra.progress import hearing, listening
from aberra.robust.by_blocks import (
    REPRESENTATIVES,
    _discovered,
    _in_this_process,
    _sum,
    conclude,
    placed,
    survey,
)


def frame(n=300, seed=0):
    generator = np.random.default_rng(seed)
    rows = pd.DataFrame(generator.normal(size=(n, 3)), columns=["a", "b", "c"])
    return rows.assign(code=generator.choice(["x", "y", "z"], n))


def all_rows(blocks):
    return pd.concat([block.rows for task in blocks.tasks() for block in blocks.read(task)])


def cut(n, pieces):
    return [piece for piece in np.array_split(np.arange(n), pieces) if len(piece)]


def test_keys_are_even_and_follow_from_position_and_seed():
    keys = row_keys(np.arange(100_000))
    assert len(np.unique(keys)) == len(keys)
    shares = np.histogram(keys.astype(float), 20, (0, 2.0**64))[0] / len(keys)
    assert abs(shares - 0.05).max() < 0.004
    assert (row_keys(np.arange(50_000, 50_010)) == keys[50_000:50_010]).all()
    assert (row_keys(np.arange(10), seed=1) != keys[:10]).all()


def test_bound_leaves_enough_rows_and_not_many_more():
    n, size = 200_000, 5_000
    few = int((row_keys(np.arange(n)) <= key_bound(n, size)).sum())
    assert size <= few <= 1.4 * size
    assert key_bound(10, size) == np.uint64(2**64 - 1)


@pytest.mark.parametrize("bounded", [True, False])
def test_sample_is_the_same_however_rows_are_cut(bounded):
    n, size = 5_000, 300
    rows = frame(n)
    bound = key_bound(n, size) if bounded else None
    found = []
    for pieces in (1, 7, 64):
        total = Sample(size, bound=bound)
        for piece in reversed(cut(n, pieces)):
            total = total + Sample(size, bound=bound).add(int(piece[0]), rows.iloc[piece])
        found.append(total.drawn())
    assert len(found[0][0]) == size
    for positions, drawn in found[1:]:
        assert (positions == found[0][0]).all()
        pd.testing.assert_frame_equal(drawn, found[0][1])
    pd.testing.assert_frame_equal(found[0][1], rows.iloc[found[0][0]].reset_index(drop=True))


def test_counts_are_those_of_all_rows():
    rows = frame(500)
    rows.loc[::7, "a"] = np.nan
    total = {}
    for piece in cut(len(rows), 7):
        total = together(total, counted(rows.iloc[piece]))
    assert total == counted(rows)
    assert total["a"].gaps == rows["a"].isna().sum()
    assert (total["code"].lowest, total["code"].highest) == ("x", "z")
    assert not counted(rows.assign(one=1.0))["one"].varies
    assert counted(rows.assign(k=np.arange(500)))["k"].spans_rows
    assert not counted(rows.assign(k=2 * np.arange(500)))["k"].spans_rows


@pytest.mark.parametrize("shift", [0.0, 1e6, -50.0])
def test_sketch_is_the_same_however_scores_are_cut_and_near_the_truth(shift):
    scores = np.random.default_rng(0).lognormal(0, 1.2, 50_000) + shift
    sketches = []
    for pieces in (1, 7, 64):
        total = ScoreSketch(float(np.median(scores[:100])))
        for piece in reversed(cut(len(scores), pieces)):
            empty = ScoreSketch(total.origin)
            total = total + empty.add(int(piece[0]), scores[piece])
        sketches.append(total)
    for name in ("bins", "counts", "top", "positions", "lowest"):
        held = [np.asarray(getattr(one, name)) for one in sketches]
        assert all((one == held[0]).all() for one in held)
    total, levels = sketches[0], np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
    np.testing.assert_allclose(total.quantiles(levels), np.quantile(scores, levels), atol=0.01)
    assert total.n == len(scores)
    assert (total.top == np.sort(scores)[::-1][:MOST_TOP]).all()
    assert (scores[total.positions] == total.top).all()
    assert total.quantiles(np.array([0.0, 1.0])).tolist() == [scores.min(), scores.max()]


def test_falling_counts_every_score():
    scores = np.random.default_rng(1).normal(size=30_000)
    values, at_least = ScoreSketch(0.0).add(0, scores).falling()
    assert (np.diff(values) <= 0).all()
    assert at_least[-1] == len(scores)
    some = np.linspace(0, len(values) - 1, 200).astype(int)
    assert [int((scores >= values[k]).sum()) for k in some] == at_least[some].tolist()


@pytest.mark.parametrize(
    ("n", "n_odd", "odd"),
    [
        (9_000, 40, 8.0),  # a few stand out
        (9_000, 0, 0.0),  # nothing does
        (9_000, 1_800, 9.0),  # a group apart, which hides itself from the law
        (30_000, 5_000, 40.0),  # more than the scores that are kept as they are
        (9_000, 6_000, -5.0),  # most are one value
    ],
)
def test_the_threshold_of_counted_scores_is_that_of_all_scores(n, n_odd, odd):
    rng = np.random.default_rng(0)
    scores = np.exp(0.3 * rng.normal(size=n))
    scores[:n_odd] = 0.7 if odd < 0 else odd + 0.1 * rng.normal(size=n_odd)
    middle = float(np.median(scores))
    for rate in (0.01, 0.2):
        expected = thresholds.fdr(scores, rate)
        found, name = placed(ScoreSketch(middle).add(0, scores), "fdr", rate)
        assert name == "fdr"
        assert found == pytest.approx(expected, rel=5e-3)
        assert abs(int((scores > found).sum()) - int((scores > expected).sum())) <= 2


def test_as_many_are_flagged_as_stand_out_whether_or_not_they_are_kept_as_they_are():
    ordinary = Bulk(0.0, 1.0)
    for n_odd in (0, 3, MOST_TOP - 1, MOST_TOP, MOST_TOP + 500):
        scores = np.r_[np.linspace(-3, 1, 9000), np.full(n_odd, 50.0)]
        sketch = ScoreSketch(0.0).add(0, scores)
        for rate in (0.01, 0.2):
            found = _discovered(sketch, ordinary, rate)
            values, at_least = sketch.falling()
            above = values > found
            assert (at_least[above][-1] if above.any() else 0) == n_odd
            if n_odd == 0:  # the score that one of so many reaches by chance, or the highest
                assert found == max(ordinary.score_of(rate / 9000), 1.0)
            elif n_odd < MOST_TOP:
                assert found == 1.0  # the highest that does not stand out
    few = ScoreSketch(0.0).add(0, np.r_[np.full(20, -60.0), 50.0, 49.0])
    assert _discovered(few, ordinary, 0.2) == ordinary.middle  # not below the middle


@pytest.mark.parametrize(("p", "flagged"), [(0.25, 4), (0.2501, 0)])
def test_a_chance_that_is_just_allowed_stands(p, flagged):
    # Of four scores each is just as unlikely as a rate of 1 allows, or a little less so.
    law = SimpleNamespace(
        middle=0.0, p_values=lambda s: p * (5 - np.asarray(s)), score_of=lambda share: 0.0
    )
    few = ScoreSketch(0.0).add(0, np.array([4.0, 3.0, 2.0, 1.0]))
    found = _discovered(few, law, 1.0)
    assert (few.top > found).sum() == flagged


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_rate_is_one_of_all_rows_and_not_of_those_that_stand_for_them(scale):
    scores = scale * np.linspace(-1, 1, 100_001)  # nobody stands out
    found, _ = placed(ScoreSketch(0.0).add(0, scores), "fdr", 0.1)
    assert found == pytest.approx(bulk(scores).score_of(0.1 / 100_001), rel=1e-3)
    assert found > 1.01 * bulk(scores).score_of(0.1 / 65_536)


def test_scores_without_spread_and_rules_that_look_at_the_shape():
    assert REPRESENTATIVES == 65_536
    same = np.r_[np.zeros(900), np.arange(1.0, 101.0)]
    sketch = ScoreSketch(0.0).add(0, same)
    for moved in (0.0, 3.0):  # as in memory, whatever the one value is
        most = ScoreSketch(moved).add(0, same + moved)
        found, name = placed(most, "fdr", 0.1)
        assert (name, found) == ("fdr", pytest.approx(thresholds.fdr(same + moved), abs=1e-9))
        assert int((same + moved > found).sum()) == 100
    found, name = placed(sketch, 0.05, 0.1)
    assert (name, int((same > found).sum())) == ("share", 50)
    assert placed(sketch, "knee", 0.1)[1] == "knee"
    assert _sum([1, 20, 300]) == 321
    assert _sum([5]) == 5


def test_files_of_all_kinds_are_one_table(tmp_path):
    rows = frame(90)
    rows[:30].to_csv(tmp_path / "1.csv", index=False)
    rows[30:60].to_parquet(tmp_path / "2.parquet")
    feather.write_feather(rows[60:].reset_index(drop=True), tmp_path / "3.feather")
    for source in (tmp_path, str(tmp_path / "*.*")):
        blocks = blocks_of(source)
        assert (blocks.n_rows, blocks.starts) == (90, [0, 30, 60, 90])
        pd.testing.assert_frame_equal(all_rows(blocks).reset_index(drop=True), rows)
    taken = blocks.take(np.array([70, 3, 40]))
    pd.testing.assert_frame_equal(taken, rows.iloc[[70, 3, 40]].reset_index(drop=True))


def test_names_of_folders_are_columns(tmp_path):
    for year, site in ((2023, "north%20east"), (2024, "south")):
        place = tmp_path / f"year={year}" / f"site={site}"
        place.mkdir(parents=True)
        frame(5).to_parquet(place / "rows.parquet")
    blocks = blocks_of(tmp_path)
    assert blocks.kinds == dict.fromkeys("abc", "number") | {
        "code": "text", "site": "text", "year": "number"
    }  # fmt: skip
    found = all_rows(blocks)
    assert found["site"].tolist() == ["north east"] * 5 + ["south"] * 5
    assert found["year"].tolist() == [2023.0] * 5 + [2024.0] * 5
    (block,) = blocks.read(blocks.tasks()[1], ["year"])
    assert block.rows["year"].tolist() == [2024.0] * 5


def test_arrow_datasets_with_partitions(tmp_path):
    rows = frame(60)
    ds.write_dataset(
        ds.dataset(_arrow(rows)), tmp_path, format="parquet", partitioning=["code"],
        partitioning_flavor="hive",
    )  # fmt: skip
    found = all_rows(blocks_of(ds.dataset(tmp_path, partitioning="hive")))
    assert sorted(found["a"]) == sorted(rows["a"])
    assert found["code"].value_counts().to_dict() == rows["code"].value_counts().to_dict()


def _arrow(rows):
    import pyarrow as pa

    return pa.Table.from_pandas(rows, preserve_index=False)


def test_types_do_not_depend_on_gaps_in_a_block(tmp_path):
    rows = pd.DataFrame({"k": pd.array([1, 2, None, 4], dtype="Int64"), "t": [True, False] * 2})
    rows[:2].to_parquet(tmp_path / "1.parquet")
    rows[2:].to_parquet(tmp_path / "2.parquet")
    blocks = blocks_of(tmp_path)
    kinds = [block.rows.dtypes.tolist() for task in blocks.tasks() for block in blocks.read(task)]
    assert kinds == [[np.dtype(float)] * 2] * 2


def test_arrays_and_memory_maps(tmp_path):
    array = np.random.default_rng(0).normal(size=(BLOCK_ROWS + 10, 2)).astype(np.float32)
    np.save(tmp_path / "rows.npy", array)
    for rows in (array, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        blocks = blocks_of(rows)
        (task,) = blocks.tasks()
        parts = [block.rows for block in blocks.read(task)]
        assert [len(part) for part in parts] == [BLOCK_ROWS, 10]
        assert (np.concatenate(parts) == array).all()
        assert len(blocks.tasks(rows=BLOCK_ROWS)) == 2


def test_every_bad_file_is_named_before_any_work(tmp_path):
    for k in range(4):
        frame(20, k).to_parquet(tmp_path / f"{k}.parquet")
    (tmp_path / "1.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:-40])
    (tmp_path / "2.parquet").write_bytes(b"")
    with pytest.raises(DataError, match=r"2 files cannot be used.*1\.parquet.*2\.parquet"):
        blocks_of(tmp_path)
    blocks = blocks_of(tmp_path, on_error="skip")
    assert (blocks.n_rows, len(blocks.skipped)) == (40, 2)
    with pytest.raises(DataError, match=r"no file or folder|No file matches"):
        blocks_of(str(tmp_path / "none*.parquet"))


@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
@pytest.mark.parametrize("what", ["link that leads nowhere", "device, a pipe"])
def test_a_file_of_a_folder_that_is_not_there_is_named(what, tmp_path):
    """Links of files that were not fetched, as git-annex leaves them: their rows were missing."""
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    path = tmp_path / "2.csv"
    path.symlink_to("gone.csv") if what.startswith("link") else os.mkfifo(path)
    for read in (blocks_of, table_at):
        with pytest.raises(DataError, match=rf"2\.csv is a {what}"):
            read(tmp_path)
    assert blocks_of(tmp_path, on_error="skip").n_rows == 1


@pytest.mark.skipif(os.name == "nt", reason="links")
def test_a_folder_that_is_a_link_is_not_followed_and_told(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "a" / "more").symlink_to(tmp_path / "b")
    for read in (blocks_of, table_at):
        told = []
        with hearing(told.append):
            read(tmp_path / "a")
        (line,) = told
        assert line.startswith("Left out:")
        assert "more (a link to a folder" in line


def test_other_columns_and_other_types_are_named(tmp_path):
    frame(20).to_parquet(tmp_path / "1.parquet")
    frame(20).drop(columns="b").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet has other columns .*\(b\)"):
        blocks_of(tmp_path)
    assert blocks_of(tmp_path, on_error="skip").n_rows == 20
    frame(20).assign(b="text").to_parquet(tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"'b' holds number .* but text"):
        blocks_of(tmp_path)


def test_a_file_that_changed_meanwhile_is_named(tmp_path):
    frame(20).to_parquet(tmp_path / "1.parquet")
    blocks = blocks_of(tmp_path)
    frame(10).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(PartError, match="changed since"):
        list(blocks.read(blocks.tasks()[0]))


def test_all_rows_are_scored_once_and_decide_together_whatever_an_earlier_run_did(tmp_path):
    table = frame(200).drop(columns="code")
    for k in range(4):
        table[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
    blocks, held, worked = blocks_of(str(tmp_path)), {}, []
    model = OCSVM().fit(table[:60])
    whole = survey(model, blocks, keep=held.__setitem__)
    first = {task: held[task] for task in blocks.tasks()[:3]}
    again = survey(model, blocks, done=first, keep=lambda task, _: worked.append(task))
    assert worked == blocks.tasks()[3:]
    assert (again.scores.counts == whole.scores.counts).all()
    assert packed(again.portrait) == packed(whole.portrait)
    scores = model.anomaly_score(table)
    np.testing.assert_array_equal(np.sort(again.scores.top), np.sort(scores))
    conclude(model, again)
    knee = thresholds.threshold(scores, "knee")[0]
    assert model.threshold_ == pytest.approx(knee, abs=1e-3 * scores.std())
    n_flagged = int((scores > model.threshold_).sum())
    assert (model.contamination_, model.portrait_.n_flagged) == (n_flagged / 200, n_flagged)
    expected = bulk(scores)
    assert model.bulk_.middle == pytest.approx(expected.middle, rel=0.02)
    assert model.bulk_.scale == pytest.approx(expected.scale, rel=0.02)


def test_the_share_of_false_flags_is_the_one_that_was_asked_for(tmp_path):
    table, found = frame(200).drop(columns="code"), []
    table.to_parquet(tmp_path / "1.parquet")
    for rate in (0.01, 0.5):
        model = OCSVM(threshold="fdr", fdr=rate).fit(table[:60])
        seen = survey(model, blocks_of(tmp_path))
        conclude(model, seen)
        assert model.threshold_ == placed(seen.scores, "fdr", rate)[0]
        found.append(model.threshold_)
    assert found[0] > found[1]


def test_a_pass_that_goes_on_begins_where_the_other_ended(tmp_path):
    table, held, heard = frame(200).drop(columns="code"), {}, []
    for k in range(4):
        table[50 * k : 50 * k + 50].to_parquet(tmp_path / f"{k}.parquet")
    blocks, model = blocks_of(str(tmp_path)), OCSVM().fit(table[:60])
    survey(model, blocks, keep=held.__setitem__)
    done = {task: held[task] for task in blocks.tasks()[:2]}
    with listening(lambda task, share, note: heard.append((task, share))):
        survey(model, blocks, done=done)
    assert heard == [("scoring", 0.75), ("scoring", 0.999), ("scoring", 1.0)]


def test_a_sample_is_fitted_here_and_the_engine_is_not_forgotten():
    model = ADC(engine="loky")
    with _in_this_process(model):
        assert model.engine is None
    assert model.engine == "loky"
    with pytest.raises(ZeroDivisionError), _in_this_process(model):
        raise ZeroDivisionError
    assert model.engine == "loky"
