"""Stored cells of the tables, drawn at random, computed again and compared to the last digit.

    ABERRA_DATA=... python -m benchmarks.recompute [--cells 8] [--seed 0]

Run it in a checkout of its own. Cells of an earlier version of the code are not drawn, nor those of
another kind of processor, which rounds a last digit otherwise (results/README.md). Detectors on a
kind of data take turns, in an order that is drawn, and each gives a cell that is drawn: most cells
are of the one-class machine, which has one for every nu. Each cell is computed alone: a seed comes
out the same alone and together with others. Writes results/recompute.md.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from aberra.reproduce.odds import odds_jobs, own_jobs
from aberra.reproduce.profiles import Profile, profiles
from aberra.reproduce.store import Store, key_of
from aberra.reproduce.unseen import image_jobs
from aberra.reproduce.work import Job
from benchmarks.records import environment

RESULTS, OUT = Path("results"), Path("results/recompute.md")
MOST_SEEDS = 10
Cell = dict[str, Any]


class Drawn(NamedTuple):
    """A stored cell and the job that computes it."""

    job: Job
    cell: Cell


def table_jobs(profile: Profile) -> list[Job]:
    """Return the jobs of the ODDS tables and of the image tables."""
    images = [job for name in ("mnist", "cifar10") for job in image_jobs(profile, name)]
    return odds_jobs(profile) + own_jobs(profile) + images


def drawn(n: int, seed: int) -> list[Drawn]:
    """Return cells of the present code and of this kind of processor, of every group in turn."""
    jobs = table_jobs(profiles()["small"].with_seeds(MOST_SEEDS))
    stored = {family: Store(RESULTS).read(family) for family in {job.family for job in jobs}}
    here = environment()["processor"]
    groups: dict[str, list[Drawn]] = defaultdict(list)
    for job in jobs:
        for setting in job.settings:
            cell = stored[job.family].get(key_of(setting))
            if cell is not None and cell.get("processor") == here:
                kind = setting.get("images", job.family), setting.get("start", "equal")
                groups[" ".join((setting["detector"], *kind))].append(Drawn(job, cell))
    generator = random.Random(seed)
    order = generator.sample(sorted(groups), len(groups))
    shuffled = [generator.sample(groups[name], len(groups[name])) for name in order]
    turns = (own[k] for k in range(n) for own in shuffled if k < len(own))
    return list(islice(turns, n))


def again(job: Job, cell: Cell) -> Cell:
    """Compute a cell again, in a store of its own."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        job.compute([cell["setting"]], store, None)
        return store.read(job.family)[cell["key"]]


def line(cell: Cell, new: Cell) -> str:
    """Return one row of the table."""
    setting, (old, now) = cell["setting"], (c["auroc"] for c in (cell, new))
    same = old == now and cell["rounds"] == new["rounds"]
    shown = [setting["detector"], case_of(setting), setting.get("start", "equal"), setting["seed"]]
    figures = [f"{old['IADC']!r}", f"{now['IADC']!r}", "yes" if same else "NO", cell["commit"]]
    return f"| {' | '.join(map(str, [*shown, setting['resample'], *figures]))} |"


def case_of(setting: Cell) -> str:
    """Say what a cell was computed on."""
    if "set" in setting:
        return str(setting["set"])
    return f"{setting['images']}, class {setting['class']}, {setting['contamination']:.0%}"


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
        "| detector | data | start | seed | resampled | stored | again | same | stored by |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    for job, cell in drawn(asked.cells, asked.seed):
        text += line(cell, again(job, cell)) + "\n"
        OUT.write_text(f"{text}\nMade with {environment()}.\n")
        print(text.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
