"""What else could IADC with Deep SVDD do: one setting changed at a time, every round recorded.

    python -m benchmarks.iadc_study run [SET ...]   adds what is not there to iadc_study.jsonl
    python -m benchmarks.iadc_study table           prints the means

Two seeds, eight rounds at least, on Cardio, Thyroid and Satimage-2; three seeds and eight rounds on
Shuttle, where the rounds do not settle, whole and 10,000 rows of it (`ABERRA_DATA`). Labels judge:
to choose among these rows would be to look at them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import IADC, DeepSVDD
from aberra.data.registry import load_table
from aberra.metrics import auroc
from aberra.reproduce.odds import some_rows
from aberra.reproduce.seeds import Trial, run_seeds
from aberra.reproduce.store import append_line, read_lines
from benchmarks.records import environment

RESULTS = Path("results/iadc_study.jsonl")
SEEDS = {
    "cardio": (0, 1),
    "thyroid": (0, 1),
    "satimage-2": (0, 1),
    "shuttle": (0, 1, 2),
    "shuttle, whole": (0, 1, 2),
}
ROWS, ROUNDS = {"shuttle": 10_000}, 8
VARIANTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # of the ensemble, of the detector
    "defaults": ({}, {}),
    "temperature 1": ({"temperature": 1.0}, {}),
    "a fifth of the epochs": ({}, {"epochs": 10, "pretrain_epochs": 20}),
    "ten members": ({"n_members": 10}, {}),
    "temperature 0.25": ({"temperature": 0.25}, {}),
    "twice the epochs": ({}, {"epochs": 100, "pretrain_epochs": 200}),
}


def judged(trial: Trial, y: NDArray[np.int8]) -> dict[str, Any]:
    """Return AUROC of every round, of the one kept, of several averaged."""
    history = trial.history
    kept = history.replay(0.5)
    last = min(kept + history.patience, len(history) - 1)  # where the rule stops
    window = [history[t].scores for t in range(kept, last + 1)]
    standard = [(s - np.median(s)) / np.std(s) for s in window]
    return {
        "rounds": [round(100 * auroc(y, line.scores), 2) for line in history],
        "kept": kept,
        "auroc": 100 * auroc(y, history[kept].scores),
        "averaged": 100 * auroc(y, np.mean(standard, axis=0)),
    }


def run(sets: Sequence[str], variants: Sequence[str] = tuple(VARIANTS)) -> None:
    """Run what is missing."""
    done = {(line["variant"], line["set"]) for line in read_lines(RESULTS)}
    for variant in variants:
        ensemble, detector = VARIANTS[variant]
        for name in sets:
            if (variant, name) in done:
                continue
            table_name = name.split(",")[0]
            X, y = some_rows(*load_table(table_name), ROWS.get(name, 0))
            settings = {**ensemble, **({"max_rounds": ROUNDS} if table_name in ROWS else {})}
            model = IADC(DeepSVDD(**detector), start="equal", **settings)
            trials = run_seeds(model, X, SEEDS[name], rounds_at_least=ROUNDS)
            found = [{"seed": t.seed, **judged(t, y)} for t in trials]
            append_line(RESULTS, {"variant": variant, "set": name, "seeds": found, **environment()})
            print(variant, name, [round(f["auroc"], 1) for f in found], flush=True)


def table() -> None:
    """Print the mean over the seeds."""
    lines = {(line["variant"], line["set"]): line["seeds"] for line in read_lines(RESULTS)}
    print("| variant | " + " | ".join(SEEDS) + " |\n|---|" + "---|" * len(SEEDS))
    for variant in VARIANTS:
        cells = []
        for name in SEEDS:
            seeds = lines.get((variant, name), [])
            parts = (np.mean([s[k] for s in seeds]) for k in ("auroc", "averaged"))
            best = np.mean([max(s["rounds"]) for s in seeds]) if seeds else np.nan
            cells.append(" / ".join(f"{p:.1f}" for p in (*parts, best)) if seeds else "not run")
        print(f"| {variant} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2:] or list(SEEDS))
    else:
        table()
