"""How a campaign of bad inputs is run: in a process of its own, with a clock and a memory limit.

A case ends in one of three ways: "fine" (the input was used, and the result is sound), "refused"
(one of Aberra's own errors) or "failed": any other exception, a result that is not finite, more
memory or time than stated, or a process that died.
"""

from __future__ import annotations

import json
import re
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from aberra.errors import AberraError

SECONDS = 60.0  # for one case; on a machine that does other work as well
MEMORY = 2 << 30  # bytes beyond what the process holds before the case
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
    """What came of a campaign."""

    tried: int = 0
    fine: int = 0
    refused: int = 0
    failed: int = 0
    slowest: float = 0.0
    failures: dict[str, list[int]] = field(default_factory=dict)  # what happened: which cases
    times: Counter[str] = field(default_factory=Counter)

    def add(self, k: int, verdict: str, seconds: float) -> None:
        """Count one case."""
        self.tried += 1
        self.slowest = max(self.slowest, seconds)
        if verdict == "fine":
            self.fine += 1
        elif verdict == "refused":
            self.refused += 1
        else:
            self.failed += 1
            self.times[verdict] += 1
            cases = self.failures.setdefault(verdict, [])
            if len(cases) < SHOWN:
                cases.append(k)

    def record(self) -> dict[str, Any]:
        """Return the figures."""
        held = {n: v for n, v in vars(self).items() if n not in ("failures", "times")}
        ways = [(what, self.times[what], cases) for what, cases in self.failures.items()]
        return {**held, "slowest": round(self.slowest, 2), "failures": ways}


def work(campaign: Campaign, sound: Path, start: int, stop: int) -> None:
    """Try some cases, and print what came of each; for a process of its own."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        campaign.prepare(sound)
        for k in range(start, stop):
            _limit_memory()
            _say({"begin": k})
            _say({"end": k, "verdict": _verdict(campaign, k, folder)})


def _limit_memory() -> None:
    """Allow so much more than the process holds now; what earlier cases left is not counted."""
    held = int(re.findall(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[0]) << 10
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, most))


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
        ours = [f for f in frames if "aberra" in f.filename] or list(frames)
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return f"{type(error).__name__}: {str(error)[:90]} ({place})"


def _lacked_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def run(name: str, n: int, sound: Path) -> Tally:
    """Try all cases; whenever the process at work dies or hangs, another one goes on."""
    tally, next_case = Tally(), 0
    command = [sys.executable, "-m", "benchmarks.borders", "work", name, str(sound)]
    while next_case < n:
        worker = subprocess.Popen(
            [*command, str(next_case), str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        next_case = _watch(worker, tally, next_case, n)
        worker.kill()
        worker.wait()
        sys.stderr.write(f"{name}: {next_case}/{n}, {tally.failed} failed\n")
    return tally


def _watch(worker: subprocess.Popen[bytes], tally: Tally, case: int, n: int) -> int:
    """Follow one process; return the case that is next when it has ended."""
    started, begun = time.monotonic(), False
    assert worker.stdout is not None
    while case < n:
        patience = SECONDS if begun else 20 * SECONDS  # the first line comes after the imports
        if not select.select([worker.stdout], [], [], patience)[0]:
            tally.add(case, f"hung for {SECONDS:g} s", SECONDS)
            return case + 1
        line = worker.stdout.readline()
        if not line:
            code, told = worker.wait(), b""
            if not begun:
                assert worker.stderr is not None
                told = worker.stderr.read()[-2000:]
                raise RuntimeError(f"the worker ended with {code}: {told.decode()}")
            tally.add(case, f"the process died with {code}", 0.0)
            return case + 1
        said = json.loads(line)
        if "begin" in said:
            started, begun = time.monotonic(), True
        else:
            tally.add(case, said["verdict"], time.monotonic() - started)
            case = said["end"] + 1
            if "memory" in said["verdict"]:
                return case  # what was left of it may disturb the next cases
    return case
