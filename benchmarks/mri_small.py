"""Localisers on brain slices of 64 x 64 pixels: healthy IXI subjects in, Edinburgh's tumours out.

ABERRA_DATA=... python -m benchmarks.mri_small train [--models ...] [--seeds 0 1]
ABERRA_DATA=... python -m benchmarks.mri_small tune      settings, on pasted lesions
ABERRA_DATA=... python -m benchmarks.mri_small score     every model, both protocols
ABERRA_DATA=... python -m benchmarks.mri_small steps     AUROC against the number of network calls
python -m benchmarks.mri_small table                     results/mri_small.md
ABERRA_DATA=... python -m benchmarks.mri_small picture   results/mri_small.png

Training writes one model file per row and seed into `--folder`, goes on where it was killed, and
may run in several processes at once. No setting is chosen on Edinburgh: `tune` sees healthy people
that did not train, with lesions pasted into their slices; the threshold comes from yet others.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from aberra import (
    ADDM,
    DDPM,
    AnoDDPM,
    DenseVAE,
    FAnoGAN,
    IntensityThreshold,
    SpatialAE,
    VQTransformer,
    load,
    save,
)
from aberra.data.scenarios import paste_lesions
from aberra.localise.base import Error, MapStyle
from aberra.localise.protocols import Evaluation, anoddpm, standard
from aberra.metrics import auroc, best_dice
from aberra.progress import progress_bar
from aberra.reproduce.mri import own_names
from benchmarks.mri_data import Slices, edinburgh, head_mask, ixi
from benchmarks.records import append, environment, read

FOLDER = Path("mri-models")
RESULTS = Path("results/mri_small.jsonl")
STEPS = 1000
FALSE_ALARMS = 0.02  # of the head's pixels in healthy slices

MODELS: dict[str, Callable[..., Any]] = {
    "SpatialAE": SpatialAE,
    "DenseVAE": DenseVAE,
    "FAnoGAN": FAnoGAN,
    "VQTransformer": VQTransformer,
    "DDPM T=1000": lambda **kw: DDPM(train_steps=STEPS, **kw),
    "AnoDDPM T=1000": lambda **kw: AnoDDPM(train_steps=STEPS, **kw),
    "ADDM T=300": lambda **kw: ADDM(train_steps=STEPS, n_steps=300, **kw),
    "ADDM T=500": lambda **kw: ADDM(train_steps=STEPS, n_steps=500, **kw),
    "ADDM T=1000": lambda **kw: ADDM(train_steps=STEPS, **kw),
    "IntensityThreshold": lambda checkpoint=None, checkpoint_minutes=0, **kw: IntensityThreshold(
        **kw
    ),
    "DDPM pyramid": lambda **kw: DDPM(noise="pyramid", train_steps=STEPS, **kw),
    "ADDM pyramid": lambda **kw: ADDM(noise="pyramid", train_steps=STEPS, **kw),
    "ADDM pyramid stride 50": lambda **kw: ADDM(
        noise="pyramid", adversarial_stride=50, train_steps=STEPS, **kw
    ),
}
PAPER = {
    "SpatialAE": ("AE (Spatial)", ""),
    "DenseVAE": ("VAE (Dense)", ""),
    "FAnoGAN": ("f-AnoGAN", ""),
    "VQTransformer": ("Transformer", ""),
    "DDPM T=1000": ("DDPM (Pinaya et al.)", "1000"),
    "AnoDDPM T=1000": ("AnoDDPM", "1000"),
    "ADDM T=300": ("ADDM", "300"),
    "ADDM T=500": ("ADDM", "500"),
    "ADDM T=1000": ("ADDM", "1000"),
}
# What `tune` tries. Starts are shares of T; calls are network calls on the way back.
STARTS = (0.1, 0.15, 0.2, 0.25, 0.35)
CALLS = ((1, 1), (5, 1), (1, 4))  # calls of a walk, draws that are averaged
ERRORS: tuple[Error, ...] = ("squared", "absolute", "darker")
SMOOTH = (1, 3, 5, 7)


def train_all(args: argparse.Namespace) -> None:
    """Train what is not there yet."""
    args.folder.mkdir(exist_ok=True)
    healthy = ixi()["train"]
    for seed, name in product(args.seeds, args.models):
        path = model_path(args.folder, name, seed)
        claim = path.with_suffix(".lock")
        if path.exists() or not claimed(claim):
            continue
        started = time.perf_counter()
        model = MODELS[name](random_state=seed, checkpoint=str(args.folder), checkpoint_minutes=2.0)
        with progress_bar():
            model.fit(healthy.images, groups=healthy.subject)
        minutes = (time.perf_counter() - started) / 60
        save(model, path)
        cell = {"task": "train", "model": name, "seed": seed, "minutes": minutes}
        append(args.out, {**cell, **environment()})
        print(name, seed, f"{minutes:.1f} min", flush=True)
        claim.unlink()


def model_path(folder: Path, name: str, seed: int) -> Path:
    """Return the file of one trained model."""
    return folder / f"{name.replace(' ', '-').replace('=', '').lower()}-{seed}.aberra"


def claimed(claim: Path) -> bool:
    """Tell whether this process may take a row: no other live process has it."""
    try:
        owner = int(claim.read_text())
        os.kill(owner, 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        claim.write_text(str(os.getpid()))
        return True
    return owner == os.getpid()


def trained(args: argparse.Namespace, task: str) -> Iterator[tuple[str, int, Any]]:
    """Yield the trained models that have no result for this task yet."""
    done = {(c["model"], c["seed"]) for c in read(args.out) if c["task"] == task}
    for name, seed in product(args.models, args.seeds):
        path = model_path(args.folder, name, seed)
        if path.exists() and (name, seed) not in done:
            yield name, seed, load(path)


def tuning_set(n: int = 96) -> Slices:
    """Return slices of healthy subjects that did not train, each with a pasted lesion."""
    tune = ixi()["tune"]
    tune = tune.of(tune.brain.sum(axis=(1, 2)) > 200)
    tune = tune.of(np.sort(np.random.default_rng(1).permutation(len(tune.images))[:n]))
    dirty, lesion, _ = paste_lesions(
        tune.images, tune.brain, 1.0, np.random.default_rng(2), area=(0.005, 0.2)
    )
    return Slices(dirty, head_mask(dirty[:, 0]), lesion, tune.subject)


def settings_of(model: Any) -> Iterator[dict[str, Any]]:
    """Yield the ways in which a model can restore; rivals of the diffusion models have one."""
    if isinstance(model, DDPM):
        for start, (calls, draws) in product(STARTS, CALLS):
            yield {"start": start, "sampling_steps": calls, "n_draws": draws}
    else:
        yield {}


def maps_of(
    images: NDArray[np.float32], restored: NDArray[np.float32], style: MapStyle
) -> NDArray[np.float32]:
    """Return the maps of images in [0, 1] on the scale [-1, 1], as the localisers do."""
    x, y = (torch.from_numpy(np.ascontiguousarray(a * 2 - 1)) for a in (images, restored))
    return style(x, y)[:, 0].numpy()


def tune_all(args: argparse.Namespace) -> None:
    """Judge all settings on the pasted lesions, inside the head."""
    slices = tuning_set()
    for name, seed, model in trained(args, "tune"):
        tried = []
        for settings in settings_of(model):
            restored = model.set_params(**settings).reconstruct(slices.images)
            for error, smooth in product(ERRORS, SMOOTH):
                maps = maps_of(slices.images, restored, MapStyle(error, smooth))
                maps = np.where(slices.brain, maps, 0)
                each = [auroc(m, s) for m, s in zip(slices.lesion, maps, strict=True)]
                dice, _ = best_dice(slices.lesion, maps)
                tried.append(
                    {**settings, "error": error, "smooth": smooth}
                    | {"auroc": float(np.mean(each)), "dice": dice}
                )
        best = max(tried, key=lambda t: t["auroc"] + t["dice"])
        print(name, seed, best, flush=True)
        cell = {"task": "tune", "model": name, "seed": seed, "best": best, "tried": tried}
        append(args.out, {**cell, **environment()})


def tuned(args: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return the settings with the best mean over the seeds of a row."""
    cells = [c["tried"] for c in read(args.out) if c["task"] == "tune" and c["model"] == name]
    if not cells:
        return {}
    totals = [sum(t["auroc"] + t["dice"] for t in same) for same in zip(*cells, strict=True)]
    best = cells[0][int(np.argmax(totals))]
    return {k: v for k, v in best.items() if k not in ("auroc", "dice")}


def score_all(args: argparse.Namespace) -> None:
    """Evaluate every trained model on Edinburgh's tumours: as printed, and at its best."""
    healthy, sick = ixi()["healthy"], edinburgh()
    first = np.isin(healthy.subject, np.unique(healthy.subject)[:10])
    place, alarm = healthy.of(first), healthy.of(~first)
    for name, seed, model in trained(args, "score"):
        cell: dict[str, Any] = {"task": "score", "model": name, "seed": seed}
        started = time.perf_counter()
        printed = model.anomaly_map(sick.images)
        cell["seconds_per_slice"] = (time.perf_counter() - started) / len(printed)
        cell["anoddpm"] = numbers(anoddpm(printed, sick.lesion))
        cell["settings"] = tuned(args, name)
        model.set_params(**own_names(model, cell["settings"]), false_alarm_rate=FALSE_ALARMS)
        some = slice(None, None, 3)
        model.calibrate(place.images[some], head_mask(place.images[some, 0]))
        maps = model.anomaly_map(sick.images, sick.brain)
        cell["best_anoddpm"] = numbers(anoddpm(maps, sick.lesion))
        found = standard(
            maps,
            sick.lesion,
            sick.brain,
            sick.subject,
            model.threshold_,
            model.anomaly_map(alarm.images[some]),
            head_mask(alarm.images[some, 0]),
        )
        cell["standard"] = numbers(found)
        cell["by_size"] = found.by_size.to_dict("index")
        cell["false_alarms"] = found.false_alarms
        append(args.out, {**cell, **environment()})
        print(name, seed, cell["anoddpm"]["auroc"], cell["best_anoddpm"], flush=True)


def numbers(found: Evaluation) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of every metric."""
    return {k: (round(s.mean, 4), round(s.std, 4)) for k, s in found.metrics.items()}


def steps_all(args: argparse.Namespace) -> None:
    """Measure AUROC and seconds a slice for fewer and fewer network calls."""
    sick = edinburgh()
    for name, seed, model in trained(args, "steps"):
        if not isinstance(model, DDPM):
            continue
        model.set_params(**{k: v for k, v in tuned(args, name).items() if k != "n_draws"})
        rows = []
        for calls in ("all", 25, 10, 5, 1):
            model.set_params(sampling_steps=calls)
            started = time.perf_counter()
            maps = model.anomaly_map(sick.images, sick.brain)
            seconds = (time.perf_counter() - started) / len(maps)
            found = anoddpm(maps, sick.lesion).metrics
            row = {"calls": calls, "seconds": seconds, "auroc": found["auroc"].mean}
            rows.append({**row, "dice_oracle": found["dice_oracle"].mean})
            print(name, seed, rows[-1], flush=True)
        append(args.out, {"task": "steps", "model": name, "seed": seed, "rows": rows})


def table(args: argparse.Namespace) -> None:
    """Write the Markdown table, the paper's numbers beside ours."""
    paper = {}
    if args.targets.exists():
        with args.targets.open() as lines:
            paper = {(row["method"], row["T"]): row for row in csv.DictReader(lines)}
    cells = [c for c in read(args.out) if c["task"] == "score"]
    minutes = {(c["model"], c["seed"]): c["minutes"] for c in read(args.out) if "minutes" in c}
    lines = [
        "| model | seeds | training | AUROC | Dice (0.5) | best: AUROC | oracle Dice | "
        "Dice at our threshold | false alarms | paper AUC / Dice |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in MODELS:
        own = [c for c in cells if c["model"] == name]
        if not own:
            continue
        row = paper.get(PAPER.get(name, ("", "")))
        took = [minutes[name, c["seed"]] for c in own if (name, c["seed"]) in minutes]
        entries = [
            name,
            str(len(own)),
            f"{np.mean(took):.0f} min" if took else "",
            spread(own, "anoddpm", "auroc"),
            spread(own, "anoddpm", "dice"),
            spread(own, "best_anoddpm", "auroc"),
            spread(own, "best_anoddpm", "dice_oracle"),
            spread(own, "standard", "dice"),
            f"{np.mean([c['false_alarms']['pixels'] for c in own]):.3f}",
            f"{row['auc']} / {row['dice']}" if row else "",
        ]
        lines.append("| " + " | ".join(entries) + " |")
    print("\n".join(lines))


def spread(cells: list[dict[str, Any]], protocol: str, metric: str) -> str:
    """Return the mean over seeds, with the standard deviation where there are several."""
    values = [c[protocol][metric][0] for c in cells]
    text = f"{np.mean(values):.3f}"
    return text if len(values) == 1 else f"{text} ± {np.std(values):.3f}"


def picture(args: argparse.Namespace) -> None:
    """Draw input, restoration, map and mask: pasted lesions, whose scans may be shown."""
    import matplotlib.pyplot as plt

    slices = tuning_set() if args.set == "pasted" else edinburgh()
    chosen = np.linspace(0, len(slices.images) - 1, 6).astype(int)
    some = slices.of(chosen)
    found = [
        (name, load(model_path(args.folder, name, args.seeds[0])).set_params(**tuned(args, name)))
        for name in args.models
        if model_path(args.folder, name, args.seeds[0]).exists()
    ]
    n_rows = 2 + 2 * len(found)
    figure, axes = plt.subplots(n_rows, len(chosen), figsize=(1.3 * len(chosen) + 1, 1.3 * n_rows))
    rows: list[tuple[str, NDArray[Any], str]] = [
        ("input", some.images[:, 0], "gray"),
        ("lesion", some.lesion, "gray"),
    ]
    for name, model in found:
        rows.append((f"{name}\nrestored", model.reconstruct(some.images)[:, 0], "gray"))
        rows.append(("map", model.anomaly_map(some.images, some.brain), "magma"))
    for line, (title, images, colours) in zip(axes, rows, strict=True):
        top = 1.0 if colours == "gray" else float(np.quantile(images, 0.995))
        line[0].set_ylabel(title, fontsize=7)
        for axis, image in zip(line, images, strict=True):
            axis.imshow(image, cmap=colours, vmin=0, vmax=top)
            axis.set_xticks([])
            axis.set_yticks([])
    figure.tight_layout(pad=0.2)
    figure.savefig(args.image, dpi=110)
    print(args.image)


TASKS = {
    "train": train_all,
    "tune": tune_all,
    "score": score_all,
    "steps": steps_all,
    "table": table,
    "picture": picture,
}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--targets", type=Path, default=Path("targets/addm_mri.csv"))
    parser.add_argument("--image", type=Path, default=Path("results/mri_small.png"))
    parser.add_argument("--set", choices=("pasted", "edinburgh"), default="pasted")
    args = parser.parse_args()
    TASKS[args.task](args)


if __name__ == "__main__":
    main()
