"""AUROC of every detector on the six ODDS sets: Single, ADC and IADC, defaults everywhere.

    ABERRA_DATA=... python -m benchmarks.odds run [--sets ...] [--detectors ...] [--seeds 0 1 2]
    ABERRA_DATA=... python -m benchmarks.odds table

Transductive, as in the paper: all rows train, all rows are scored, labels only evaluate. The
members of all seeds train in one stack, each with its own rows, weights and shuffling, which
gives the same numbers as one fit per seed in two thirds of the time.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import DAGPR, IADC, OCSVM, RSRAE, AutoEncoder, DeepSVDD, HybridOCSVM
from aberra.detectors.base import Data, member_scores
from aberra.metrics import auroc
from aberra.rng import draw_seeds, single_thread, stream
from aberra.robust.history import History, kept_round, round_from, settled
from aberra.robust.resampling import resampled_rows
from benchmarks.records import append, environment, load_set, read

SETS = ("arrhythmia", "cardio", "thyroid", "satimage-2", "satellite", "shuttle")
DETECTORS = {
    "Deep SVDD": DeepSVDD,
    "AE": AutoEncoder,
    "OCSVM-H": HybridOCSVM,
    "RSRAE": RSRAE,
    "DAGPR": DAGPR,
    "OCSVM": OCSVM,
}
RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5)
RESULTS = Path("results/odds.jsonl")


def fit_seeds(model: IADC, data: Data, seeds: list[int], n_rounds: int) -> list[History]:
    """Run IADC for several seeds at once; the histories are those of one fit each."""
    models = []
    for seed in seeds:
        one = IADC(**{**model.get_params(deep=False), "random_state": seed})
        one._validate(data, reset=True)
        one._begin(data)
        models.append(one)
    trainer = models[0]._trainer()
    with single_thread():
        prepared = trainer._prepare(data)
        while active := [one for one in models if one.history_.goes_on(n_rounds)]:
            _one_round(active, trainer, prepared, data)
    return [one.history_ for one in models]


def _one_round(active: list[IADC], trainer: Any, prepared: Any, data: Data) -> None:
    started, n, m = time.perf_counter(), len(data), active[0].n_members
    drawn, weights, seeds = [], [], []
    for one in active:
        t = len(one.history_)
        drawn.append(resampled_rows(n, m, one.resample, stream(one._entropy, t, 0)))
        weights.append(np.broadcast_to(one.history_.next_weights(n), (m, n)))
        seeds += draw_seeds(one._entropy, t, 1, n=m)
    rows: NDArray[np.int64] = np.concatenate(drawn)
    members = trainer._train(prepared, rows, np.concatenate(weights), seeds)
    scores = member_scores(members, data)
    seconds = (time.perf_counter() - started) / len(active)
    for k, one in enumerate(active):
        part = slice(k * m, (k + 1) * m)
        one.history_.append(round_from(scores[part], rows[part], seconds))


def run(args: argparse.Namespace) -> None:
    """Fill the cells that are missing."""
    done = {(c["detector"], c["set"], c["resample"], c["seed"]) for c in read(args.out)}
    for name in args.sets:
        data, y = load_set(name)
        for detector in args.detectors:
            for resample in args.resample:
                key = (detector, name, resample)
                seeds = [s for s in args.seeds if (*key, s) not in done]
                if seeds:
                    run_cell(args, key, data, y, seeds)


def run_cell(
    args: argparse.Namespace,
    key: tuple[str, str, bool],
    data: Data,
    y: NDArray[np.int8],
    seeds: list[int],
) -> None:
    """Fit one detector on one set with all seeds, and write a line per seed."""
    detector, name, resample = key
    base = DETECTORS[detector]
    model = IADC(base(), resample=resample, patience=args.patience)
    histories = fit_seeds(model, data, seeds, args.rounds)
    for seed, history in zip(seeds, histories, strict=True):
        started = time.perf_counter()
        single = base(random_state=seed).fit(data).anomaly_score(data)
        cell = {
            "detector": detector,
            "set": name,
            "resample": resample,
            "seed": seed,
            "single": auroc(y, single),
            "single_seconds": time.perf_counter() - started,
            "adc": auroc(y, history[0].scores),
            "iadc": auroc(y, history[history.kept].scores),
            "kept": history.kept + 1,
            "rounds": [auroc(y, line.scores) for line in history],
            "out_of_bag": [_auroc_finite(y, line.out_of_bag) for line in history],
            "in_bag": [_auroc_finite(y, line.in_bag) for line in history],
            "crossings": {str(r): history.crossings(r) for r in RATIOS},
            "seconds": sum(line.seconds for line in history),
            **environment(),
        }
        append(args.out, cell)
        print(detector, name, resample, seed, f"{cell['iadc']:.3f}", cell["kept"], flush=True)


def _auroc_finite(y: NDArray[np.int8], scores: NDArray[np.float64]) -> float | None:
    seen = np.isfinite(scores)
    return auroc(y[seen], scores[seen]) if seen.any() else None


def kept_auroc(cell: dict[str, Any]) -> float:
    """Return the AUROC of the round that the default rule keeps, whatever the run's patience."""
    h, patience = cell["crossings"]["0.5"], IADC().patience
    stop = next((t for t in range(1, len(h) + 1) if settled(h[:t], patience)), len(h))
    return float(cell["rounds"][kept_round(h[:stop])])


def paper(targets: Path) -> dict[tuple[str, str, str], float]:
    """Return the paper's means by detector, variant and set, where the tables are at hand."""
    import csv

    found = {}
    for file in ("odds_adc_auc.csv", "odds_iadc_auc.csv"):
        path = targets / file
        if path.exists():
            with path.open() as lines:
                for row in csv.DictReader(lines):
                    if row["mean"]:
                        found[row["detector"], row["variant"], row["case"]] = float(row["mean"])
    return found


def table(args: argparse.Namespace) -> None:
    """Print the table of means and deviations, the paper's figure behind each of ours."""
    cells = [c for c in read(args.out) if c["resample"] is True]
    printed = paper(args.targets)
    print("| detector | variant |", " | ".join(SETS), "|\n|---|---|" + "---|" * len(SETS))
    for detector in DETECTORS:
        for variant in ("single", "adc", "iadc"):
            shown = [_entry(cells, printed, detector, variant, name) for name in SETS]
            print(f"| {detector} | {variant.upper()} |", " | ".join(shown), "|")


def _entry(
    cells: list[dict[str, Any]],
    printed: dict[tuple[str, str, str], float],
    detector: str,
    variant: str,
    name: str,
) -> str:
    chosen = [c for c in cells if c["detector"] == detector and c["set"] == name]
    values = [100 * (kept_auroc(c) if variant == "iadc" else c[variant]) for c in chosen]
    if not values:
        return "-"
    ours = f"{np.mean(values):.1f} ± {np.std(values):.1f}"
    theirs = printed.get((detector, variant.upper(), name))
    return ours if theirs is None else f"{ours} ({theirs:.1f})"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--detectors", nargs="+", default=list(DETECTORS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--resample", nargs="+", type=lambda t: t == "yes", default=[True])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--patience", type=int, default=IADC().patience, help="longer: for studies")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--targets", type=Path, default=Path("targets"))
    args = parser.parse_args()
    {"run": run, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
