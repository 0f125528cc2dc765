"""Localisers on brain slices of 64 x 64 pixels: healthy IXI subjects in, Edinburgh's tumours out.

ABERRA_DATA=... python -m benchmarks.mri_small train [--models ...] [--seeds 0 1]
ABERRA_DATA=... python -m benchmarks.mri_small score [--models ...]

Training writes one model file per row and seed into `--folder`, and goes on where it was killed.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aberra import ADDM, DDPM, AnoDDPM, save
from aberra.progress import progress_bar
from benchmarks.mri_data import ixi
from benchmarks.records import append, environment

FOLDER = Path("mri-models")
STEPS = 1000

MODELS: dict[str, Callable[..., Any]] = {
    "ddpm-pyramid": lambda **kw: DDPM(noise="pyramid", train_steps=STEPS, **kw),
    "ddpm-1000": lambda **kw: DDPM(train_steps=STEPS, **kw),
    "addm-1000": lambda **kw: ADDM(train_steps=STEPS, **kw),
    "addm-500": lambda **kw: ADDM(train_steps=STEPS, n_steps=500, **kw),
    "addm-300": lambda **kw: ADDM(train_steps=STEPS, n_steps=300, **kw),
    "anoddpm": lambda **kw: AnoDDPM(train_steps=STEPS, **kw),
    "addm-pyramid": lambda **kw: ADDM(noise="pyramid", train_steps=STEPS, **kw),
    "addm-pyramid-50": lambda **kw: ADDM(
        noise="pyramid", adversarial_stride=50, train_steps=STEPS, **kw
    ),
}


def train_all(args: argparse.Namespace) -> None:
    """Train what is not there yet."""
    args.folder.mkdir(exist_ok=True)
    healthy = ixi()["train"]
    for seed in args.seeds:
        for name in args.models:
            path, claim = args.folder / f"{name}-{seed}.aberra", args.folder / f"{name}-{seed}.lock"
            if path.exists() or not claimed(claim):
                continue
            started = time.perf_counter()
            model = MODELS[name](random_state=seed, checkpoint=args.folder, checkpoint_minutes=2)
            with progress_bar():
                model.fit(healthy.images, groups=healthy.subject)
            save(model, path)
            minutes = (time.perf_counter() - started) / 60
            cell = {"model": name, "seed": seed, "minutes": minutes, **environment()}
            append(args.folder / "training.jsonl", cell)
            print(name, seed, f"{minutes:.1f} min", flush=True)
            claim.unlink()


def claimed(claim: Path) -> bool:
    """Tell whether this process may take a row: no other live process has it."""
    try:
        owner = int(claim.read_text())
        os.kill(owner, 0)
    except (FileNotFoundError, ProcessLookupError, ValueError):
        claim.write_text(str(os.getpid()))
        return True
    return owner == os.getpid()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("train",))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    args = parser.parse_args()
    train_all(args)


if __name__ == "__main__":
    main()
