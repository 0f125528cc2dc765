"""Few rows a column, and columns with causes in common: what is flagged and what is found.

    python -m benchmarks.few_rows [--out results/few_rows.md]

Each table has columns that mix a few causes, with noise of half their size. Flagged: the share of
a clean table that trained `IADC()`, and of 300 new rows from where it came from. Found: AUROC x 100
of rows whose cells come from other rows each, so that only the dependence between columns is
broken: 5 % of the training rows, and 20 of the new ones. IsolationForest and ECOD beside, trained
on the same rows. Means of four seeds.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyod.models.ecod import ECOD
from sklearn.ensemble import IsolationForest

from aberra import IADC
from aberra.metrics import auroc
from benchmarks.records import environment

Array = NDArray[np.float64]
SHAPES = ((100, 500, 5), (200, 500, 5), (500, 500, 5), (1000, 500, 5), (50, 100, 20),
          (200, 100, 20), (40, 20, 2), (60, 20, 2))  # fmt: skip
SEEDS, NEW, BROKEN = 4, 300, 20
HEAD = (
    "| rows | columns | causes | flagged, training % | new % | found, training | IForest | ECOD "
    "| found, new | IForest | ECOD |"
)


def broken(rows: Array, n: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.bool_]]:
    """Return rows of which the first n have the cells of other rows, and which these are."""
    found = rows.copy()
    found[:n] = rng.permuted(rows, axis=0)[:n]
    return found, np.arange(len(rows)) < n


def measured(n: int, d: int, causes: int, seed: int) -> list[float]:
    """Return a line's figures for one seed."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n + NEW, causes)) @ rng.normal(size=(causes, d))
    clean = mixed + 0.5 * rng.normal(size=(n + NEW, d))
    train, new = clean[:n], clean[n:]
    model = IADC(random_state=seed).fit(train)
    found = [100 * float((model.predict(rows) == -1).mean()) for rows in (train, new)]
    for trained, (rows, odd) in (
        (None, broken(train, max(2, n // 20), rng)),
        (train, broken(new, BROKEN, rng)),
    ):
        known = rows if trained is None else trained
        ours = IADC(random_state=seed).fit(known).anomaly_score(rows)
        forest = -IsolationForest(random_state=seed).fit(known).score_samples(rows)
        tails = ECOD().fit(known).decision_function(rows)
        found += [100 * auroc(odd, scores) for scores in (ours, forest, tails)]
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/few_rows.md"))
    out = parser.parse_args().out
    warnings.simplefilter("ignore")
    lines = [HEAD, "|---" * (HEAD.count("|") - 1) + "|"]
    for shape in SHAPES:
        mean = np.mean([measured(*shape, seed) for seed in range(SEEDS)], axis=0)
        lines.append(f"| {' | '.join(map(str, shape))} | {' | '.join(f'{x:.1f}' for x in mean)} |")
        print(lines[-1], flush=True)
    text = f"# Few rows a column\n\n{__doc__}\nMeasured with {environment()}.\n\n"
    out.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
