"""`aberra reproduce` as a person runs it: interrupted, resumed, by two processes at once."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from aberra.cli import app
from aberra.data.catalogue import DATA_SETS
from aberra.reproduce.odds import ODDS_SETS
from aberra.reproduce.store import read_lines


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Made-up tables of the size of the ODDS sets, of which the profile takes a few rows."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "odds").mkdir()
    rng = np.random.default_rng(0)
    for name in ODDS_SETS:
        (n, d), n_odd = DATA_SETS[name].shape, DATA_SETS[name].anomalies
        X, y = rng.normal(size=(n, d)), rng.permutation(np.arange(n) < n_odd)
        X[y] += 3
        np.savez(folder / "odds" / f"{name}.npz", X=X, y=y.astype(np.int8))
    return folder


def command(data, out, *words):
    options = ["--profile", "smoke", "--data-dir", str(data), "--out", str(out)]
    return ["reproduce", *words, *options]


def run(data, out, *words):
    result = CliRunner().invoke(app, ["--json", *command(data, out, *words)])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def start(data, out, *words):
    arguments = [sys.executable, "-m", "aberra", *command(data, out, *words)]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def cells(out):
    lines = list(read_lines(out / "cells" / "odds.jsonl"))
    assert len({line["key"] for line in lines}) == len(lines), "a cell was computed twice"
    return {line["key"]: line["rounds"] for line in lines}


@pytest.fixture(scope="module")
def whole(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    run(data, out, "auc-per-round")
    return out


@pytest.mark.slow
def test_a_figure_is_drawn_and_a_page_made(whole):
    svg = (whole / "auc-per-round.svg").read_text()
    assert all(f">{name}<" in svg for name in ODDS_SETS)
    assert "data:image/svg+xml" in (whole / "index.html").read_text()
    assert "**IADC over ADC**: ahead in" in (whole / "claims.md").read_text()
    lines = list(csv.DictReader((whole / "TABLE.csv").read_text().splitlines()))
    deep = [x for x in lines if (x["detector"], x["variant"]) == ("Deep SVDD", "IADC")]
    done = [line for line in deep if line["table"] == "odds-iadc"]
    assert all(float(line["mean"]) > 0 and line["seeds"] == "2" for line in done)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_the_same(data, whole, tmp_path):
    process = start(data, tmp_path, "auc-per-round")
    path = tmp_path / "cells" / "odds.jsonl"
    deadline = time.monotonic() + 120
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = len(cells(tmp_path))
    run(data, tmp_path, "auc-per-round")
    assert before > 0
    assert cells(tmp_path) == cells(whole)
    stamp = os.stat(path).st_mtime_ns
    run(data, tmp_path, "auc-per-round")
    assert os.stat(path).st_mtime_ns == stamp, "everything was there"


@pytest.mark.slow
def test_two_processes_share_the_work(data, whole, tmp_path):
    running = [start(data, tmp_path, "auc-per-round") for _ in range(2)]
    assert [process.wait(timeout=300) for process in running] == [0, 0]
    assert cells(tmp_path) == cells(whole)


@pytest.mark.slow
def test_several_jobs(data, whole, tmp_path):
    run(data, tmp_path, "auc-per-round", "--jobs", "2")
    assert cells(tmp_path) == cells(whole)


@pytest.mark.slow
def test_missing_data_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("ABERRA_DATA", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr("aberra.data.transfer.time.sleep", lambda seconds: None)
    words = ["reproduce", "auc-per-round", "--profile", "smoke", "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert "Traceback" not in result.output
    assert "arrhythmia" in result.stderr  # the smallest set comes first


def test_unknown_names_and_profiles_are_refused(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "odds-xyz", "--out", str(tmp_path)])
    assert result.exit_code == 3
    assert "odds-iadc" in result.stderr
    result = CliRunner().invoke(app, ["reproduce", "odds-adc", "--profile", "huge"])
    assert result.exit_code == 2


def test_the_list_counts_cells(tmp_path):
    words = ["--json", "reproduce", "--list", "--profile", "smoke", "--out", str(tmp_path)]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert found["odds-iadc"] == {
        "what": found["odds-iadc"]["what"],
        "done": 0,
        "stale": 0,
        "cells": 6 * (6 * 2 + 4) * 2,
    }
