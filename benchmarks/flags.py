"""What `IADC()` flags: of clean tables, and of planted dirt at a chosen false-discovery rate.

    python -m benchmarks.flags [--out results/flags.md]

Clean tables: 200 to 50,000 rows, of 8 columns unless the family is one of these: wide (100 columns
that have nothing to do with each other), related (100 columns with five causes in common), codes
(two related codes of four values, a column for each value), sparse (40 columns of amounts, 4 % of
them not zero) and one column. As many new rows, 1,000 at most, come from where the table came from.
The last three were added because a stranger found that too much of them is flagged.

Dirt: the zoo (1000 x 8), with the power of a plain split beside it: an isolation forest trained on
one half of the rows, p-values from its scores of the other half, dirty as they are, and the same
rule of Benjamini and Hochberg.
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
FAMILIES = (
    "gaussian", "lognormal", "multimodal", "discrete", "mixed", "flags", "wide", "related",
    "codes", "sparse", "one column",
)  # fmt: skip
SIZES, SEEDS, RATE = (200, 1000, 5000, 50_000), 3, 0.1
MOST_NEW = 1000
SHARES = (0.01, 0.1, 0.2)


def clean(family: str, n: int, seed: int) -> Array:
    """Draw a clean table of a family."""
    rng = np.random.default_rng(seed)
    plain = {
        "gaussian": lambda: rng.normal(size=(n, 8)) @ rng.normal(size=(8, 8)),
        "lognormal": lambda: np.exp(rng.normal(size=(n, 8))),
        "discrete": lambda: rng.integers(0, 6, size=(n, 8)).astype(np.float64),
        "wide": lambda: rng.normal(size=(n, 100)),
        "sparse": lambda: np.exp(rng.normal(size=(n, 40))) * (rng.random((n, 40)) < 0.04),
        "one column": lambda: rng.normal(size=(n, 1)),
    }
    found: Array = plain[family]() if family in plain else JOINED[family](rng, n)
    return found


def groups(rng: np.random.Generator, n: int) -> Array:
    """Return rows around four centres."""
    return 4 * rng.normal(size=(4, 8))[rng.integers(4, size=n)] + rng.normal(size=(n, 8))


def with_flags(rng: np.random.Generator, n: int) -> Array:
    """Return four columns of numbers and four that few rows have."""
    rare = rng.random((n, 4)) < (0.02, 0.05, 0.1, 0.2)
    return np.column_stack([rng.normal(size=(n, 4)), rare])


def mixed(rng: np.random.Generator, n: int) -> Array:
    """Return columns of numbers, of amounts and of codes."""
    codes = rng.integers(0, 4, size=(n, 3))
    return np.column_stack([rng.normal(size=(n, 3)), np.exp(rng.normal(size=(n, 2))), codes])


def related(rng: np.random.Generator, n: int) -> Array:
    """Return many columns with five causes in common."""
    causes = 2 * rng.normal(size=(5, 100))
    return rng.normal(size=(n, 5)) @ causes + rng.normal(size=(n, 100))


def related_codes(rng: np.random.Generator, n: int) -> Array:
    """Return two codes, the second mostly that of the first, with a column for each value."""
    first = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1))
    second = np.where(rng.random(n) < 0.8, first, rng.integers(4, size=n))
    return np.column_stack([np.eye(4)[first], np.eye(4)[second]])


JOINED = {
    "multimodal": groups,
    "flags": with_flags,
    "mixed": mixed,
    "related": related,
    "codes": related_codes,
}


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
