"""Choices that print leaves open: nu of the one-class machines, DAGPR's width and refinements.

    python -m benchmarks.choices run [SET ...]   adds what is missing to results/choices.jsonl
    python -m benchmarks.choices table           writes results/choices.md

The papers' form of IADC as in the tables of ODDS (`ABERRA_DATA`), one seed, with one parameter of
the detector changed. Labels judge: the defaults were chosen with such figures in view.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aberra.data.registry import load_table
from aberra.metrics import auroc
from aberra.reproduce.odds import KEPT_RATIO, odds_settings
from aberra.reproduce.profiles import profiles
from aberra.reproduce.seeds import run_seeds
from aberra.reproduce.settings import ensemble_of
from aberra.reproduce.store import Setting, append_line, read_lines
from benchmarks.records import environment

RESULTS, TABLE = Path("results/choices.jsonl"), Path("results/choices.md")
SETS = ("satellite", "arrhythmia", "cardio", "thyroid", "satimage-2")
CHOICES: list[tuple[str, dict[str, Any]]] = [
    ("OCSVM", {"nu": 0.1}),
    ("OCSVM", {"nu": 0.5}),
    ("OCSVM-H", {"nu": 0.1}),
    ("OCSVM-H", {"nu": 0.5}),
    ("DAGPR", {"n_refinements": 0}),
    ("DAGPR", {"n_refinements": 1}),
    ("DAGPR", {"n_refinements": 3}),
    ("DAGPR", {"n_refinements": 10}),
    ("DAGPR", {"hidden": [32, 16, 8]}),
]
VARIANTS = ("Single", "ADC", "IADC")


def settings(sets: Sequence[str]) -> Iterator[Setting]:
    """Yield the setting of every cell, the cheap sets' first."""
    for name in sorted(sets, key=lambda name: load_table(name)[0].size):
        for detector, changed in CHOICES:
            setting = odds_settings(profiles()["small"], detector, name, resample=True)[0]
            yield {**setting, "params": {**setting["params"], **changed}}


def run(sets: Sequence[str]) -> None:
    """Run what is missing."""
    done = [line["setting"] for line in read_lines(RESULTS)]
    for setting in settings(sets):
        if setting in done:
            continue
        X, y = load_table(setting["set"])
        (trial,) = run_seeds(ensemble_of(setting), X, [setting["seed"]])
        kept = trial.history.replay(KEPT_RATIO)
        scores = (trial.single, trial.history[0].scores, trial.history[kept].scores)
        found = dict(zip(VARIANTS, (auroc(y, values) for values in scores), strict=True))
        append_line(RESULTS, {"setting": setting, "auroc": found, **environment()})
        print(setting["detector"], setting["set"], found, flush=True)


def table() -> None:
    """Write the page."""
    lines = list(read_lines(RESULTS))
    body = [
        f"| {detector} | {_words(changed)} | {variant} | "
        + " | ".join(_shown(lines, detector, changed, name, variant) for name in SETS)
        + " |"
        for detector, changed in CHOICES
        for variant in VARIANTS
    ]
    made = {name: lines[-1][name] for name in environment()}
    head = f"| detector | parameter | training | {' | '.join(SETS)} |"
    parts = ["# Choices", __doc__.split("\n", 1)[1].strip("\n"), head + "\n" + "|---" * 8 + "|"]
    TABLE.write_text("\n\n".join(parts) + "\n" + "\n".join(body) + f"\n\nMade with {made}.\n")


def _words(changed: dict[str, Any]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in changed.items())


def _shown(
    lines: Sequence[dict[str, Any]], detector: str, changed: dict[str, Any], name: str, variant: str
) -> str:
    for line in lines:
        own = line["setting"]
        if (own["detector"], own["set"]) == (detector, name):
            default = odds_settings(profiles()["small"], detector, name, resample=True)[0]
            if own["params"] == {**default["params"], **changed}:
                return f"{100 * line['auroc'][variant]:.1f}"
    return "not run"


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2:] or SETS)
    else:
        table()
