"""Training on brain slices that are partly sick: ADDM alone, and inside IADC.

ABERRA_DATA=... python -m benchmarks.mri_contaminated run      results/mri_contaminated.jsonl
python -m benchmarks.mri_contaminated table

A share of 800 IXI slices (32 x 32 pixels) gets a pasted lesion before training. Maps are judged on
other subjects' slices with pasted lesions. IADC has two members and at most three rounds; nothing
but the evaluation knows which slices are dirty.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from aberra import ADDM, IADC
from aberra.data.scenarios import paste_lesions
from aberra.errors import RoundsExhaustedWarning
from aberra.metrics import auroc, best_dice
from aberra.reproduce.mri_slices import Slices, ixi
from benchmarks.records import append, environment, read

RESULTS = Path("results/mri_contaminated.jsonl")
SHARES = (0.0, 0.05, 0.1, 0.2)
N_TRAIN, N_TEST, SIZE = 800, 160, 32
AREA = (0.02, 0.2)


def some(slices: Slices, n: int, seed: int) -> Slices:
    """Return `n` slices that show enough brain."""
    seen = slices.of(slices.brain.sum(axis=(1, 2)) > 60)
    return seen.of(np.sort(np.random.default_rng(seed).permutation(len(seen.images))[:n]))


def localiser() -> ADDM:
    """Return the model of the study: pyramid noise, one network call, smoothed one-sided map."""
    return ADDM(
        style="printed",  # whatever is not named here
        noise="pyramid",
        adversarial_stride=50,
        start=0.2,
        sampling_steps=1,
        n_draws=2,
        error="darker",
        smooth=3,
        train_steps=300,
        batch_size=8,
        holdout=0.0,
    )


def run(args: argparse.Namespace) -> None:
    """Fit every cell that is not there yet."""
    parts = ixi(SIZE)
    train, test = some(parts["train"], N_TRAIN, 0), some(parts["tune"], N_TEST, 1)
    sick, lesion, _ = paste_lesions(
        test.images, test.brain, 1.0, np.random.default_rng(9), area=AREA
    )
    done = {(c["share"], c["variant"], c["seed"]) for c in read(args.out)}
    warnings.simplefilter("ignore", RoundsExhaustedWarning)
    for seed, share, variant in product(args.seeds, SHARES, ("plain", "IADC")):
        if (share, variant, seed) in done:
            continue
        dirty, _, flags = paste_lesions(
            train.images, train.brain, share, np.random.default_rng(100 + seed), area=AREA
        )
        started = time.perf_counter()
        model: Any = localiser().set_params(random_state=seed)
        if variant == "IADC":
            model = IADC(localiser(), n_members=2, max_rounds=3, random_state=seed)
        model.fit(dirty)
        maps = np.where(test.brain, model.anomaly_map(sick), 0)
        cell = {
            "share": share,
            "variant": variant,
            "seed": seed,
            "auroc": float(np.mean([auroc(m, s) for m, s in zip(lesion, maps, strict=True)])),
            "dice_oracle": best_dice(lesion, maps)[0],
            "seconds": time.perf_counter() - started,
            **ranking(model, dirty, flags),
            **environment(),
        }
        append(args.out, cell)
        print(
            {k: cell[k] for k in ("share", "variant", "seed", "auroc", "dirty_auroc")}, flush=True
        )


def ranking(model: Any, dirty: Any, flags: Any) -> dict[str, Any]:
    """Say how well the model tells which training slices are dirty: by weight, or by score."""
    if not isinstance(model, IADC):
        return {"dirty_auroc": auroc(flags, model.anomaly_score(dirty))}
    rounds = [auroc(flags, line.scores) for line in model.history_]
    weights = model.weights_
    return {
        "dirty_auroc": auroc(flags, -weights),
        "rounds": rounds,
        "kept": model.history_.kept + 1,
        "weight_clean": float(weights[~flags].mean()),
        "weight_dirty": float(weights[flags].mean()) if flags.any() else None,
    }


def table(args: argparse.Namespace) -> None:
    """Print the Markdown table."""
    cells = list(read(args.out))
    print("| dirty slices | training | seeds | map AUROC | oracle Dice | dirty slices ranked |")
    print("|---|---|---|---|---|---|")
    for share, variant in product(SHARES, ("plain", "IADC")):
        own = [c for c in cells if (c["share"], c["variant"]) == (share, variant)]
        if own:
            texts = [
                f"{np.mean([c[k] for c in own]):.3f}"
                for k in ("auroc", "dice_oracle", "dirty_auroc")
            ]
            print(f"| {share:.0%} | {variant} | {len(own)} | " + " | ".join(texts) + " |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.task](args)


if __name__ == "__main__":
    main()
