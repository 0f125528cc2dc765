"""Ten healthy scans of one's own scanner: joined with a model that is there, or used alone.

ABERRA_DATA=... python -m benchmarks.brain_start run        results/brain_start.jsonl; resumes
python -m benchmarks.brain_start table                      results/brain_start.md

A made-up scanner has one contrast for all its slices, cuts white off, and shades every slice in its
own way. Ten IXI subjects on that scanner are the scans of one's own, five others say what healthy
maps look like, and ten more have the ellipses of `benchmarks.brain_scenes`. The model to start from
was made of 150 subjects on the true scanner, as `brain-t1` was.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage

from aberra import NearestHealthy
from aberra.reproduce.mri_slices import Slices, head_mask, ixi
from benchmarks.brain_scenes import Images, Scene, figures, report_scene
from benchmarks.map_defaults import N_SLICES, Judged, rounded
from benchmarks.records import append, environment, read

RESULTS, TABLE = Path("results/brain_start.jsonl"), Path("results/brain_start.md")
SCANNERS = (0, 1, 2)
N_OWN = 10
GAMMA, GAIN, SHADE = (0.6, 1.6), (1.0, 1.3), 0.1
WAY: dict[str, Any] = {"n_kept": 300, "keep": "averages", "holdout": 0.0, "random_state": 0}


def seen_by(scanner: int, images: Images, seed: int) -> Images:
    """Return slices (n, 1, h, w) as a made-up scanner shows them."""
    curve, shades = np.random.default_rng(scanner), np.random.default_rng((scanner, seed))
    gamma, gain = curve.uniform(*GAMMA), curve.uniform(*GAIN)
    fields = np.stack(
        [ndimage.gaussian_filter(shades.standard_normal(one[0].shape), 16) for one in images]
    )
    fields = 1 + SHADE * fields / fields.std(axis=(1, 2), keepdims=True)
    return np.clip(images**gamma * gain * fields[:, None], 0, 1).astype(np.float32)


def scene_of(scanner: int, calm: Slices) -> Scene:
    """Return lesions and healthy slices on that scanner."""
    step = max(1, len(calm.images) // N_SLICES)
    healthy = calm.images[::step][:N_SLICES]
    plain = {**report_scene(), "healthy": Judged(healthy, None, head_mask(healthy[:, 0]))}
    return {
        kind: Judged(seen_by(scanner, one.images, 10 + k), one.lesion, one.head)
        for k, (kind, one) in enumerate(plain.items())
    }


def models(parts: dict[str, Slices], own: Images) -> Iterator[tuple[str, NearestHealthy]]:
    """Yield what can be done with the slices of ten scans."""
    shipped = NearestHealthy(40, **WAY).fit(parts["train"].images)
    yield "the model that is there, as it is", shipped
    yield "ten scans, averages", NearestHealthy(40, **WAY).fit(own)
    yield (
        "ten scans, as they are (the default)",
        NearestHealthy(holdout=0.0, random_state=0).fit(own),
    )
    yield "the model and ten scans, averages (--from brain-t1)", deepcopy(shipped).adapt(own)
    plain = deepcopy(shipped).set_params(keep="images").adapt(own)
    yield "the model and ten scans, as they are", plain


def run(args: argparse.Namespace) -> None:
    """Measure every row that is not there yet on every scanner."""
    done = {(line["row"], line["scanner"]) for line in read(args.out)}
    parts = ixi()
    tune = parts["tune"]
    names = np.unique(tune.subject)
    own, calm = (tune.of(np.isin(tune.subject, some)) for some in np.split(names, [N_OWN]))
    for scanner in SCANNERS:
        scene = scene_of(scanner, calm)
        for row, model in models(parts, seen_by(scanner, own.images, 0)):
            if (row, scanner) not in done:
                maps = {kind: model.anomaly_map(one.images) for kind, one in scene.items()}
                found = rounded(figures(maps, scene))
                append(args.out, {"row": row, "scanner": scanner, **found, **environment()})
                print(scanner, row, found, flush=True)


HEAD = """# Ten healthy scans of one's own scanner

`python -m benchmarks.brain_start` (IXI, 64 x 64 pixels, three made-up scanners, each with a
contrast of its own, white cut off, and shade). Means over the scanners; the columns are those of
brain_pieces.md, on ellipses in ten subjects that nothing else saw.

| what learns | scanners | {keys} | mean |
|{bars}|
"""
KEYS = [
    f"{kind} {what}" for kind in ("dark", "bright") for what in ("auroc", "ap", "oracle", "common")
]


def table(args: argparse.Namespace) -> None:
    """Write the Markdown page; what stands below the table by hand stays."""
    lines = list(read(args.out))
    text = HEAD.format(keys=" | ".join(KEYS), bars="|".join(["---"] * (len(KEYS) + 3)))
    for row in dict.fromkeys(line["row"] for line in lines):
        same = [line for line in lines if line["row"] == row]
        means = [float(np.mean([line[key] for line in same])) for key in KEYS]
        shown = " | ".join(f"{v:.3f}" for v in [*means, float(np.mean(means))])
        text += f"| {row} | {len(same)} | {shown} |\n"
    _, mark, rest = (TABLE.read_text() if TABLE.exists() else "").partition("## What it says")
    TABLE.write_text(text + (f"\n{mark}{rest}" if mark else ""))
    print(TABLE)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.task](args)


if __name__ == "__main__":
    main()
