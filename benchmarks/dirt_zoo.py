"""Planted dirt of known share and kind, and who finds it.

    python -m benchmarks.dirt_zoo run [--jobs 2] [--shares 0.01 0.1 ...] [--sizes 1000x8]
    python -m benchmarks.dirt_zoo table [--out results/dirt_zoo.md]
    python -m benchmarks.dirt_zoo picture [--figure results/dirt_zoo.png]

A cell is a kind of dirt on a kind of clean table at one share and one size
(`benchmarks.dirt_zoo_scenarios`). All rows train, and all are scored. The design of `MultiView` was
chosen while looking at these cells (1, 10, 20 and 40 % of 1000 x 8), so read its lead as the upper
end; the peers have their defaults.

A cell is kept by a method that is at most 0.02 behind the best peer, or has at least 0.95; with
40 % of dirt by one that is not behind the best peer, or has at least 0.90.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import dirt_zoo_scenarios as zoo
from benchmarks import peers, race
from benchmarks.records import read

SHARES = (0.001, 0.01, 0.05, 0.1, 0.2, 0.4)
SIZES = ("1000x8", "4000x16")
RESULTS = Path("results/dirt_zoo.jsonl")
NEAR, GOOD, MUCH_DIRT, GOOD_AT_MUCH = 0.02, 0.95, 0.4, 0.9


def names(shares: tuple[float, ...], sizes: tuple[str, ...]) -> list[str]:
    """Return the names of all cells: kind|base|size|share."""
    crossed = [(k, b) for k in (*zoo.DIRT, *zoo.WITH_BASE) for b in zoo.BASES]
    kinds = [*crossed, *((k, "own") for k in zoo.ON_THEIR_OWN)]
    return [f"{k}|{b}|{size}|{share:g}" for size in sizes for share in shares for k, b in kinds]


def load(name: str) -> race.Table:
    """Make the table of a cell."""
    kind, base, size, share = name.split("|")
    n, d = map(int, size.split("x"))
    X, y = zoo.planted(kind, base, n, d, float(share), seed=0)
    return X, y.astype(np.int8)


Grid = dict[str, dict[str, float]]


def kept(own: float, best: float, share: float) -> bool:
    """Say whether a figure keeps the promise, given the best peer's."""
    if share < MUCH_DIRT:
        return own >= min(best - NEAR, GOOD)
    return own >= min(best, GOOD_AT_MUCH)


def table(args: argparse.Namespace) -> None:
    """Write every cell, and how many keep the promise."""
    found = race.by_method(read(args.cells), "auroc")
    methods = [m for m in peers.METHODS if m in found]
    others = [m for m in methods if m not in peers.OURS]
    cells = sorted({c for m in methods for c in found[m]})
    head = ["# Dirt zoo\n", str(__doc__), race.measured_with(args.cells), ""]
    lines = ["| cell | " + " | ".join(methods) + " | kept |", "|---|" + "---|" * (len(methods) + 1)]
    count: dict[str, int] = dict.fromkeys(methods, 0)
    for cell in cells:
        own = {m: found[m].get(cell, 0.5) for m in methods}
        best, share = max(own[m] for m in others), float(cell.split("|")[-1])
        for m in methods:
            count[m] += kept(own[m], best, share)
        row = " | ".join(f"{own[m]:.3f}" for m in methods)
        mark = "" if "IADC" not in own else "yes" if kept(own["IADC"], best, share) else "NO"
        lines.append(f"| {cell.replace('|', ', ')} | {row} | {mark} |")
    summary = ["| method | mean AUROC | cells kept | cells at or below 0.5 |", "|---|---|---|---|"]
    for m in methods:
        values = np.array([found[m].get(c, 0.5) for c in cells])
        low = int((values <= 0.5).sum())
        summary.append(f"| {m} | {values.mean():.4f} | {count[m]} of {len(cells)} | {low} |")
    text = "\n".join([*head, *summary, "", *lines, ""])
    args.out.write_text(text)
    sys.stdout.write("\n".join(summary) + "\n")


def picture(args: argparse.Namespace) -> None:
    """Draw one map a method: kinds and bases down, shares across, AUROC as colour."""
    import matplotlib.pyplot as plt

    found = race.by_method(read(args.cells), "auroc")
    methods = [m for m in peers.METHODS if m in found]
    cells = sorted({c for m in methods for c in found[m]})
    rows = sorted({c.rsplit("|", 1)[0] for c in cells})
    shares = sorted({c.rsplit("|", 1)[1] for c in cells}, key=float)
    figure, axes = plt.subplots(
        1,
        len(methods),
        figsize=(2 + len(methods), 0.12 * len(rows) + 1),
        sharey=True,
        squeeze=False,
    )
    for ax, method in zip(axes[0], methods, strict=True):
        grid: NDArray[np.float64] = np.array(
            [[found[method].get(f"{r}|{s}", np.nan) for s in shares] for r in rows]
        )
        ax.imshow(grid, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
        ax.set_title(method, fontsize=7)
        ax.set_xticks(range(len(shares)), shares, fontsize=4, rotation=90)
        ax.set_yticks(range(len(rows)), [r.replace("|", ", ") for r in rows], fontsize=4)
    figure.tight_layout()
    figure.savefig(args.figure, dpi=150)


def run(args: argparse.Namespace) -> None:
    """Fill the cells that are missing."""
    cells = [(m, seed) for m in args.methods for seed in args.seeds]
    race.run(args.cells, names(args.shares, args.sizes), load, cells, args.jobs, args.keep)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table", "picture"))
    parser.add_argument("--methods", nargs="+", default=peers.METHODS)
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS.with_suffix(".md"))
    parser.add_argument("--figure", type=Path, default=RESULTS.with_suffix(".png"))
    parser.add_argument("--keep", type=Path, help="folder for the scores themselves")
    args = parser.parse_args()
    {"run": run, "table": table, "picture": picture}[args.command](args)


if __name__ == "__main__":
    main()
