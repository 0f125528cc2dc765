"""Where work runs: in this process, or spread over any joblib backend.

Members are independent, and the arithmetic of a member does not depend on which others are
trained in the same call. So the result is the same bytes however they are spread
(test_ensembles.py proves it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any, TypeVar

import joblib
import numpy as np

from aberra.errors import DataError
from aberra.rng import single_thread

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_members(
    work: Callable[[slice], Result], n_members: int, engine: str | None
) -> list[Result]:
    """Call `work` on slices of the members.

    Parameters
    ----------
    work : callable
        Takes a slice of the members.
    n_members : int
        How many members there are.
    engine : str or None
        Name of a joblib backend. Each of its workers gets one slice; None calls `work` once, here,
        for all members.

    Returns
    -------
    results : list
        What `work` returned, in the order of the members.
    """
    if engine is None:
        with single_thread():
            return [work(slice(0, n_members))]
    with single_thread(), _backend(engine):
        n_chunks = min(n_members, joblib.effective_n_jobs())
        edges = np.linspace(0, n_members, n_chunks + 1).astype(int)
        chunks = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        sent = _portable(work, engine)
        # Tensors cannot be mapped read-only into workers, so nothing is mapped.
        return list(joblib.Parallel(max_nbytes=None)(_single(sent, chunk) for chunk in chunks))


def _backend(engine: str) -> AbstractContextManager[Any]:
    """Return joblib's settings for a backend, or say which there are."""
    try:
        return joblib.parallel_config(backend=engine, n_jobs=-1)
    except ValueError as error:
        raise DataError(
            f"There is no joblib backend {engine!r} for `engine`: {str(error).rstrip('.')}. Those "
            "of other libraries must be registered first, as with ray.util.joblib.register_ray()."
        ) from error


def _single(
    work: Callable[[slice], Result], chunk: slice
) -> tuple[Callable[..., Result], tuple[object, ...], dict[str, object]]:
    return joblib.delayed(_run_single)(work, chunk)


def _portable(work: Callable[[Item], Result], engine: str) -> Callable[[Item], Result]:
    """Return work that can be sent to the workers of an engine; plain pickle knows no closures."""
    return joblib.wrap_non_picklable_objects(work) if engine == "multiprocessing" else work


def _run_single(work: Callable[[slice], Result], chunk: slice) -> Result:
    with single_thread():
        return work(chunk)


def run_tasks(
    work: Callable[[Item], Result], tasks: Sequence[Item], engine: str | None
) -> Iterator[tuple[int, Result]]:
    """Call `work` on every task, and yield results as they come, each with its task's number.

    Parameters
    ----------
    work : callable
        Takes a task. What it returns does not depend on where or when it is called.
    tasks : sequence
    engine : str or None
        "ray" for a Ray cluster, the name of a joblib backend, or None for this process.
    """
    if engine is None:
        for k, task in enumerate(tasks):
            yield k, work(task)
    elif engine == "ray":
        from aberra.ray_engine import run_on_ray

        yield from run_on_ray(work, tasks)
    else:
        sent = _portable(work, engine)
        with _backend(engine):
            spread = joblib.Parallel(max_nbytes=None, return_as="generator_unordered")
            yield from spread(joblib.delayed(_numbered)(sent, k, t) for k, t in enumerate(tasks))


def _numbered(work: Callable[[Item], Result], k: int, task: Item) -> tuple[int, Result]:
    with single_thread():
        return k, work(task)
