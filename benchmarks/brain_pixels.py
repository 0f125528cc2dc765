"""Slices of 128 x 128 pixels beside slices of 64 x 64, at equal training time.

ABERRA_DATA=... python -m benchmarks.brain_pixels run        results/brain_pixels.jsonl; resumes
python -m benchmarks.brain_pixels table                      results/brain_pixels.md

A step at 64 pixels and one at 128 are timed in the same run (seconds of processor time), and the
larger slices train so many steps fewer. Lesions are pasted at 128 pixels. Whoever works at 64 sees
the mean of four pixels, and its map is brought back to 128, where all maps are judged, inside the
head. Edinburgh's tumours are looked at once, at the end.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from aberra import ADDM, PatchFinder
from aberra.contract.maps import upper_quantile
from aberra.reproduce.mri_slices import Slices, ixi, tumour_slices
from benchmarks.brain_scenes import figures, judged
from benchmarks.map_defaults import COMMON, rounded, scenes
from benchmarks.records import append, environment, read

RESULTS, TABLE = Path("results/brain_pixels.jsonl"), Path("results/brain_pixels.md")
MODELS = Path("results/models")
SMALL, LARGE, STEPS, TIMED = 64, 128, 1000, 12
KINDS: dict[str, Callable[..., Any]] = {"PatchFinder": PatchFinder, "ADDM": ADDM}
SCENES = ("pasted", "edinburgh")

Images = NDArray[np.float32]


def seconds_a_step(kind: Callable[..., Any], slices: Slices, size: int) -> float:
    """Return the processor time of one training step, start and compilation left out."""
    taken = []
    for steps in (2, 2, 2 + TIMED):  # the first is slower than all others
        model = kind(train_steps=steps, image_size=size, holdout=0.0, random_state=0)
        started = time.process_time()
        model.fit(slices.images[:8])
        taken.append(time.process_time() - started)
    return (taken[2] - taken[1]) / TIMED


def maps_at(model: Any, size: int) -> Callable[[Images], Images]:
    """Return what draws maps of slices of 128 pixels with a model of slices of `size` pixels."""

    def draw(images: Images) -> Images:
        small = F.interpolate(torch.from_numpy(images), size=(size, size), mode="area").numpy()
        maps = torch.from_numpy(np.ascontiguousarray(model.anomaly_map(small), np.float32))[:, None]
        large = F.interpolate(maps, size=images.shape[2:], mode="bilinear", align_corners=False)
        return large[:, 0].numpy()

    return draw


def run(args: argparse.Namespace) -> None:
    """Train and judge what is missing."""
    done = {(line["model"], line["pixels"], line["seed"]) for line in read(args.out)}
    train = {size: ixi(size)["train"] for size in (SMALL, LARGE)}
    for name in args.models:
        kind = KINDS[name]
        times = {size: seconds_a_step(kind, train[size], size) for size in (SMALL, LARGE)}
        steps = {SMALL: STEPS, LARGE: max(1, round(STEPS * times[SMALL] / times[LARGE]))}
        for size in (SMALL, LARGE):
            if (name, size, args.seed) in done:
                continue
            model = kind(
                train_steps=steps[size], image_size=size, holdout=0.0, random_state=args.seed,
                checkpoint=str(MODELS),
            )  # fmt: skip
            MODELS.mkdir(parents=True, exist_ok=True)
            model.fit(train[size].images, groups=train[size].subject)
            line = {"model": name, "pixels": size, "seed": args.seed, "steps": steps[size],
                    "seconds a step": round(times[size], 3)}  # fmt: skip
            append(args.out, {**line, **judged_everywhere(maps_at(model, size)), **environment()})
            print(line, flush=True)


def judged_everywhere(draw: Callable[[Images], Images]) -> dict[str, Any]:
    """Return the figures on pasted lesions and on tumours."""
    _, scene = scenes(LARGE)
    maps = {kind: draw(one.images) for kind, one in scene.items()}
    sick = tumour_slices(LARGE)
    height = upper_quantile(maps["healthy"], scene["healthy"].head.astype(float), COMMON)
    tumours = judged(draw(sick.images), sick.lesion, sick.brain, height)
    return {"pasted": rounded(figures(maps, scene)), "edinburgh": rounded(tumours)}


HEAD = """# Slices of 128 pixels beside slices of 64, at equal training time

`python -m benchmarks.brain_pixels run` (IXI to train, pasted lesions and Edinburgh's tumours to
judge, everything inside the head and at 128 x 128 pixels; one seed). "oracle" is the best Dice of
one threshold for all slices, "common" the mean Dice at the threshold that flags 2 % of the pixels
of healthy heads. Seconds are processor time.

"""


def table(args: argparse.Namespace) -> None:
    """Write the Markdown page."""
    lines = list(read(args.out))
    heads = [f"{scene}: {name}" for scene in SCENES for name in lines[0][scene]]
    text = [HEAD + "| model | pixels | steps | seconds a step | " + " | ".join(heads) + " |"]
    text += ["|---" * (4 + len(heads)) + "|"]
    for line in lines:
        values = [f"{value:.3f}" for scene in SCENES for value in line[scene].values()]
        first = [line["model"], line["pixels"], line["steps"], line["seconds a step"]]
        text.append("| " + " | ".join([*map(str, first), *values]) + " |")
    TABLE.write_text("\n".join(text) + "\n")
    print(TABLE)


def main() -> None:
    """Read the command line."""
    tasks = {"run": run, "table": table}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=tasks)
    parser.add_argument("--models", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    tasks[args.task](args)


if __name__ == "__main__":
    main()
