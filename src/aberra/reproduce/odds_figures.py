"""The figures of the ODDS sets, and what holds of the claims that they show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from aberra.data.catalogue import DATA_SETS
from aberra.plots import LINE, NORMAL, ODD
from aberra.reproduce.claims import NAMED, exceptions
from aberra.reproduce.drawing import mean_band, panels, round_axis
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.odds import (
    KEPT_RATIO,
    ODDS_SETS,
    OUTLIER_RATIOS,
    drawn_jobs,
    resampled_jobs,
)
from aberra.reproduce.odds_tables import ODDS_CHAPTER, odds_groups
from aberra.reproduce.profiles import Profile
from aberra.reproduce.spread import spread_boxplots
from aberra.reproduce.store import Record, Store
from aberra.reproduce.work import finished, grouped
from aberra.robust.history import kept_round, settled

# Differ in hue, lightness, dash and marker at once.
STYLES = {
    "OCSVM": ("#000000", "-", "o"),
    "OCSVM-H": ("#0072B2", "--", "s"),
    "AE": ("#D55E00", "-.", "^"),
    "Deep SVDD": ("#009E73", ":", "D"),
    "RSRAE": ("#CC79A7", (0, (5, 1)), "v"),
    "DAGPR": ("#56B4E9", (0, (1, 1)), "x"),
}


def drawn_by_set(store: Store, profile: Profile) -> dict[str, list[Record]]:
    """Return the finished cells of the detector that is drawn, by set."""
    return grouped(finished(store, drawn_jobs(profile)), lambda s: s["set"])


def outlier_ratio(store: Store, profile: Profile) -> Any:
    """Draw the AUROC of IADC against the outlier ratio r that decides when to stop."""

    def panel(ax: Any, records: list[Record]) -> None:
        for detector, (colour, dash, marker) in STYLES.items():
            own = [r for r in records if r["setting"]["detector"] == detector]
            if not own:
                continue
            ratios = [float(r) for r in own[0]["kept"]]
            curves = [[100 * r["rounds"][k] for k in r["kept"].values()] for r in own]
            mean = np.mean(curves, axis=0)
            ax.plot(ratios, mean, color=colour, ls=dash, marker=marker, ms=4, label=detector)
        ax.axvline(records[0]["contamination"], color=LINE, lw=0.8, ls=":")
        ax.set(xlabel="outlier ratio r", ylabel="AUROC")

    by_set = grouped(finished(store, resampled_jobs(profile)), lambda s: s["set"])
    return panels(by_set, ODDS_SETS, panel, legend=True)


def auc_per_round(store: Store, profile: Profile) -> Any:
    """Draw the AUROC of every round with Deep SVDD; the mean of what the rule keeps is marked."""

    def panel(ax: Any, records: list[Record]) -> None:
        n = min(len(r["rounds"]) for r in records)
        curves = 100 * np.array([r["rounds"][:n] for r in records])
        mean_band(ax, curves.mean(axis=0), curves.std(axis=0), NORMAL, "-o", "mean and deviation")
        kept = 100 * float(np.mean([r["auroc"]["IADC"] for r in records]))
        ax.axhline(kept, color=ODD, ls="--", label="round kept, r = 0.5")
        for record in records:
            t = record["kept"][str(KEPT_RATIO)]
            if t < n:
                ax.plot(t + 1, 100 * record["rounds"][t], "x", color=ODD, ms=7)
        round_axis(ax)
        ax.set_ylabel("AUROC")

    return panels(drawn_by_set(store, profile), ODDS_SETS, panel, legend=True)


def weights_per_round(store: Store, profile: Profile) -> Any:
    """Draw the trust in normal and in anomalous rows, round by round, for Deep SVDD."""

    def panel(ax: Any, records: list[Record]) -> None:
        n = min(len(r["trust"]) for r in records)
        for kind, colour, dash in (("normal", NORMAL, "-"), ("anomalous", ODD, "--")):
            held = np.array([[line[kind] for line in r["trust"][:n]] for r in records])
            mean, median, deviation = held.mean(axis=0).T
            mean_band(ax, mean, deviation, colour, dash, f"{kind}, mean")
            ax.plot(np.arange(1, n + 1), median, color=colour, ls=":", label=f"{kind}, median")
        round_axis(ax)
        ax.set(ylabel="trust", ylim=(0, 1))

    return panels(drawn_by_set(store, profile), ODDS_SETS, panel, legend=True)


def indifference(store: Store, profile: Profile) -> list[str]:
    """See how much the outlier ratio changes the AUROC of the round that is kept."""
    ranges = {}
    for (detector, name, resampled), records in odds_groups(store, profile).items():
        if resampled:
            curves = [[100 * r["rounds"][k] for k in r["kept"].values()] for r in records]
            mean = np.mean(curves, axis=0)
            ranges[f"{detector} on {name}"] = float(np.ptp(mean))
    if not ranges:
        return ["- **Indifferent to r**: not run."]
    wide = [f"{pair} ({value:.1f})" for pair, value in ranges.items() if value >= 3 * NAMED]
    ratios = ", ".join(f"{r:g}" for r in OUTLIER_RATIOS)
    return [
        f"- **Indifferent to r**: between r = {ratios} the AUROC of a pair differs by "
        f"{np.median(list(ranges.values())):.1f} points in the median."
        f"{exceptions(f' By {3 * NAMED:g} or more', wide)}"
    ]


def stop_near_best(store: Store, profile: Profile) -> list[str]:
    """Compare the round that is kept with the first, the last and the best in hindsight."""
    kinds: dict[str, Callable[[Record], float]] = {
        "kept": lambda r: r["auroc"]["IADC"],
        "first": lambda r: r["rounds"][0],
        "last": lambda r: r["rounds"][-1],
        "best": lambda r: max(r["rounds"]),
    }
    groups = odds_groups(store, profile)
    pairs = [records for (_, _, resampled), records in groups.items() if resampled]
    if not pairs:
        return ["- **The stop is near the best round**: not run."]
    mean = {
        kind: 100 * float(np.mean([np.mean([f(r) for r in records]) for records in pairs]))
        for kind, f in kinds.items()
    }
    return [
        f"- **The stop is near the best round**: over {len(pairs)} pairs the round that is kept "
        f"has {mean['kept']:.1f} on average, the first (ADC) {mean['first']:.1f}, the last that "
        f"was run {mean['last']:.1f}, the best in hindsight (chosen with labels) "
        f"{mean['best']:.1f}. With another rule, on the same rounds: {_other_rules(pairs)}."
    ]


def _other_rules(pairs: Sequence[Sequence[Record]]) -> str:
    """Return what other rules would have kept; the patience of the tables is 2."""
    rules: dict[str, Callable[[Record], int]] = {
        "patience 1": lambda r: kept_round(*_until_settled(r, 1)),
        "the round of the stop instead of the calmest": lambda r: len(_until_settled(r, 2)[0]),
        "always round 5": lambda r: min(5, len(r["rounds"])) - 1,
    }
    told = []
    for name, rule in rules.items():
        each = [np.mean([r["rounds"][rule(r)] for r in records]) for records in pairs]
        told.append(f"{name} {100 * np.mean(each):.1f}")
    return ", ".join(told)


def _until_settled(record: Record, patience: int) -> tuple[list[int], float]:
    """Return the crossings up to the stop, and those to expect by chance."""
    h = record["crossings"][str(KEPT_RATIO)]
    n_rows = DATA_SETS[record["setting"]["set"]].shape[0]
    by_chance = KEPT_RATIO * (1 - KEPT_RATIO) * (record["setting"]["rows"] or n_rows)
    ends = (t for t in range(1, len(h) + 1) if settled(h[:t], patience, by_chance))
    return h[: next(ends, len(h))], by_chance


ODDS_FIGURES = (
    Experiment(
        "outlier-ratio",
        "Figure: AUROC against the outlier ratio r",
        resampled_jobs,
        figure=outlier_ratio,
        claims=indifference,
        chapter=ODDS_CHAPTER,
    ),
    Experiment(
        "auc-per-round",
        "Figure: AUROC of every round, Deep SVDD",
        drawn_jobs,
        figure=auc_per_round,
        claims=stop_near_best,
        chapter=ODDS_CHAPTER,
    ),
    Experiment(
        "spread-boxplots",
        "Figure: spread of the scores over seeds, Deep SVDD",
        drawn_jobs,
        figure=spread_boxplots,
    ),
    Experiment(
        "weights-per-round",
        "Figure: trust in the rows by round, Deep SVDD",
        drawn_jobs,
        figure=weights_per_round,
    ),
)
