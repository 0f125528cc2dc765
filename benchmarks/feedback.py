"""A simulated reviewer marks one row after another: how many anomalies are among those shown.

    ABERRA_DATA=... python -m benchmarks.feedback [--seeds 3] [--methods none feedback ...]
    ABERRA_DATA=... python -m benchmarks.feedback --table [--out results/feedback.md]

On each of the 23 sets of odds and odds_extra (2,000 rows drawn with a fixed seed from larger ones)
a model is fitted without labels. The reviewer is shown the row of highest score that has no mark
yet, says what its label says, and the model learns from that before the next row is shown. `none`
shows rows in the order of the scores, without learning. The constants of `feedback` were chosen on
tables of oddbench_dev, none of which is used here. coniferest's forests have their own defaults.
A seed seeds the model; the rows stay the same. Figures are means over the seeds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import IADC
from benchmarks.records import append, data_folder, environment, read

FOLDERS = ("odds", "odds_extra")
MOST_ROWS, BUDGET, SHOWN = 2000, 100, (30, 50, 100)
RESULTS = Path("results/feedback.jsonl")

Labels = NDArray[np.int64]
Scores = NDArray[np.float64]
Learn = Callable[[Labels, Labels], Scores]  # positions and labels so far; scores of all rows
Prepare = Callable[[NDArray[np.float64], int], Learn]  # rows and seed


def sets() -> list[Path]:
    """Return the files of all sets, the smallest first."""
    found = [p for folder in FOLDERS for p in sorted((data_folder() / folder).glob("*.npz"))]
    return sorted(found, key=lambda path: load(path)[0].size)


def load(path: Path) -> tuple[NDArray[np.float64], Labels]:
    """Return some rows and their labels; the same ones every time."""
    with np.load(path) as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int64)
    chosen = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
    return X[chosen], y[chosen]


def without(X: NDArray[np.float64], seed: int) -> Learn:
    """Show rows in the order of their scores."""
    scores = IADC(random_state=seed).fit(X).anomaly_score(X)
    return lambda shown, labels: scores


def with_feedback(X: NDArray[np.float64], seed: int) -> Learn:
    """Let the model learn from every mark."""
    model = IADC(random_state=seed).fit(X)
    first = model.anomaly_score(X)

    def learn(shown: Labels, labels: Labels) -> Scores:
        if not len(shown):
            return first
        held = model.feedback(X[shown[-1:]], labels[-1:]).feedback_
        return np.asarray(held.adjusted(first, X))  # what anomaly_score would say

    return learn


def coniferest(name: str) -> Prepare:
    """Return one of coniferest's forests, which learns from all marks so far."""

    def prepare(X: NDArray[np.float64], seed: int) -> Learn:
        from coniferest import aadforest, pineforest
        from coniferest.label import Label

        kinds: dict[str, Any] = {"AADForest": aadforest.AADForest}
        kinds["PineForest"] = pineforest.PineForest
        forest = kinds[name](random_seed=seed, n_jobs=1)
        forest.fit(X)

        def learn(shown: Labels, labels: Labels) -> Scores:
            if len(shown):
                known = np.where(labels == 1, Label.ANOMALY, Label.REGULAR)
                forest.fit_known(X, X[shown], known)
            return np.asarray(-forest.score_samples(X))

        return learn

    return prepare


METHODS: dict[str, Prepare] = {
    "none": without,
    "feedback": with_feedback,
    "AADForest": coniferest("AADForest"),
    "PineForest": coniferest("PineForest"),
}


def review(learn: Learn, y: Labels) -> list[int]:
    """Return how many anomalies were among the first rows shown."""
    shown: list[int] = []
    for _ in range(min(BUDGET, len(y))):
        scores = learn(np.array(shown, np.int64), y[shown]).copy()
        scores[shown] = -np.inf
        shown.append(int(scores.argmax()))
    found = np.cumsum(y[shown])
    return [int(found[min(n, len(found)) - 1]) for n in SHOWN]


def run(methods: list[str], seeds: int) -> None:
    """Review every set with every method; what has a result already is passed over."""
    done = {(line["set"], line["method"], line["seed"]) for line in read(RESULTS)}
    wanted = [(path, seed, name) for seed in range(seeds) for path in sets() for name in methods]
    for path, seed, name in wanted:
        if (path.stem, name, seed) in done:
            continue
        X, y = load(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = review(METHODS[name](X, seed), y)
        line = {"set": path.stem, "method": name, "seed": seed, "found": found}
        append(RESULTS, line | {"anomalies": int(y.sum())})
        print(line, flush=True)


def results() -> dict[tuple[str, str], Any]:
    """Return the mean over the seeds of each set and method, and the anomalies of the set."""
    lines = list(read(RESULTS))
    held: dict[tuple[str, str], Any] = {}
    for key in {(line["set"], line["method"]) for line in lines}:
        own = [line for line in lines if (line["set"], line["method"]) == key]
        found = np.mean([line["found"] for line in own], axis=0)
        held[key] = {"found": found, "anomalies": own[0]["anomalies"]}
    return held


def table() -> list[str]:
    """Return the table of all results."""
    held = results()
    names = [name for name in METHODS if any(method == name for _, method in held)]
    complete = sorted({s for s, _ in held if all((s, name) in held for name in names)})
    heads = [f"{name} {'/'.join(map(str, SHOWN))}" for name in names]
    lines = ["| set | anomalies | " + " | ".join(heads) + " |", "|" + "---|" * (2 + len(names))]
    for one in complete:
        cells = [_shown(held[one, name]["found"]) for name in names]
        lines.append(f"| {one} | {held[one, names[0]]['anomalies']} | " + " | ".join(cells) + " |")
    found = {name: np.array([held[s, name]["found"] for s in complete]) for name in names}
    means = [_shown(found[name].mean(axis=0)) for name in names]
    lines.append("| mean | | " + " | ".join(means) + " |")
    return [*lines, "", *_sentences(found, held, complete)]


def _shown(found: Scores) -> str:
    return " / ".join(f"{number:.1f}" for number in found)


def _sentences(found: dict[str, Any], held: dict[Any, Any], complete: list[str]) -> list[str]:
    """Say how often feedback helps among the first 50, where it can help at all."""
    before, after = found["none"][:, 1], found["feedback"][:, 1]
    most = np.array([min(SHOWN[1], held[s, "none"]["anomalies"]) for s in complete])
    room = before < most
    said = [
        f"Among the first 50, feedback finds more on {int((after > before)[room].sum())} of the "
        f"{int(room.sum())} sets on which more can be found, as many on "
        f"{int((after == before)[room].sum())}, fewer on {int((after < before)[room].sum())}. "
        f"Mean gain {np.mean(after - before):+.1f}."
    ]
    for name in ("AADForest", "PineForest"):
        if name in found:
            said.append(f"Against {name}: {np.mean(after - found[name][:, 1]):+.1f} on the mean.")
    return said


def main() -> None:
    """Run the reviews, or write their table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/feedback.md"))
    asked = parser.parse_args()
    if not asked.table:
        run(asked.methods, asked.seeds)
        return
    said = (__doc__ or "").split("\n\n")[2]
    made = f"Made with {environment() | {'coniferest': version('coniferest')}}."
    asked.out.write_text("\n".join(["# Feedback", "", said, "", *table(), "", made, ""]))
    print("\n".join(table()))


if __name__ == "__main__":
    main()
