"""Cells of the ODDS tables: Single, ADC and IADC on contaminated tables.

Transductive, as in the paper: all rows train, all rows are scored, labels only evaluate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.data.catalogue import DATA_SETS
from aberra.data.registry import load_table
from aberra.metrics import auroc
from aberra.reproduce.engines import ENGINES
from aberra.reproduce.profiles import Profile
from aberra.reproduce.seeds import Trial, run_seeds
from aberra.reproduce.settings import (
    detector_names,
    ensemble_of,
    ensemble_settings,
    member_epochs_of,
    own_starts,
    settings_of,
)
from aberra.reproduce.store import Record, Setting, Store
from aberra.reproduce.work import Job
from aberra.rng import stream

ODDS = "odds"
ODDS_SETS = ("satellite", "arrhythmia", "cardio", "shuttle", "thyroid", "satimage-2")
COSTLIEST = "shuttle"
OUTLIER_RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5)  # only the figure, drawn with resampling, needs all
KEPT_RATIO = 0.5  # the one that decides in the tables
DRAWN = "Deep SVDD"  # the detector of the paper's figures, run to the last round
BINS = 40


@dataclass(frozen=True)
class OddsSize:
    """How much of the ODDS tables a profile runs.

    Parameters
    ----------
    seeds, few_seeds : int
        Runs of each cell; `few_seeds` on the set that costs most.
    members, rounds : int
        Size of an ensemble, and rounds at most.
    epochs : float
        Share of a detector's own epochs.
    rows : int
        Rows of a set at most, drawn at random; 0 means all.
    """

    seeds: int
    few_seeds: int
    members: int
    rounds: int
    epochs: float
    rows: int

    def seeds_on(self, name: str) -> int:
        """Return the seeds on a set."""
        return self.few_seeds if name == COSTLIEST else self.seeds


def odds_size(profile: Profile) -> OddsSize:
    """Return how much of the ODDS tables a profile runs."""
    return profile.size(ODDS, OddsSize)


def odds_reduced(profile: Profile) -> str:
    """Say in one line how much of the protocol a profile runs."""
    size = odds_size(profile)
    return (
        f"Profile {profile.name}: {size.seeds} seeds ({size.few_seeds} on {COSTLIEST}; TABLE.csv "
        "says where fewer are there), "
        f"{size.members} members, at most {size.rounds} rounds, {size.epochs:.0%} of the "
        f"epochs, {size.rows or 'all'} rows."
    )


def odds_jobs(profile: Profile, resample: Sequence[bool] = (True, False)) -> list[Job]:
    """Return one job for each detector, set and way of resampling, the cheap sets first."""
    return [
        Job(
            ODDS,
            f"{detector} on {name}{'' if way else ', all rows'}",
            tuple(odds_settings(profile, detector, name, way)),
            compute_odds,
        )
        for way in resample
        for name in cheap_first()
        for detector in detector_names()
    ]


def own_jobs(profile: Profile) -> list[Job]:
    """Return the jobs of the rounds that begin in our way, which is not the papers'."""
    return [
        Job(
            ODDS,
            f"{detector} on {name}, {start} start",
            tuple(own_setting(s, start) for s in odds_settings(profile, detector, name, True)),
            compute_odds,
        )
        for name in cheap_first()
        for detector, start in own_starts().items()
    ]


def own_setting(setting: Setting, start: str) -> Setting:
    """Return the setting of a cell whose rounds begin in our way."""
    engines = ENGINES["table"]
    own = {"start": start, "course": engines[start], "adviser": engines["MultiView"]}
    return {**setting, "ratios": [KEPT_RATIO], "all_rounds": False, **own}


def cheap_first() -> list[str]:
    """Return the sets in the order of the work: by their rows."""
    return sorted(ODDS_SETS, key=lambda name: DATA_SETS[name].shape[0])


def resampled_jobs(profile: Profile) -> list[Job]:
    """Return the jobs whose members see resampled rows."""
    return odds_jobs(profile, resample=(True,))


def drawn_jobs(profile: Profile) -> list[Job]:
    """Return the jobs behind the figures of one detector."""
    return [job for job in resampled_jobs(profile) if job.settings[0]["detector"] == DRAWN]


def odds_settings(profile: Profile, detector: str, name: str, resample: bool) -> list[Setting]:
    """Return the settings of one detector on one set, one per seed."""
    size = odds_size(profile)
    shared = {
        "experiment": ODDS,
        "detector": detector,
        "params": settings_of(detector, size.epochs),
        "set": name,
        "rows": size.rows,
        "resample": resample,
        "members": size.members,
        "rounds": size.rounds,
        "all_rounds": detector == DRAWN and resample,
        **ensemble_settings(),
        "ratios": list(OUTLIER_RATIOS) if resample else [KEPT_RATIO],
        "engine": ENGINES["table"][detector],
    }
    return [{**shared, "seed": seed} for seed in range(size.seeds_on(name))]


def compute_odds(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Run the seeds of one detector on one set together, and keep a record of each."""
    one = settings[0]
    X, y = load_table(one["set"], data_dir)
    X, y = some_rows(X, y, one["rows"])
    trials = run_seeds(
        ensemble_of(one),
        X,
        [setting["seed"] for setting in settings],
        one["ratios"],
        rounds_at_least=one["rounds"] if one["all_rounds"] else 1,
    )
    for setting, trial in zip(settings, trials, strict=True):
        kept = trial.history[trial.history.replay(KEPT_RATIO)].scores
        scores = {"Single": trial.single, "ADC": trial.history[0].scores, "IADC": kept}
        store.add(
            ODDS,
            setting,
            record_of(trial, y, scores, setting),
            {name: values.astype(np.float32) for name, values in scores.items()},
        )


def some_rows(
    X: NDArray[np.float64], y: NDArray[np.int8], n: int
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return at most n rows, drawn at random; all if n is 0."""
    if n == 0 or n >= len(X):
        return X, y
    rows = np.sort(stream(0, n).choice(len(X), n, replace=False))
    return X[rows], y[rows]


def record_of(
    trial: Trial, y: NDArray[np.int8], scores: dict[str, NDArray[np.float64]], setting: Setting
) -> Record:
    """Return the numbers that tables and figures are made of."""
    history = trial.history
    return {
        "auroc": {name: auroc(y, values) for name, values in scores.items()},
        "rounds": [auroc(y, line.scores) for line in history],
        "crossings": {str(r): history.crossings(r) for r in setting["ratios"]},
        "kept": {str(r): history.replay(r) for r in setting["ratios"]},
        "trust": [trust_of(history.weights(t), y) for t in range(len(history))],
        "histograms": {name: histogram_of(scores[name], y) for name in ("Single", "IADC")},
        "seconds": sum(line.seconds for line in history),
        "single_seconds": trial.single_seconds,
        "member_epochs": member_epochs_of(setting, len(history)),
        "contamination": float(np.mean(y)),
    }


def trust_of(weights: NDArray[np.float64], y: NDArray[np.int8]) -> dict[str, list[float]]:
    """Return mean, median and deviation of the weights of normal and of anomalous rows."""
    found = {}
    for name, rows in (("normal", y == 0), ("anomalous", y == 1)):
        w = weights[rows]
        found[name] = [round(float(f(w)), 5) for f in (np.mean, np.median, np.std)]
    return found


def histogram_of(scores: NDArray[np.float64], y: NDArray[np.int8]) -> dict[str, Any]:
    """Return histograms of normal and anomalous rows on one axis, cut at the 99 % quantile."""
    edges = np.linspace(float(scores.min()), float(np.quantile(scores, 0.99)), BINS + 1)
    held: dict[str, Any] = {"edges": [float(f"{e:.6g}") for e in edges]}
    for name, rows in (("normal", y == 0), ("anomalous", y == 1)):
        values = scores[rows]
        counts = np.histogram(values, edges)[0].tolist()
        held[name] = {"counts": counts, "mean": float(values.mean()), "std": float(values.std())}
    return held
