"""Randomness and threads: everything that decides whether two runs give the same bytes.

A random state is consumed once per fit, into one integer. Every later draw comes from a stream
that is named by that integer and a key (round, member), so a run that was interrupted goes on
with exactly the numbers it would have had.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, lru_cache
from threading import Lock, local
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from aberra.extras import need
from aberra.progress import in_threads

if TYPE_CHECKING:
    import torch

Item = TypeVar("Item")
RandomState = int | np.random.RandomState | None


def entropy_of(random_state: RandomState) -> int:
    """Turn scikit-learn's `random_state` into the one integer that names all streams of a fit."""
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def stream(entropy: int, *key: int) -> np.random.Generator:
    """Return the independent NumPy stream that belongs to `entropy` and `key`."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def draw_seeds(entropy: int, *key: int, n: int) -> list[int]:
    """Return `n` integers, one per member, from the stream that belongs to `key`."""
    return [int(seed) for seed in stream(entropy, *key).integers(2**31 - 1, size=n)]


def batch_rows(entropy: int, n: int, batch_size: int, step: int) -> NDArray[np.int64]:
    """Return the rows of one training step: every row once an epoch, in a new order.

    They depend on nothing but the arguments, so a training can go on from any step.
    """
    first = step * batch_size
    places = range(first, first + batch_size)
    return np.array([_epoch_order(entropy, n, place // n)[place % n] for place in places])


@lru_cache(maxsize=4)
def _epoch_order(entropy: int, n: int, epoch: int) -> NDArray[np.int64]:
    return stream(entropy, 0, epoch).permutation(n)


def torch_generator(seed: int) -> torch.Generator:
    """Return a CPU generator of its own; the global one is never touched."""
    import torch

    return torch.Generator().manual_seed(seed)


class _Pools:
    """How many blocks want one thread of the BLAS, and what to restore when the last one ends."""

    lock = Lock()
    depth = 0
    before: Any = None


class _Own(local):
    """What a thread knows of itself."""

    before = 0  # threads it might use outside of its blocks; 0: it is in none
    shares = False  # it is one of several that share some work


_own = _Own()


class _Process:
    """What the process was told by `allow_threads`."""

    n_threads: int | None = None


def load_torch(what_for: str) -> None:
    """Load torch where it is first needed, or say how to install it.

    It then has as many threads as it would have if it had been there from the start.
    """
    if "torch" not in sys.modules:
        torch = need("torch", "images", what_for)
        n = 1 if _own.before else _Process.n_threads
        if n is not None:
            torch.set_num_threads(n)


@contextmanager
def single_thread() -> Iterator[None]:
    """Run torch and the BLAS behind NumPy on one thread inside the block.

    Two reasons. Sums over a changing number of threads change the last bits, and a seed must give
    the same bytes on every machine. And on networks this small a second thread costs more than it
    brings: beside a busy core it made a training step a hundred times slower. The BLAS' limit
    belongs to the whole process, so blocks in several threads share it: the first sets, the last
    restores. Torch's belongs to the thread that sets it.
    """
    outer, here = _own.before, _threads_here()
    with _Pools.lock:
        if _Pools.depth == 0:
            _Pools.before = _thread_pools().limit(limits=1)
        _Pools.depth += 1
    _own.before = outer or here
    _limit_torch(1)
    try:
        yield
    finally:
        _limit_torch(here)
        _own.before = outer
        with _Pools.lock:
            _Pools.depth -= 1
            if _Pools.depth == 0:
                _Pools.before.restore_original_limits()


def single_thread_by_default() -> AbstractContextManager[None]:
    """Return `single_thread`, or nothing where the user has said how many threads torch may use.

    Convolutions of large images do gain from several threads, so whoever sets OMP_NUM_THREADS,
    torch's own variable for it, is given them.
    """
    return nullcontext() if "OMP_NUM_THREADS" in os.environ else single_thread()


def n_threads() -> int:
    """Return how many threads the caller may use, inside and outside `single_thread`."""
    return _own.before or _threads_here()


def _threads_here() -> int:
    """Return torch's number of threads where it is loaded, else what it would be."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    return _Process.n_threads or _threads_by_default()


def _threads_by_default() -> int:
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _limit_torch(n: int) -> None:
    """Give torch n threads, if anybody has loaded it."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(n)


def for_each(work: Callable[[Item], None], items: Sequence[Item]) -> None:
    """Call `work` on every item, in as many threads as the caller may use.

    It is for work that writes its result to a place of its own, so that the threads change
    nothing but the time. Inside such work there is only one thread.
    """
    workers = 1 if _own.shares else min(n_threads(), len(items))
    if workers <= 1:
        for item in items:
            work(item)
        return

    def alone(item: Item) -> None:
        _own.shares = True  # the thread ends with this pool
        with single_thread():
            work(item)

    with ThreadPoolExecutor(workers) as threads:
        for _ in threads.map(in_threads(alone), items):
            pass  # an error comes out here


def allow_threads(n: int) -> None:
    """Let this process use n threads from now on."""
    _Process.n_threads = n
    _limit_torch(n)


@cache
def _thread_pools() -> Any:
    """Find the loaded thread pools once: the search takes longer than a small fit."""
    import scipy.linalg  # noqa: F401  its BLAS must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def seed_estimator(estimator: Any, seed: int) -> None:
    """Give every `random_state` parameter of a foreign estimator its own drawn integer."""
    generator = np.random.default_rng(seed)
    names = sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )
    if names:
        estimator.set_params(**{name: int(generator.integers(2**31 - 1)) for name in names})
