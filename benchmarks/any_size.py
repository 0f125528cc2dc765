"""Tables from 10^5 to 10^8 rows through `aberra fit` and `aberra score`, against a plain loop.

python -m benchmarks.any_size run 100000 1000000 10000000      results/any_size.jsonl
python -m benchmarks.any_size table                            results/any_size.md

For each length a folder of Parquet files is made (20 columns of single precision, 1 % of the rows
dirty in one of three ways) and removed at the end. `fit` and `score` are what the commands of these
names call, with all defaults, except that `score` gives no reasons; up to 10^6 rows it runs once
more, with reasons for flagged rows. The rival is what people write themselves: a loop over Arrow
batches with scikit-learn's IsolationForest, fitted on 262,144 rows drawn at random. Every step is a
process of its own, and what it brought is kept: the same command goes on after a stop.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.any_size_page import write_page
from benchmarks.records import append, environment
from benchmarks.score_parquet import measured

LINES = Path("results/any_size.jsonl")
N_COLUMNS, FILE_ROWS, BATCH, DIRT = 20, 500_000, 1 << 16, 0.01
CHECKED = 1_000_000  # rows on which the fit in memory is compared
WITH_REASONS = 1_000_000  # rows at most that are also scored with reasons
MEASURED = 10_000_000  # rows at most, evenly spaced, on which AUROC is taken
NAMES = [f"x{j:02d}" for j in range(N_COLUMNS)]

Array = NDArray[Any]


# Data


def rows_of_file(k: int, n: int) -> tuple[Array, Array]:
    """Return the rows of one file, and which are dirty: far, in a group, or torn apart."""
    loadings = np.random.default_rng(0).normal(size=(6, N_COLUMNS))
    rng = np.random.default_rng([1, k])
    x = rng.normal(size=(n, 6)) @ loadings + rng.normal(size=(n, N_COLUMNS))
    kind = np.where(rng.random(n) < DIRT, rng.integers(1, 4, n), 0)
    far, group, torn = (np.flatnonzero(kind == one) for one in (1, 2, 3))
    x[far, rng.integers(0, N_COLUMNS, len(far))] += 15 * rng.choice([-1, 1], len(far))
    x[group] = 0.3 * x[group] + 4.0 * np.sign(loadings[0])
    x[torn] = rng.permuted(x[torn], axis=0)
    x[:, :3] = np.exp(x[:, :3] / 3)  # skewed, as many columns are
    return x.astype(np.float32), (kind > 0).astype(np.int8)


def make(place: Path, n_rows: int) -> dict[str, Any]:
    """Write the files of a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = place / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for k, start in enumerate(range(0, n_rows, FILE_ROWS)):
        x, y = rows_of_file(k, min(FILE_ROWS, n_rows - start))
        table = pa.table([*x.T, y], names=[*NAMES, "dirty"])
        pq.write_table(table, folder / f"{k:05d}.parquet", row_group_size=BATCH)
    return {"data_mb": round(sum(file.stat().st_size for file in folder.iterdir()) / 1e6)}


def batches(place: Path) -> Iterator[Array]:
    """Yield the rows as anybody would read them."""
    import pyarrow.dataset as ds

    for batch in ds.dataset(place / "data").to_batches(columns=NAMES, batch_size=BATCH):
        yield np.column_stack([column.to_numpy() for column in batch.columns])


# Steps, each of which runs in a process of its own


def warm() -> None:
    """Load what every fit loads, so that only the table itself is timed."""
    from aberra import IADC

    IADC(random_state=0).fit(np.random.default_rng(0).normal(size=(300, 3)))


def clocked(name: str, work: Callable[..., Any], found: dict[str, Any]) -> Callable[..., Any]:
    """Return the work so that its seconds of processor time are noted."""

    def run(*words: Any, **options: Any) -> Any:
        started = time.process_time()
        result = work(*words, **options)
        found[f"{name}_s"] = time.process_time() - started
        return result

    return run


def fit(place: Path, n_rows: int) -> dict[str, Any]:
    """Fit with all defaults; time the two passes, and the rounds between them."""
    from aberra import workflow
    from aberra.workflow import from_blocks

    warm()
    found: dict[str, Any] = {}
    parts = {"first_look": "look", "fit_within": "rounds", "survey": "survey"}
    for function, name in parts.items():
        setattr(from_blocks, function, clocked(name, vars(from_blocks)[function], found))
    whole = clocked("call", workflow.fit, found)
    fitted = whole(place / "data", place / "m.aberra", drop=["dirty"], on_error="stop")
    model = fitted.model
    return found | {
        "sample": min(n_rows, len(model.weights_)),
        "rounds": len(model.history_),
        "flagged_share": model.contamination_,
    }


def score(place: Path, n_rows: int) -> dict[str, Any]:
    """Score every file, without reasons."""
    return _scored(place, "scores", "none")


def reasons(place: Path, n_rows: int) -> dict[str, Any]:
    """Score every file, with reasons for flagged rows."""
    return _scored(place, "with-reasons", "flagged")


def _scored(place: Path, out: str, wanted: str) -> dict[str, Any]:
    from aberra import workflow

    warm()
    found: dict[str, Any] = {}
    whole = clocked("call", workflow.score, found)
    said = whole(place / "m.aberra", place / "data", place / out, reasons=wanted)
    return found | {"flagged": said.n_flagged, "before": said.n_resumed}


def forest(place: Path, n_rows: int) -> dict[str, Any]:
    """Fit an isolation forest on a sample, and score all rows in a loop."""
    from sklearn.ensemble import IsolationForest

    def loop() -> None:
        rng, share = np.random.default_rng(0), min(1.0, 262_144 / n_rows)
        sample = np.concatenate([some[rng.random(len(some)) < share] for some in batches(place)])
        model = IsolationForest(random_state=0).fit(sample)
        held = np.lib.format.open_memmap(place / "forest.npy", "w+", np.float64, (n_rows,))
        at = 0
        for some in batches(place):
            held[at : at + len(some)] = -model.score_samples(some)
            at += len(some)

    found: dict[str, Any] = {}
    clocked("call", loop, found)()
    return found


def in_memory(place: Path, n_rows: int) -> dict[str, Any]:
    """Fit IADC on the first million rows in memory, and score the same rows."""
    from aberra import IADC

    warm()
    x = first_rows(place)
    found: dict[str, Any] = {}
    model = clocked("fit", IADC(random_state=0).fit, found)(x)
    np.save(place / "memory.npy", clocked("score", model.anomaly_score, found)(x))
    return found | {"rows": len(x), "flagged_share": model.contamination_}


def first_rows(place: Path) -> Array:
    """Return the first million rows in double precision."""
    rows: list[Array] = []
    for some in batches(place):
        rows.append(some)
        if sum(map(len, rows)) >= CHECKED:
            break
    return np.concatenate(rows)[:CHECKED].astype(np.float64)


def ranking(place: Path, n_rows: int) -> dict[str, Any]:
    """Measure AUROC by the labels, which nothing else has seen."""
    import pyarrow.dataset as ds

    from aberra.metrics import auroc

    y = ds.dataset(place / "data").to_table(columns=["dirty"]).column("dirty").to_numpy()
    ours, theirs = scores_in(place / "scores"), np.load(place / "forest.npy", mmap_mode="r")
    some = slice(None, None, max(1, n_rows // MEASURED))
    held = np.load(place / "memory.npy")
    first = slice(0, len(held))
    return {
        "aberra": auroc(y[some], ours[some]),
        "forest": auroc(y[some], np.asarray(theirs[some])),
        "aberra, first million": auroc(y[first], ours[first]),
        "in memory, first million": auroc(y[first], held),
    }


def scores_in(folder: Path) -> Array:
    """Return the scores of all files in their order."""
    import pyarrow.parquet as pq

    files = sorted(folder.rglob("*.parquet"))
    parts = [pq.read_table(file, columns=["score"]).column(0).to_numpy() for file in files]
    return np.concatenate(parts)


STEPS: dict[str, Callable[[Path, int], dict[str, Any]]] = {
    "make": make, "fit": fit, "score": score, "forest": forest, "in_memory": in_memory,
    "ranking": ranking, "reasons": reasons,
}  # fmt: skip


# One length


def timed_step(step: str, place: Path, n_rows: int) -> dict[str, Any]:
    """Run a step in a process of its own; return what it found and what it took."""
    load = os.getloadavg()[0]
    run = measured([sys.executable, "-m", "benchmarks.any_size", step, str(place), str(n_rows)])
    return {
        **json.loads(run.printed.splitlines()[-1]),
        "process_cpu_s": round(run.processor, 1),
        "wall_s": round(run.seconds, 1),
        "peak_mb": round(run.peak),
        "load_average": [round(load, 1), round(os.getloadavg()[0], 1)],
    }


def race(place: Path, n_rows: int) -> dict[str, Any]:
    """Measure one length; steps that are done already are not repeated."""
    kept = place / "steps.json"
    done: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for step in STEPS:
        if step in done or (step == "reasons" and n_rows > WITH_REASONS):
            continue
        done[step] = timed_step(step, place, n_rows)
        kept.write_text(json.dumps(done))
        print(n_rows, step, json.dumps(done[step]), flush=True)
    return {"rows": n_rows, "columns": N_COLUMNS, **done}


def run(lengths: list[int], root: Path) -> None:
    """Measure some lengths, and add a line for each."""
    for n_rows in lengths:
        place = root / str(n_rows)
        place.mkdir(parents=True, exist_ok=True)
        line = race(place, n_rows)
        append(LINES, {**line, "environment": environment()})
        shutil.rmtree(place)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--root", type=Path, default=Path(tempfile.gettempdir(), "any-size"))
    given = parser.parse_args()
    if given.step == "run":
        run([int(word) for word in given.words], given.root)
    elif given.step == "table":
        write_page(LINES)
    else:
        place, n_rows = given.words
        print(json.dumps(STEPS[given.step](Path(place), int(n_rows))))


if __name__ == "__main__":
    main()
