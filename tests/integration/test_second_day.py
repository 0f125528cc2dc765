"""The day after the fit, at the shell: has the world moved?"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import load
from aberra.cli import app
from aberra.cli.shell import Exit
from aberra.model_file import load_card
from aberra.scoring import table as scoring_table

ROOT = Path(__file__).parents[2]


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def answer(*words, code=0):
    return json.loads(run("--json", *words, code=code).stdout)


def day(seed, n=600):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.gamma(2, size=n),
            "clinic": rng.choice(["north", "south"], n),
            "year": 2026,
        }
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    day(0).to_csv(folder / "january.csv", index=False)
    run("fit", folder / "january.csv", "-o", folder / "january.aberra", "--robust", "none")
    return folder / "january.aberra"


def test_a_steady_day_says_so(fitted, tmp_path):
    day(1).assign(year=2027).to_csv(tmp_path / "steady.csv", index=False)
    words = ("score", fitted, tmp_path / "steady.csv", "-o", tmp_path / "s.csv", "--fail-on-drift")
    assert "Compared with the training rows: steady" in run(*words).output
    assert answer(*words)["drift"]["verdict"] == "steady"


def test_a_moved_day_ends_with_its_own_exit_code_and_all_scores(fitted, tmp_path):
    moved = day(1)
    moved["b"] += 1
    moved.to_csv(tmp_path / "moved.csv", index=False)
    words = ("score", fitted, tmp_path / "moved.csv", "-o", tmp_path / "s.csv")
    assert "b has moved" in run(*words).output
    found = answer(*words, "--fail-on-drift", code=Exit.MOVED)["drift"]
    assert [column["name"] for column in found["columns"]] == ["b"]
    assert found["columns"][0]["p_value"] < 0.001
    assert len(pd.read_csv(tmp_path / "s.csv")) == len(moved)


def test_drift_is_the_same_in_pieces_and_after_an_interruption(fitted, tmp_path, monkeypatch):
    moved = day(1)
    moved["b"] += 1
    moved.to_csv(tmp_path / "moved.csv", index=False)
    words = ("score", fitted, tmp_path / "moved.csv", "-o", tmp_path / "s.csv")
    whole = answer(*words)["drift"]
    _, *others = scoring_table.score_table.__defaults__
    monkeypatch.setattr(scoring_table.score_table, "__defaults__", (100, *others))
    added, add = [], scoring_table.Parts.add

    def interrupted(self, index, piece):
        if len(added) == 3:
            raise KeyboardInterrupt
        added.append(index)
        add(self, index, piece)

    monkeypatch.setattr(scoring_table.Parts, "add", interrupted)
    answer(*words, code=Exit.INTERRUPTED)
    monkeypatch.setattr(scoring_table.Parts, "add", add)
    resumed = answer(*words)
    assert resumed["resumed_rows"] == 300
    assert resumed["drift"] == whole


def test_scores_are_sorted_on_request(fitted, tmp_path, monkeypatch):
    day(3).to_csv(tmp_path / "new.csv", index=False)
    run("score", fitted, tmp_path / "new.csv", "-o", tmp_path / "plain.csv")
    monkeypatch.setattr(scoring_table, "CHUNK_ROWS", 100)
    run("score", fitted, tmp_path / "new.csv", "-o", tmp_path / "sorted.csv", "--sort")
    run("score", fitted, tmp_path / "new.csv", "-o", tmp_path / "few.csv", "--top", 7, "--sort")
    plain, found = pd.read_csv(tmp_path / "plain.csv"), pd.read_csv(tmp_path / "sorted.csv")
    pd.testing.assert_frame_equal(
        found, plain.sort_values("score", ascending=False, kind="stable", ignore_index=True)
    )
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "few.csv"), found[:7], check_dtype=False)


def test_info_says_what_a_model_is(fitted):
    shown = run("info", fitted).output
    assert "MultiView" in shown
    assert "'south'" in shown
    found = answer("info", fitted)
    assert found["data"].endswith("january.csv")
    assert [column["name"] for column in found["columns"]] == ["a", "b", "clinic"]
    assert found["dropped"] == {"year": "the same value everywhere"}
    assert found["versions"]["aberra"]
    assert found["threshold"] > 0


def test_the_card_of_a_model_is_saved_with_it_and_shown(fitted):
    card = run("info", fitted, "--card").output
    assert card.startswith("# MultiView\n")
    assert "| Columns | 3 (a, b, clinic) |" in card
    assert "Before you use it" in card
    assert load_card(fitted) == answer("info", fitted)["card"] == card.rstrip("\n") + "\n"


def test_a_model_that_comes_along_has_its_own_card():
    pytest.importorskip("monai")
    assert "no medical device" in run("info", "brain-t1", "--card").output


def test_info_of_what_is_no_model_is_a_sentence(tmp_path):
    (tmp_path / "x.aberra").write_text("nothing")
    assert "Cannot load" in run("info", tmp_path / "x.aberra", code=Exit.DATA).output


def nightly(folder):
    """Write the script of the documentation, with an `aberra` that is this one."""
    text = (ROOT / "docs" / "second-day.md").read_text()
    script = folder / "nightly.sh"
    script.write_text(text.split("```sh\n")[1].split("```")[0])
    shim = folder / "aberra"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m aberra "$@"\n')
    shim.chmod(0o755)
    return script


@pytest.mark.slow
def test_the_nightly_job_of_the_documentation_runs_for_three_days(fitted, tmp_path):
    script = nightly(tmp_path)
    day(1).to_csv(tmp_path / "monday.csv", index=False)
    day(2).assign(b=9.0).to_csv(tmp_path / "tuesday.csv", index=False)
    (tmp_path / "wednesday.csv").write_text("a,b,clinic\n1,2,north\n3,4\n")
    said = {}
    for name in ("monday", "tuesday", "wednesday"):
        words = ["sh", script, fitted, tmp_path / f"{name}.csv", tmp_path / f"{name}-scores.csv"]
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        out = subprocess.run(
            words, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        said[name] = (out.returncode, out.stdout)
    assert said["monday"][0] == 0
    assert said["monday"][1].startswith("steady")
    assert said["tuesday"][0] == 0
    assert said["tuesday"][1].startswith("moved")
    assert "b has moved" in (tmp_path / "tuesday-scores.csv.html").read_text()
    assert said["wednesday"][0] == 1
    assert "line 3" in said["wednesday"][1]


def code_called(name):
    """Return a block of Python code of the documentation, by the name in its first line."""
    text = (ROOT / "docs" / "second-day.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (found,) = [block for block in blocks if block.startswith(f"# {name}\n")]
    return found


@pytest.mark.slow
def test_the_mlflow_recipe_of_the_documentation_gives_the_same_scores(fitted, tmp_path):
    pytest.importorskip("mlflow")
    for name in ("aberra_model.py", "save_model.py"):
        (tmp_path / name).write_text(code_called(name))
    shutil.copy(fitted, tmp_path / "january.aberra")
    day(1).to_parquet(tmp_path / "new.parquet")
    ask = (
        "import mlflow, pandas as pd; rows = pd.read_parquet('new.parquet'); "
        "found = mlflow.pyfunc.load_model('january-mlflow').predict(rows); "
        "found.to_parquet('said.parquet')"
    )
    for words in (["save_model.py"], ["-c", ask]):
        subprocess.run([sys.executable, *words], cwd=tmp_path, check=True, capture_output=True)
    model, said = load(fitted), pd.read_parquet(tmp_path / "said.parquet")
    rows = day(1)[model.column_names()]
    np.testing.assert_array_equal(said["score"], model.anomaly_score(rows))
    np.testing.assert_array_equal(said["flag"], model.predict(rows) == -1)
