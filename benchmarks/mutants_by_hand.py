"""Mistakes that somebody thought of who had not looked at the tests.

    python -m benchmarks.mutants_by_hand run MISTAKES.jsonl --hand 4
    python -m benchmarks.mutants_by_hand again
    python -m benchmarks.mutants_by_hand table

The mutants of results/mutants.md and mutants_fresh.md are what a machine makes of a line. A person
makes other mistakes: another variable of the same type, an argument that is not handed on, a value
of the round before. Here each *hand* wrote down a list of such mistakes from the source alone
(module, text before and after, what it means), and the fast tests of the module were run on each.
What counts is how many are noticed at once. Afterwards tests are written for what got through, and
`again` tries it once more. Lines go to results/mutants_by_hand.jsonl.

Hand 2 flatters the tests: it is the part of the first list that had not been run when tests were
written for what the other part had shown, and whoever wrote them knew the whole list and covered
some of it in advance. Hands 1, 3 and 4 are blind. All four were first run by a script with the same
runner but its own lists of tests for modules that `mutants_tests.TESTS` lacks; their lines, and the
commits that these name, were brought here afterwards.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.mutants import Copies, Runner
from benchmarks.mutants_tests import tests_of
from benchmarks.mutations import PACKAGE, Mutant
from benchmarks.records import append, environment, read

RESULTS = Path("results/mutants_by_hand.jsonl")
Line = dict[str, Any]
# What nobody could see, or is no longer there, by module and meaning, and why.
EXPLAINED = {
    ("data/rarity.py", "unseen values are usual"): "the line is gone, and what takes its place has "
    "a test of its own",
    ("detectors/compiled_views.py", "sum over columns"): "a view counts by its own bulk, so that "
    "its scale cancels",
    ("data/mri/nifti.py", "results with the overridden affine (header)"): "the affine is written "
    "once more, into both places that programs read",
    ("scoring/table.py", "rows numbered by full chunks (resumed)"): "a chunk begins at its number "
    "times the rows of a chunk",
    ("scoring/rows.py", "equivalent-ish: predict (decision < 0)"): "the sign of a difference of "
    "finite numbers is exact",
    ("localise/healthy.py", "looked_at for scored"): "healthy scans are scored without a mask, "
    "where the two are the same",
    ("engine.py", "workers not on one thread"): "the process that asks is limited already, and "
    "every worker has one thread",
    ("localise/volumes.py", "mask with the anatomy (this may be right!)"): "it was right: the code "
    "was wrong, and is mended",
}


def _key(line: Line) -> tuple[str, str, str]:
    return line["module"], line["before"], line["after"]


def mutant_of(line: Line) -> Mutant | None:
    """Return the changed module; None where the text is not there once."""
    text = (PACKAGE / line["module"]).read_text()
    if text.count(line["before"]) != 1:
        return None
    at = text[: text.index(line["before"])].count("\n") + 1
    changed = text.replace(line["before"], line["after"])
    code = line["before"].splitlines()[0]
    return Mutant(line["module"], at, 0, line["why"], code, changed)


def attempt(lines: Iterable[Line], hand: int | None = None) -> None:
    """Try mistakes one after the other, and keep what noticed each."""
    copies, runner = Copies(), Runner()
    copies.compile(runner)
    append(RESULTS, {"measured_with": environment()})
    for line in lines:
        mutant = mutant_of(line)
        if mutant is None:
            print(f"not there once: {line['module']} {line['before']!r}", flush=True)
            continue
        changed = copies.with_change(mutant)
        found = runner.fate(copies.whole, changed, tests_of(line["module"]))
        kept = {name: line[name] for name in ("module", "before", "after", "why")}
        by = {"hand": line["hand"] if hand is None else hand}
        append(RESULTS, {**by, **kept, "killed_by": found["first"], "seconds": found["seconds"]})
        print(f"{mutant.module}:{mutant.line} {line['why']} | {found['first']}", flush=True)
    shutil.rmtree(copies.folder)


def last_words() -> list[Line]:
    """Return one line for each mistake: the last, and whether it was noticed at first."""
    runs: dict[tuple[object, ...], list[Line]] = {}
    for line in read(RESULTS):
        if "module" in line:
            runs.setdefault((line["hand"], *_key(line)), []).append(line)
    return [{**own[-1], "at_first": own[0]["killed_by"] is not None} for own in runs.values()]


def _left(line: Line) -> bool:
    return line["killed_by"] is None and (line["module"], line["why"]) not in EXPLAINED


def _table(lines: list[Line]) -> Iterator[str]:
    areas = sorted({(line["hand"], line["module"].split("/")[0]) for line in lines})
    yield "| hand | part | mistakes | explained | noticed at first | % | noticed now |"
    yield "|---|---|---|---|---|---|---|"
    for hand, part in [*areas, *((hand, "all") for hand in sorted({h for h, _ in areas}))]:
        own = [
            line
            for line in lines
            if line["hand"] == hand and part in ("all", line["module"].split("/")[0])
        ]
        same = sum((line["module"], line["why"]) in EXPLAINED for line in own)
        first, now = (sum(map(bool, v)) for v in zip(*map(_noticed, own), strict=True))
        share = 100 * first / max(len(own) - same, 1)
        row = (hand, part.removesuffix(".py"), len(own), same, first, f"{share:.0f}", now)
        yield f"| {' | '.join(map(str, row))} |"


def _noticed(line: Line) -> tuple[bool, bool]:
    return line["at_first"], line["killed_by"] is not None


def _rows(lines: list[Line]) -> Iterator[str]:
    yield "| module | mistake | noticed now by |"
    yield "|---|---|---|"
    for line in sorted(lines, key=lambda line: (line["hand"], line["module"])):
        if not line["at_first"]:
            why = EXPLAINED.get((line["module"], line["why"]))
            test = line["killed_by"] or (why or "nothing yet")
            yield f"| {line['module']} | {line['why'].replace('|', ' ')} | {test} |"


def write_page() -> None:
    """Write what every hand's mistakes came to."""
    lines = last_words()
    head = f"# Mistakes by hand\n\n{__doc__}"
    through = ["", "## What got through at first", "", *_rows(lines)]
    page = "\n".join([head, *_table(lines), *through])
    RESULTS.with_suffix(".md").write_text(page + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "again", "table"))
    parser.add_argument("mistakes", type=Path, nargs="?", help="JSON lines, for `run`")
    parser.add_argument("--hand", type=int, default=0)
    args = parser.parse_args()
    if args.command == "run":
        done = {_key(line) for line in read(RESULTS) if "module" in line}
        lines = [json.loads(text) for text in args.mistakes.read_text().splitlines()]
        attempt((line for line in lines if _key(line) not in done), args.hand)
    elif args.command == "again":
        attempt(filter(_left, last_words()))
    write_page()


if __name__ == "__main__":
    main()
