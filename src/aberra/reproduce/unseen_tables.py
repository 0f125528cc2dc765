"""The image tables: rows on new images and on the training images, and what contamination costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aberra.reproduce.experiment import Experiment
from aberra.reproduce.profiles import Profile, profiles
from aberra.reproduce.store import Record, Store
from aberra.reproduce.tables import Row, Target, row, targets
from aberra.reproduce.unseen import CONTAMINATIONS, ImageSize, image_jobs, image_reduced
from aberra.reproduce.work import finished, grouped, stale

VARIANTS = ("Single", "ADC", "IADC")


def unseen_rows(store: Store, profile: Profile, images: str) -> list[Row]:
    """Return AUROC x 100 on new images: the mean over classes, spread over seeds."""
    records = finished(store, image_jobs(profile, images))
    n, why = len(profile.size(images, ImageSize).classes), why_withheld(profile, images)
    made = (
        _image_row(f"{images}-unseen", target, _of_detector(records, target.detector), "auroc", n)
        for target in targets(f"{images}_unseen_auc")
    )
    return [replace(line, withheld=why) for line in made]


def why_withheld(profile: Profile, images: str) -> str:
    """Return why cells cannot be compared with the paper's; nothing if they can.

    Some classes may be hard or easy ones, and small images are another problem than large ones.
    """
    own, full = (p.size(images, ImageSize) for p in (profile, profiles()["paper"]))
    parts = {
        "classes": f"{len(own.classes)} of {len(full.classes)} classes",
        "pixels": f"{own.pixels} instead of {full.pixels} pixels a side",
    }
    differ = [words for name, words in parts.items() if getattr(own, name) != getattr(full, name)]
    return ", ".join(differ)


def transductive_rows(store: Store, profile: Profile) -> list[Row]:
    """Return AUROC x 100 on the contaminated training images themselves."""
    records = finished(store, image_jobs(profile, "mnist"))
    return [
        _image_row(
            "mnist-transductive",
            Target(target.detector, target.variant, target.case, None, None),
            _of_detector(records, target.detector),
            "transductive",
            len(profile.size("mnist", ImageSize).classes),
        )
        for target in targets("mnist_unseen_auc")
        if float(target.case) > 0
    ]


def _image_row(
    table: str, target: Target, records: Sequence[Record], what: str, n_classes: int
) -> Row:
    """Return one cell; a seed counts when all its classes are there."""
    found = [r for r in records if r["setting"]["contamination"] == float(target.case)]
    by_seed = grouped(found, lambda s: s["seed"])
    whole = [held for held in by_seed.values() if len(held) == n_classes]
    values = [100 * float(np.mean([r[what][target.variant] for r in held])) for held in whole]
    chosen = [r for held in whole for r in held]
    share = "single_seconds" if target.variant == "Single" else "seconds"
    epochs = 0 if target.variant == "Single" else sum(r["member_epochs"] for r in chosen)
    seconds = sum(r[share] for r in chosen)
    return row(table, target, values, seconds, epochs, stale=stale(chosen))


def _of_detector(records: Sequence[Record], detector: str) -> list[Record]:
    """Return a detector's records; "Best" and "Worst" are the nu with most and least AUROC.

    That choice looks at the labels of the test images: an oracle, as it must be in the paper. It is
    made for each contamination, because in the paper Best is never below Worst.
    """
    if not detector.startswith("OCSVM ("):
        return [r for r in records if r["setting"]["detector"] == detector]
    machines = [r for r in records if r["setting"]["detector"] == "OCSVM"]
    pick, found = max if "Best" in detector else min, []
    for held in grouped(machines, lambda s: s["contamination"]).values():
        by_nu = grouped(held, lambda s: s["params"]["nu"])
        mean = {nu: np.mean([r["auroc"]["Single"] for r in own]) for nu, own in by_nu.items()}
        found += by_nu[pick(mean, key=lambda nu: float(mean[nu]))]
    return found


def cost_of_contamination(store: Store, profile: Profile, images: str) -> list[str]:
    """See what contamination costs Single, ADC and IADC on new images: means of table cells."""
    rows = unseen_rows(store, profile, images)
    cells = [r for r in rows if not r.detector.startswith("OCSVM (")]
    if all(r.mean is None for r in cells):
        return [f"- **{images}**: not run."]
    lines = [
        f"**{images}**, mean AUROC over the cells of the network detectors:",
        "",
        "| contamination | detectors | Single | ADC | IADC |",
        "|---|---|---|---|---|",
    ]
    for ratio in sorted(CONTAMINATIONS):
        own: dict[str, list[float]] = {kind: [] for kind in VARIANTS}
        for r in cells:
            if float(r.case) == ratio and r.mean is not None:
                own[r.variant].append(r.mean)
        if own["Single"]:
            means = " | ".join(f"{np.mean(own[kind]):.1f}" for kind in VARIANTS)
            lines.append(f"| {ratio:.0%} | {len(own['Single'])} | {means} |")
    return ["\n".join(lines)]


def _unseen_table(images: str, title: str) -> Experiment:
    return Experiment(
        f"{images}-unseen",
        f"{title}, new images, AUROC by contamination of the training images",
        lambda profile: image_jobs(profile, images),
        rows=lambda store, profile: unseen_rows(store, profile, images),
        reduced=lambda profile: image_reduced(profile, images),
        claims=lambda store, profile: cost_of_contamination(store, profile, images),
        chapter="Images",
    )


IMAGE_TABLES = (
    _unseen_table("mnist", "MNIST"),
    _unseen_table("cifar10", "CIFAR-10"),
    Experiment(
        "mnist-transductive",
        "MNIST, the contaminated training images themselves, AUROC",
        lambda profile: image_jobs(profile, "mnist"),
        rows=transductive_rows,
        reduced=lambda profile: image_reduced(profile, "mnist"),
    ),
)
