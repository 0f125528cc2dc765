"""Give stored cells the keys of today, where a setting is only written in another way.

    python -m benchmarks.migrate_cells [FOLDER]    results by default; run twice, it changes nothing

A cell is found by the digest of its whole setting. Four changes wrote the same settings anew: the
detectors of tables lost `device`, which could only be "cpu", the rows of the MRI table state every
parameter, and the version of the code that computed a cell (`aberra.reproduce.engines`) became a
part of its setting. And version 2 of `MultiView` gives the same bytes as version 1 where no column
mostly holds one of a few values and there are four rows a column: advice on four of the six ODDS
sets is the same. Version 3 gives the same as version 2 where a column has more than two rows,
as in all but Arrhythmia. A cell moves only if all else about its setting is the same as before.
Spreads name the cells that they were made of; arrays and models are files named by the key.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from aberra.reproduce.experiments import EXPERIMENTS
from aberra.reproduce.profiles import profiles
from aberra.reproduce.spread import SPREAD
from aberra.reproduce.store import Record, Setting, key_of, read_lines

DROPPED = {"device": "cpu"}
WRITTEN_ANEW = ("params", "engine", "adviser")
# Sets with the same advice of one version of MultiView and of the next.
SAME_ADVICE = {
    1: ("satellite", "satimage-2", "shuttle", "thyroid"),
    2: ("satellite", "satimage-2", "shuttle", "thyroid", "cardio"),
}
# Cells of networks of tables that are older than their compiled training, which is version 2.
BEFORE_COMPILED = {"bbdf967", "a935ddc", "e8d7776"}


def known_settings() -> Iterator[Setting]:
    """Yield the settings of all cells of all profiles, as they are written today."""
    for profile in profiles().values():
        for experiment in EXPERIMENTS.values():
            for job in experiment.jobs(profile):
                yield from job.settings


def rest_of(setting: Setting) -> str:
    """Return a setting as text, without the parts that may be written in another way."""
    rest = {k: v for k, v in setting.items() if k not in WRITTEN_ANEW}
    return json.dumps(rest, sort_keys=True)


def engine_then(line: Record, new: Setting) -> int:
    """Return the version of the code that computed a cell."""
    if "engine" in line["setting"]:
        return int(line["setting"]["engine"])
    return min(new["engine"], 1) if line["commit"] in BEFORE_COMPILED else int(new["engine"])


def is_same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Say whether nothing was dropped but `DROPPED`, and what both state agrees."""
    gone = {name: value for name, value in old.items() if name not in new}
    return gone.items() <= DROPPED.items() and all(
        new[name] == value for name, value in old.items() if name in new
    )


def migrate(lines: Iterable[Record], known: dict[str, list[Setting]]) -> Iterator[Record]:
    """Yield the cells with the settings and keys of today."""
    for line in lines:
        setting = line["setting"]
        assert key_of(setting) == line["key"], f"{line['key']} is not the key of its setting"
        same = {
            key_of(new): new
            for new in known.get(rest_of(setting), ())
            if is_same(setting["params"], new["params"])
        }
        if line["key"] in same or len(same) != 1:
            yield line
            continue
        (new,) = same.values()
        engine = engine_then(line, new)
        today = {**setting, "params": new["params"], "engine": engine}
        while today.get("set") in SAME_ADVICE.get(today.get("adviser", 0), ()):
            today["adviser"] += 1
        yield {**line, "key": key_of(today), "setting": today}


def main() -> None:
    """Migrate one folder of results."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    known: dict[str, list[Setting]] = {}
    for setting in known_settings():
        known.setdefault(rest_of(setting), []).append(setting)
    keys: dict[str, str] = {}
    for path in sorted((folder / "cells").glob("*.jsonl")):
        if path.stem == SPREAD:
            continue
        lines = list(read_lines(path))
        made = list(migrate(lines, known))
        keys |= {old["key"]: new["key"] for old, new in zip(lines, made, strict=True)}
        write(path, lines, made)
    path = folder / "cells" / f"{SPREAD}.jsonl"
    lines, made = list(read_lines(path)), []
    for line in lines:
        setting = {**line["setting"], "cells": [keys.get(k, k) for k in line["setting"]["cells"]]}
        made.append({**line, "key": key_of(setting), "setting": setting})
    write(path, lines, made)
    for old, new in keys.items():
        for file in [*folder.glob(f"arrays/*/{old}.npz"), *folder.glob(f"models/{old}.*")]:
            file.rename(file.with_name(file.name.replace(old, new)))


def write(path: Path, before: list[Record], after: list[Record]) -> None:
    """Write the lines of a file anew, and say how many have moved."""
    n = sum(old["key"] != new["key"] for old, new in zip(before, after, strict=True))
    print(f"{path}: {n} of {len(after)} moved")
    if n:
        path.write_text("".join(json.dumps(line) + "\n" for line in after), encoding="utf-8")


if __name__ == "__main__":
    main()
