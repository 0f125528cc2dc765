"""Killed without warning (`kill -9`), then run again: the same bytes, and nothing left."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aberra.data.catalogue import DATA_SETS
from aberra.data.download import fetch
from aberra.data.transfer import RemoteFile
from aberra.reproduce.experiments import EXPERIMENTS
from aberra.reproduce.profiles import profiles
from aberra.reproduce.store import read_lines
from aberra.reproduce.work import do_jobs
from aberra.reproduce.writing import write_results
from aberra.viewer.marks import Marks
from aberra.workflow import fit, report, score

N_ROWS = 140_000  # three pieces of a table of scores
TABLE, SETS = "odds-iadc", ("arrhythmia", "cardio")
JOBS = [f"OCSVM on {name}" for name in SETS]
Task = Callable[[Path, Path], None]  # what is there, and where to work


def _fit(sound: Path, place: Path) -> None:
    fit(sound / "rows.csv", place / "m.aberra")
    fit(sound / "parts", place / "parts.aberra", robust="none")  # block by block, in two passes


def _score(sound: Path, place: Path) -> None:
    score(sound / "one.aberra", sound / "long.csv", place / "s.csv", reasons="none")


def _report(sound: Path, place: Path) -> None:
    report(sound / "m.aberra", sound / "rows.csv", place / "r.html")


def _marks(sound: Path, place: Path) -> None:
    for k in range(20):
        Marks(place).set("scans", f"scan {k}", "accept")


def _reproduce(sound: Path, place: Path) -> None:
    """Compute a few cells of a table of the papers, and write it."""
    smoke = profiles()["smoke"]
    jobs = [job for job in EXPERIMENTS[TABLE].jobs(smoke) if job.title in JOBS]
    for _ in do_jobs(jobs, place, sound / "data", 1):
        pass
    write_results(TABLE, smoke, place)


def _get(sound: Path, place: Path) -> None:
    address = (sound / "address").read_text()
    data = (sound / "served" / "file.bin").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    fetch(RemoteFile("file.bin", (f"{address}/file.bin",), len(data), sha256=digest), place)


TASKS: dict[str, Task] = {
    "fit": _fit,
    "score": _score,
    "report": _report,
    "marks": _marks,
    "reproduce": _reproduce,
    "data get": _get,
}


def again_and_again(task: str, sound: Path, place: Path) -> None:
    """Do the task until somebody ends this process."""
    while True:
        TASKS[task](sound, place)
        if task in ("data get", "reproduce"):  # which leave alone what is there
            # Cells first: arrays whose cells are noted as done are not computed again.
            for found in sorted(place.iterdir(), key=lambda found: found.name != "cells"):
                shutil.rmtree(found) if found.is_dir() else found.unlink()


class Kills:
    """A hundred kills in each of six tasks."""

    n = 600

    def prepare(self, sound: Path) -> None:
        """Do each task undisturbed, and keep what comes of it."""
        self.sound = sound
        (sound / "served").mkdir(exist_ok=True)
        (sound / "served" / "file.bin").write_bytes(random.Random(0).randbytes(1 << 22))
        self._serve()
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
        frame.to_csv(sound / "rows.csv", index=False)
        if not (sound / "long.csv").exists():
            long = pd.DataFrame(rng.normal(size=(N_ROWS, 3)).round(3), columns=list("abc"))
            long.to_csv(sound / "long.csv", index=False)
        fit(sound / "rows.csv", sound / "m.aberra")
        fit(sound / "rows.csv", sound / "one.aberra", robust="none")
        self._write_more(rng)
        self.expected, self.seconds = {}, {}
        for name, task in TASKS.items():
            place = sound / f"whole {name}"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            started = time.monotonic()
            task(sound, place)
            self.seconds[name] = time.monotonic() - started
            self.expected[name] = _contents(place)
        self.context: Any = get_context("forkserver")
        self.context.set_forkserver_preload(["benchmarks.borders_kills"])

    def _write_more(self, rng: np.random.Generator) -> None:
        """Write a table in two parts, and tables of the size of the papers' sets."""
        for year in (2023, 2024):
            part = self.sound / "parts" / f"year={year}"
            part.mkdir(parents=True, exist_ok=True)
            frame = pd.DataFrame(rng.normal(size=(6000, 3)), columns=list("abc"))
            frame.to_parquet(part / "rows.parquet")
        (self.sound / "data" / "odds").mkdir(parents=True, exist_ok=True)
        for name in SETS:
            (n, d), n_odd = DATA_SETS[name].shape, DATA_SETS[name].anomalies or 0
            X, y = rng.normal(size=(n, d)), (np.arange(n) < n_odd).astype(np.int8)
            np.savez(self.sound / "data" / "odds" / f"{name}.npz", X=X, y=y)

    def _serve(self) -> None:
        """Offer a file on this machine, for the task that downloads one."""
        root = str(self.sound / "served")

        class Quiet(SimpleHTTPRequestHandler):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args, directory=root)

            def copyfile(self, source: Any, outputfile: Any) -> None:
                with suppress(ConnectionError):  # the other side was killed
                    super().copyfile(source, outputfile)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (self.sound / "address").write_text(f"http://127.0.0.1:{server.server_port}")

    def try_one(self, k: int, folder: Path) -> str:
        """Kill a process at work; do the task once more, and compare."""
        name, rng = list(TASKS)[k % len(TASKS)], random.Random(k)
        place = folder / name
        place.mkdir(exist_ok=True)
        worker = self.context.Process(target=again_and_again, args=(name, self.sound, place))
        worker.start()
        time.sleep(0.2 + rng.random() * (0.2 + 2 * self.seconds[name]))
        if not worker.is_alive():
            return f"{name}: the process ended by itself with {worker.exitcode}"
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        if half := _half_written(place, self.expected[name]):
            return f"{name}: {half} is half written"
        TASKS[name](self.sound, place)
        found, whole = _contents(place), self.expected[name]
        if set(found) != set(whole):
            return f"{name}: left {sorted(set(found) ^ set(whole))}"
        return "fine" if found == whole else f"{name}: other bytes than undisturbed"


def _half_written(place: Path, whole: dict[str, Any]) -> str:
    """Return a file that is there under its final name, and is neither whole nor a beginning."""
    for name, held in _contents(place).items():
        if name not in whole:
            continue  # a temporary file, or a lock
        begun = isinstance(held, dict | list)
        if not (all(item in whole[name] for item in held) if begun else held == whole[name]):
            return name
    return ""


def _contents(place: Path) -> dict[str, Any]:
    """Return what lies in a folder; times and figures of speed are no part of it."""
    found: dict[str, Any] = {}
    for path in sorted(p for p in place.rglob("*") if p.is_file()):
        name = path.relative_to(place).as_posix()
        if path.name == "aberra-marks.json":
            found[name] = Marks(place).of("scans")
        elif path.suffix == ".jsonl":
            lines = [(line["key"], line["rounds"]) for line in read_lines(path)]
            found[name] = sorted(lines, key=repr)
        elif path.name == f"{TABLE}.csv":  # on a busy machine a cell takes some seconds more
            rows = pd.read_csv(path, dtype=str).drop(columns="seconds")
            found[name] = hashlib.sha256(rows.to_csv().encode()).hexdigest()
        elif "claims" not in path.parts:  # what was once locked stays, empty
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
