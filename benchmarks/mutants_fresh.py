"""Draws of mutants that nobody had looked at, and how many of them the fast tests notice.

    python -m benchmarks.mutants_fresh run --seed 8 [--each 1] [--modules robust/iadc.py ...]
                                           [--like PATTERN] [--jobs 2]
    python -m benchmarks.mutants_fresh again
    python -m benchmarks.mutants_fresh table

The mutants of results/mutants.md had tests written for them, so their score says little about the
next mistake. A fresh draw has `--each` mutants of every module that no run has tried before. What
counts is how many of them are noticed at once. Afterwards tests are written for what got through,
`again` tries the survivors of all draws that have no reason yet, and the next draw shows whether
the tests have become sharper in general. Lines go to results/mutants_fresh.jsonl, each with the
seed of its draw. A draw of some modules alone, or of lines of one kind (`--like "^[A-Z_]+ ="`: the
constants), is marked and has no say in the score.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from benchmarks import mutants
from benchmarks.mutants_page import survivors
from benchmarks.mutants_reasons import everywhere, reason_for
from benchmarks.mutants_tests import TESTS
from benchmarks.mutations import Mutant
from benchmarks.mutations import mutants as every_mutant
from benchmarks.records import append, environment, read

RESULTS = Path("results/mutants_fresh.jsonl")
Line = dict[str, Any]


def _seen(line: Line) -> tuple[object, ...]:
    """Return what makes a mutant one that was tried: not its place, which moves."""
    return tuple(line[name] for name in ("module", "column", "what", "code"))


def drawn(args: argparse.Namespace) -> list[Mutant]:
    """Return mutants of this seed that no run has tried: one of each module, another of each."""
    known = [line for path in (mutants.RESULTS, RESULTS) for line in read(path)]
    lines = [line for line in known if "module" in line]
    tried = {_seen(line) for line in lines if line.get("seed") != args.seed}
    done = {_seen(line) for line in lines if line.get("seed") == args.seed}
    kept: dict[str, list[Mutant]] = {}
    for module in args.modules or TESTS:
        own = every_mutant(module, args.like)
        random.Random(f"{args.seed} {module}").shuffle(own)
        fresh = (mutant for make in own if _seen(vars(mutant := make())) not in tried)
        kept[module] = [mutant for mutant, _ in zip(fresh, range(args.each), strict=False)]
    found = [own[k] for k in range(args.each) for own in kept.values() if k < len(own)]
    return [mutant for mutant in found if _seen(vars(mutant)) not in done]


def _survivors_left() -> Iterator[tuple[Mutant, Line]]:
    """Yield the mutants of all draws that nothing noticed and nothing explains."""
    there: dict[tuple[object, ...], Mutant] = {}
    for line in _last_words():
        if line["killed_by"] is None and reason_for(line)[0] == "survived":
            if not any(key[0] == line["module"] for key in there):
                made = [make() for make in every_mutant(line["module"])]
                there |= {_seen(vars(mutant)): mutant for mutant in made}
            if _seen(line) in there:
                yield there[_seen(line)], line


def _last_words() -> list[Line]:
    """Return one line for each mutant of each draw: the last, and whether it died at first."""
    runs: dict[tuple[object, ...], list[Line]] = {}
    for line in read(RESULTS):
        if "module" in line:
            runs.setdefault((line["seed"], *_seen(line)), []).append(line)
    return [{**own[-1], "at_first": own[0]["killed_by"] is not None} for own in runs.values()]


def run(args: argparse.Namespace) -> None:
    """Try the mutants of a draw, one after the other."""
    some = {"part": True} if args.modules or args.like else {}
    _try([(mutant, {"seed": args.seed, **some}) for mutant in drawn(args)], args.jobs)


def again(args: argparse.Namespace) -> None:
    """Try once more what survived; a line that has changed since then is another mutant."""
    wanted = [] if args.modules is None else args.modules
    kept = [(m, line) for m, line in _survivors_left() if not wanted or m.module in wanted]
    marks: list[Line] = [{k: line[k] for k in ("seed", "part") if k in line} for _, line in kept]
    _try([(m, mark) for (m, _), mark in zip(kept, marks, strict=True)], args.jobs)


def _try(waiting: list[tuple[Mutant, Line]], jobs: int) -> None:
    copies, runners = mutants.Copies(), [mutants.Runner() for _ in range(jobs)]
    copies.compile(runners[0])
    print(f"{len(waiting)} mutants", flush=True)
    if waiting:
        append(RESULTS, {"measured_with": environment()})
    free: SimpleQueue[int] = SimpleQueue()
    for k in range(jobs):
        free.put(k)

    def line_of(pair: tuple[Mutant, Line]) -> Line:
        mutant, mark = pair
        line = mark | {name: value for name, value in vars(mutant).items() if name != "source"}
        found: Line = {"first": None, "seconds": 0}
        if everywhere(line) is None:  # a change that nobody could see is not tried
            k = free.get()
            copy = copies.with_change(mutant, f"changed-{k}")
            found = runners[k].fate(copies.whole, copy, TESTS[mutant.module])
            free.put(k)
        return line | {"killed_by": found["first"], "seconds": found["seconds"]}

    with ThreadPoolExecutor(jobs) as pool:
        for k, line in enumerate(pool.map(line_of, waiting)):
            append(RESULTS, line)
            where = f"{k + 1}/{len(waiting)} {line['module']}:{line['line']} {line['what']}"
            said = (where, line["code"], line["killed_by"], line["seconds"])
            print(" | ".join(map(str, said)), flush=True)
    shutil.rmtree(copies.folder)


def table(args: argparse.Namespace) -> None:
    """Write the score of every draw, and what is left of all."""
    lines = _last_words()
    draws = {seed: [x for x in lines if x["seed"] == seed] for seed in _seeds(lines)}
    whole = [own for own in draws.values() if not _is_part(own)]
    said = "\n".join(
        f"Of the last {words} of all modules, {first} of {counted} mutants that are not equivalent "
        f"({100 * first / counted:.1f} %) were noticed at once."
        for words, own in (("draw", whole[-1]), ("three draws", [*chain(*whole[-3:])]))
        for first, counted in (_at_first(own),)
    )
    parts = [f"# Fresh mutants\n\n{__doc__}\n## Draw by draw\n", said, ""]
    parts += [*_draws(draws), *survivors(lines)]
    RESULTS.with_suffix(".md").write_text("\n".join(parts) + "\n")
    print(said)


def _seeds(lines: list[Line]) -> list[int]:
    return list(dict.fromkeys(line["seed"] for line in lines))


def _is_part(own: list[Line]) -> bool:
    return any("part" in line for line in own)


def _at_first(own: list[Line]) -> tuple[int, int]:
    """Return how many were noticed at first, and how many are not equivalent."""
    same = [x for x in own if x["killed_by"] is None and reason_for(x)[0] == "equivalent"]
    return sum(line["at_first"] for line in own), len(own) - len(same)


def _draws(draws: dict[int, list[Line]]) -> Iterator[str]:
    yield (
        "| draw | modules | drawn | equivalent | noticed at first | % of not equivalent "
        "| noticed now | accepted | left |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for seed, own in draws.items():
        first, counted = _at_first(own)
        kinds = [reason_for(line)[0] for line in own if line["killed_by"] is None]
        cells = (
            seed,
            "some" if _is_part(own) else "all",
            len(own),
            len(own) - counted,
            first,
            f"{100 * first / max(1, counted):.0f}",
            len(own) - len(kinds),
            kinds.count("accepted"),
            kinds.count("survived"),
        )
        yield f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "again", "table"))
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--each", type=int, default=1)
    parser.add_argument("--modules", nargs="+", choices=list(TESTS))
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are tried at a time")
    parser.add_argument("--like", default="", help="only lines of code in which this is found")
    args = parser.parse_args()
    {"run": run, "again": again, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
