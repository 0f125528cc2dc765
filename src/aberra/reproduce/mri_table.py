"""The MRI table: every localiser by protocol, the paper's figures beside the first."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from aberra.reproduce.experiment import Experiment
from aberra.reproduce.mri import mri_jobs
from aberra.reproduce.mri_models import MRI_ROWS, mri_size
from aberra.reproduce.mri_slices import STORED
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Store
from aberra.reproduce.tables import Row, Target, grid, row, target_lines
from aberra.reproduce.work import finished, grouped, stale

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
    groups = grouped(finished(store, mri_jobs(profile)), lambda s: s["model"])
    printed = {(t.detector, t.variant, t.case): t for t in mri_targets()}
    rows = []
    for name, line in MRI_ROWS.items():
        records = groups.get(name, [])
        for shown, protocol in PROTOCOLS.items():
            for case, metric in MRI_METRICS.items():
                place = (line.title, shown, case)
                target = printed.get(place, Target(*place, None, None))
                values = [float(r[protocol][metric][0]) for r in records]
                seconds = sum(60 * float(r["minutes"]) for r in records)
                rows.append(row("addm-mri", target, values, seconds, stale=stale(records)))
    return rows


def mri_targets() -> list[Target]:
    """Return the cells of the paper's MRI table, one per metric."""
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


def half_the_steps(store: Store, profile: Profile) -> list[str]:
    """Compare ADDM at T = 500 with its rivals at T = 1000, in the paper's protocol."""
    title = "- **ADDM at T = 500 level with rivals at T = 1000**"
    mean = {
        row.detector: row.mean
        for row in mri_rows(store, profile)
        if (row.variant, row.case) == ("anoddpm", "auc") and row.mean is not None
    }
    own = mean.get("ADDM T=500")
    rivals = [(d.removesuffix(" T=1000"), m) for d, m in mean.items() if d.endswith("T=1000")]
    if own is None or not rivals:
        return [f"{title}: not run."]
    told = ", ".join(f"{rival} {auc:.3f}" for rival, auc in rivals)
    study = "The study is in [mri.md](mri.md)."
    return [f"{title}: pixel AUROC {own:.3f}; at T = 1000 {told}. {study}"]


def mri_reduced(profile: Profile) -> str:
    """Say in one line how much of the protocol a profile runs."""
    size = mri_size(profile)
    stored = size.size <= STORED
    return (
        f"Profile {profile.name}: {size.size} x {size.size} pixels, preset {size.preset}, "
        f"{size.steps or 'all'} training steps of the diffusion models, {size.seeds} seeds "
        f"(rivals one). Healthy brains: {'IXI; the paper has NFBS' if stored else 'NFBS'}. Tuned "
        "maps are 0 outside the head and judged over all pixels; standard judges inside the head "
        "alone. The paper's precision and recall are probably exchanged, as in the public "
        "code that it follows."
    )


MRI_TABLES = (
    Experiment(
        "addm-mri",
        "Localisers on Edinburgh's tumours, trained on healthy brains",
        mri_jobs,
        rows=mri_rows,
        reduced=mri_reduced,
        claims=half_the_steps,
        chapter="Brain MRI",
        digits=3,
        csv=mri_csv,
        heads=("method", "protocol"),
    ),
)
