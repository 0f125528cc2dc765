"""The page of results/mutants.md."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.mutants_planted import PLANTED
from benchmarks.mutants_reasons import reason_for
from benchmarks.mutants_tests import TESTS
from benchmarks.mutations import PACKAGE
from benchmarks.records import read

BEFORE = Path("results/mutants_before.jsonl")  # the first run, before the tests were sharpened
NAMES = {(planted.module, planted.name) for planted in PLANTED}

Line = dict[str, Any]

ABOUT = """## Drawn mutants

`make mutants` tries them and writes this page. *Before* is the first run of all, with other
operators and other draws (results/mutants_before.jsonl). *Killed at first* are those that the
tests of the day noticed when they were tried; where one survived, a test was written, and it was
tried again. Equivalent ones cannot change what anybody sees; each is listed below with its reason.
"""


def write_page(cells: Path, out: Path, head: str) -> None:
    """Write the score of every module, the mistakes with names, and the survivors."""
    tried = list(_tried(cells))
    named = [line for line in tried if (line["module"], line["what"]) in NAMES]
    drawn = [line for line in tried if (line["module"], line["what"]) not in NAMES]
    parts = [*_modules(drawn), *_named(named), *survivors(tried)]
    out.write_text(head + "\n" + "\n".join(parts) + "\n")
    print("\n".join(_modules(drawn)))


def _tried(cells: Path) -> Iterator[Line]:
    """Yield the last word on each mutant of the code as it is, and whether it died at first."""
    runs: dict[tuple[object, ...], list[Line]] = {}
    for line in read(cells):
        if "module" in line and _still_there(line):
            runs.setdefault(_key(line), []).append(line)
    for own in runs.values():
        yield {**own[-1], "at_first": own[0]["killed_by"] is not None}


@cache
def _source(module: str) -> list[str]:
    return [line.strip() for line in (PACKAGE / module).read_text().splitlines()]


def _still_there(line: Line) -> bool:
    """Say whether the line of code is still there, wherever it has moved."""
    return any(line["code"] in own for own in _source(line["module"]))


def _key(line: Line) -> tuple[object, ...]:
    return tuple(line[name] for name in ("module", "code", "column", "what"))


def _fate(line: Line) -> str:
    return "killed" if line["killed_by"] is not None else reason_for(line)[0]


def _modules(drawn: list[Line]) -> Iterator[str]:
    old = [line for line in read(BEFORE) if "module" in line]
    yield ABOUT
    yield (
        "| module | before | mutants | killed at first | killed | equivalent | survived "
        "| % of not equivalent |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for module in [*TESTS, None]:
        lines = [line for line in drawn if module in (line["module"], None)]
        own, first = [_fate(line) for line in lines], sum(line["at_first"] for line in lines)
        then = [line["fate"] for line in old if module in (line["module"], None)]
        before = f"{then.count('killed')} of {len(then)}" if then else ""
        if own:
            killed, equivalent = own.count("killed"), own.count("equivalent")
            counted = len(own) - equivalent
            share = f"{100 * killed / counted:.0f}" if counted else ""
            left = counted - killed
            cells = (module or "all", before, len(own), first, killed, equivalent, left, share)
            yield "| " + " | ".join(map(str, cells)) + " |"


def _named(named: list[Line]) -> Iterator[str]:
    yield "\n## Mistakes with names\n\n| mistake | module | noticed by |\n|---|---|---|"
    for line in named:
        by = (line["killed_by"] or "nobody").removeprefix("tests/")
        yield f"| {line['what']} | {line['module']} | {by} |"


def survivors(tried: list[Line]) -> Iterator[str]:
    """Yield a table of the mutants that nothing noticed, with the reason of each."""
    yield "\n## Survivors\n\n| module | line | code | change | kind | why |"
    yield "|---|---|---|---|---|---|"
    for line in tried:
        if line["killed_by"] is None:
            kind, why = reason_for(line)
            code, what = (f"`{line[name].replace('|', '¦')}`" for name in ("code", "what"))
            place = f"{line['module']} | {line['line']}"
            yield f"| {place} | {code} | {what} | {kind} | {why} |"
