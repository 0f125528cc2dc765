"""Tasks on a Ray cluster: lost ones are done again, and results come as they are finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from aberra.errors import AberraError, DataError
from aberra.extras import need
from aberra.rng import single_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 4  # tasks a processor that are handed out, so that none waits and none fills the memory
RETRIES = 20  # how often a task is done again whose worker or node has died
PATIENCE = 20.0  # seconds until an address that does not answer is given up


def connect(address: str | None) -> None:
    """Join a Ray cluster, unless this process has joined one already.

    Parameters
    ----------
    address : str or None
        "auto" for the cluster of this machine, an address such as "10.0.0.1:6379", or None to
        start Ray on this machine alone.

    Raises
    ------
    MissingExtraError
        If Ray is not installed.
    AberraError
        If nobody answers at the address, or the cluster has another version of Ray or Python.
    """
    ray = need("ray", "ray", "engine='ray'")
    if ray.is_initialized():
        return
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise AberraError(_why(address, str(error))) from error


def _why(address: str | None, said: str) -> str:
    first = (said.strip().splitlines() or [""])[0].rstrip(".")
    if "ersion" in said and "mismatch" in said.lower():
        return (
            f"The Ray cluster at {address} runs another version: {first}. Install the same "
            "versions of Ray and Python on all machines."
        )
    where = "on this machine" if address is None else f"at {address}"
    return (
        f"Ray does not answer {where}: {first}. Start it with `ray start --head`, or leave the "
        "address out to use this machine alone."
    )


def run_on_ray(
    work: Callable[[Item], Result], tasks: Sequence[Item]
) -> Iterator[tuple[int, Result]]:
    """Call `work` on every task, and yield results as they come, each with its task's number.

    A task whose worker or machine dies is done again elsewhere. What `work` itself raises is raised
    here, once.
    """
    ray = need("ray", "ray", "engine='ray'")
    connect(None)
    held = ray.put(work)  # once for all tasks
    call = ray.remote(num_cpus=1, max_retries=RETRIES)(_alone)
    most = max(1, int(AHEAD * ray.cluster_resources().get("CPU", 1)))
    waiting = {call.remote(held, task): k for k, task in enumerate(tasks[:most])}
    following = iter(range(len(waiting), len(tasks)))
    while waiting:
        (ready,), _ = ray.wait(list(waiting))
        k = waiting.pop(ready)
        for another in following:
            waiting[call.remote(held, tasks[another])] = another
            break
        yield k, _result(ray, ready)


def _alone(work: Callable[[Any], Any], task: Any) -> Any:
    with single_thread():
        return work(task)


def _result(ray: Any, ready: Any) -> Any:
    try:
        return ray.get(ready)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, AberraError):
            raise cause from None
        raise
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        raise DataError(
            f"The Ray cluster lost a task {RETRIES} times: {first}. Look at the machines' memory, "
            "then give the same command again: what is finished is kept."
        ) from error
