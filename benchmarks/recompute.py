"""Stored cells of the ODDS tables, drawn at random, computed again and compared to the last digit.

    ABERRA_DATA=... python -m benchmarks.recompute [--cells 8] [--seed 0]

Run it in a checkout of its own. Cells of an earlier version of the code are not drawn, nor those of
another kind of processor, which rounds a last digit otherwise (results/README.md). Each cell is
computed alone: a seed comes out the same alone and together with others. Writes
results/recompute.md.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aberra.reproduce.odds import ODDS, compute_odds, odds_jobs, own_jobs
from aberra.reproduce.profiles import profiles
from aberra.reproduce.store import Store, key_of
from benchmarks.records import environment

RESULTS, OUT = Path("results"), Path("results/recompute.md")
MOST_SEEDS = 10
Cell = dict[str, Any]


def drawn(n: int, seed: int) -> list[Cell]:
    """Return cells of the present code and of this kind of processor."""
    profile = profiles()["small"].with_seeds(MOST_SEEDS)
    jobs = odds_jobs(profile) + own_jobs(profile)
    current = {key_of(setting) for job in jobs for setting in job.settings}
    here = environment()["processor"]
    cells = [
        cell
        for key, cell in Store(RESULTS).read(ODDS).items()
        if key in current and cell.get("processor") == here
    ]
    return random.Random(seed).sample(sorted(cells, key=lambda cell: str(cell["key"])), n)


def again(cell: Cell) -> Cell:
    """Compute a cell again, in a store of its own."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        compute_odds([cell["setting"]], store, None)
        return store.read(ODDS)[cell["key"]]


def line(cell: Cell, new: Cell) -> str:
    """Return one row of the table."""
    setting, (old, now) = cell["setting"], (c["auroc"] for c in (cell, new))
    same = old == now and cell["rounds"] == new["rounds"]
    shown = [setting["detector"], setting["set"], setting.get("start", "equal"), setting["seed"]]
    figures = [f"{old['IADC']!r}", f"{now['IADC']!r}", "yes" if same else "NO", cell["commit"]]
    return f"| {' | '.join(map(str, [*shown, setting['resample'], *figures]))} |"


def main() -> None:
    """Draw, compute and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    text = (
        "# Cells computed again\n\n"
        f"`python -m benchmarks.recompute --cells {asked.cells} --seed {asked.seed}`. Same: "
        "Single, ADC, IADC and every round agree to the last digit.\n\n"
        "| detector | set | start | seed | resampled | stored | again | same | stored by |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    for cell in drawn(asked.cells, asked.seed):
        text += line(cell, again(cell)) + "\n"
        OUT.write_text(f"{text}\nMade with {environment()}.\n")
        print(text.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
