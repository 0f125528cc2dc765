"""Two runs on one output: neither gets rows of the other."""

import os
import shutil
import sys
import threading

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aberra import OCSVM, MultiView
from aberra.data.blocks.opening import blocks_of
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.scoring.folder import ResultFolder
from aberra.scoring.partitions import Partitions, score_partitions
from aberra.scoring.parts import Parts, check_output
from aberra.scoring.rows import RowAnswers
from aberra.scoring.table import score_table
from aberra.workflow import score
from aberra.workflow.outcome import check_model_place, checkpoint_folder

SCHEMA = pa.schema([("row", pa.int64()), ("score", pa.float64())])


def piece(start, n, value):
    return pa.table([np.arange(start, start + n), np.full(n, value)], schema=SCHEMA)


def test_a_piece_of_another_run_never_gets_into_the_result(tmp_path):
    """As happens where locks do not work: two runs begin, and one overwrites the other's piece."""
    output = tmp_path / "scores.csv"
    mine, other = Parts(output, "mine", 4), Parts(output, "other", 4)
    assert mine.begin() == 0
    mine.add(0, piece(0, 4, 1.0))
    other.add(1, piece(4, 4, 2.0))
    mine.add(1, piece(4, 3, 1.0))  # a short one is only at the end of a table
    assert mine.begin() == 1
    other.add(1, piece(4, 4, 2.0))
    with pytest.raises(DataError, match=r"does not hold the 4 rows.*Delete the folder"):
        mine.join(SCHEMA, 8)
    assert not output.exists()
    mine.add(1, piece(4, 4, 1.0))
    mine.join(SCHEMA, 8)
    assert set(pd.read_csv(output)["score"]) == {1.0}


@pytest.mark.parametrize("top", [None, 3, 12])
def test_ten_oddest_rows_are_told_however_many_are_written(top, tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    table.to_csv(tmp_path / "t.csv", index=False)
    scorer = RowAnswers(OCSVM().fit(table), ["a", "b"], reasons="none")
    file, output = TableFile(tmp_path / "t.csv"), tmp_path / "s.csv"
    found = score_table(scorer, file, output, "m", 15, top=top)
    order = np.argsort(-scorer.model.anomaly_score(table), kind="stable")
    assert [line["row"] for line in found.oddest] == order[:10].tolist()
    written = pd.read_csv(output)["row"].tolist()
    assert written == (list(range(40)) if top is None else order[:top].tolist())


def test_pieces_that_another_model_left_are_not_taken(tmp_path, monkeypatch):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    table.to_csv(tmp_path / "t.csv", index=False)
    models = {"one": OCSVM().fit(table), "two": OCSVM(nu=0.1).fit(table)}
    output, add = tmp_path / "s.csv", Parts.add

    def run(digest, **asked):
        scorer = RowAnswers(models[digest], ["a", "b"], reasons=asked.pop("reasons", "none"))
        file = TableFile(tmp_path / "t.csv")
        found = score_table(scorer, file, output, digest, asked.pop("rows", 10))
        return found.n_resumed, pd.read_csv(output)["score"]

    def stopped(self, k, *args):
        if k == 2:
            raise KeyboardInterrupt
        add(self, k, *args)

    for again, resumed in (
        (("two", {}), 0),
        (("one", {"reasons": "all"}), 0),
        (("one", {"rows": 20}), 0),
        (("one", {}), 20),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Parts, "add", stopped)
            with pytest.raises(KeyboardInterrupt):
                run("one")
        digest, asked = again
        n_resumed, scores = run(digest, **asked)
        assert n_resumed == resumed
        np.testing.assert_allclose(scores, models[digest].anomaly_score(table))


@pytest.mark.parametrize("what", ["link", "lost link", "file", "pipe"])
def test_what_lies_where_the_pieces_go_is_left_alone(what, tmp_path):
    """A link led the pieces into another folder; a pipe made the run wait for ever."""
    output, folder = tmp_path / "scores.csv", tmp_path / "scores.csv.parts"
    (tmp_path / "mine").mkdir()
    make = {
        "link": lambda: folder.symlink_to(tmp_path / "mine"),
        "lost link": lambda: folder.symlink_to(tmp_path / "nowhere"),
        "file": lambda: folder.write_text("mine"),
        "pipe": lambda: os.mkfifo(folder),
    }
    make[what]()
    before = folder.lstat()
    with pytest.raises(DataError, match=r"scores.csv.parts is in the way.*Move it away"):
        Parts(output, "mine", 4).begin()
    assert folder.lstat() == before
    assert list((tmp_path / "mine").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links take rights there")
def test_pieces_lie_where_a_link_leads(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "out.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    assert Parts(link, "mine", 4).folder == Parts(target, "mine", 4).folder
    assert checkpoint_folder(link) == checkpoint_folder(target)
    target.parent.rmdir()
    with pytest.raises(DataError, match=r"no folder .*far"):
        check_output(link)
    with pytest.raises(DataError, match=r"no folder .*far"):
        check_model_place(link, tmp_path / "data.csv")


def test_a_missing_or_short_piece_stops_the_join(tmp_path):
    parts = Parts(tmp_path / "scores.parquet", "mine", 4)
    parts.begin()
    parts.add(0, piece(0, 4, 1.0))
    for n_rows in (5, 8):
        with pytest.raises(DataError, match="does not hold"):
            parts.join(SCHEMA, n_rows)
    parts.add(1, piece(4, 3, 1.0))
    with pytest.raises(DataError, match="does not hold the 4 rows"):
        parts.join(SCHEMA, 8)
    assert not (tmp_path / "scores.parquet").exists()


def test_resume_goes_on_after_the_full_pieces_of_the_same_run(tmp_path):
    parts = Parts(tmp_path / "scores.csv", "mine", 4)
    parts.begin()
    for index in range(3):
        parts.add(index, piece(4 * index, 4, 1.0))
    (parts.folder / "00000002.parquet").write_bytes(b"PAR1 damaged")
    assert parts.begin() == 2
    assert Parts(tmp_path / "scores.csv", "other", 4).begin() == 0


def test_pieces_that_changed_places_are_made_again(tmp_path):
    """Both are full and of this run, but their rows would come in the wrong order."""
    parts = Parts(tmp_path / "scores.csv", "mine", 4)
    parts.begin()
    for index in range(3):
        parts.add(index, piece(4 * index, 4, 1.0))
    first, second = (parts.folder / f"0000000{k}.parquet" for k in (1, 2))
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    with pytest.raises(DataError, match="does not hold the 4 rows"):
        parts.join(SCHEMA, 12)
    assert parts.begin() == 1


def test_a_second_score_on_the_same_output_is_refused(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    frame.to_csv(tmp_path / "data.csv", index=False)
    one, two = MultiView(random_state=0).fit(frame), MultiView(random_state=1).fit(frame)
    inside, go_on = threading.Event(), threading.Event()
    add = Parts.add

    def slow(self, index, table):
        inside.set()
        go_on.wait(10)
        add(self, index, table)

    monkeypatch.setattr(Parts, "add", slow)
    output = tmp_path / "scores.csv"
    first = threading.Thread(target=score, args=(one, tmp_path / "data.csv", output))
    first.start()
    assert inside.wait(20)
    with pytest.raises(DataError, match="Another run is writing"):
        score(two, tmp_path / "data.csv", output)
    go_on.set()
    first.join()
    assert np.allclose(pd.read_csv(output)["score"], one.anomaly_score(frame))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.csv", "scores.csv"]


def test_a_folder_of_results_belongs_to_one_run_at_a_time(tmp_path):
    columns = ("image", "map", "error")
    one, two = (ResultFolder(tmp_path / "maps", name, columns) for name in ("one", "two"))
    with one.held(), pytest.raises(DataError, match="Another run is writing"), two.held():
        pass


@pytest.fixture
def two_models(tmp_path):
    """A folder of two files of a table, and two models of it."""
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 3)), columns=list("abc"))
    for name in ("one", "two"):
        (tmp_path / "rows").mkdir(exist_ok=True)
        frame.to_csv(tmp_path / "rows" / f"{name}.csv", index=False)
    return tmp_path / "rows", *(MultiView(random_state=k).fit(frame) for k in (0, 1))


def test_scores_that_another_run_replaced_are_made_again(two_models, tmp_path):
    """They were taken for finished, and the summary told other scores than the file held."""
    rows, model, other = two_models
    score(model, rows, tmp_path / "out")
    files = [tmp_path / "out" / f"{name}.csv.parquet" for name in ("one", "two")]
    before = [file.read_bytes() for file in files]
    score(other, rows / "one.csv", files[0])
    assert files[0].read_bytes() != before[0]
    assert score(model, rows, tmp_path / "out").n_resumed == 90
    assert [file.read_bytes() for file in files] == before
    assert score(model, rows, tmp_path / "out").n_resumed == 180


def test_scores_that_were_copied_elsewhere_are_not_made_again(two_models, tmp_path):
    rows, model, _ = two_models
    score(model, rows, tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "copy", copy_function=shutil.copyfile)
    assert score(model, rows, tmp_path / "copy").n_resumed == 180


@pytest.mark.parametrize("file", ["map", "segmentation"])
def test_a_map_that_another_run_replaced_is_drawn_again(file, tmp_path):
    columns = ("scan", "map", "segmentation", "score", "error")
    line = dict(zip(columns, ("a.nii", "a_map.nii", "a_seg.nii", "1.0", ""), strict=True))

    def begun():
        results = ResultFolder(tmp_path, "mine", columns)
        results.begin()
        return results

    for name in ("map", "segmentation"):
        (tmp_path / line[name]).write_bytes(b"mine")
    first = begun()
    first.add(line, "as it is")
    first.write(["a.nii"])
    assert begun().is_done("a.nii", "as it is")
    assert not begun().is_done("a.nii", "as it became")
    (tmp_path / line[file]).write_bytes(b"else")
    assert not begun().is_done("a.nii", "as it is")
    (tmp_path / line[file]).unlink()
    assert not begun().is_done("a.nii", "as it is")


def test_what_an_earlier_version_finished_is_done_again(tmp_path):
    """It kept no mark of what it wrote, so nothing tells whose it is."""
    results = ResultFolder(tmp_path, "mine", ("image", "map", "error"))
    (tmp_path / "a.npz").write_bytes(b"map")
    (tmp_path / "scores.csv").write_text("image,map,error\na,a.npz,\n")
    (tmp_path / ".aberra-run.json").write_text('{"fingerprint": "mine", "inputs": {"a": "1"}}')
    results.begin()
    assert not results.is_done("a", "1")


def test_a_file_without_rows_has_scores_without_rows(two_models, tmp_path):
    """A day on which nothing came in stopped the whole folder, which "has no rows"."""
    rows, model, _ = two_models
    (rows / "empty.csv").write_text("a,b,c\n")
    found = score(model, rows, tmp_path / "out")
    assert (found.n_rows, found.drift.verdict) == (180, "steady")
    empty = pd.read_parquet(tmp_path / "out" / "empty.csv.parquet")
    assert len(empty) == 0
    assert "score" in empty
    assert score(model, rows, tmp_path / "out").n_resumed == 180


@pytest.mark.parametrize("rows", [20, 100])
def test_of_equal_scores_the_first_rows_of_the_table_are_the_oddest(tmp_path, rows):
    table = pd.DataFrame({"a": np.zeros(45), "b": np.arange(45) % 2})
    table.loc[[*range(3, 18), 25, 41], "a"] = 5.0
    table.to_csv(tmp_path / "t.csv", index=False)
    rng = np.random.default_rng(0)
    model = OCSVM().fit(pd.DataFrame({"a": rng.normal(size=60), "b": rng.integers(0, 2, 60)}))
    scores = model.anomaly_score(table)
    order = np.argsort(-scores, kind="stable")
    assert len(set(scores)) == 4
    scorer, file = RowAnswers(model, ["a", "b"], reasons="none"), TableFile(tmp_path / "t.csv")
    for n, ways in ((12, {"top": 12}), (45, {"sort": True})):
        found = score_table(scorer, file, tmp_path / "s.csv", "m", rows, **ways)
        written = pd.read_csv(tmp_path / "s.csv")
        np.testing.assert_array_equal(written["row"], order[:n])
        np.testing.assert_allclose(written["score"], scores[order[:n]])
        assert [line["row"] for line in found.oddest] == order[:10].tolist()
        assert (found.n_rows, found.n_flagged) == (45, (scores > model.threshold_).sum())


def test_a_folder_has_the_oddest_rows_of_all_its_files_and_knows_what_was_done(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    (tmp_path / "in").mkdir()
    for k in range(3):
        table[20 * k : 20 * k + 20].to_parquet(tmp_path / "in" / f"{k}.parquet")
    model = OCSVM().fit(table)
    scorer = RowAnswers(model, ["a", "b"], reasons="none")

    def found():
        blocks = blocks_of(str(tmp_path / "in"))
        return score_partitions(scorer, Partitions(blocks, tmp_path / "out", tmp_path / "in"), "m")

    first, bad = found()
    scores = model.anomaly_score(table)
    assert (first.n_rows, first.n_resumed, bad) == (60, 0, {})
    assert first.n_flagged == (scores > model.threshold_).sum()
    np.testing.assert_allclose([one["score"] for one in first.oddest], np.sort(scores)[:-11:-1])
    assert {one["file"][-9:] for one in first.oddest} == {f"{k}.parquet" for k in range(3)}
    told = model.compare(table)
    assert (first.drift.n_rows, first.drift.score_effect) == (60, told.score_effect)
    (table[:30] + 1.0).to_parquet(tmp_path / "in" / "1.parquet")
    again, _ = found()
    assert (again.n_rows, again.n_resumed) == (70, 40)
    assert found()[0].n_resumed == 70
