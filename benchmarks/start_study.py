"""Which start of the rounds is never worse: equal (as in the papers), gentle, informed or advised.

    python -m benchmarks.start_study run [SET ...]   adds what is missing to start_study.jsonl
    python -m benchmarks.start_study table           writes start_study.md

Every pair of a detector and a set is run with four starts and the same five seeds, seed by seed,
so that a pair can be compared as soon as its first seeds are there. Everything but `start` is the
papers' form. A cell of the ODDS tables (`aberra reproduce odds-iadc`) is the same computation and
is taken where there is one. Needs `ABERRA_DATA`. Labels judge; no start looks at them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import IADC
from aberra.data.registry import load_table
from aberra.metrics import auroc
from aberra.reproduce.engines import ENGINES
from aberra.reproduce.odds import ODDS, odds_jobs, own_jobs
from aberra.reproduce.profiles import profiles
from aberra.reproduce.seeds import run_seeds
from aberra.reproduce.settings import detector_of, settings_of
from aberra.reproduce.store import Store, append_line, key_of, read_lines
from aberra.robust.history import History
from benchmarks.records import environment

RESULTS, TABLE = Path("results/start_study.jsonl"), Path("results/start_study.md")
NO_LONGER_SHOWN = Path("results/cells/earlier/odds.jsonl")
STARTS = ("equal", "gentle", "informed", "advised")
# Earlier forms, no longer run: the first round goes by the advisers, and nobody asks whether that
# does harm; somebody asks, but the rounds go on after the third; the advisers' scores are not added
# to those of a round, which goes half of the way to the trust by its own; and the same, each round
# going all of the way.
UNASKED, ENDLESS = "informed, unasked", "informed, going on"
EARLIER = (UNASKED, ENDLESS, "advised, not added", "advised, undamped")
SEEDS = range(5)
UNNAMED = {"OCSVM": 1}  # versions of lines that do not name theirs; of the other detectors it is 2
PAIRS = [  # the cheap ones first
    *((name, "cardio") for name in ("OCSVM", "AE", "Deep SVDD", "OCSVM-H", "RSRAE")),
    *((name, "thyroid") for name in ("OCSVM", "AE", "Deep SVDD", "OCSVM-H", "RSRAE")),
    *((name, "satimage-2") for name in ("OCSVM", "Deep SVDD", "AE", "OCSVM-H", "RSRAE")),
    ("DAGPR", "cardio"),
    *((name, "satellite") for name in ("AE", "Deep SVDD", "OCSVM-H", "RSRAE")),
    *((name, "arrhythmia") for name in ("AE", "Deep SVDD", "OCSVM-H", "RSRAE")),
    *((name, "shuttle") for name in ("AE", "Deep SVDD", "OCSVM-H", "RSRAE")),
]
Labels = NDArray[Any]
Line = dict[str, Any]
Key = tuple[str, str, str, int]


def wanted(sets: Sequence[str]) -> Iterator[Key]:
    """Yield what the study consists of, in the order of its work."""
    for detector, name in PAIRS:
        if not sets or name in sets:
            yield from ((detector, name, start, seed) for seed in SEEDS for start in STARTS[::-1])


def measured(detector: str, name: str, start: str, seed: int) -> Line:
    """Run one seed and return what happened."""
    X, y = load_table(name)
    base = detector_of({"detector": detector, "params": settings_of(detector)})
    begun = time.process_time()
    (trial,) = run_seeds(IADC(base, start=start), X, [seed])
    single = {"single": 100 * auroc(y, trial.single)}
    return {**single, **story_of(trial.history, y, time.process_time() - begun)}


def story_of(history: History, y: Labels, seconds: float) -> Line:
    """Return how the rounds went, by the labels."""
    return {
        "auroc": 100 * auroc(y, history[history.kept].scores),
        "rounds": [round(100 * auroc(y, line.scores), 2) for line in history],
        "crossings": history.crossings(),
        "kept": history.kept,
        "cpu_seconds": round(seconds, 1),
    }


def run(sets: Sequence[str]) -> None:
    """Run what is missing."""
    for key in wanted(sets):
        if key in found():
            continue
        line = measured(*key)
        names = dict(zip(("detector", "set", "start", "seed"), key, strict=True))
        line |= {"engine": ENGINES["table"][key[0]], **environment()}
        append_line(RESULTS, {**names, **line})
        print(*key, round(line["auroc"], 1), line["rounds"], line["cpu_seconds"], flush=True)


def found() -> dict[Key, Line]:
    """Return what has been measured."""
    own = {
        (r["detector"], r["set"], r["start"], r["seed"]): r
        for r in read_lines(RESULTS)
        if r.get("engine", UNNAMED.get(r["detector"], 2)) == ENGINES["table"][r["detector"]]
    }
    return {**from_tables(), **own}


def from_tables() -> dict[Key, Line]:
    """Return the cells of the ODDS tables that the present code has computed.

    The cells of a start that is no longer a detector's own lie apart, and are taken as well.
    """
    profile, cells = profiles()["small"].with_seeds(10), Store(RESULTS.parent).read(ODDS)
    cells = {**cells, **{cell["key"]: cell for cell in read_lines(NO_LONGER_SHOWN)}}
    jobs = odds_jobs(profile, (True,)) + own_jobs(profile)
    settings = [s for job in jobs for s in job.settings]
    settings += [
        c["setting"]
        for c in cells.values()
        if c["setting"].get("start") in ("gentle", "informed")
        and c["setting"]["engine"] == ENGINES["table"][c["setting"]["detector"]]
    ]
    return {
        (s["detector"], s["set"], start_of(s), s["seed"]): {
            "auroc": 100 * cells[key]["auroc"]["IADC"]
        }
        for s in settings
        if (key := key_of(s)) in cells
    }


def start_of(setting: Mapping[str, Any]) -> str:
    """Return how the rounds of a cell begin; earlier versions of an informed start lie back."""
    start: str = setting.get("start", "equal")
    if start != "informed":
        return start
    return {1: UNASKED, 2: ENDLESS}.get(setting["course"], start)


def table() -> None:
    """Write mean and deviation of each start, and how often it is worse than the papers'."""
    done = found()
    shown = (*STARTS, *EARLIER)
    counted = f"worse than equal: {' | '.join(STARTS[1:])}"
    lines = [f"| detector | set | {' | '.join(shown)} | {counted} |"]
    lines.append("|---|---|" + "---|" * (len(shown) + 3))
    for detector, name in PAIRS:
        each = {w: by_seed(done, detector, name, w) for w in shown}
        if any(each[w] for w in shown[1:]):
            cells = [cell(each[w]) for w in shown]
            cells += [worse(each["equal"], each[w]) for w in STARTS[1:]]
            lines.append(f"| {detector} | {name} | {' | '.join(cells)} |")
    head = (
        "AUROC x 100 of the round that is kept, mean ± deviation over [seeds]. The last three "
        "columns count the seeds\nwhere a start ends below the papers', among those that both "
        "have.\n\n"
    )
    TABLE.write_text(f"# The start of the rounds\n\n{head}" + "\n".join(lines) + "\n")
    print(TABLE.read_text())


def by_seed(done: dict[Key, Line], detector: str, name: str, start: str) -> dict[int, float]:
    """Return the AUROC of every seed that was run."""
    return {
        key[3]: line["auroc"] for key, line in done.items() if key[:3] == (detector, name, start)
    }


def cell(found: dict[int, float]) -> str:
    """Return mean and deviation in words."""
    values = list(found.values())
    return f"{np.mean(values):.1f} ± {np.std(values):.1f} [{len(values)}]" if values else ""


def worse(equal: dict[int, float], other: dict[int, float]) -> str:
    """Return in how many seeds the other start is worse."""
    both = equal.keys() & other.keys()
    return f"{sum(other[s] < equal[s] for s in both)} of {len(both)}" if both else ""


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2:])
    else:
        table()
