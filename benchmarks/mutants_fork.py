"""Tests of many copies of the source, each in a fork of one process that has the libraries loaded.

Half of the time of a short test run is the import of torch, scikit-learn and numba. This process
imports them once, and nothing of aberra. Each line of its input is a JSON object: `folder`, a copy
of the repository, and `tests`, what pytest is to run there. It answers with one line: the first
test that failed, or null, and the seconds of the processor.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import pytest

LONGEST = 240  # seconds of the processor; a mutant that takes longer never ends, nor does one
ASLEEP = 1200  # that is still there after so many seconds of the clock
LIBRARIES = (
    "scipy.stats", "scipy.optimize", "scipy.ndimage", "scipy.linalg", "sklearn.svm",
    "sklearn.ensemble", "sklearn.neighbors", "sklearn.impute", "sklearn.pipeline", "pandas",
    "pyarrow.parquet", "numba", "torch", "torch.nn.functional", "torch.optim",
    "monai.networks.nets", "einops", "nibabel", "pydicom", "safetensors.torch", "skops.io",
    "PIL.Image", "lightning.fabric", "matplotlib.pyplot",
)  # fmt: skip
OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
OPTIONS += ["-o", "addopts=--strict-markers --import-mode=importlib"]


class FirstFailure:
    """Remembers which test failed first, or which file could not be collected."""

    name: str | None = None

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Hear of a test."""
        if report.failed and self.name is None:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        """Hear of a file."""
        if report.failed and self.name is None:
            self.name = f"import of {report.nodeid}"


def work(folder: str, tests: list[str], answer: int) -> None:
    """Run the tests of a copy in this process, and write the first failure."""
    os.setsid()
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.alarm(ASLEEP)
    sys.stdout.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.chdir(folder)
    source = os.path.join(folder, "src")
    sys.path[:0] = [source]
    os.environ["PYTHONPATH"] = source
    first = FirstFailure()
    code = pytest.main([*OPTIONS, *tests], plugins=[first])
    if first.name is not None or code == 0:
        os.write(answer, json.dumps(first.name).encode())
    os._exit(int(code))


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    """Run what a line asks for in a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work(request["folder"], request["tests"], writing)
        finally:
            os._exit(3)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    _, status, used = os.wait4(child, 0)
    with suppress(ProcessLookupError):  # what it may have left behind
        os.killpg(child, signal.SIGKILL)
    name = json.loads(text) if text else _died(status)
    return {"first": name, "seconds": round(used.ru_utime + used.ru_stime, 1)}


def _died(status: int) -> str:
    """Say what ended a process that did not answer."""
    if not os.WIFSIGNALED(status):
        raise RuntimeError("pytest did not come to the tests")
    late = (signal.SIGPROF, signal.SIGALRM)
    return "it never ended" if os.WTERMSIG(status) in late else "the process died"


def main() -> None:
    """Answer line by line."""
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except ImportError:  # of an extra that is not there
            continue
    for line in sys.stdin:
        print(json.dumps(answer_to(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
