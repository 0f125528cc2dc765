"""The defaults and their peers on 425 real tables.

    ABERRA_DATA=... python -m benchmarks.many_tables run [--jobs 2] [--methods IADC ...]
    ABERRA_DATA=... python -m benchmarks.many_tables table [--out results/many_tables.md]

The tables are `oddbench_dev/*.npz`, `odds/*.npz` and `odds_extra/*.npz` of the data folder.
Transductive: all rows train, contaminated as they are, and all are scored. From larger tables 3,000
rows are drawn with a fixed seed, the same for everybody. Labels judge; no fit sees them. But the
design of `MultiView` was chosen while looking at the AUROC on these tables, so read its lead as the
upper end; the peers have their defaults, on standardised columns.

A table on which a method failed counts as chance (CBLOF on 9, MCD on 2). InternetAds, where MCD is
left out because of its 1,555 columns, does not count for MCD at all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

from benchmarks import peers, race
from benchmarks.records import data_folder, read

FOLDERS = ("oddbench_dev", "odds", "odds_extra")
MOST_ROWS, DRAW_SEED = 3000, 0
RESULTS = Path("results/many_tables.jsonl")
ABLATION = Path("results/ablation.jsonl")
CHANCE, CLOSE = 0.6, 0.03  # AUROC that is hardly better than chance, and that is level
LOCAL = ("kNN", "LOF", "CBLOF")  # detectors that look at few neighbours
FEW_VALUES = 20  # a column with at most this many different values is discrete
HEAVY = 6.0  # a column is heavy-tailed if 99 % of it spans this many times its middle half


@dataclass(frozen=True)
class Facts:
    """What a table is like."""

    rows: int
    columns: int
    contamination: float
    discrete: float
    heavy: float


BREAKDOWN: dict[str, tuple[Callable[[Facts], float], tuple[float, ...]]] = {
    "contamination": (lambda f: f.contamination, (0.0, 0.03, 0.10, 0.20, 1.0)),
    "rows": (lambda f: f.rows, (0, 1000, 3000, 6000, 1e9)),
    "columns": (lambda f: f.columns, (0, 5, 10, 25, 1e9)),
    "discrete columns": (lambda f: f.discrete, (-1, 0.0, 0.34, 0.67, 1.0)),
    "heavy-tailed columns": (lambda f: f.heavy, (-1, 0.0, 0.34, 0.67, 1.0)),
}


def names() -> list[str]:
    """Return the names of all tables, as folder/name."""
    root = data_folder()
    return [
        f"{folder}/{p.stem}" for folder in FOLDERS for p in sorted((root / folder).glob("*.npz"))
    ]


def load(name: str) -> race.Table:
    """Return rows and labels of a table, at most 3,000 rows of it."""
    with np.load(data_folder() / f"{name}.npz") as file:
        X, y = file["X"].astype(np.float64), file["y"].astype(np.int8)
    if len(X) > MOST_ROWS:
        chosen = np.random.default_rng(DRAW_SEED).permutation(len(X))[:MOST_ROWS]
        X, y = X[chosen], y[chosen]
    return X, y


def facts(name: str) -> Facts:
    """Describe a table."""
    with np.load(data_folder() / f"{name}.npz") as file:
        rows = len(file["y"])
    X, y = load(name)
    values = np.array([len(np.unique(column)) for column in X.T])
    low, q1, q3, high = np.percentile(X, (0.5, 25, 75, 99.5), axis=0)
    heavy = (high - low > HEAVY * (q3 - q1)) & (values > FEW_VALUES)
    discrete = float(np.mean(values <= FEW_VALUES))
    return Facts(rows, X.shape[1], float(y.mean()), discrete, float(heavy.mean()))


Figures = dict[str, NDArray[np.float64]]  # method -> one figure a table


def figures(path: Path, sets: list[str], key: str) -> Figures:
    """Return the figures of all methods.

    A table on which a method failed counts as chance; one where it was left out is not a number.
    """
    cells = list(read(path))
    found, chance = race.by_method(cells, key), {"auroc": 0.5, "ap": 0.0}[key]
    failed = {(c["method"], c["set"]) for c in cells if "error" in c}
    return {
        m: np.array([found[m].get(s, chance if (m, s) in failed else np.nan) for s in sets])
        for m in peers.METHODS
        if m in found
    }


def mean_ranks(found: Figures) -> dict[str, float]:
    """Return the mean rank of every method, 1 = best, among those that took part."""
    rounded = -np.round(np.stack(list(found.values())), 4)
    ranks = rankdata(rounded, axis=0, nan_policy="omit")
    return dict(zip(found, np.nanmean(ranks, axis=1), strict=True))


HEAD = (
    "method",
    "AUROC",
    "AP",
    "mean rank",
    "best or level",
    "IADC() better / worse",
    "p (Wilcoxon)",
)


def by_mean(auroc: Figures) -> list[str]:
    """Return the methods, the best mean first."""
    return sorted(auroc, key=lambda m: -float(np.nanmean(auroc[m])))


def main_table(auroc: Figures, ap: Figures) -> str:
    """Return the table of means, ranks, wins, and the test against IADC()."""
    ranks, top = mean_ranks(auroc), np.nanmax(np.stack(list(auroc.values())), axis=0)
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for method in by_mean(auroc):
        values = auroc[method]
        means = f"{100 * np.nanmean(values):.2f} | {100 * np.nanmean(ap[method]):.2f}"
        wins = int((values >= top - 1e-4).sum())
        lines.append(
            f"| {method} | {means} | {ranks[method]:.2f} | {wins} | {against(auroc, method)} |"
        )
    return "\n".join(lines)


def against(auroc: Figures, method: str, ours: str = "IADC") -> str:
    """Return how often ours is better and worse, and the signed-rank test's p-value."""
    if method == ours or ours not in auroc:
        return " | "
    gap = (auroc[ours] - auroc[method])[np.isfinite(auroc[method])]
    p = wilcoxon(gap).pvalue if np.any(gap) else 1.0
    return f"{int((gap > 0).sum())} / {int((gap < 0).sum())} | {p:.1e}"


def breakdown(auroc: Figures, known: list[Facts]) -> str:
    """Return mean AUROC by what a table is like."""
    methods = by_mean(auroc)
    lines = ["| tables | n | " + " | ".join(methods) + " |", "|---|---|" + "---|" * len(methods)]
    for title, (value, edges) in BREAKDOWN.items():
        own = np.array([value(f) for f in known])
        for low, high in pairwise(edges):
            chosen = (own > low) & (own <= high)
            if chosen.any():
                row = " | ".join(f"{100 * auroc[m][chosen].mean():.1f}" for m in methods)
                lines.append(f"| {title} {label(low, high)} | {chosen.sum()} | {row} |")
    return "\n".join(lines)


def by_paper(auroc: Figures, sets: list[str]) -> str:
    """Return mean AUROC on the sets of the paper and on the others."""
    methods = by_mean(auroc)
    own = np.array([name.split("/")[0] == "odds" for name in sets])
    lines = ["| sets | n | " + " | ".join(methods) + " |", "|---|---|" + "---|" * len(methods)]
    for title, chosen in (("of the paper", own), ("others", ~own)):
        row = " | ".join(f"{100 * np.nanmean(auroc[m][chosen]):.1f}" for m in methods)
        lines.append(f"| {title} | {chosen.sum()} | {row} |")
    return "\n".join(lines)


def label(low: float, high: float) -> str:
    """Name an interval."""
    return f"<= {high:g}" if low <= 0 else f"> {low:g}" if high >= 1e9 else f"{low:g} to {high:g}"


def reason(theirs: float, who: str, alone: dict[str, float]) -> str:
    """Say why a table is lost, from what our views say alone (`benchmarks.ablation`)."""
    if theirs < CHANCE:
        return "hardly better than chance for anybody"
    if not alone:
        return ""
    view = max(alone, key=lambda name: alone[name])
    if alone[view] >= theirs - CLOSE:
        return f"the mean drowns one view ({view}: {100 * alone[view]:.1f})"
    if who in LOCAL:
        return "odd only among its neighbours, and our views look at the whole"
    return f"no view of ours sees it (best: {view}, {100 * alone[view]:.1f})"


def views_alone() -> dict[str, dict[str, float]]:
    """Return the AUROC of each view alone by table, where `benchmarks.ablation` has run."""
    lines = [line for line in read(ABLATION) if "set" in line] if ABLATION.exists() else []
    return {
        line["set"]: {k[:-6]: v for k, v in line.items() if k.endswith(" alone")} for line in lines
    }


def losses(auroc: Figures, sets: list[str], gap: float = 0.05) -> str:
    """List the tables on which IADC() loses to its best peer by more than five points."""
    if "IADC" not in auroc:
        return ""
    others = [m for m in auroc if m not in peers.OURS]
    best, alone = np.nan_to_num(np.stack([auroc[m] for m in others])), views_alone()
    lines = ["| table | IADC() | best peer | its AUROC | why |", "|---|---|---|---|---|"]
    for k in np.argsort(auroc["IADC"] - best.max(axis=0)):
        if best[:, k].max() - auroc["IADC"][k] > gap:
            who = others[int(best[:, k].argmax())]
            ours, theirs = 100 * auroc["IADC"][k], 100 * best[:, k].max()
            why = reason(theirs / 100, who, alone.get(sets[k], {}))
            lines.append(f"| {sets[k]} | {ours:.1f} | {who} | {theirs:.1f} | {why} |")
    return "\n".join(lines)


def table(args: argparse.Namespace) -> None:
    """Write the tables."""
    parts = [f"# Many tables\n\n{__doc__}\n{race.measured_with(args.cells)}\n"]
    for title, folders in (("402 tables of oddbench_dev", FOLDERS[:1]), ("ODDS", FOLDERS[1:])):
        sets = [n for n in names() if n.split("/")[0] in folders]
        auroc, ap = (figures(args.cells, sets, key) for key in ("auroc", "ap"))
        parts.append(f"## {title}\n\n{main_table(auroc, ap)}\n")
        if folders == FOLDERS[:1]:
            parts.append(f"{breakdown(auroc, [facts(s) for s in sets])}\n")
            parts.append(f"### Where IADC() loses by more than 5 points\n\n{losses(auroc, sets)}\n")
        else:
            parts.append(f"{by_paper(auroc, sets)}\n")
    args.out.write_text("\n".join(parts))
    sys.stdout.write("\n".join(parts))


def run(args: argparse.Namespace) -> None:
    """Fill the cells that are missing."""
    cells = [(m, seed) for m in args.methods for seed in args.seeds]
    race.run(args.cells, names(), load, cells, args.jobs, args.keep)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--methods", nargs="+", default=peers.METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0,))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", type=Path, default=RESULTS)
    parser.add_argument("--out", type=Path, default=RESULTS.with_suffix(".md"))
    parser.add_argument("--keep", type=Path, help="folder for the scores themselves")
    args = parser.parse_args()
    {"run": run, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
