"""Localisers on brain slices of 64 x 64 pixels: healthy IXI subjects in, Edinburgh's tumours out.

ABERRA_DATA=... python -m benchmarks.mri_small             the table: trains, tunes, scores; resumes
ABERRA_DATA=... python -m benchmarks.mri_small steps       AUROC against the number of network calls
ABERRA_DATA=... python -m benchmarks.mri_small picture     results/mri_small.png

The table is that of `aberra reproduce addm-mri --profile small`; its models stay in results/models,
where the other two find them. No setting is chosen on Edinburgh: see `aberra.reproduce.mri`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.localise.protocols import anoddpm
from aberra.progress import progress_bar
from aberra.reproduce.mri import Scene, mri_jobs, own_names, scene, trained
from aberra.reproduce.mri_models import MRI, MRI_ROWS, mri_settings, mri_size
from aberra.reproduce.profiles import profiles
from aberra.reproduce.store import Store, append_line, environment, key_of
from aberra.reproduce.work import do_jobs
from aberra.reproduce.writing import write_results

FOLDER = Path("results")
PROFILE = profiles()["small"]


def slices_of_the_table() -> Scene:
    """Return the slices that the table trains on and is judged by."""
    size = mri_size(PROFILE)
    return scene(size.size, size.slices, None)


def fitted(args: argparse.Namespace, name: str) -> tuple[Any, dict[str, Any]]:
    """Return a row's model of seed 0, with the settings that were chosen for it."""
    setting, store = mri_settings(PROFILE, name)[0], Store(args.folder)
    held = store.read(MRI).get(key_of(setting))
    if held is None:
        raise SystemExit(f"{name} is not in {args.folder} yet: run the table first.")
    model, _ = trained(setting, store, slices_of_the_table())
    return model.set_params(**own_names(model, held["settings"])), held["settings"]


def table(args: argparse.Namespace) -> None:
    """Compute what is missing, and write the table."""
    wanted = [job for job in mri_jobs(PROFILE) if job.title in args.models]
    with progress_bar():
        for job, how in do_jobs(wanted, args.folder, None):
            print(job.title, how, flush=True)
    for path in write_results("addm-mri", PROFILE, args.folder):
        print(path)


def steps(args: argparse.Namespace) -> None:
    """Measure AUROC and seconds a slice for fewer and fewer network calls, in one run."""
    sick = slices_of_the_table().sick
    for name in args.models:
        model, _ = fitted(args, name)
        if "sampling_steps" not in model.get_params():
            continue
        rows = []
        for calls in ("all", 25, 10, 5, 1):
            model.set_params(sampling_steps=calls, n_draws=1)
            started = time.perf_counter()
            maps = model.anomaly_map(sick.images, sick.brain)
            seconds = (time.perf_counter() - started) / len(maps)
            found = anoddpm(maps, sick.lesion).metrics
            row = {"calls": calls, "seconds": seconds, "auroc": found["auroc"].mean}
            rows.append({**row, "dice_oracle": found["dice_oracle"].mean})
            print(name, rows[-1], flush=True)
        line = {"model": name, "start": model.start, "rows": rows, **environment()}
        append_line(args.folder / "mri_steps.jsonl", line)


def picture(args: argparse.Namespace) -> None:
    """Draw input, restoration, map and mask: pasted lesions, whose scans may be shown."""
    import matplotlib.pyplot as plt

    parts = slices_of_the_table()
    slices = parts.tune if args.set == "pasted" else parts.sick
    some = slices.of(np.linspace(0, len(slices.images) - 1, 6).astype(int))
    lines: list[tuple[str, NDArray[Any], str]] = [
        ("input", some.images[:, 0], "gray"),
        ("lesion", some.lesion, "gray"),
    ]
    for name in args.models:
        model, _ = fitted(args, name)
        lines.append((f"{name}\nrestored", model.reconstruct(some.images)[:, 0], "gray"))
        lines.append(("map", model.anomaly_map(some.images, some.brain), "magma"))
    size = (1.3 * len(some.images) + 1, 1.3 * len(lines))
    figure, axes = plt.subplots(len(lines), len(some.images), figsize=size)
    for row, (title, images, colours) in zip(axes, lines, strict=True):
        top = 1.0 if colours == "gray" else float(np.quantile(images, 0.995))
        row[0].set_ylabel(title, fontsize=7)
        for axis, image in zip(row, images, strict=True):
            axis.imshow(image, cmap=colours, vmin=0, vmax=top)
            axis.set(xticks=[], yticks=[])
    figure.tight_layout(pad=0.2)
    figure.savefig(args.image, dpi=72)
    print(args.image)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tasks = {"table": table, "steps": steps, "picture": picture}
    parser.add_argument("task", nargs="?", default="table", choices=tasks)
    parser.add_argument("--models", nargs="+", default=list(MRI_ROWS), choices=MRI_ROWS)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--image", type=Path, default=Path("results/mri_small.png"))
    parser.add_argument("--set", choices=("pasted", "edinburgh"), default="pasted")
    args = parser.parse_args()
    tasks[args.task](args)


if __name__ == "__main__":
    main()
