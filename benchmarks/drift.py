"""How often `compare` cries wolf, and how often it sees a drift of half a standard deviation.

    ABERRA_DATA=... python -m benchmarks.drift [--batches 500] [--out results/drift.md]

Batches come from real tables (oddbench_dev, odds, odds_extra) with the anomalies that these have.
`bootstrap`: the model trains on all rows, and a batch is drawn from them with replacement. `new
rows`: the model trains on a random half, and a batch is rows of the other half. Every batch has 0
to 5 % of additional dirt. A false alarm is any verdict but "steady". For the planted shift, one of
twenty columns moves by half of its standard deviation; it is found if the column is named. Labels
play no part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aberra import IADC
from benchmarks.many_tables import FOLDERS
from benchmarks.records import data_folder, environment

Rows = NDArray[np.float64]
MOST_ROWS, BATCH, COLUMNS = 5000, 2000, 20
PER_TABLE = 10
RAW = Path("results/drift.csv")


@dataclass(frozen=True)
class Trial:
    """One batch, and what was said about it."""

    table: str
    way: str  # bootstrap, new rows
    planted: bool
    dirt: float
    n_batch: int
    verdict: str
    named: bool  # whether the planted column is named
    others: int  # steady columns that are named


def tables(wide: bool) -> list[Path]:
    """Return tables with enough rows, and enough columns that vary where twenty are needed."""
    paths = [p for folder in FOLDERS for p in sorted((data_folder() / folder).glob("*.npz"))]
    return [p for p in paths if _usable(p, wide)]


def _usable(path: Path, wide: bool) -> bool:
    with np.load(path) as file:
        n, d = file["X"].shape
    return bool(n >= (2 * BATCH if wide else 1000) and (d >= COLUMNS if wide else d <= 100))


def rows_of(path: Path, rng: np.random.Generator, wide: bool) -> Rows:
    """Return rows in random order; for planted shifts, twenty columns that vary."""
    with np.load(path) as file:
        X = file["X"].astype(np.float64)
    X = rng.permutation(X)[: 2 * MOST_ROWS]
    if not wide:
        return X
    varying = np.flatnonzero(np.ptp(X, axis=0) > 0)
    return X[:, rng.permutation(varying)[:COLUMNS]]


def soiled(rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Return rows of which a share is dirt: slipped points, codes, shuffled columns, noise."""
    found, n = rows.copy(), len(rows)
    dirty = rng.permutation(n)[: int(share * n)]
    for k, some in enumerate(np.array_split(dirty, 4)):
        if k == 0:
            found[some] *= 10.0
        elif k == 1:
            found[some] = -999.0
        elif k == 2:
            found[some] = found[some][:, rng.permutation(found.shape[1])]
        else:
            low, high = rows.min(axis=0), rows.max(axis=0)
            found[some] = rng.uniform(low - (high - low), high + (high - low), found[some].shape)
    return found


def trials(path: Path, way: str, planted: bool, seed: int) -> Iterator[Trial]:
    """Fit one model, and compare some batches with it."""
    rng = np.random.default_rng([seed, planted, way == "bootstrap"])
    X = rows_of(path, rng, planted)
    half = len(X) // 2
    train, source = (X[:MOST_ROWS],) * 2 if way == "bootstrap" else (X[:half], X[half:])
    size = BATCH if way == "bootstrap" else min(BATCH, len(source))
    model = IADC(random_state=0).fit(train)
    for _ in range(PER_TABLE):
        chosen = rng.choice(len(source), size, replace=way == "bootstrap")
        share = rng.uniform(0, 0.05)
        column, batch = int(rng.integers(X.shape[1])), source[chosen]
        if planted:
            batch = batch.copy()
            batch[:, column] += rng.choice([-0.5, 0.5]) * train[:, column].std()
        drift = model.compare(soiled(batch, share, rng))
        named = f"column {column}" in drift.moved
        others = len(drift.moved) - named
        yield Trial(path.stem, way, planted, share, size, drift.verdict, named, others)


def run(n_batches: int) -> list[Trial]:
    """Return about so many trials of each sort, spread over all tables."""
    found: list[Trial] = []
    for planted in (False, True):
        known = tables(wide=planted)
        need = min(len(known), -(-n_batches // PER_TABLE))
        spread = [known[k] for k in np.linspace(0, len(known) - 1, need).astype(int)]
        for way in ("bootstrap", "new rows"):
            for k, path in enumerate(spread):
                found += trials(path, way, planted, seed=k)
                print(f"{way} planted={planted} {k + 1}/{need} {path.stem}", file=sys.stderr)
    return found


def lines(found: list[Trial]) -> list[str]:
    """Return the table."""
    text = [
        "| batches of | tables | batches | false alarms | called moved |",
        "|---|---|---|---|---|",
    ]
    for way in ("bootstrap", "new rows"):
        some = [t for t in found if t.way == way and not t.planted]
        alarms = np.mean([t.verdict != "steady" for t in some])
        moved = np.mean([t.verdict == "moved" for t in some])
        n = len({t.table for t in some})
        text.append(f"| {way} | {n} | {len(some)} | {alarms:.1%} | {moved:.1%} |")
    text += ["", "| batches of | tables | batches | planted shift found | another column named |"]
    text.append("|---|---|---|---|---|")
    for way in ("bootstrap", "new rows"):
        some = [t for t in found if t.way == way and t.planted]
        seen, wrong = np.mean([t.named for t in some]), np.mean([t.others > 0 for t in some])
        n = len({t.table for t in some})
        text.append(f"| {way} | {n} | {len(some)} | {seen:.1%} | {wrong:.1%} |")
    return text


def main() -> None:
    """Run all trials and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("results/drift.md"))
    asked = parser.parse_args()
    found = run(asked.batches)
    names = list(Trial.__dataclass_fields__)
    rows = [",".join(str(vars(t)[name]) for name in names) for t in found]
    RAW.write_text("\n".join([",".join(names), *rows]) + "\n")
    said = (__doc__ or "").split("\n\n")[2]
    made = f"Made with {environment()}."
    asked.out.write_text("\n".join(["# Drift", "", said, "", *lines(found), "", made, ""]))
    print("\n".join(lines(found)))


if __name__ == "__main__":
    main()
