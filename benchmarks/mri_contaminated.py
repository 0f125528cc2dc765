"""Training on brain slices that are partly sick: a localiser alone, inside ADC, and inside IADC.

ABERRA_DATA=... python -m benchmarks.mri_contaminated run      results/mri_contaminated.jsonl
python -m benchmarks.mri_contaminated table

A share of 800 IXI slices (32 x 32 pixels) gets a pasted lesion before training. Maps are judged on
other subjects' slices with pasted lesions. ADC and IADC have two members, and IADC at most three
rounds; nothing but the evaluation knows which slices are dirty. Localisers have their defaults, but
300 training steps; "ADDM, former" has the settings of an earlier study.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from aberra import ADC, ADDM, IADC, NearestHealthy, PatchFinder, SpatialAE
from aberra.data.scenarios import paste_lesions
from aberra.errors import RoundsExhaustedWarning
from aberra.metrics import auroc, best_dice
from aberra.reproduce.mri_slices import Slices, ixi
from benchmarks.records import append, environment, read

RESULTS = Path("results/mri_contaminated.jsonl")
SHARES = (0.0, 0.1, 0.2)
VARIANTS = ("plain", "ADC", "IADC")
FORMER = "ADDM, former"
N_TRAIN, N_TEST, SIZE = 800, 160, 32
AREA = (0.02, 0.2)


def some(slices: Slices, n: int, seed: int) -> Slices:
    """Return `n` slices that show enough brain."""
    seen = slices.of(slices.brain.sum(axis=(1, 2)) > 60)
    return seen.of(np.sort(np.random.default_rng(seed).permutation(len(seen.images))[:n]))


def localiser(name: str) -> Any:
    """Return a localiser of the study."""
    if name == "NearestHealthy":
        return NearestHealthy(holdout=0.0)
    if name != FORMER:
        kind = {"ADDM": ADDM, "PatchFinder": PatchFinder, "SpatialAE": SpatialAE}[name]
        return kind(train_steps=300, batch_size=8, holdout=0.0)
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
    done = {key_of(c) for c in read(args.out)}
    warnings.simplefilter("ignore", RoundsExhaustedWarning)
    for name, seed, share, variant in product(args.models, args.seeds, SHARES, VARIANTS):
        if (name, share, variant, seed) in done:
            continue
        dirty, _, flags = paste_lesions(
            train.images, train.brain, share, np.random.default_rng(100 + seed), area=AREA
        )
        started = time.perf_counter()
        model: Any = localiser(name).set_params(random_state=seed)
        if variant == "ADC":
            model = ADC(localiser(name), n_members=2, random_state=seed)
        if variant == "IADC":
            model = IADC(localiser(name), n_members=2, max_rounds=3, random_state=seed)
        model.fit(dirty)
        maps = np.where(test.brain, model.anomaly_map(sick), 0)
        cell = {
            "model": name,
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
            {
                k: cell[k]
                for k in (
                    "model",
                    "share",
                    "variant",
                    "seed",
                    "auroc",
                    "dice_oracle",
                    "dirty_auroc",
                    "seconds",
                )
            },
            flush=True,
        )


def key_of(cell: dict[str, Any]) -> tuple[Any, ...]:
    """Return what names a cell; the first ones had one model."""
    return cell.get("model", FORMER), cell["share"], cell["variant"], cell["seed"]


def ranking(model: Any, dirty: Any, flags: Any) -> dict[str, Any]:
    """Say how well the model tells which training slices are dirty: by weight, or by score."""
    if not isinstance(model, IADC):
        seen = auroc(flags, model.anomaly_score(dirty)) if flags.any() else None
        return {"dirty_auroc": seen}
    if not flags.any():
        return {"dirty_auroc": None, "weight_clean": float(model.weights_.mean())}
    rounds = [auroc(flags, line.scores) for line in model.history_]
    weights = model.weights_
    return {
        "dirty_auroc": auroc(flags, -weights),
        "rounds": rounds,
        "kept": model.history_.kept + 1,
        "weight_clean": float(weights[~flags].mean()),
        "weight_dirty": float(weights[flags].mean()),
    }


def table(args: argparse.Namespace) -> None:
    """Print the Markdown table."""
    cells = list(read(args.out))
    print("| model | dirty slices | training | seeds | map AUROC | oracle Dice | dirty ranked |")
    print("|---|---|---|---|---|---|---|")
    names = dict.fromkeys(cell.get("model", FORMER) for cell in cells)
    for name, share, variant in product(names, (0.0, 0.05, 0.1, 0.2), VARIANTS):
        own = [cell for cell in cells if key_of(cell)[:3] == (name, share, variant)]
        if own:
            texts = [spread(own, key) for key in ("auroc", "dice_oracle", "dirty_auroc")]
            print(f"| {name} | {share:.0%} | {variant} | {len(own)} | " + " | ".join(texts) + " |")


def spread(cells: list[dict[str, Any]], key: str) -> str:
    """Return the mean over the seeds, with its deviation where there are several."""
    values = [cell[key] for cell in cells if cell[key] is not None]
    if not values:
        return ""
    return f"{np.mean(values):.3f}" + (f" ± {np.std(values):.3f}" if len(values) > 1 else "")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("--models", nargs="+", default=["NearestHealthy", "PatchFinder", "ADDM"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.task](args)


if __name__ == "__main__":
    main()
