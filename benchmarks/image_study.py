"""Why IADC can fall behind ADC on images that are clean, and whether gentler weights mend it.

    python -m benchmarks.image_study run      adds to results/image_study.jsonl what is not there
    python -m benchmarks.image_study table    prints the means

MNIST of the small profile (`ABERRA_DATA`), two classes, one seed, with the importance weights'
temperature changed and nothing else. The higher it is, the less a normal row loses. Labels judge:
to choose among these rows would be to look at them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from aberra.reproduce import unseen
from aberra.reproduce.profiles import profiles
from aberra.reproduce.seeds import run_seeds
from aberra.reproduce.settings import ensemble_of
from aberra.reproduce.store import append_line, read_lines
from benchmarks.records import data_folder, environment

RESULTS = Path("results/image_study.jsonl")
DETECTORS, CLASSES = ("AE", "OCSVM-H", "Deep SVDD"), (0, 4)
CONTAMINATIONS, TEMPERATURES = (0.05, 0.2), (0.5, 2.0)
VARIANTS = ("Single", "ADC", "IADC")


def run() -> None:
    """Run what is missing."""
    keys = ("detector", "class", "contamination", "temperature")
    done = {tuple(line[key] for key in keys) for line in read_lines(RESULTS)}
    for job in unseen.image_jobs(profiles()["small"], "mnist"):
        (setting,) = job.settings
        if setting["seed"] or setting["detector"] not in DETECTORS:
            continue
        if setting["class"] not in CLASSES or setting["contamination"] not in CONTAMINATIONS:
            continue
        for temperature in TEMPERATURES:
            changed = {**setting, "temperature": temperature}
            place = {key: changed[key] for key in keys}
            if tuple(place.values()) in done:
                continue
            scene = unseen.scenario(changed, data_folder())
            (trial,) = run_seeds(ensemble_of(changed), scene.train, [0], unseen=scene.test)
            weights = trial.history.weights(0)
            trust = {
                "normal": float(weights[~scene.dirty].mean()),
                "dirty": float(weights[scene.dirty].mean()),
            }
            found = unseen.aurocs(trial, scene)["auroc"]
            append_line(RESULTS, {**place, "auroc": found, "trust": trust, **environment()})
            print(place, found, trust, flush=True)


def table() -> None:
    """Print the mean over the classes."""
    lines = list(read_lines(RESULTS))
    print(
        "| detector | contamination | temperature | Single | ADC | IADC | trust, normal and dirty |"
    )
    print("|---|---|---|---|---|---|---|")
    for detector in DETECTORS:
        for p in CONTAMINATIONS:
            for t in TEMPERATURES:
                own = [
                    line
                    for line in lines
                    if (line["detector"], line["contamination"], line["temperature"])
                    == (detector, p, t)
                ]
                if len(own) < len(CLASSES):
                    continue
                means = (100 * np.mean([line["auroc"][v] for line in own]) for v in VARIANTS)
                trust = (np.mean([line["trust"][k] for line in own]) for k in ("normal", "dirty"))
                cells = [*(f"{m:.1f}" for m in means), ", ".join(f"{w:.2f}" for w in trust)]
                print(f"| {detector} | {p:.0%} | {t:g} | {' | '.join(cells)} |")


if __name__ == "__main__":
    {"run": run, "table": table}[sys.argv[1]]()
