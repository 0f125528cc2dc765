"""Run many methods on many tables: resumable, in parallel, one JSON line a cell.

A cell is one table, one method and one seed. Cells that the file already holds are not run again,
so peers are paid for once and a new design of ours is tried by removing its lines alone.
"""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from aberra.metrics import auroc, average_precision
from benchmarks import peers
from benchmarks.records import append, environment, read

Table = tuple[NDArray[np.float64], NDArray[np.int8]]
Cell = dict[str, Any]
DIGITS = 5


@dataclass(frozen=True)
class Job:
    """The cells of one table that are still missing."""

    name: str
    load: Callable[[str], Table]
    cells: tuple[tuple[str, int], ...]  # method and seed
    keep: Path | None  # a folder for the scores themselves


def run(
    path: Path,
    names: Sequence[str],
    load: Callable[[str], Table],
    cells: Sequence[tuple[str, int]],
    n_jobs: int = 2,
    keep: Path | None = None,
) -> None:
    """Fill the cells that are missing from the file."""
    done = {(c["set"], c["method"], c["seed"]) for c in read(path) if "method" in c}
    jobs = []
    for name in names:
        missing = tuple(c for c in cells if (name, *c) not in done)
        if missing:
            jobs.append(Job(name, load, missing, keep))
    if jobs:
        append(path, {"measured_with": made_with()})
    with ProcessPoolExecutor(n_jobs) as pool:
        futures = [pool.submit(run_job, job) for job in jobs]
        for n, future in enumerate(as_completed(futures), 1):
            for cell in future.result():
                append(path, cell)
            print(f"\r{n} of {len(jobs)} tables", end="", flush=True)
    print()


def made_with() -> dict[str, Any]:
    """Return commit and versions, the peers' included as far as they are installed."""
    peers = [name for name in ("pyod", "isotree") if find_spec(name) is not None]
    return environment() | {name: version(name) for name in peers}


def measured_with(path: Path) -> str:
    """Return what the cells of a file were measured with, one line a run."""
    return "\n".join(
        f"Measured with {c['measured_with']}" for c in read(path) if "measured_with" in c
    )


def run_job(job: Job) -> list[Cell]:
    """Run all missing cells of a table."""
    warnings.simplefilter("ignore")
    X, y = job.load(job.name)
    with threadpool_limits(1):
        return [run_cell(job, X, y, method, seed) for method, seed in job.cells]


def run_cell(job: Job, X: NDArray[np.float64], y: NDArray[np.int8], method: str, seed: int) -> Cell:
    """Measure one method on one table; a method that fails is a result, not the end."""
    started = time.process_time()
    cell: Cell = {"set": job.name, "method": method, "seed": seed}
    try:
        s = peers.scores(method, X, seed)
        if s is not None:
            cell |= judged(y, s)
            if job.keep is not None:
                keep_scores(job.keep, f"{job.name}.{method}.{seed}", s)
    except Exception as error:
        cell["error"] = repr(error)[:120]
    cell["cpu"] = round(time.process_time() - started, 3)
    return cell


def keep_scores(folder: Path, name: str, s: NDArray[np.float64]) -> None:
    """Write scores to a file of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / (name.replace("/", "__") + ".npy"), s.astype(np.float32))


def judged(y: NDArray[np.int8], s: NDArray[np.float64]) -> dict[str, float]:
    """Return AUROC and average precision; scores that are no numbers count as the middle one."""
    finite = np.isfinite(s)
    if not finite.all():
        s = np.where(np.isnan(s), np.median(s[finite]) if finite.any() else 0.0, s)
        s = np.clip(s, -1e300, 1e300)
    if y.min() == y.max():  # nothing was planted: there is nothing to find
        return {}
    return {
        "auroc": round(auroc(y, s), DIGITS),
        "ap": round(average_precision(y, s), DIGITS),
    }


def by_method(cells: Iterable[Cell], key: str) -> dict[str, dict[str, float]]:
    """Return the figure of every method on every table, the mean of its seeds."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.get(key) is not None:
            found[cell["method"]][cell["set"]].append(cell[key])
    return {m: {s: float(np.mean(v)) for s, v in sets.items()} for m, sets in found.items()}
