"""Which settings of the map find pasted lesions best: how the localisers' defaults were chosen.

ABERRA_DATA=... python -m benchmarks.map_defaults run      results/map_defaults.jsonl; resumes
python -m benchmarks.map_defaults table                    results/map_defaults.md

Localisers train on healthy IXI slices of 64 x 64 pixels. Slices of 15 other healthy subjects get a
pasted lesion, once a dark and once a bright one, and 20 more subjects say what healthy maps look
like. Everything is measured inside the head. The tumours of Edinburgh are never seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import ndimage

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
from aberra.contract.maps import upper_quantile
from aberra.data.scenarios import paste_lesions
from aberra.localise.restorers import Error, MapStyle
from aberra.metrics import auroc, average_precision, best_dice, dice
from aberra.reproduce.mri_slices import SIZE, Slices, head_mask, ixi
from benchmarks.records import append, environment, read

RESULTS, TABLE = Path("results/map_defaults.jsonl"), Path("results/map_defaults.md")
MODELS = Path("results/models")
N_SLICES = 60
AREA = (0.005, 0.2)  # of a lesion, as a share of the brain
COMMON = 0.02  # share of the head's pixels in healthy slices that may be flagged
FAINT = 0.1  # a bright lesion that adds less than this to the slice is left out

Images = NDArray[np.float32]
Flags = NDArray[np.bool_]

ROWS: dict[str, Callable[..., Any]] = {
    "DDPM": lambda **kw: DDPM(style="best", **kw),
    "DDPM, 32 groups": lambda **kw: DDPM(style="best", norm_groups=32, **kw),
    "ADDM": lambda **kw: ADDM(style="best", **kw),
    "ADDM, 32 groups": lambda **kw: ADDM(style="best", norm_groups=32, **kw),
    "AnoDDPM": lambda **kw: AnoDDPM(style="best", **kw),
    "AnoDDPM, 32 groups": lambda **kw: AnoDDPM(style="best", norm_groups=32, **kw),
    "ADDM as printed": lambda **kw: ADDM(style="printed", **kw),
    "SpatialAE": SpatialAE,
    "DenseVAE": DenseVAE,
    "FAnoGAN": FAnoGAN,
    "VQTransformer": VQTransformer,
    "IntensityThreshold": IntensityThreshold,
}
WAYS: list[dict[str, Any]] = [  # back from noise, for the diffusion models
    *({"start": start, "sampling_steps": 1, "n_draws": draws}
      for start, draws in product((0.1, 0.15, 0.2, 0.25), (1, 4))),
    {"start": 0.05, "sampling_steps": 1, "n_draws": 4},
    {"start": 0.35, "sampling_steps": 1, "n_draws": 4},
    {"start": 0.15, "sampling_steps": 1, "n_draws": 8},
    {"start": 0.15, "sampling_steps": 5, "n_draws": 1},
    {"start": 0.25, "sampling_steps": 10, "n_draws": 1},
]  # fmt: skip
ERRORS: tuple[Error, ...] = ("squared", "absolute", "darker")
SMOOTH = (1, 3, 5, 7)
PRINTED = {"start": 0.25, "sampling_steps": 10, "n_draws": 1, "error": "squared", "smooth": 1}


class Judged(NamedTuple):
    """Slices on which maps are judged; healthy ones have no lesion."""

    images: Images  # (n, 1, h, w)
    lesion: Flags | None  # (n, h, w)
    head: Flags


def scenes(size: int = SIZE) -> tuple[Slices, dict[str, Judged]]:
    """Return the slices to train on, and those to judge by: dark, bright, healthy."""
    parts = ixi(size)
    tune = parts["tune"]
    tune = tune.of(tune.brain.mean(axis=(1, 2)) > 200 / SIZE**2)
    tune = tune.of(np.sort(np.random.default_rng(1).permutation(len(tune.images))[:N_SLICES]))
    dark, lesion, _ = paste_lesions(
        tune.images, tune.brain, 1.0, np.random.default_rng(2), area=AREA, brighter=0.0
    )
    healthy = parts["healthy"]
    calm = healthy.of(np.arange(0, len(healthy.images), 12)[:N_SLICES]).images
    return parts["train"], {
        "dark": Judged(dark, lesion, head_mask(dark[:, 0])),
        "bright": bright_lesions(tune),
        "healthy": Judged(calm, None, head_mask(calm[:, 0])),
    }


def bright_lesions(slices: Slices) -> Judged:
    """Return slices with lesions that are nearly white.

    White matter is cut off at 1, so there is no room above it; lesions grow in the darker half of
    the brain, and those that hardly show are left out.
    """
    _, lesion, _ = paste_lesions(
        1 - slices.images, slices.brain, 1.0, np.random.default_rng(3), area=AREA, brighter=0.0
    )
    cover = ndimage.gaussian_filter(lesion.astype(np.float32), (0, 0.6, 0.6)) * slices.brain
    added = 0.95 * cover[:, None] * (1 - slices.images)
    seen = np.array([gap[0][m].mean() > FAINT for gap, m in zip(added, lesion, strict=True)])
    images = (slices.images + added)[seen].astype(np.float32)
    return Judged(images, lesion[seen], head_mask(images[:, 0]))


def fitted(name: str, train: Slices, steps: int) -> Any:
    """Return a row's model, trained now, further, or before."""
    path = MODELS / f"map-defaults-{name.replace(' ', '-').replace(',', '')}.aberra"
    if not path.exists():
        MODELS.mkdir(parents=True, exist_ok=True)
        model = ROWS[name](holdout=0.0, random_state=0)
        if name != "IntensityThreshold":
            model.set_params(checkpoint=str(MODELS), checkpoint_minutes=2.0)
        if isinstance(model, DDPM):
            model.set_params(train_steps=steps)
        save(model.fit(train.images), path)
    return load(path)


def maps_of(model: Any, judged: Mapping[str, Judged]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield all settings of a row, each with the maps of every scene."""
    if not isinstance(model, DDPM):
        sides = {"squared": None, "absolute": "both", "darker": "dark"}
        for error, smooth in product(ERRORS, SMOOTH):
            own: dict[str, Any] = {"error": error}
            if isinstance(model, IntensityThreshold):
                own = {"side": sides[error]}
            if None not in own.values():
                model.set_params(smooth=smooth, **own)
                maps = {k: model.anomaly_map(one.images) for k, one in judged.items()}
                yield {"error": error, "smooth": smooth}, maps
        return
    for way in WAYS:
        model.set_params(**way)
        pairs = {k: (one.images, model.reconstruct(one.images)) for k, one in judged.items()}
        for error, smooth in product(ERRORS, SMOOTH):
            style = MapStyle(error, smooth)
            maps = {k: drawn(style, *pair) for k, pair in pairs.items()}
            yield {**way, "error": error, "smooth": smooth}, maps


def drawn(style: MapStyle, images: Images, restored: Images) -> Images:
    """Return the maps of images in [0, 1] on the scale [-1, 1], as the localisers do."""
    x, y = (torch.from_numpy(np.ascontiguousarray(a * 2 - 1)) for a in (images, restored))
    maps: Images = style(x, y)[:, 0].numpy()
    return maps


def figures(maps: Mapping[str, Images], judged: Mapping[str, Judged]) -> dict[str, float]:
    """Return AUROC and average precision by slice, best single Dice, and Dice at a common rate."""
    calm = judged["healthy"]
    height = upper_quantile(maps["healthy"], calm.head.astype(float), COMMON)
    found: dict[str, float] = {}
    for kind in ("dark", "bright"):
        _, lesion, head = judged[kind]
        assert lesion is not None
        inside = [(m[h], s[h]) for m, s, h in zip(lesion, maps[kind], head, strict=True)]
        whole = np.where(head, maps[kind], 0)
        found |= {
            f"{kind} auroc": float(np.mean([auroc(*one) for one in inside])),
            f"{kind} ap": float(np.mean([average_precision(*one) for one in inside])),
            f"{kind} oracle": float(best_dice(lesion, whole)[0]),
            f"{kind} common": float(
                np.mean([dice(m, s > height) for m, s in zip(lesion, whole, strict=True)])
            ),
        }
    return found


def run(args: argparse.Namespace) -> None:
    """Train and judge every row that is not there yet."""
    done = {line["row"] for line in read(args.out)}
    wanted = [name for name in args.rows if name not in done]
    if not wanted:
        return
    train, judged = scenes()
    for name in wanted:
        started = time.perf_counter()
        model = fitted(name, train, args.steps)
        tried = [{**way, **rounded(figures(maps, judged))} for way, maps in maps_of(model, judged)]
        minutes = round((time.perf_counter() - started) / 60, 1)
        line = {"row": name, "steps": args.steps, "minutes": minutes, "tried": tried}
        append(args.out, {**line, **environment()})
        print(name, max(tried, key=quality), flush=True)


def rounded(found: Mapping[str, float]) -> dict[str, float]:
    """Return figures as they are kept."""
    return {name: round(value, 4) for name, value in found.items()}


def quality(one: Mapping[str, Any]) -> float:
    """Return the mean of the four figures over dark and bright lesions."""
    return float(np.mean([v for k, v in one.items() if k.startswith(("dark ", "bright "))]))


FIGURES = ("auroc", "ap", "oracle", "common")
KEYS = [f"{kind} {what}" for kind in ("dark", "bright") for what in FIGURES]
HEAD = """# Which settings of the map find pasted lesions best

`python -m benchmarks.map_defaults` (IXI, 64 x 64 pixels, one seed, {steps} training steps for the
diffusion models). {n} slices of 15 subjects that did not train have a pasted lesion each, dark or
bright; 20 other subjects place the threshold that flags {common:.0%} of the pixels of healthy
heads. Everything is measured inside the head; Edinburgh's tumours were not looked at. AUROC and AP
are means over slices, "oracle" is the best Dice of one threshold for all slices, "common" the mean
Dice at the common threshold, and "mean" the mean of all eight figures, by which settings are
ranked.
"""


def table(args: argparse.Namespace) -> None:
    """Write the Markdown page."""
    lines = {line["row"]: line for line in read(args.out)}
    steps = next(iter(lines.values()))["steps"] if lines else args.steps
    text = [HEAD.format(steps=steps, n=N_SLICES, common=COMMON)]
    text += ["## Each model: the best settings, the defaults, and the printed map", ""]
    text += ["| model | settings | " + " | ".join([*KEYS, "mean"]) + " |", "|---" * 11 + "|"]
    for name in ROWS:
        if name in lines:
            text += model_lines(name, lines[name]["tried"])
    for name in ("DDPM", "ADDM", "AnoDDPM"):
        if name in lines:
            text += ["", f"## {name}: one setting changed at a time", ""]
            text += ["| setting | " + " | ".join([*KEYS, "mean"]) + " |", "|---" * 10 + "|"]
            text += change_lines(name, lines[name]["tried"])
    TABLE.write_text("\n".join(text) + "\n")
    print(TABLE)


def defaults(name: str) -> dict[str, Any]:
    """Return the settings of the map that a row has by default."""
    model = ROWS[name]()
    if isinstance(model, IntensityThreshold):
        return {"error": "absolute", "smooth": model.smooth}
    names = ("start", "sampling_steps", "n_draws", "error", "smooth")
    held = model.settings()
    return {k: held[k] for k in names if k in held and (k != "n_draws" or "start" in held)}


def model_lines(name: str, tried: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of one model."""
    chosen = {"best": max(tried, key=quality), "default": same(tried, defaults(name))}
    printed = {k: v for k, v in PRINTED.items() if k in tried[0]}
    chosen["printed map"] = same(tried, printed)
    for what, one in chosen.items():
        if one is not None:
            yield f"| {name} | {what}: {words(one)} | {numbers(one)} |"


def change_lines(name: str, tried: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the default of a model, and all settings that differ from it in one place."""
    usual = defaults(name)
    for one in tried:
        changed = {k: one[k] for k in usual if one[k] != usual[k]}
        if len(changed) <= 1:
            yield f"| {words(changed) or 'default: ' + words(usual)} | {numbers(one)} |"


def same(tried: list[dict[str, Any]], wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what was found with these settings, if they were tried."""
    return next((one for one in tried if wanted.items() <= one.items()), None)


def words(one: Mapping[str, Any]) -> str:
    """Return settings in words."""
    return ", ".join(f"{k} {v}" for k, v in one.items() if k not in KEYS)


def numbers(one: Mapping[str, Any]) -> str:
    """Return the figures of a line."""
    return " | ".join(f"{v:.3f}" for v in [*(one[k] for k in KEYS), quality(one)])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--steps", type=int, default=1500, help="of the diffusion models")
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.task](args)


if __name__ == "__main__":
    main()
