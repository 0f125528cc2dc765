"""Jobs of several cells, which several processes can share; each job is done only once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from aberra.progress import advance
from aberra.reproduce.store import Record, Setting, Store, identity_of, key_of
from aberra.rng import allow_threads, n_threads

Compute = Callable[[Sequence[Setting], Store, Path | None], None]


@dataclass(frozen=True)
class Job:
    """Cells that are computed together, such as all seeds of one detector on one data set.

    Parameters
    ----------
    family : str
        Which file of the store they go to.
    title : str
        What a person calls it.
    settings : tuple of dict
        One for each cell.
    compute : callable
        Computes cells and adds them to the store. A function of a module, so that other processes
        find it.
    """

    family: str
    title: str
    settings: tuple[Setting, ...]
    compute: Compute

    def missing(self, store: Store) -> list[Setting]:
        """Return the settings that have no result yet."""
        done = store.read(self.family)
        return [setting for setting in self.settings if key_of(setting) not in done]

    @property
    def name(self) -> str:
        """A file name that is the same for the same work."""
        return f"{self.family}-{key_of({'settings': [dict(s) for s in self.settings]})}"


def do_job(job: Job, folder: Path, data_dir: Path | None) -> str:
    """Compute the missing cells of a job, unless another process is doing so.

    Returns "done", "there" if nothing was missing, or "elsewhere" if another process has the job.
    """
    store = Store(folder)
    with store.claim(job.name) as mine:
        if not mine:
            return "elsewhere"
        settings = job.missing(store)  # read after the claim: its last holder may have finished
        if not settings:
            return "there"
        job.compute(settings, store, data_dir)
    return "done"


def do_jobs(
    jobs: Iterable[Job], folder: Path, data_dir: Path | None, n_processes: int = 1
) -> Iterator[tuple[Job, str]]:
    """Do jobs one after the other, or in several processes; yield each as it ends."""
    store = Store(folder)
    todo = [job for job in jobs if job.missing(store)]
    for k, (job, how) in enumerate(_done(todo, folder, data_dir, n_processes)):
        advance("jobs", (k + 1) / len(todo), job.title)
        yield job, how


def _done(
    jobs: Sequence[Job], folder: Path, data_dir: Path | None, n_processes: int
) -> Iterator[tuple[Job, str]]:
    if n_processes == 1:
        for job in jobs:
            yield job, do_job(job, folder, data_dir)
        return
    # New interpreters instead of forks: torch's threads do not survive a fork.
    share = max(1, n_threads() // n_processes)
    pool = ProcessPoolExecutor(
        n_processes, get_context("spawn"), initializer=allow_threads, initargs=(share,)
    )
    try:
        futures = {pool.submit(do_job, job, folder, data_dir): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def finished(store: Store, jobs: Iterable[Job]) -> list[Record]:
    """Return the records of all cells of these jobs that are finished.

    A cell that only an earlier version of the code has computed is marked as stale.
    """
    found: list[Record] = []
    held: dict[str, _Shelf] = {}
    for job in jobs:
        if job.family not in held:
            held[job.family] = _Shelf.of(store.read(job.family))
        found += [r for setting in job.settings if (r := held[job.family].record(setting))]
    return found


def stale(records: Iterable[Record]) -> bool:
    """Say whether an earlier version of the code computed any of these."""
    return any(record.get("stale", False) for record in records)


@dataclass(frozen=True)
class _Shelf:
    """The records of a family by key, and by what was asked for."""

    current: dict[str, Record]
    any_version: dict[str, Record]

    @classmethod
    def of(cls, records: dict[str, Record]) -> _Shelf:
        return cls(records, {identity_of(r["setting"]): r for r in records.values()})

    def record(self, setting: Setting) -> Record | None:
        if (found := self.current.get(key_of(setting))) is not None:
            return found
        older = self.any_version.get(identity_of(setting))
        return None if older is None else {**older, "stale": True}


def grouped(records: Iterable[Record], key: Callable[[Setting], Any]) -> dict[Any, list[Record]]:
    """Return the records in groups; `key` says which group a setting belongs to."""
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[key(record["setting"])].append(record)
    return dict(groups)
