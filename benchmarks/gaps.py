"""Tables with gaps: what is lost when values are missing, and whether an outage is found.

    ABERRA_DATA=... python -m benchmarks.gaps run [--name "IADC(), before"]
    python -m benchmarks.gaps table

Gaps are cut into real tables: scattered at random over all cells, or in a third of the columns for
three rows in ten. The labels are those of the table. In "outage" the table's anomalies are left
out, 3 % of the cells are missing at random, and 2 % of the rows lose half of their columns: these
are to be found. `IADC()` reads gaps itself; IsolationForest gets columns filled with their medians.
`--name` calls our lines otherwise, for a run with the library of another checkout on PYTHONPATH.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer

from aberra import IADC
from aberra.metrics import auroc
from benchmarks.records import append, environment, load_set, read

RESULTS, TABLE = Path("results/gaps.jsonl"), Path("results/gaps.md")
SETS = ("cardio", "thyroid", "satimage-2", "vowels", "pima", "wbc")
SEEDS = range(3)
OURS, FOREST = "IADC()", "IsolationForest"
Array = NDArray[Any]
Case = Callable[[Array, Array, np.random.Generator], tuple[Array, Array]]


def scattered(share: float) -> Case:
    """Return a case where a share of all cells is missing at random."""

    def cut(X: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        return np.where(rng.random(X.shape) < share, np.nan, X), y

    return cut


def not_asked(X: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Leave a third of the columns empty in three rows of ten."""
    return _without(X, rng.random(len(X)) < 0.3, X.shape[1] // 3), y


def outage(X: Array, y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Leave half of the columns empty in 2 % of the ordinary rows, which are to be found."""
    Z, _ = scattered(0.03)(X[y == 0], y, rng)
    out = rng.random(len(Z)) < 0.02
    return _without(Z, out, X.shape[1] // 2), out.astype(np.int8)


def _without(X: Array, rows: Array, n_columns: int) -> Array:
    Z = X.copy()
    Z[np.ix_(rows, np.arange(n_columns))] = np.nan
    return Z


CASES: dict[str, Case] = {
    "no gaps": lambda X, y, rng: (X, y),
    "1 %": scattered(0.01),
    "3 %": scattered(0.03),
    "10 %": scattered(0.1),
    "30 %": scattered(0.3),
    "not asked": not_asked,
    "outage": outage,
}


def scores(method: str, X: Array, seed: int) -> Array:
    """Return the scores of all rows."""
    if method != FOREST:
        return IADC(missing="impute", random_state=seed).fit(X).anomaly_score(X)
    filled = SimpleImputer(strategy="median").fit_transform(X)
    return -IsolationForest(random_state=seed).fit(filled).score_samples(filled)


def run(ours: str) -> None:
    """Run what is missing."""
    done = {(r["method"], r["set"], r["case"], r["seed"]) for r in read(RESULTS)}
    for name in SETS:
        X, y = load_set(name)
        for case, cut in CASES.items():
            for seed in SEEDS:
                Z, labels = cut(X, y, np.random.default_rng(seed))
                for method in (ours, FOREST):
                    if (method, name, case, seed) in done:
                        continue
                    found = 100 * auroc(labels, scores(method, Z, seed))
                    place = {"method": method, "set": name, "case": case, "seed": seed}
                    append(RESULTS, {**place, "auroc": found, **environment()})
                    print(*place.values(), round(found, 1), flush=True)


def table() -> None:
    """Write the mean over the seeds, and over the tables."""
    lines = list(read(RESULTS))
    methods = list(dict.fromkeys(line["method"] for line in lines))
    text = [f"| table | method | {' | '.join(CASES)} |", "|---|---|" + "---|" * len(CASES)]
    for name in (*SETS, "mean"):
        for method in methods:
            cells = (
                np.mean(
                    [
                        line["auroc"]
                        for line in lines
                        if (line["method"], line["case"]) == (method, case)
                        and name in (line["set"], "mean")
                    ]
                )
                for case in CASES
            )
            text.append(f"| {name} | {method} | {' | '.join(f'{c:.1f}' for c in cells)} |")
    head = __doc__.split("\n\n")[-1].split("`--name`")[0]
    TABLE.write_text(
        f"# Tables with gaps\n\nAUROC x 100, mean of {len(SEEDS)} seeds. {head}\n"
        + "\n".join(text)
        + f"\n\nMade with {environment()}.\n"
    )
    print(TABLE.read_text())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--name", default=OURS)
    asked = parser.parse_args()
    run(asked.name) if asked.what == "run" else table()
