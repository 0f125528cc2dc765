"""Tasks on a Ray cluster: lost ones are done again, and results come as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from aberra.errors import AberraError
from aberra.extras import need
from aberra.ray_cluster import check_nodes, connect
from aberra.rng import single_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 4  # tasks a processor that are handed out, so that none waits and none fills the memory
RETRIES = 20  # how often a task is done again whose worker or node has died


def run_on_ray(
    work: Callable[[Item], Result], tasks: Sequence[Item]
) -> Iterator[tuple[int, Result]]:
    """Call `work` on every task, and yield results as they come, each with its task's number.

    A task whose worker or machine dies is done again elsewhere. What `work` itself raises is raised
    here, once, and what the other workers are at is then called off.
    """
    ray = need("ray", "ray", "engine='ray'")
    connect(None)
    check_nodes(ray)
    held = ray.put(work)  # once for all tasks
    call = ray.remote(num_cpus=1, max_retries=RETRIES)(_alone)
    waiting: dict[Any, int] = {}
    following = iter(range(len(tasks)))
    try:
        while True:
            for k in following:
                waiting[call.remote(held, tasks[k])] = k
                if len(waiting) >= _most(ray):
                    break
            if not waiting:
                return
            (ready,), _ = ray.wait(list(waiting))
            yield waiting.pop(ready), _result(ray, ready)
    finally:
        for ref in waiting:  # nobody asks for these any more
            ray.cancel(ref)


def _most(ray: Any) -> int:
    """Return how many tasks may be under way; machines may have come or gone since the last."""
    return max(1, int(AHEAD * ray.cluster_resources().get("CPU", 1)))


def _alone(work: Callable[[Any], Any], task: Any) -> Any:
    with single_thread():
        return work(task)


def _result(ray: Any, ready: Any) -> Any:
    try:
        return ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, FileNotFoundError):
            raise AberraError(
                f"A machine of the Ray cluster does not see {cause.filename}. All machines have "
                "to see the files under the same path."
            ) from None
        if isinstance(cause, AberraError | OSError):
            raise cause from None
        raise
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        raise AberraError(
            f"The Ray cluster lost a task {RETRIES} times: {first} Look at the machines' memory, "
            "then give the same command again: what is finished is kept."
        ) from error
