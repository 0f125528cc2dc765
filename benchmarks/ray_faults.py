"""A Ray cluster of two nodes on one machine: what a kill costs, and what the engine itself costs.

python -m benchmarks.ray_faults faults                results/ray_faults.jsonl
python -m benchmarks.ray_faults speed                 results/ray_faults.jsonl
python -m benchmarks.ray_faults table                 results/ray_faults.md

`faults` fits a table of 600,000 rows in 24 files again and again. At ten random moments of the two
passes a whole node dies (`kill -9` for its raylet and all its workers), at five others a worker
alone; and a node dies three times while the table is scored, file by file. Model and scores have to
be, byte for byte, those of a single process. Each task leaves a mark when it starts, so tasks that
were begun twice are counted. `speed` runs the second pass over
two million rows in this process, on one worker and on two, in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.records import append, environment, read

LINES, PAGE = Path("results/ray_faults.jsonl"), Path("results/ray_faults.md")
N_FILES, FILE_ROWS, N_COLUMNS, SEEN = 24, 25_000, 6, 10_000
PLAN = [
    *(("fit", "node", k) for k in range(10)),
    *(("fit", "worker", k) for k in range(5)),
    *(("score", "node", k) for k in range(3)),
]
LONG_FILES, LONG_ROWS, LONG_COLUMNS = 20, 100_000, 10


def make(folder: Path, n_files: int, n_rows: int, n_columns: int) -> Path:
    """Write a table of many files, with one odd row in a hundred."""
    import pandas as pd

    folder.mkdir()
    names = [f"x{j}" for j in range(n_columns)]
    mixing = np.random.default_rng(1).normal(size=(n_columns, n_columns))
    for k in range(n_files):
        rng = np.random.default_rng([2, k])
        x = rng.normal(size=(n_rows, n_columns)) @ mixing
        x[::100] += 6 * rng.normal(size=(len(x[::100]), n_columns))
        pd.DataFrame(x, columns=names).to_parquet(folder / f"{k:03d}.parquet")
    return folder


# The cluster


class TwoNodes:
    """A head, where this process belongs, and a second node that may die."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        from aberra.ray_cluster import connect

        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        self.second: Any = None
        connect(self.cluster.address)

    def complete(self) -> None:
        """See to it that there are two nodes."""
        if self.second is None:
            self.second = self.cluster.add_node(num_cpus=1)
            self.cluster.wait_for_nodes()

    def kill_second(self) -> None:
        """Kill the second node as a machine dies: all its processes at once, without a word."""
        raylet = self.second.all_processes["raylet"][0].process.pid
        everything = [*psutil.Process(raylet).children(recursive=True), psutil.Process(raylet)]
        for process in everything:
            process.send_signal(signal.SIGKILL)
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def close(self) -> None:
        """End what was started."""
        import ray

        ray.shutdown()
        self.cluster.shutdown()


@contextmanager
def marked(folder: Path) -> Iterator[None]:
    """Let every task leave a file when it starts: its number in time, and who worked on it."""
    from aberra import ray_engine

    plain = ray_engine.run_on_ray

    def run(work: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        def begin(task: Any) -> Any:
            (folder / f"{time.time_ns()}-{os.getpid()}").touch()
            return work(task)

        return plain(begin, tasks)

    ray_engine.run_on_ray = run
    try:
        yield
    finally:
        ray_engine.run_on_ray = plain


# What a kill costs


def fitted(data: Path, engine: str | None) -> str:
    """Fit, and return a digest of the model file."""
    from aberra import IADC
    from aberra.data.blocks.opening import blocks_of
    from aberra.workflow.outcome import save_with_recipe

    source: Any = blocks_of(data, sample_rows=SEEN)
    model = IADC(random_state=0, engine=engine).fit(source)
    model.set_params(engine=None)
    with tempfile.TemporaryDirectory() as folder:
        save_with_recipe(model, None, Path(folder) / "m")
        return sha256((Path(folder) / "m").read_bytes()).hexdigest()


def scored(data: Path, engine: str | None) -> str:
    """Score file by file, and return a digest of all files."""
    from aberra import IADC
    from aberra.data.blocks.opening import blocks_of
    from aberra.workflow import score
    from aberra.workflow.outcome import save_with_recipe

    source: Any = blocks_of(data, sample_rows=SEEN)
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder) / "m.aberra", Path(folder) / "scores"
        save_with_recipe(IADC(random_state=0).fit(source), None, model)
        score(model, data, out, reasons="none", engine=engine)
        files = sorted(out.glob("*.parquet"))
        return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


JOBS: dict[str, Callable[[Path, str | None], str]] = {"fit": fitted, "score": scored}
NEEDED = {"fit": 2 * N_FILES, "score": N_FILES}


def strike(nodes: TwoNodes, what: str, marks: Path, after: int, pause: float) -> None:
    """Wait until so many tasks have begun, and a little, and kill."""
    while len(list(marks.iterdir())) < after:
        time.sleep(0.005)
    time.sleep(pause)
    if what == "node":
        nodes.kill_second()
    else:
        os.kill(int(max(marks.iterdir()).name.split("-")[1]), signal.SIGKILL)


def trial(nodes: TwoNodes, data: Path, job: str, what: str, seed: int) -> dict[str, Any]:
    """Fit or score once while something is killed."""
    rng, needed = np.random.default_rng([3, seed, what == "node"]), NEEDED[job]
    after, pause = int(rng.integers(1, needed - 1)), float(rng.uniform(0, 0.2))
    nodes.complete()
    with tempfile.TemporaryDirectory() as place:
        marks = Path(place)
        killer = threading.Thread(target=strike, args=(nodes, what, marks, after, pause))
        started = time.perf_counter()
        killer.start()
        with marked(marks):
            digest = JOBS[job](data, "ray")
        seconds = time.perf_counter() - started
        killer.join()
        begun = len(list(marks.iterdir()))
    return {
        "kind": "fault", "job": job, "killed": what, "seed": seed, "after_tasks": after,
        "pause_s": round(pause, 3), "digest": digest, "needed": needed, "begun": begun,
        "wall_s": round(seconds, 1), "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def faults() -> None:
    """Kill at random moments; trials that are in the file already are not repeated."""
    known = {(line.get("job", "fit"), line["killed"], line["seed"]) for line in _lines("fault")}
    waiting = [one for one in PLAN if one not in known]
    with tempfile.TemporaryDirectory() as place:
        data = make(Path(place) / "data", N_FILES, FILE_ROWS, N_COLUMNS)
        expected = {job: JOBS[job](data, None) for job in {job for job, _, _ in waiting}}
        nodes = TwoNodes()
        for job, what, seed in waiting:
            line = trial(nodes, data, job, what, seed)
            line["same"] = line["digest"] == expected[job]
            append(LINES, {**line, "environment": environment()})
            print(json.dumps(line), flush=True)
        nodes.close()


# What the engine costs


def processor_of(processes: list[psutil.Process]) -> dict[int, float]:
    """Return the seconds of processor time of each process that is there."""
    found = {}
    for process in processes:
        try:
            times = process.cpu_times()
            found[process.pid] = times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return found


def family() -> list[psutil.Process]:
    """Return this process and all that it has started, Ray's included."""
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def timed(name: str, work: Callable[[], Any]) -> dict[str, Any]:
    """Run something; return its wall time, the processor time of all, and of the busiest."""
    before, started = processor_of(family()), time.perf_counter()
    work()
    seconds, after = time.perf_counter() - started, processor_of(family())
    spent = {pid: t - before.get(pid, 0.0) for pid, t in after.items()}
    others = [t for pid, t in spent.items() if pid != os.getpid()]
    return {
        "kind": "speed", "how": name, "wall_s": round(seconds, 2),
        "cpu_s": round(sum(spent.values()), 2), "driver_cpu_s": round(spent[os.getpid()], 2),
        "busiest_worker_cpu_s": round(max(others, default=0.0), 2),
        "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def speed(repeats: int) -> None:
    """Run the second pass here, on one worker and on two, in turn."""
    from aberra import IADC
    from aberra.data.blocks.opening import blocks_of
    from aberra.robust.by_blocks import first_look, survey

    with tempfile.TemporaryDirectory() as place:
        blocks = blocks_of(make(Path(place) / "data", LONG_FILES, LONG_ROWS, LONG_COLUMNS))
        few = replace(blocks, parts=blocks.parts[:6])
        model = IADC(random_state=0).fit(first_look(blocks).sample.drawn()[1])
        for _ in range(repeats):
            lines = [timed("this process", lambda: survey(model, blocks))]
            nodes = TwoNodes()
            survey(model, few, engine="ray")  # the workers start and load the code
            lines.append(timed("one worker", lambda: survey(model, blocks, engine="ray")))
            nodes.complete()
            survey(model, few, engine="ray")
            lines.append(timed("two workers", lambda: survey(model, blocks, engine="ray")))
            nodes.close()
            for line in lines:
                append(LINES, {**line, "rows": blocks.n_rows, "environment": environment()})
                print(json.dumps(line), flush=True)


# The page


def _lines(kind: str) -> list[dict[str, Any]]:
    return [line for line in read(LINES) if line["kind"] == kind]


def table() -> None:
    """Write the page."""
    lines = list(read(LINES))
    text = [*HEAD.splitlines(), "", *_about_faults(_lines("fault")), *_about_speed(_lines("speed"))]
    made = ", ".join(f"{name} {what}" for name, what in lines[-1]["environment"].items())
    PAGE.write_text("\n".join([*text, f"Made with {made}."]) + "\n")


HEAD = """# Ray: what a kill costs, and what the engine costs

`python -m benchmarks.ray_faults faults`, `speed`, then `table`. Two Ray nodes (two raylets) with a
processor each, on one machine of two cores that did other work at the same time."""


def _about_faults(lines: list[dict[str, Any]]) -> list[str]:
    found = [
        "## Kills", "",
        f"A fit of {N_FILES * FILE_ROWS:,} rows x {N_COLUMNS} columns in {N_FILES} files: "
        f"{2 * N_FILES} tasks in two passes; scoring: {N_FILES} tasks. `kill -9` at a random "
        "moment: for the raylet and all workers of the second node, or for one busy worker. Where "
        "nothing was begun twice, the node was between two tasks.", "",
        "| job | killed | after tasks begun | tasks needed | tasks begun | extra | same bytes |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for line in sorted(lines, key=lambda line: (line["killed"], line["after_tasks"])):
        cells = (
            line.get("job", "fit"), line["killed"], line["after_tasks"], line["needed"],
            line["begun"], line["begun"] - line["needed"], "yes" if line["same"] else "NO",
        )  # fmt: skip
        found.append("| " + " | ".join(map(str, cells)) + " |")
    return [*found, ""]


def _about_speed(lines: list[dict[str, Any]]) -> list[str]:
    if not lines:
        return []
    found = [
        "## The engine", "",
        f"The second pass over {lines[0]['rows']:,} rows x {LONG_COLUMNS} columns, workers warm. "
        "Processor time is that of all processes, Ray's own included. On this busy machine the "
        "wall time says little; the processor time of the busiest worker is about what the pass "
        "would take if nobody else used the machine.", "",
        "| where | wall s | CPU s | of it the driver | busiest worker, CPU s | load average |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for line in lines:
        cells = (
            line["how"], line["wall_s"], line["cpu_s"], line["driver_cpu_s"],
            line["busiest_worker_cpu_s"] or "", line["load_average"],
        )  # fmt: skip
        found.append("| " + " | ".join(map(str, cells)) + " |")
    return [*found, ""]


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["faults", "speed", "table"])
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    # Nobody else gets into the cluster. Ray reads these when it is loaded, and not again.
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    if given.step == "faults":
        faults()
    elif given.step == "speed":
        speed(given.repeats)
    else:
        table()


if __name__ == "__main__":
    main()
