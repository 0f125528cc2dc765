"""What `IADC()` flags: of clean tables, and of planted dirt at a chosen false-discovery rate.

    python -m benchmarks.flags [--out results/flags.md]

Clean tables: six families, 200 to 50,000 rows of 8 columns, and one of 100 columns; as many new
rows, 1,000 at most, come from where the table came from. Dirt: the zoo (1000 x 8), with the
power of a plain split beside it: an isolation forest trained on one half of the rows, p-values from
its scores of the other half, dirty as they are, and the same rule of Benjamini and Hochberg.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from aberra import IADC
from aberra.ordinary import discoveries
from benchmarks import dirt_zoo
from benchmarks.records import environment

Array = NDArray[np.float64]
FAMILIES = ("gaussian", "lognormal", "multimodal", "discrete", "mixed", "flags", "wide")
SIZES, SEEDS, RATE = (200, 1000, 5000, 50_000), 3, 0.1
MOST_NEW = 1000
SHARES = (0.01, 0.1, 0.2)


def clean(family: str, n: int, seed: int) -> Array:
    """Draw a clean table of a family."""
    rng, d = np.random.default_rng(seed), 8
    if family == "gaussian":
        return rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
    if family == "multimodal":
        return 4 * rng.normal(size=(4, d))[rng.integers(4, size=n)] + rng.normal(size=(n, d))
    if family == "flags":
        rare = rng.random((n, 4)) < (0.02, 0.05, 0.1, 0.2)
        return np.column_stack([rng.normal(size=(n, 4)), rare])
    if family == "mixed":
        codes = rng.integers(0, 4, size=(n, 3))
        return np.column_stack([rng.normal(size=(n, 3)), np.exp(rng.normal(size=(n, 2))), codes])
    plain = {
        "lognormal": lambda: np.exp(rng.normal(size=(n, d))),
        "discrete": lambda: rng.integers(0, 6, size=(n, d)).astype(np.float64),
        "wide": lambda: rng.normal(size=(n, 100)),
    }
    found: Array = plain[family]()
    return found


def clean_lines() -> list[str]:
    """Return a table of what is flagged and trusted on clean tables."""
    lines = [
        "| family | rows | flagged % | of new rows % | rows with trust above 0.8 % | rounds |",
        "|---|---|---|---|---|---|",
    ]
    flagged: list[float] = []
    of_new: list[float] = []
    for family in FAMILIES:
        for n in SIZES:
            tables = [clean(family, n + min(n, MOST_NEW), s) for s in range(SEEDS)]
            models = [IADC(random_state=0).fit(rows[:n]) for rows in tables]
            flagged += [100 * m.contamination_ for m in models]
            of_new += [
                100 * float((m.predict(rows[n:]) == -1).mean())
                for m, rows in zip(models, tables, strict=True)
            ]
            kept = [f"{100 * np.mean(m.weights_ > 0.8):.1f}" for m in models]
            shares, new = (
                ", ".join(f"{x:.2f}" for x in found[-SEEDS:]) for found in (flagged, of_new)
            )
            rounds = ", ".join(str(len(m.history_)) for m in models)
            lines.append(f"| {family} | {n:,} | {shares} | {new} | {', '.join(kept)} | {rounds} |")
            print(lines[-1], flush=True)
    return [*lines, "", f"Median of all: {np.median(flagged):.2f} %, largest {max(flagged):.2f} %."]


def split_flags(X: Array) -> NDArray[np.bool_]:
    """Flag rows with a forest and p-values from the half that did not train it, both ways round."""
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    half = np.random.default_rng(0).permutation(len(X)) % 2 == 0
    p = np.empty(len(X))
    for train in (half, ~half):
        scores = -IsolationForest(random_state=0).fit(filled[train]).score_samples(filled[~train])
        above = len(scores) - np.searchsorted(np.sort(scores), scores)
        p[~train] = (above + 1) / (len(scores) + 1)
    return discoveries(p, RATE)


def dirt_lines() -> list[str]:
    """Return a table of realised false-discovery rate and power by share of dirt."""
    head = (
        "| dirt | cells | false discoveries, IADC() | power | false discoveries, split | power | "
    )
    lines = [f"{head}median error of contamination_, points |", "|---|---|---|---|---|---|---|"]
    for share in SHARES:
        found = []
        for name in dirt_zoo.names((share,), ("1000x8",)):
            X, y = dirt_zoo.load(name)
            odd = y > 0
            model = IADC(missing="impute", random_state=0).fit(X)
            ours = model.history_[model.history_.kept].scores > model.threshold_
            row = [measured(flags, odd) for flags in (ours, split_flags(X))]
            found.append([*row[0], *row[1], 100 * abs(model.contamination_ - odd.mean())])
        a = np.array(found)
        means = " | ".join(f"{value:.2f}" for value in a[:, :4].mean(axis=0))
        lines.append(f"| {share:g} | {len(a)} | {means} | {np.median(a[:, 4]):.1f} |")
        print(lines[-1], flush=True)
    return lines


def measured(flags: NDArray[np.bool_], odd: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of false flags, and of the dirt that is flagged."""
    return float((flags & ~odd).sum() / max(flags.sum(), 1)), float(flags[odd].mean())


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("results/flags.md"))
    warnings.simplefilter("ignore")
    parts = [
        f"# What is flagged\n\n{__doc__}\nMeasured with {environment()}.\n\n## Clean tables\n",
        *clean_lines(),
        f"\n## Planted dirt, nominal rate {RATE:g}\n",
        *dirt_lines(),
    ]
    parser.parse_args().out.write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
