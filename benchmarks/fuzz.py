"""Coverage-guided fuzzing of the parsers of foreign bytes that are ours.

    pip install atheris
    python -m benchmarks.fuzz run model --seconds 1200 --corpus FOLDER
    python -m benchmarks.fuzz run --clock 900           every target, as long as its figure says
    python -m benchmarks.fuzz try csv finding-...       one input, with the whole error
    python -m benchmarks.fuzz table                     writes results/fuzz.md

Inputs may only be used, or refused by one of Aberra's errors; anything else is a finding, and its
input is kept in the folder of findings. An input may take 20 s and 2 GB. Seconds are those of the
processor. A corpus that is kept makes the next run go on where this one ended. atheris is no
dependency of the project: it is asked for here alone. Figures go to results/fuzz.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from aberra.errors import AberraError
from benchmarks.fuzz_inputs import changed_workbook, crossed, dictionary, forged, seeds
from benchmarks.fuzz_targets import IMPORTED, TARGETS, WATCHED

STORE, PAGE = Path("results/fuzz.jsonl"), Path("results/fuzz.md")
SECONDS = {"model": 1200, "csv": 1200, "json": 600, "sheet": 600, "marks": 600, "frame": 600}
PATIENCE, MEMORY = 20, 2048  # seconds and megabytes of an input
SLACK = 6  # how many times its seconds an input may take on the clock of a busy machine
SOUND = "seed-"  # how the names of inputs begin that nobody changed
LAST_RESORTS = ("reading", "_explained", "_stored")  # functions that take any error as damage
ABOUT = {
    "model": "model files: opened, scored with, explained, shown",
    "csv": "CSV files: read whole, in chunks, made numbers",
    "json": "JSON files: read whole, in chunks, made numbers",
    "sheet": "Excel files: read whole, in chunks, made numbers",
    "marks": "marks of a reviewer, JSON or CSV: given to a model",
    "frame": "frames of compressed DICOM: read as a series",
}
REST = """\
`python -m benchmarks.fuzz run` in an environment that has atheris as well. An input may only be
used, or refused by one of Aberra's errors; a *finding* is any other error, a score that is not
finite, rows that get lost, more than 20 s of the processor, or more than 2 GB. *Coverage* is what
libFuzzer counts: branches of the watched modules that some input took, with the corpus of the start
and at the end. The second and third run of model files and the second of CSV files went on from the
corpus of the one before; the last three rows began anew, with the seeds alone. *Refused* inputs met
one of our checks; those *as a last resort* were refused by a library, or by what no check of ours
foresaw, and the error names the file and what was said. Nearly all refusals of frames count as
such, as they go through one place, our own check of the size included.

Minutes are those of the processor, and an hour in all was the aim. The figures say that little is
found quickly, not that nothing is left.

The checksum of a model file keeps most changes of bytes out, so these files are taken apart: a
value of the manifest or an array is changed, or comes from a model of another kind, and the
checksum is made to fit. So are Excel files, which are zips of XML: an entry is changed, and all are
packed again. Seeds are small models of every kind of table, of images without a large
network, and with recipes of tables, pictures and scans. A CSV file is read with and without a
header, and must have as many rows in chunks as it has as a whole.

What was found and mended: an ensemble of localisers without a threshold for its maps, which loaded
and could not be shown; a model of images with settings of tables, which loaded and refused all
images; a mark that names no row; and, within ten seconds of a first trial that is
not in the table, a frame of JPEG 2000 in a box of no length, which kept pydicom busy for ever. Each
is kept small in tests/integration/test_borders_models.py, test_borders_files.py and
tests/unit/test_mri_dicom.py. An earlier trial of three minutes found a header with a strange quote.
"""

Line = dict[str, Any]
Limits = tuple[float, float]


def main() -> None:
    """Run what was asked for."""
    asked = _options()
    warnings.simplefilter("ignore")
    if asked.command == "run":
        for name in asked.names:
            limits = asked.seconds or SECONDS[name], asked.clock
            keep(name, limits, asked.corpus, asked.findings)
        PAGE.write_text(page())
    elif asked.command == "work":
        work(asked.name, asked.seconds, asked.clock, asked.corpus, asked.folder)
    elif asked.command == "try":
        with tempfile.TemporaryDirectory() as folder:
            print(TARGETS[asked.name](asked.input.read_bytes(), Path(folder)))
    else:
        PAGE.write_text(page())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("names", nargs="*", default=list(TARGETS))
    running.add_argument("--seconds", type=int, help="of the processor, for each target")
    running.add_argument("--clock", type=float, default=1e6, help="seconds that may pass at most")
    running.add_argument("--corpus", type=Path, help="a folder that keeps inputs between runs")
    running.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    working = commands.add_parser("work")
    working.add_argument("name", choices=TARGETS)
    working.add_argument("seconds", type=float)
    working.add_argument("clock", type=float)
    working.add_argument("corpus", type=Path)
    working.add_argument("folder", type=Path)
    trying = commands.add_parser("try")
    trying.add_argument("name", choices=TARGETS)
    trying.add_argument("input", type=Path)
    commands.add_parser("table")
    return parser.parse_args()


# A run: a process of its own, and another one after what ends it, until the time is over


def keep(name: str, limits: Limits, corpus: Path | None, findings: Path) -> None:
    """Fuzz one target, and note what came of it.

    Parameters
    ----------
    name : str
    limits : pair of float
        Seconds of the processor and seconds on the clock; the run ends with the first.
    corpus : Path or None
        A folder of inputs to begin with and to add to; None forgets them.
    findings : Path
        A folder for inputs that failed.
    """
    from benchmarks.records import append, environment

    known = environment()
    with tempfile.TemporaryDirectory() as scratch:
        kept = (Path(scratch) / "corpus" if corpus is None else corpus.resolve()) / name
        kept.mkdir(parents=True, exist_ok=True)
        if not any(kept.iterdir()):
            for k, seed in enumerate(seeds(name, Path(scratch))):
                (kept / f"{SOUND}{k:02d}").write_bytes(seed)
        n_before = len(list(kept.iterdir()))
        parts = list(_parts(name, limits, kept, Path(scratch)))
        found: Counter[str] = sum((part["findings"] for part in parts), Counter())
        _keep_inputs(Path(scratch), findings / name)
        line = {
            "target": name,
            "seconds": round(sum(part["cpu"] for part in parts), 1),
            "executions": sum(part["executions"] for part in parts),
            "used": sum(part["used"] for part in parts),
            "refused": sum(part["refused"] for part in parts),
            "last_resort": sum(part["last_resort"] for part in parts),
            "coverage": [parts[0]["coverage"][0], max(part["coverage"][1] for part in parts)],
            "corpus": [n_before, len(list(kept.iterdir()))],
            "findings": [[signature, n] for signature, n in found.most_common()],
        }
    line |= {part: known[part] for part in ("commit", "python", "numpy", "scikit-learn", "torch")}
    append(STORE, {**line, "atheris": version("atheris")})


def _parts(name: str, limits: Limits, corpus: Path, folder: Path) -> Iterator[Line]:
    """Yield what each process did; a new one goes on after an input that ended the one before."""
    spent, start = 0.0, time.monotonic()
    while spent < 0.95 * limits[0] and (passed := time.monotonic() - start) < 0.95 * limits[1]:
        log, before = folder / "log", os.times()
        left = [str(limits[0] - spent), str(limits[1] - passed)]
        command = [sys.executable, "-m", "benchmarks.fuzz", "work", name, *left]
        with log.open("wb") as out:
            code = subprocess.run([*command, corpus, folder], stderr=out, stdout=out).returncode
        after = os.times()
        cpu = after.children_user + after.children_system
        cpu -= before.children_user + before.children_system
        part = _outcome(folder, log.read_text("utf-8", "replace"), code)
        yield {**part, "cpu": cpu}
        spent += max(cpu, 1.0)


def _outcome(folder: Path, log: str, code: int) -> Line:
    """Return the figures of one process, from what it noted and what libFuzzer wrote."""
    noted = folder / "tally.json"
    held = json.loads(noted.read_text()) if noted.exists() else {}
    noted.unlink(missing_ok=True)
    sys.stderr.write(log[-2000:])
    covered = [int(n) for n in re.findall(r"#\d+\s+[A-Za-z]+ +cov: (\d+)", log)]
    start = re.search(r"INITED +cov: (\d+)", log)  # when all inputs of the corpus were tried
    found = Counter(held.get("findings", {}))
    if code:
        ended = re.search(r"ERROR: libFuzzer: ([^\n(]+)|Segmentation fault|MemoryError", log)
        found[f"the process ended: {ended[0] if ended else f'exit code {code}'}"] += 1
    if start is None:
        raise RuntimeError(f"The fuzzer did not start: {log[-2000:]}")
    tried = {key: held.get(key, 0) for key in ("executions", "used", "refused", "last_resort")}
    return {**tried, "coverage": [int(start[1]), max(covered)], "findings": found}


def _keep_inputs(folder: Path, findings: Path) -> None:
    """Move inputs that failed to where they stay."""
    for path in [*folder.glob("finding-*"), *folder.glob("artifact-*")]:
        findings.mkdir(parents=True, exist_ok=True)
        (findings / path.name).write_bytes(path.read_bytes())


# The process that fuzzes


class Tally:
    """Counts what became of inputs, and keeps one input of each sort of failure.

    Parameters
    ----------
    folder : Path
        Where inputs and counts are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.counts = folder, Counter[str]()
        self.findings, self.refusals = Counter[str](), Counter[str]()
        self.written = time.monotonic()

    def tries(self, name: str, data: bytes) -> None:
        """Give an input to a target, and count what becomes of it."""
        self.counts["executions"] += 1
        start = time.process_time()
        try:
            TARGETS[name](data, self.folder)
            self.counts["used"] += 1
        except AberraError as error:
            self.refused(error)
        except Exception as error:
            self.failed(error, data)
        if time.process_time() - start > PATIENCE:
            self.failed(TimeoutError("more seconds than an input may take"), data)

    def refused(self, error: AberraError) -> None:
        """Count a refusal; one as a last resort tells what a library said or nobody foresaw."""
        self.counts["refused"] += 1
        while isinstance(error.__cause__, AberraError):
            error = error.__cause__
        raised = traceback.extract_tb(error.__traceback__)[-1].name
        cause = error.__cause__
        if cause is not None and raised in LAST_RESORTS and not isinstance(cause, OSError):
            self.counts["last_resort"] += 1
            self.refusals[signature(cause)] += 1

    def failed(self, error: Exception, data: bytes) -> None:
        """Count a failure; keep the smallest input."""
        sort = signature(error)
        self.findings[sort] += 1
        path = self.folder / f"finding-{sha256(sort.encode()).hexdigest()[:12]}"
        if not path.exists() or len(data) < path.stat().st_size:
            path.write_bytes(data)

    def write(self, at_once: bool = False) -> None:
        """Write the counts down, every few seconds."""
        if at_once or time.monotonic() - self.written > 5:
            self.written = time.monotonic()
            held = {**self.counts, "findings": self.findings, "refusals": self.refusals}
            (self.folder / "tally.json").write_text(json.dumps(held, indent=1))


def signature(error: BaseException) -> str:
    """Return what an error is called, and the last place of ours that it came through."""
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "aberra" in f.filename]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "elsewhere"
    said = str(error).splitlines()[:1]
    return (
        f"{type(error).__name__} in {place}: {re.sub('[0-9]+', '0', said[0])[:60] if said else ''}"
    )


def work(name: str, seconds: float, clock: float, corpus: Path, folder: Path) -> None:
    """Fuzz in this process, until its time is over or an input ends it."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=WATCHED[name]):
        for module in IMPORTED[name]:
            import_module(module)
    tally, start, begun = Tally(folder), time.process_time(), time.monotonic()

    def try_one(data: bytes) -> None:
        tally.tries(name, data)
        over = time.process_time() - start > seconds or time.monotonic() - begun > clock
        tally.write(over)
        if over:
            os.kill(os.getpid(), signal.SIGUSR1)  # libFuzzer then ends in good order

    sound = [path.read_bytes() for path in sorted(corpus.glob(f"{SOUND}*"))]

    def change_model(data: bytes, longest: int, seed: int) -> bytes:
        return forged(data, longest, seed, atheris.Mutate, sound)

    def change_workbook(data: bytes, longest: int, seed: int) -> bytes:
        return changed_workbook(data, longest, seed, atheris.Mutate, sound)

    options = [f"-timeout={SLACK * PATIENCE}", f"-rss_limit_mb={MEMORY}"]
    options.append(f"-artifact_prefix={folder}/artifact-")
    options += ["-max_len=300000", "-len_control=0", "-print_final_stats=1"]
    if (words := dictionary(name)) is not None:
        (folder / "words").write_text(words)
        options.append(f"-dict={folder / 'words'}")
    structured: dict[str, dict[str, Any]] = {
        "model": {"custom_mutator": change_model, "custom_crossover": crossed},
        "sheet": {"custom_mutator": change_workbook},
    }
    atheris.Setup([sys.argv[0], *options, str(corpus)], try_one, **structured.get(name, {}))
    atheris.Fuzz()


# The page


def page() -> str:
    """Return the table of all runs."""
    from benchmarks.records import read

    lines = [
        "# Fuzzing: what guided chance finds",
        "",
        "| target | processor | inputs | used | refused | as a last resort | coverage "
        "| findings | commit |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    held = list(read(STORE))
    minutes, tried = sum(line["seconds"] for line in held) / 60, sum(x["executions"] for x in held)
    lines += [_row(line) for line in held]
    return "\n".join([*lines, "", f"In all {minutes:.0f} minutes and {tried:,} inputs.", "", REST])


def _row(line: Line) -> str:
    first, last = line["coverage"]
    counts = [line.get(part) for part in ("executions", "used", "refused", "last_resort")]
    figures = " | ".join("" if count is None else f"{count:,}" for count in counts)
    return (
        f"| {ABOUT[line['target']]} | {line['seconds'] / 60:.1f} min | {figures} | "
        f"{first:,} to {last:,} | {len(line['findings'])} | {line['commit']} |"
    )


if __name__ == "__main__":
    main()
