"""The three-seed table of the README, from results/odds.jsonl.

    python -m benchmarks.odds

An earlier form of this script made those cells. `aberra reproduce odds-iadc` makes new ones, with
more seeds, and with all rows as well as resampled ones.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from aberra import IADC
from aberra.reproduce.detectors import DETECTORS
from aberra.reproduce.odds import SETS
from aberra.reproduce.store import read_lines
from aberra.reproduce.tables import targets
from aberra.robust.history import kept_round, settled

RESULTS = Path("results/odds.jsonl")


def kept_auroc(cell: dict[str, Any]) -> float:
    """Return the AUROC of the round that the default rule keeps, whatever the run's patience."""
    h, patience = cell["crossings"]["0.5"], IADC().patience
    stop = next((t for t in range(1, len(h) + 1) if settled(h[:t], patience)), len(h))
    return float(cell["rounds"][kept_round(h[:stop])])


def entry(cells: list[dict[str, Any]], theirs: float | None, variant: str) -> str:
    """Return mean and deviation over the seeds, and the paper's figure."""
    values = [100 * (kept_auroc(c) if variant == "iadc" else c[variant]) for c in cells]
    if not values:
        return "-"
    ours = f"{np.mean(values):.1f} ± {np.std(values):.1f}"
    return ours if theirs is None else f"{ours} ({theirs:.1f})"


def main() -> None:
    """Print the table of means and deviations, the paper's figure behind each of ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=Path, default=RESULTS)
    args = parser.parse_args()
    cells = [c for c in read_lines(args.cells) if c["resample"] is True]
    both = targets("odds_adc_auc") + targets("odds_iadc_auc")
    printed = {(t.detector, t.variant.lower(), t.case): t.mean for t in both}
    print("| detector | variant |", " | ".join(SETS), "|\n|---|---|" + "---|" * len(SETS))
    for detector in DETECTORS:
        for variant in ("single", "adc", "iadc"):
            shown = [
                entry(
                    [c for c in cells if (c["detector"], c["set"]) == (detector, name)],
                    printed.get((detector, variant, name)),
                    variant,
                )
                for name in SETS
            ]
            print(f"| {detector} | {variant.upper()} |", " | ".join(shown), "|")


if __name__ == "__main__":
    main()
