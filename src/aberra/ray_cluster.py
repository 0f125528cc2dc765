"""Joining a Ray cluster: in bounded time, and only where all machines fit together."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aberra.errors import AberraError
from aberra.extras import need

PATIENCE = 10.0  # seconds until an address that does not answer is given up
ASKING = 120.0  # seconds for a machine's first worker to start and say what is installed there
ATTEMPTS = "RAY_gcs_server_port_wait_time_s"  # Ray tries twenty times otherwise, for minutes
SAME = ("aberra", "numpy")  # what has to be of the same version on all machines

Versions = dict[str, str]


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
    asked = address or os.environ.get("RAY_ADDRESS")
    own = {"include_dashboard": False} if asked is None else {}
    try:
        _knock(asked)
        with _few_attempts(asked):
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **own)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise AberraError(_why(asked, error)) from error


def _knock(address: str | None) -> None:
    """See whether anybody listens at an address, which Ray itself would try for minutes."""
    host, mark, port = (address or "").removeprefix("ray://").rpartition(":")
    if mark and port.isdecimal():
        with socket.create_connection((host, int(port)), timeout=PATIENCE):
            pass


@contextmanager
def _few_attempts(address: str | None) -> Iterator[None]:
    """Let Ray give up sooner where somebody listens who is not a Ray cluster."""
    if address is None or ATTEMPTS in os.environ:
        yield
        return
    os.environ[ATTEMPTS] = "1"
    try:
        yield
    finally:
        del os.environ[ATTEMPTS]


def _why(address: str | None, error: Exception) -> str:
    said = f"{error} {error.__cause__ or ''}"
    where = "on this machine" if address is None else f"at {address}"
    if "ersion" in said and "mismatch" in said.lower():
        return (
            f"The Ray cluster {where} runs other versions than this process: "
            f"{' '.join(str(error).split())} Install the same versions of Ray and Python."
        )
    if "AuthToken" in said or "AuthenticationError" in said:
        return (
            f"The Ray cluster {where} asks for a token. Set RAY_AUTH_MODE=token, and have the "
            "cluster's token in RAY_AUTH_TOKEN or in the file ~/.ray/auth_token."
        )
    first = (str(error).strip().splitlines() or [""])[0].rstrip(".:")
    return (
        f"Ray does not answer {where}: {first}. Start it with `ray start --head`, or leave the "
        "address out to use this machine alone."
    )


def check_nodes(ray: Any) -> None:
    """Refuse a cluster whose machines have other versions than this process.

    Raises
    ------
    AberraError
        If a machine has no Aberra, or another version of it, of NumPy or of Python.
    """
    nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    asked = {_asked(ray, node): name for node, name in nodes.items()}
    ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=ASKING)
    here = _installed()()
    for ref in ready:
        try:
            there = ray.get(ref)
        except ray.exceptions.RayError:
            continue  # it died meanwhile; others do its tasks
        if there != here:
            raise AberraError(_differ(asked[ref], here, there))


def _asked(ray: Any, node: str) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node, soft=False)
    call = ray.remote(num_cpus=0, max_retries=1, scheduling_strategy=there)(_installed())
    return call.remote()


def _installed() -> Callable[[], Versions]:
    """Return a function that says what is installed; it can be sent to where Aberra is not."""
    names = SAME

    def look() -> Versions:
        import platform
        from importlib.metadata import PackageNotFoundError, version

        found = {"Python": platform.python_version()}
        for name in names:
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "not installed"
        return found

    return look


def _differ(node: str, here: Versions, there: Versions) -> str:
    odd = [
        f"{name} {there[name]} (here {here[name]})" for name in here if there[name] != here[name]
    ]
    return (
        f"The machine {node} of the Ray cluster has {', '.join(odd)}. Install the same versions "
        "on all machines."
    )
