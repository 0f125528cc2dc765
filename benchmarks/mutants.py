"""Small changes to the heart of the library, and whether the fast tests notice them.

    python -m benchmarks.mutants run [--each 6] [--seed 0] [--modules robust/iadc.py ...] [--again]
    python -m benchmarks.mutants table

A mutant is one change to one module: a comparison, an operator, a number or a truth value is
another one, or a statement is left out. `--each` of them are drawn from every module by the seed,
and the fast tests that belong to the module run on a copy of the source with this one change, up to
the first one that fails. Besides, there is a list of mistakes with names (mutants_planted.py), all
of which are tried. A mutant that no test notices has survived: a test is missing, or the change
means nothing; mutants_reasons.py says which, and changes of a sort that is listed there as one
that nobody could see are counted without being tried. Lines go to results/mutants.jsonl as they
come. What is there is not tried again; `--again` tries the survivors without a reason once more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from benchmarks.mutants_page import write_page
from benchmarks.mutants_planted import PLANTED
from benchmarks.mutants_reasons import everywhere, reason_for
from benchmarks.mutants_tests import TESTS
from benchmarks.mutations import PACKAGE, Mutant, mutants
from benchmarks.records import append, environment, read

RESULTS = Path("results/mutants.jsonl")
COPIED = ("src", "tests", "pyproject.toml", "benchmarks", "results", "README.md", "docs")
COMPILED = "@compiled"  # what is above a compiled function
LOOPS = (*TESTS["detectors/multiview.py"], *TESTS["nets/stacked.py"],
         *TESTS["detectors/compiled_maps.py"], *TESTS["diffusion/simplex_cpu.py"])  # fmt: skip


def drawn(args: argparse.Namespace) -> list[Mutant]:
    """Return the mutants of this seed that are to be tried: those with names first.

    Then one of each module, another of each, and so on: a run that is stopped has seen all modules.
    """
    chosen = args.modules or TESTS
    found = [p.mutant() for p in PLANTED if p.module in chosen]
    every = {module: mutants(module) for module in chosen}
    for module, own in every.items():
        random.Random(f"{args.seed} {module}").shuffle(own)
    fates = {_key(line): line["killed_by"] for line in read(args.cells) if "module" in line}
    if args.again:  # whatever has survived, whichever draw it was of
        found += [make() for name in {key[0] for key in fates if fates[key] is None}
                  for make in every.get(str(name), ())]  # fmt: skip
        left = [m for m in found if fates.get(_key(vars(m)), "") is None]
        return [m for m in left if reason_for(vars(m))[0] == "survived"]
    for k in range(args.each):
        found += [own[k]() for own in every.values() if k < len(own)]
    return [m for m in found if _key(vars(m)) not in fates]


def _key(line: dict[str, Any]) -> tuple[object, ...]:
    return tuple(line[name] for name in ("module", "code", "column", "what"))


class Copies:
    """Copies of the repository that share all files but the one that is changed."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="mutants-"))
        self.whole = self.folder / "whole"
        self.whole.mkdir()
        for part in COPIED:
            _copied(Path(part), self.whole / part, shutil.copy2)

    def compile(self, runner: Runner) -> None:
        """Compile all loops once for all copies, unless they have come with the source."""
        if not any(self.whole.rglob("*.nbi")):
            runner.answer(self.whole, LOOPS)

    def with_change(self, mutant: Mutant, name: str = "changed") -> Path:
        """Return a copy with one changed module; compiled code that knows it is made anew."""
        copy = self.folder / name
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for part in COPIED:
            _copied(self.whole / part, copy / part, os.link)
        package = copy / PACKAGE.relative_to(".")
        _replace(package / mutant.module, mutant.source)
        module = "aberra." + mutant.module.removesuffix(".py").replace("/", ".")
        for path in package.rglob("*.py"):
            text = path.read_text()
            if COMPILED in text and f"from {module} import" in text:
                _replace(path, f"{text}# {mutant.line} {mutant.what!r}\n")  # numba goes by the text
        return copy


def _copied(source: Path, target: Path, how: Any) -> None:
    if source.is_dir():
        shutil.copytree(source, target, copy_function=how)
    else:
        how(source, target)


def _replace(path: Path, text: str) -> None:
    path.unlink()  # the other copies keep theirs
    path.write_text(text)


class Runner:
    """The process that runs the tests."""

    def __init__(self) -> None:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        variables.pop("PYTHONPATH", None)
        command = [sys.executable, str(Path(__file__).with_name("mutants_fork.py"))]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables
        )

    def answer(self, folder: Path, tests: Iterable[str]) -> dict[str, Any]:
        """Return the first test that fails on a copy, and the seconds that it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps({"folder": str(folder), "tests": list(tests)}), file=self.process.stdin)
        self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def fate(self, whole: Path, changed: Path, tests: Iterable[str]) -> dict[str, Any]:
        """Return the same of a changed copy; what fails must pass where nothing was changed."""
        found = self.answer(changed, tests)
        first = found["first"]
        if first is not None and "::" in first and self.answer(whole, [first])["first"] is not None:
            raise SystemExit(f"{first} fails without any change, so it notices nothing.")
        return found


def run(args: argparse.Namespace) -> None:
    """Try all mutants of the seed, one after the other."""
    waiting, copies, runner = drawn(args), Copies(), Runner()
    copies.compile(runner)
    print(f"{len(waiting)} mutants", flush=True)
    if waiting:
        append(args.cells, {"measured_with": environment()})
    for k, mutant in enumerate(waiting):
        line = {name: value for name, value in vars(mutant).items() if name != "source"}
        found: dict[str, Any] = {"first": None, "seconds": 0}
        if everywhere(line) is None:  # a change that nobody could see is not tried
            changed = copies.with_change(mutant)
            found = runner.fate(copies.whole, changed, TESTS[mutant.module])
        line |= {"killed_by": found["first"], "seconds": found["seconds"]}
        append(args.cells, line)
        where = f"{k + 1}/{len(waiting)} {mutant.module}:{mutant.line} {mutant.what}"
        print(f"{where} | {found['first']} | {found['seconds']}", flush=True)
    shutil.rmtree(copies.folder)


def check(args: argparse.Namespace) -> None:
    """Run the tests of every module on the source as it is: all must pass."""
    copies, runner = Copies(), Runner()
    for tests in dict.fromkeys(TESTS[module] for module in args.modules or TESTS):
        print(tests, runner.answer(copies.whole, tests), flush=True)
    shutil.rmtree(copies.folder)


def table(args: argparse.Namespace) -> None:
    """Write the score of every module, the mistakes with names, and the survivors."""
    write_page(args.cells, args.out, f"# Mutants\n\n{__doc__}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "check", "table"))
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--modules", nargs="+", choices=list(TESTS))
    parser.add_argument("--again", action="store_true", help="try the survivors once more")
    parser.add_argument("--cells", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS.with_suffix(".md"))
    args = parser.parse_args()
    {"run": run, "check": check, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
