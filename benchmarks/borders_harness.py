"""How a campaign of bad inputs is run: in a process of its own, with a clock and a memory limit.

A case ends in one of three ways: "fine" (the input was used, and the result is sound), "refused"
(one of Aberra's own errors) or "failed": any other exception, a result that is not finite, more
memory or time than stated, or a process that died. Time is the processor's, because a machine that
does other work as well makes a clock tell nothing; a process that only waits is ended by the clock.
"""

from __future__ import annotations

import json
import re
import resource
import select
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from aberra.errors import AberraError

SECONDS = 30  # of the processor, for one case
PATIENCE = 600.0  # seconds on the clock, for one case
READY = 3600.0  # seconds on the clock, for all imports and sound inputs, compiling included
MEMORY = 2 << 30  # bytes beyond what the process holds before the case
NO_MACHINE = 1 << 44  # bytes that none gives, so nothing is taken when somebody asks for them
SHOWN = 5  # examples kept of each way to fail


class Campaign(Protocol):
    """Many bad inputs of one kind; input number k is always the same one."""

    n: int

    def prepare(self, sound: Path) -> None:
        """Make the sound inputs, from which the bad ones are made, unless they are there."""

    def try_one(self, k: int, folder: Path) -> str:
        """Use input number k; return "fine" or say what is wrong with the result."""


@dataclass
class Tally:
    """What came of some cases."""

    tried: int = 0
    fine: int = 0
    refused: int = 0
    slowest: float = 0.0  # seconds of the processor
    slowest_case: int = -1
    cpu: float = 0.0
    failures: dict[str, list[int]] = field(default_factory=dict)  # what happened: which cases

    def add(self, k: int, verdict: str, seconds: float) -> None:
        """Count one case."""
        self.tried += 1
        self.cpu += seconds
        if seconds > self.slowest:
            self.slowest, self.slowest_case = seconds, k
        if verdict == "fine":
            self.fine += 1
        elif verdict == "refused":
            self.refused += 1
        else:
            self.failures.setdefault(verdict, []).append(k)

    def record(self) -> dict[str, Any]:
        """Return the figures."""
        ways = [(what, len(cases), cases[:SHOWN]) for what, cases in self.failures.items()]
        seconds = {"slowest": round(self.slowest, 2), "cpu": round(self.cpu, 1)}
        return {**vars(self), **seconds, "failures": ways}


# The process that tries


def work(campaign: Campaign, sound: Path) -> None:
    """Try the cases whose numbers come in, and print what came of each."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        campaign.prepare(sound)
        _say({"ready": True})
        for line in sys.stdin:
            _limit()
            before = _used()
            verdict = _verdict(campaign, int(line), Path(name))
            _say({"verdict": verdict, "seconds": _used() - before})


def _used() -> float:
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime


def _limit() -> None:
    """Allow so much more than the process holds now; what earlier cases left is not counted."""
    held = int(re.findall(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[0]) << 10
    for what, soft in (
        (resource.RLIMIT_AS, held + MEMORY),
        (resource.RLIMIT_CPU, int(_used()) + SECONDS),
    ):
        resource.setrlimit(what, (soft, resource.getrlimit(what)[1]))


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _verdict(campaign: Campaign, k: int, folder: Path) -> str:
    try:
        return campaign.try_one(k, folder)
    except AberraError as error:
        return "too much memory" if _lacked_memory(error) else "refused"
    except Exception as error:
        if _lacked_memory(error):
            return "too much memory"
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "/aberra/" in f.filename] or list(frames)
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return f"{type(error).__name__}: {str(error)[:90]} ({place})"


def _lacked_memory(error: BaseException | None) -> bool:
    """Say whether memory was asked for that a machine could have given."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            asked = re.search(r"malloc of size (\d+) failed", str(error))
            return asked is None or int(asked[1]) < NO_MACHINE
        error = error.__cause__ or error.__context__
    return False


# The process that watches


class Worker:
    """A process that tries one case after the other."""

    def __init__(self, name: str, sound: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.borders", "work", name, str(sound)]
        pipe = subprocess.PIPE
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=self.complaints)
        if self._answer(READY) is None:
            self.complaints.seek(0)
            told = self.complaints.read()[-3000:].decode(errors="replace")
            raise RuntimeError(f"The worker did not start: {told}")

    def ask(self, k: int) -> tuple[str, float]:
        """Return what came of a case, and the seconds of the processor that it took."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{k}\n".encode())
        self.process.stdin.flush()
        found = self._answer()
        if found is not None:
            return found["verdict"], found["seconds"]
        if self.process.poll() is None:
            return f"hung for {PATIENCE:g} s", 0.0
        return f"the process died with {self.process.returncode}", 0.0

    def _answer(self, patience: float = PATIENCE) -> dict[str, Any] | None:
        """Return the next line; None if the process died or hangs."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], patience)[0]:
            return None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            return None
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.complaints.close()


def run(name: str, cases: list[int], sound: Path) -> Iterator[tuple[int, str, float]]:
    """Try cases; whenever the process at work dies or hangs, another one goes on."""
    worker: Worker | None = None
    try:
        for k in cases:
            worker = worker or Worker(name, sound)
            verdict, seconds = worker.ask(k)
            yield k, verdict, seconds
            if any(word in verdict for word in ("memory", "died", "hung")):
                worker.end()  # what was left of it may disturb the next cases
                worker = None
    finally:
        if worker is not None:
            worker.end()
