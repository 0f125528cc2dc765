"""What each view of the default earns: the score without it, and the view alone.

    ABERRA_DATA=... python -m benchmarks.ablation run [--jobs 2]
    ABERRA_DATA=... python -m benchmarks.ablation table [--out results/ablation.md]

One `MultiView` with five members' trees and landmarks is trained on every table (those of
`benchmarks.many_tables`, and the zoo of 1000 x 8 at 1, 10, 20 and 40 %), and the same views are
pooled again and again: all of them, all but one, one alone. The single views also give the reasons
in results/many_tables.md for tables that are lost.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from aberra.detectors import multiview
from aberra.metrics import auroc
from aberra.ordinary import SKEW, TENTH
from benchmarks import dirt_zoo, many_tables, peers
from benchmarks.race import by_method, made_with, measured_with
from benchmarks.records import append, read

Array = NDArray[np.float64]
RESULTS = Path("results/ablation.jsonl")
ZOO = ((0.01, 0.1, 0.2, 0.4), ("1000x8",))
VIEWS = (
    "forest, small groups",
    "forest, small groups, tamed columns",
    "forest, large groups",
    "robust covariance",
    "tails of the columns",
    "distance to the nearest",
)
TREES, LANDMARKS = 5 * 32, 5 * 128


def pooled(nats: Array, counts: Array, lifts: Array) -> Array:
    """Return the mean of the nats (views, n), lifted by the views that may lift it."""
    mean = counts @ nats / counts.sum()
    found: Array = mean + lifts @ np.maximum(nats - mean, 0.0)
    return found


def ways(nats: Array, evidence: Array) -> dict[str, Array]:
    """Return the scores of a table, pooled in every way."""
    counts, lifts = multiview.COUNTS, multiview.LIFTS
    whole = pooled(nats, counts, lifts)
    found = {"all": whole + evidence, "without evidence": whole}
    found["without lifts"] = pooled(nats, counts, 0 * lifts) + evidence
    for v, name in enumerate(VIEWS):
        rest = np.arange(len(VIEWS)) != v
        found[f"without {name}"] = pooled(nats, counts * rest, lifts * rest) + evidence
        found[f"{name} alone"] = nats[v]
    return found


def nats_of(member: multiview.View, seen: multiview.Seen) -> Array:
    """Return what each view of a member says about every row, in nats."""
    scale = (member.middle - member.low) / TENTH
    x = 1 + SKEW * (member.oddness(seen) - member.middle[:, None]) / scale[:, None]
    z = np.log(np.maximum(x, 1e-12)) / SKEW
    return multiview.surprise(np.clip(z, -8, 40))


def judged(kind: str, name: str) -> dict[str, Any] | None:
    """Return the AUROC of every way on one table."""
    warnings.simplefilter("ignore")
    X, y = (dirt_zoo.load if kind == "zoo" else many_tables.load)(name)
    if y.min() == y.max():
        return None
    with threadpool_limits(1):
        detector = multiview.MultiView(
            n_trees=TREES, n_landmarks=LANDMARKS, missing="impute", random_state=0
        ).fit(X)
        members = detector.members_
        nats = nats_of(members.members[0], members.lens.look(X))
        scores = ways(nats, members.lens.evidence.nats(X))
    return {"set": name, "kind": kind} | {way: round(auroc(y, s), 5) for way, s in scores.items()}


def run(args: argparse.Namespace) -> None:
    """Fill the tables that are missing."""
    done = {line["set"] for line in read(args.cells) if "set" in line}
    jobs = [("zoo", n) for n in dirt_zoo.names(*ZOO)] + [("real", n) for n in many_tables.names()]
    append(args.cells, {"measured_with": made_with()})
    with ProcessPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(judged, *job) for job in jobs if job[1] not in done]
        for future in as_completed(futures):
            if line := future.result():
                append(args.cells, line)


def table(args: argparse.Namespace) -> None:
    """Write what each way is worth."""
    lines = [line for line in read(args.cells) if "set" in line]
    found = {line["set"]: line for line in lines}
    others = by_method(read(dirt_zoo.RESULTS), "auroc")
    ways_ = [key for key in lines[0] if key not in ("set", "kind")]
    rows = [
        "| views | 402 tables | six ODDS sets | 17 others | zoo | cells kept |",
        "|---|---|---|---|---|---|",
    ]
    for way in ways_:
        means = [
            100 * np.mean([found[s][way] for s in found if s.startswith(folder + "/")])
            for folder in many_tables.FOLDERS
        ]
        zoo = [s for s in found if found[s]["kind"] == "zoo"]
        kept = sum(
            dirt_zoo.kept(
                found[s][way],
                max(others[m].get(s, 0.5) for m in peers.PEERS),
                float(s.split("|")[-1]),
            )
            for s in zoo
        )
        figures = " | ".join(f"{m:.2f}" for m in means)
        mean = np.mean([found[s][way] for s in zoo])
        rows.append(f"| {way} | {figures} | {mean:.4f} | {kept} of {len(zoo)} |")
    head = f"# What each view earns\n\n{__doc__}\n{measured_with(args.cells)}\n"
    args.out.write_text("\n".join([head, *rows, ""]))
    sys.stdout.write("\n".join(rows) + "\n")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS.with_suffix(".md"))
    args = parser.parse_args()
    {"run": run, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
