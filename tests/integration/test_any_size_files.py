"""Long tables in files, from the shell: fitted, scored, interrupted and continued."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from aberra import load
from aberra.cli import app
from aberra.data.blocks.opening import blocks_of
from aberra.data.blocks.source import Blocks
from aberra.errors import ArgumentError, DataError, MissingExtraError
from aberra.workflow import fit, score

N, SEEN = 3_000, 1_000


@pytest.fixture(autouse=True, scope="module")
def _short():
    """Let a table of a few thousand rows be a long one, in tasks of a few hundred."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aberra.data.blocks.extent.LARGE_ROWS", SEEN)
        patch.setattr(Blocks.tasks, "__defaults__", (250,))
        patch.setattr(blocks_of, "__defaults__", ("stop", SEEN))
        yield


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(0)
    found = generator.normal(size=(N, 3)) @ generator.normal(size=(3, 3))
    found[::50] += 5 * generator.normal(size=(N // 50, 3))
    table = pd.DataFrame(found, columns=list("abc"))
    table["ward"] = generator.choice(["north", "south"], N)
    table["constant"] = 1.0
    table.loc[17, "constant"] = 2.0
    table.insert(0, "patient", np.arange(1000, 1000 + N))
    table["dirty"] = (np.arange(N) % 50 == 0).astype(int)
    return table.mask((generator.random(table.shape) < 0.002) & (table.columns == "a"))


def folder(place, rows, pieces=6):
    for k, some in enumerate(np.array_split(np.arange(len(rows)), pieces)):
        file = place / f"year={2000 + k}" / "rows.parquet"
        file.parent.mkdir(parents=True)
        rows.iloc[some].to_parquet(file, row_group_size=125)
    return place


@pytest.fixture(scope="module")
def shared(tmp_path_factory, rows):
    return folder(tmp_path_factory.mktemp("any-size") / "big", rows)


@pytest.fixture
def big(shared, tmp_path):
    return Path(shutil.copytree(shared, tmp_path / "big"))


@pytest.fixture(scope="module")
def model(shared):
    """A model of the whole table, which tests share."""
    return fit(shared, shared.parent / "whole.aberra", drop=["dirty"]).path


def shell(*words, code=0):
    result = CliRunner().invoke(app, ["--json", *map(str, words)])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_a_folder_is_fitted_with_a_recipe_of_all_rows(big, tmp_path, rows):
    found = shell("fit", big, "-o", tmp_path / "m.aberra", "--label-column", "dirty")
    assert found["n_samples"] == N
    assert found["columns"] == ["a", "b", "c", "ward", "constant", "year"]
    assert found["dropped"]["patient"] == "counts the rows"
    assert found["id_column"] == "patient"
    assert found["metrics"]["auroc"] > 0.8
    model = load(tmp_path / "m.aberra")
    assert model.portrait_.n_rows == N
    assert len(model.positions_) == SEEN
    oddest = found["doubts"][0]
    assert oddest["name"] == str(rows["patient"][oddest["row"]])
    assert oddest["reasons"]
    scores = model.anomaly_score(_seen(rows))
    assert oddest["score"] == scores.max()
    choices = dict(map(tuple, found["choices"]))
    assert f"{100 * model.contamination_:.1f} %" in choices["threshold"]
    assert model.contamination_ == np.mean(scores > model.threshold_)
    assert f"{int(rows['a'].isna().sum())} gaps" in choices["missing values"]
    assert not list(tmp_path.glob("*.training"))


def _seen(rows):
    years = np.repeat(np.arange(2000.0, 2006.0), N // 6)
    return rows.assign(year=years)[["a", "b", "c", "ward", "constant", "year"]]


@pytest.mark.slow
def test_the_same_scores_in_one_file_and_file_by_file(big, model, tmp_path, rows):
    one = score(model, big, tmp_path / "scores.parquet")
    many = score(model, str(big / "**" / "*.parquet"), tmp_path / "scores")
    assert (one.n_rows, one.n_flagged) == (many.n_rows, many.n_flagged)
    assert one.drift.verdict == many.drift.verdict
    files = sorted((tmp_path / "scores").rglob("*.parquet"))
    assert [file.parent.name for file in files] == [f"year={2000 + k}" for k in range(6)]
    parts = pd.concat([pq.read_table(file).to_pandas() for file in files], ignore_index=True)
    whole = pq.read_table(tmp_path / "scores.parquet").to_pandas()
    pd.testing.assert_frame_equal(parts, whole)
    assert whole["id"].tolist() == rows["patient"].tolist()
    expected = load(model).anomaly_score(_seen(rows))
    assert (whole["score"] == expected).all()


@pytest.mark.slow
def test_only_new_and_changed_files_are_scored_again(big, model, tmp_path, rows):
    out = tmp_path / "scores"
    first = score(model, big, out)
    before = {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")}
    again = score(model, big, out)
    assert (again.n_resumed, again.n_rows, again.n_flagged) == (N, N, first.n_flagged)
    assert again.oddest == first.oddest
    assert again.drift.as_dict() == first.drift.as_dict()
    changed = big / "year=2003" / "rows.parquet"
    rows.iloc[:350].to_parquet(changed)
    third = score(model, big, out)
    assert third.n_resumed == N - N // 6
    now = {file: file.stat().st_mtime_ns for file in out.rglob("*.parquet")}
    assert [f.parent.name for f in now if now[f] != before[f]] == ["year=2003"]


def damage(file, inside):
    """Spoil the end of a Parquet file, or only its values."""
    held = bytearray(file.read_bytes())
    if inside:
        held[4:2000] = bytes(1996)
    file.write_bytes(bytes(held) if inside else bytes(held[:-10]))


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True])
def test_damaged_files_are_named_or_left_out_and_counted(inside, big, model, tmp_path):
    bad = big / "year=2002" / "rows.parquet"
    damage(bad, inside)
    with pytest.raises(DataError, match="year=2002"):
        fit(big, tmp_path / "m.aberra", drop=["dirty"])
    assert not (tmp_path / "m.aberra").exists()
    fitted = fit(big, tmp_path / "m.aberra", drop=["dirty"], on_error="skip")
    assert fitted.recipe.n_samples == N - N // 6
    assert any("year=2002" in why for name, why in fitted.recipe.choices if name == "file left out")
    found = shell("score", model, big, "-o", tmp_path / "out", "--on-error", "skip", code=3)
    assert list(found["errors"]) == [str(bad)]
    assert found["rows"] == N - N // 6
    assert not (tmp_path / "out" / "year=2002" / "rows.parquet").exists()


@pytest.mark.slow
def test_what_makes_no_sense_is_refused(big, model, tmp_path):
    with pytest.raises(ArgumentError, match="give a folder"):
        score(model, big, tmp_path / "s.csv", engine="loky")
    with pytest.raises(ArgumentError, match="give a file"):
        score(model, big, tmp_path / "s", top=5)
    with pytest.raises(ArgumentError, match="feedback"):
        fit(big, tmp_path / "m.aberra", marks=tmp_path / "marks.csv")
    with pytest.raises(DataError, match="No file matches"):
        fit(str(big / "*.nothing"), tmp_path / "m.aberra")


def test_without_ray_its_engine_says_how_to_get_it(big, model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r'pip install "aberra\[ray\]"'):
        fit(big, tmp_path / "m.aberra", engine="ray")
    with pytest.raises(MissingExtraError, match="engine='ray' needs ray"):
        score(model, big, tmp_path / "scores", engine="ray", address="auto")


@pytest.mark.slow
def test_a_stopped_fit_goes_on_and_gives_the_same_bytes(shared, model, tmp_path, monkeypatch):
    from aberra.workflow.kept_rounds import KeptRounds

    keep, kept = KeptRounds.keep, []

    def keep_some(self, task, found):
        keep(self, task, found)
        kept.append(task)
        if len(kept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(KeptRounds, "keep", keep_some)
    with pytest.raises(KeyboardInterrupt):
        fit(shared, tmp_path / "m.aberra", drop=["dirty"])
    assert len(list((tmp_path / "m.aberra.training").glob("task-*.npz"))) == 4
    (tmp_path / "m.aberra.training" / f"task-{kept[1].position:015d}.npz").write_bytes(b"broken")
    fit(shared, tmp_path / "m.aberra", drop=["dirty"])
    assert len(set(kept)) == len(kept) - 1  # nothing twice but the one that was damaged
    assert (tmp_path / "m.aberra").read_bytes() == model.read_bytes()
    assert not (tmp_path / "m.aberra.training").exists()


CODE = """
import sys
from aberra.workflow import fit
import aberra.data.blocks.opening as opening
from aberra.data.blocks.source import Blocks
Blocks.tasks.__defaults__ = (250,)
opening.blocks_of.__defaults__ = ("stop", {seen})
fit(sys.argv[1], sys.argv[2], drop=["dirty"], on_error="stop")
"""


@pytest.mark.slow
def test_a_killed_fit_goes_on(shared, model, tmp_path):
    """A real kill -9 in the middle of the second pass."""
    words = [sys.executable, "-c", CODE.format(seen=SEEN), str(shared), str(tmp_path / "m.aberra")]
    kept = tmp_path / "m.aberra.training"
    process = subprocess.Popen(words, env=os.environ)
    deadline = time.monotonic() + 60
    while not list(kept.glob("task-*.npz")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "m.aberra").exists()
    assert list(kept.glob("task-*.npz"))
    fit(shared, tmp_path / "m.aberra", drop=["dirty"])
    assert (tmp_path / "m.aberra").read_bytes() == model.read_bytes()


@pytest.mark.slow
def test_full_disk_leaves_nothing_half_written(big, model, tmp_path, monkeypatch):
    def full(path, data):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("aberra.scoring.parts.write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        score(model, big, tmp_path / "scores")
    assert not list(Path(tmp_path / "scores").rglob("rows.parquet"))
    monkeypatch.undo()
    assert score(model, big, tmp_path / "scores").n_rows == N
