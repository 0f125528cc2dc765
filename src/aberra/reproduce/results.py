"""From finished cells to rows: which records make up which cell of which table."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aberra.metrics import anomaly_std, rank_std
from aberra.reproduce import mri, odds, unseen
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Record, Store, key_of
from aberra.reproduce.tables import Row, Target, grid, row, target_lines, targets
from aberra.reproduce.work import Job

WITHOUT = "-ns"  # the paper's mark for members that see all rows
SPREAD_FAMILY = "spread"


def finished(store: Store, jobs: Iterable[Job]) -> list[Record]:
    """Return the records of these jobs' cells, as far as they are there."""
    found: list[Record] = []
    held: dict[str, dict[str, Record]] = {}
    for job in jobs:
        records = held.setdefault(job.family, store.read(job.family))
        keys = (key_of(setting) for setting in job.settings)
        found += [records[key] for key in keys if key in records]
    return found


def odds_rows(store: Store, profile: Profile, variant: str) -> list[Row]:
    """Return AUROC x 100 of one variant, with and without resampling, Single before it."""
    groups = _grouped(
        finished(store, odds.jobs(profile)),
        lambda s: (s["detector"], s["set"], s["resample"]),
    )
    printed = {(t.detector, t.variant, t.case): t for t in targets(f"odds_{variant.lower()}_auc")}
    rows = []
    for detector in ("OCSVM", *_detectors(printed)):
        for name, shown in (
            ("Single", "Single"),
            (variant, variant + WITHOUT),
            (variant, variant),
        ):
            for case in odds.SETS:
                target = printed.get(
                    (detector, shown, case), Target(detector, shown, case, None, None)
                )
                records = groups.get((detector, case, not shown.endswith(WITHOUT)), [])
                rows.append(_cell(f"odds-{variant.lower()}", target, records, name))
    return rows


def _detectors(printed: Mapping[tuple[str, str, str], Target]) -> list[str]:
    return list(dict.fromkeys(detector for detector, _, _ in printed))


def _cell(table: str, target: Target, records: Sequence[Record], name: str) -> Row:
    share = {"Single": "single_seconds"}.get(name, "seconds")
    values = [100 * r["auroc"][name] for r in records]
    epochs = 0 if name == "Single" else sum(int(r["member_epochs"]) for r in records)
    return row(table, target, values, sum(float(r[share]) for r in records), epochs)


def spread_rows(store: Store, profile: Profile) -> list[Row]:
    """Return the mean spread of the rows' scores over the seeds.

    The paper's row "OCSVM" is compared with the hybrid: a plain machine on all rows does not
    depend on a seed, so its Single could not have a spread.
    """
    names = {"OCSVM": "OCSVM-H"}
    found = spreads(store, profile)
    rows = []
    for target in targets("odds_score_std"):
        held = found.get((names.get(target.detector, target.detector), target.case))
        values = [] if held is None else [held["spread"][target.variant]["mean"]]
        made = row("odds-spread", target, values, less_is_better=True)
        seeds = 0 if held is None else len(held["setting"]["seeds"])
        rows.append(Row(**{**vars(made), "seeds": seeds, "std": None}))
    return rows


def spreads(store: Store, profile: Profile, resample: bool = True) -> dict[tuple[str, str], Record]:
    """Return the spread of each detector on each set; it is computed once and kept."""
    held, found = store.read(SPREAD_FAMILY), {}
    cells = finished(store, odds.jobs(profile, resample=(resample,)))
    for place, records in _grouped(cells, lambda s: (s["detector"], s["set"])).items():
        wanted = profile.few_seeds if place[1] == odds.LARGEST else profile.seeds
        if len(records) < max(2, wanted):
            continue
        setting = {
            "experiment": SPREAD_FAMILY,
            "of": ["sigmoid", "ranks"],
            "cells": [r["key"] for r in records],
            "seeds": [r["setting"]["seed"] for r in records],
        }
        key = key_of(setting)
        if key not in held:
            scores = [store.arrays(odds.FAMILY, r["key"]) for r in records]
            if any(s is None for s in scores):
                continue  # the scores were not kept here; they stay where the cells were made
            store.add(SPREAD_FAMILY, setting, {"spread": _spread(scores)})
            held = store.read(SPREAD_FAMILY)
        found[place] = held[key]
    return found


def _spread(scores: Sequence[Any]) -> dict[str, dict[str, Any]]:
    made = {}
    for name in ("Single", "ADC", "IADC"):
        stacked = np.stack([s[name] for s in scores])
        each = anomaly_std(stacked)
        low = np.quantile(each, (0.05, 0.25, 0.5, 0.75, 0.95))
        made[name] = {
            "mean": float(f"{each.mean():.6g}"),
            "ranks": float(f"{rank_std(stacked).mean():.6g}"),
            "quantiles": [float(f"{q:.6g}") for q in low],
        }
    return made


def unseen_rows(store: Store, profile: Profile, images: str) -> list[Row]:
    """Return AUROC x 100 on new images: the mean over classes, spread over seeds."""
    records = finished(store, unseen.jobs(profile, images))
    n = len(profile.classes)
    return [
        _image_row(f"{images}-unseen", target, _of_detector(records, target.detector), "auroc", n)
        for target in targets(f"{images}_unseen_auc")
    ]


def transductive_rows(store: Store, profile: Profile) -> list[Row]:
    """Return AUROC x 100 on the contaminated training images themselves."""
    records = finished(store, unseen.jobs(profile, "mnist"))
    return [
        _image_row(
            "mnist-transductive",
            Target(target.detector, target.variant, target.case, None, None),
            _of_detector(records, target.detector),
            "transductive",
            len(profile.classes),
        )
        for target in targets("mnist_unseen_auc")
        if float(target.case) > 0
    ]


def _image_row(
    table: str, target: Target, records: Sequence[Record], what: str, n_classes: int
) -> Row:
    """Return one cell; a seed counts when all its classes are there."""
    found = [r for r in records if r["setting"]["contamination"] == float(target.case)]
    by_seed = _grouped(found, lambda s: s["seed"])
    whole = [held for held in by_seed.values() if len(held) == n_classes]
    values = [100 * float(np.mean([r[what][target.variant] for r in held])) for held in whole]
    chosen = [r for held in whole for r in held]
    share = "single_seconds" if target.variant == "Single" else "seconds"
    epochs = 0 if target.variant == "Single" else sum(r["member_epochs"] for r in chosen)
    return row(table, target, values, sum(r[share] for r in chosen), epochs)


def _of_detector(records: Sequence[Record], detector: str) -> list[Record]:
    """Return a detector's records; "Best" and "Worst" are the nu with most and least AUROC.

    That choice looks at the labels of the test images: an oracle, as it must be in the paper.
    """
    if not detector.startswith("OCSVM ("):
        return [r for r in records if r["setting"]["detector"] == detector]
    machines = [r for r in records if r["setting"]["detector"] == "OCSVM"]
    by_nu = _grouped(machines, lambda s: s["params"]["nu"])
    if not by_nu:
        return []
    mean = {nu: np.mean([r["auroc"]["Single"] for r in held]) for nu, held in by_nu.items()}
    pick = max if "Best" in detector else min
    return by_nu[pick(mean, key=lambda nu: float(mean[nu]))]


# What the papers call them, and ours. The paper's precision and recall are probably exchanged, as
# in the public code that it follows; they are compared under the names that it prints.
MRI_METRICS = {
    "dice": "dice",
    "auc": "auroc",
    "iou": "iou",
    "precision": "precision",
    "recall": "recall",
}
PROTOCOLS = {
    "anoddpm": "anoddpm",
    "anoddpm, tuned on pasted lesions": "best_anoddpm",
    "standard": "standard",
}


def mri_rows(store: Store, profile: Profile) -> list[Row]:
    """Return the metrics of every localiser by protocol; the paper's stand beside the first."""
    groups = _grouped(finished(store, mri.jobs(profile)), lambda s: s["model"])
    printed = {(t.detector, t.variant, t.case): t for t in mri_targets()}
    rows = []
    for name, line in mri.ROWS.items():
        title = f"{line.method} T={line.steps}" if line.steps else line.method
        for shown, protocol in PROTOCOLS.items():
            for case, metric in MRI_METRICS.items():
                target = printed.get((title, shown, case), Target(title, shown, case, None, None))
                records = groups.get(name, [])
                values = [float(r[protocol][metric][0]) for r in records]
                seconds = sum(60 * float(r["minutes"]) for r in records)
                rows.append(row("addm-mri", target, values, seconds))
    return rows


def mri_targets() -> list[Target]:
    """Return the cells of the paper's MRI table, one a metric."""
    return [
        Target(
            f"{line['method']} T={line['T']}" if line["T"] else line["method"],
            "anoddpm",
            case,
            float(line[case]),
            None,
        )
        for line in target_lines("addm_mri")
        for case in MRI_METRICS
    ]


def mri_csv(rows: Sequence[Row]) -> str:
    """Return the MRI table with the columns of the paper's, and the protocol and seeds."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(["method", "T", *MRI_METRICS, "protocol", "seeds"])
    for detector, variant, cells in grid(rows)[1]:
        method, _, steps = detector.partition(" T=")
        values = ["" if c is None or c.mean is None else f"{c.mean:.3f}" for c in cells]
        seeds = max(0 if c is None else c.seeds for c in cells)
        writer.writerow([method, steps, *values, variant, seeds])
    return held.getvalue()


def _grouped(records: Iterable[Record], key: Any) -> dict[Any, list[Record]]:
    groups: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        groups[key(record["setting"])].append(record)
    return dict(groups)
