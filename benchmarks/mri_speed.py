"""What the diffusion code costs on top of its networks, and what fewer network calls save.

python -m benchmarks.mri_speed [--repeats 5]          results/mri_speed.json

Everything is a ratio within one run: a training step against its bare forward and backward calls, a
restoration against its bare network calls, strided walks against the full walk. No data are needed.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from aberra import ADDM, DDPM
from aberra.diffusion.losses import adversarial_loss, ddpm_loss, discriminator_loss
from aberra.diffusion.training import DiffusionRun
from aberra.loop import batch_of
from aberra.nets.place import Place
from aberra.rng import single_thread
from benchmarks.records import environment

SHAPE = (64, 1, 64, 64)
TRAINED: dict[str, Any] = {"style": "printed", "noise": "pyramid"}
WALKED: dict[str, Any] = {**TRAINED, "start": 0.25, "n_draws": 1}


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def training_step(model: Any, repeats: int) -> dict[str, float]:
    """Race one training step against the bare calls of its networks."""
    model.image_shape_ = SHAPE[1:]
    cpu = Place(torch.device("cpu"))
    run = DiffusionRun(model._plan(SHAPE[2]), 0, cpu)
    images, size = torch.rand(SHAPE) * 2 - 1, run.plan.tempo.batch_size
    x, w, every = images[:size], torch.ones(size), torch.ones(len(images))
    moment = torch.full((len(x),), 0.3)

    def whole() -> None:
        run.step(1, batch_of(images, every, size, 0, 1, cpu))

    def bare() -> None:
        eps_hat = run.denoiser(x, moment)
        loss = ddpm_loss(x, eps_hat, w)
        if run.judge is not None:
            logits = run.judge(torch.cat([x, x]), torch.cat([moment, moment]))
            real, fake = logits.chunk(2)
            discriminator_loss(real, fake, w).backward()
            run.judge.requires_grad_(False)
            loss = loss + adversarial_loss(run.judge(eps_hat, moment), w)
            run.judge.requires_grad_(True)
        loss.backward()

    took, least = seconds(whole, repeats), seconds(bare, repeats)
    return {"step": took, "bare": least, "ratio": took / least}


def walks(repeats: int) -> dict[str, Any]:
    """Time restorations of 16 slices by the number of network calls."""
    images = np.random.default_rng(0).random((16, *SHAPE[1:]), np.float32)
    model = DDPM(**WALKED, train_steps=1, batch_size=2, random_state=0, holdout=0.0)
    model.fit(images)
    net, x = model.members_.nets[0], torch.from_numpy(images)
    moment = torch.full((16,), 0.2)

    def bare() -> None:
        with torch.inference_mode():
            net(x, moment)

    call = seconds(bare, repeats)
    rows: dict[str, Any] = {"call": call}
    for calls in (1, 5, 10, 25, "all"):
        model.set_params(sampling_steps=calls)
        n = 250 if calls == "all" else int(calls)
        took = seconds(lambda: model.reconstruct(images), 1 if n > 25 else repeats)
        rows[str(calls)] = {"seconds": took, "over_bare": took / (n * call)}
    rows["full_over_one"] = rows["all"]["seconds"] / rows["1"]["seconds"]
    rows["full_over_ten"] = rows["all"]["seconds"] / rows["10"]["seconds"]
    return rows


def main() -> None:
    """Run all races and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/mri_speed.json"))
    args = parser.parse_args()
    with single_thread():
        found = {
            "training_ddpm": training_step(DDPM(**TRAINED), args.repeats),
            "training_addm": training_step(ADDM(**TRAINED), args.repeats),
            "walks": walks(args.repeats),
            **environment(),
        }
    args.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
