"""How far a row's score spreads over the seeds: cells made of other cells, table and figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from aberra.metrics import anomaly_std, rank_std
from aberra.plots import ODD
from aberra.reproduce.claims import exceptions
from aberra.reproduce.drawing import panels
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.odds import (
    DRAWN,
    ODDS,
    ODDS_SETS,
    odds_jobs,
    odds_reduced,
    resampled_jobs,
)
from aberra.reproduce.odds_tables import ODDS_CHAPTER
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Record, Store, key_of
from aberra.reproduce.tables import Row, row, targets
from aberra.reproduce.work import finished, grouped, stale

SPREAD = "spread"
VARIANTS = ("Single", "ADC", "IADC")
TINY = 1e-12  # added to spreads, so that two of zero have the ratio 1


def spreads(store: Store, profile: Profile, resample: bool = True) -> dict[tuple[str, str], Record]:
    """Return the spread of each detector on each set; it is computed once and kept.

    The scores of every row are not kept with the cells, so a spread may have fewer seeds than the
    cells: as many, from the first, as have been measured or have their scores here.
    """
    found = {}
    cells = finished(store, odds_jobs(profile, resample=(resample,)))
    for place, records in grouped(cells, lambda s: (s["detector"], s["set"])).items():
        for n in range(len(records), 1, -1):
            if (held := _kept_spread(store, records[:n])) is not None:
                found[place] = {**held, "stale": stale(records[:n])}
                break
    return found


def _kept_spread(store: Store, records: Sequence[Record]) -> Record | None:
    setting = {
        "experiment": SPREAD,
        "of": ["sigmoid", "ranks"],
        "cells": [r["key"] for r in records],
        "seeds": [r["setting"]["seed"] for r in records],
    }
    key = key_of(setting)
    if key not in store.read(SPREAD):
        scores = [store.arrays(ODDS, r["key"]) for r in records]
        if any(s is None for s in scores):
            return None
        store.add(SPREAD, setting, {"spread": _spread_of(scores)})
    return store.read(SPREAD)[key]


def _spread_of(scores: Sequence[Any]) -> dict[str, dict[str, Any]]:
    made = {}
    for name in VARIANTS:
        stacked = np.stack([s[name] for s in scores])
        each = anomaly_std(stacked)
        low = np.quantile(each, (0.05, 0.25, 0.5, 0.75, 0.95))
        made[name] = {
            "mean": float(f"{each.mean():.6g}"),
            "ranks": float(f"{rank_std(stacked).mean():.6g}"),
            "quantiles": [float(f"{q:.6g}") for q in low],
        }
    return made


def spread_rows(store: Store, profile: Profile) -> list[Row]:
    """Return the mean spread of the rows' scores over the seeds.

    The paper's row "OCSVM" is compared with the hybrid: a plain machine on all rows does not
    depend on a seed, so its Single could not have a spread. Scores of another scale have another
    spread in the printed measure, so less of it is taken for better only where the ranks, which
    have no scale, agree (`why_withheld`).
    """
    names = {"OCSVM": "OCSVM-H"}
    found = spreads(store, profile)
    rows = []
    for target in targets("odds_score_std"):
        held = found.get((names.get(target.detector, target.detector), target.case))
        if held is None:
            rows.append(row("odds-spread", target, [], less_is_better=True))
            continue
        made = row(
            "odds-spread",
            target,
            [held["spread"][target.variant]["mean"]],
            less_is_better=True,
            stale=stale([held]),
            withheld=why_withheld(held["spread"], target.variant),
        )
        rows.append(replace(made, seeds=len(held["setting"]["seeds"]), std=None))
    return rows


def why_withheld(spread: Mapping[str, Mapping[str, Any]], variant: str) -> str:
    """Return why a spread cannot be compared with the paper's; nothing if it can.

    The printed measure depends on the scale of the scores. It is taken at its word where it says
    the same as the ranks: that an ensemble spreads less, or more, than a single model.
    """
    if variant == "Single":
        return "the measure depends on the scale of the scores"
    own, single = spread[variant], spread["Single"]
    if (own["mean"] < single["mean"]) == (own["ranks"] < single["ranks"]):
        return ""
    return "the spread of the ranks says the opposite"


def steadier_with_resampling(store: Store, profile: Profile) -> str:
    """Compare the spread of the ranks over the seeds with and without resampling."""
    title = "- **Resampling makes the ranking steadier**"
    with_it, without = (spreads(store, profile, way) for way in (True, False))
    pairs = [place for place in with_it if place in without and place[0] != "OCSVM"]
    if not pairs:
        return f"{title}: not run."
    told = []
    for kind in ("ADC", "IADC"):
        here, there = (
            np.array([held[place]["spread"][kind]["ranks"] for place in pairs])
            for held in (with_it, without)
        )
        ratio = np.median((here + TINY) / (there + TINY))
        told.append(f"{kind} spreads less with it in {sum(here < there)}, median ratio {ratio:.2f}")
    return f"{title} ({len(pairs)} pairs), deviation of the ranks over seeds: {'; '.join(told)}."


def spread_falls(store: Store, profile: Profile) -> str:
    """Compare the spread of a row's score over the seeds: as printed, and in ranks."""
    whole = {
        " on ".join(place): held
        for place, held in spreads(store, profile).items()
        if place[0] != "OCSVM"  # exact and, on all rows, without randomness
    }
    found = {pair: held["spread"] for pair, held in whole.items()}
    if not found:
        return "- **The spread of the scores falls**: not run."
    told = []
    for measure, words in (("mean", "of the sigmoid score, IADC-9"), ("ranks", "of the ranks")):
        ratios = {
            kind: {
                pair: (held[kind][measure] + TINY) / (held["Single"][measure] + TINY)
                for pair, held in found.items()
            }
            for kind in ("ADC", "IADC")
        }
        parts = (
            f"{kind} has less than Single in {sum(r < 1 for r in each.values())}, median ratio "
            f"{np.median(list(each.values())):.2f}"
            for kind, each in ratios.items()
        )
        rises = [f"{pair} ({ratio:.2f})" for pair, ratio in ratios["IADC"].items() if ratio > 1]
        told.append(f"{words}: {'; '.join(parts)}.{exceptions(' IADC has more for', rises)}")
    seeds = [len(held["setting"]["seeds"]) for held in whole.values()]
    return (
        f"- **The spread of the scores falls** ({len(found)} pairs, {min(seeds)} to {max(seeds)} "
        f"seeds of each). Deviation over seeds "
        f"{' Deviation '.join(told)}"
    )


def spread_claims(store: Store, profile: Profile) -> list[str]:
    """Say what holds of the claims about the spread."""
    return [steadier_with_resampling(store, profile), spread_falls(store, profile)]


def spread_boxplots(store: Store, profile: Profile) -> Any:
    """Draw the spread of each row's score over the seeds, for Deep SVDD."""
    found = {k[1]: v for k, v in spreads(store, profile).items() if k[0] == DRAWN}

    def panel(ax: Any, records: list[Record]) -> None:
        boxes = []
        for kind in VARIANTS:
            low, first, middle, third, high = records[0]["spread"][kind]["quantiles"]
            mean = records[0]["spread"][kind]["mean"]
            box = {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}
            boxes.append({**box, "mean": mean, "label": kind})
        ax.bxp(boxes, showfliers=False, showmeans=True, medianprops={"color": ODD})
        ax.set(ylabel="deviation of the score")

    return panels({name: [held] for name, held in found.items()}, ODDS_SETS, panel)


def spread_reduced(profile: Profile) -> str:
    """Say in one line how much of the protocol a profile runs."""
    return (
        f"{odds_reduced(profile)} A spread is over the seeds whose scores of every row were kept, "
        "which may be fewer (the column seeds of TABLE.csv)."
    )


SPREAD_TABLES = (
    Experiment(
        "odds-spread",
        "Mean deviation of the rows' scores over the seeds; less is better",
        resampled_jobs,
        rows=spread_rows,
        reduced=spread_reduced,
        claims=spread_claims,
        chapter=ODDS_CHAPTER,
        digits=4,
    ),
)
