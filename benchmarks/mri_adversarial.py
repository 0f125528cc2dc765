"""What the adversarial term does: who wins, how loud it is, and whether maps get better.

ABERRA_DATA=... python -m benchmarks.mri_adversarial run      results/mri_adversarial.jsonl
python -m benchmarks.mri_adversarial table

Short trainings on IXI slices of 32 x 32 pixels. Of the last fifth of the steps: the discriminator's
loss (chance: 1.386), and the length of the denoiser's gradient from the adversarial term over that
from the noise error. Then AUROC and oracle Dice on pasted lesions of other subjects.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from aberra import ADDM, DDPM
from aberra.data.scenarios import paste_lesions
from aberra.diffusion.losses import adversarial_loss, ddpm_loss
from aberra.diffusion.process import q_sample
from aberra.diffusion.training import DiffusionRun, Draws, denoised
from aberra.loop import Batch, Losses
from aberra.metrics import auroc, best_dice
from aberra.reproduce.mri_slices import ixi
from benchmarks.mri_contaminated import AREA, N_TEST, SIZE, some
from benchmarks.records import append, environment, read

RESULTS = Path("results/mri_adversarial.jsonl")
STEPS = 400
SCORING = {"start": 0.2, "sampling_steps": 1, "n_draws": 2, "error": "darker", "smooth": 3}
PRINTED = {"style": "printed", "batch_size": 8, "holdout": 0.0}  # whatever a row does not name

ROWS: dict[str, Callable[..., Any]] = {
    "white, DDPM": DDPM,
    "white, as printed (stride 1)": ADDM,
    "white, T = 300, stride 1": lambda **kw: ADDM(n_steps=300, **kw),
    "white, stride 50": lambda **kw: ADDM(adversarial_stride=50, **kw),
    "white, stride 50, weight 1": lambda **kw: ADDM(
        adversarial_stride=50, adversarial_weight=1.0, **kw
    ),
    "pyramid, DDPM": lambda **kw: DDPM(noise="pyramid", **kw),
    "pyramid, stride 1": lambda **kw: ADDM(noise="pyramid", **kw),
    "pyramid, stride 50": lambda **kw: ADDM(noise="pyramid", adversarial_stride=50, **kw),
    "pyramid, stride 500 (to x_0)": lambda **kw: ADDM(
        noise="pyramid", adversarial_stride=500, **kw
    ),
    "pyramid, stride 500, weight 0.5": lambda **kw: ADDM(
        noise="pyramid", adversarial_stride=500, adversarial_weight=0.5, **kw
    ),
    "pyramid, stride 500, sees time": lambda **kw: ADDM(
        noise="pyramid", adversarial_stride=500, discriminator_sees_time=True, **kw
    ),
    "pyramid, stride 500, instance norm": lambda **kw: ADDM(
        noise="pyramid", adversarial_stride=500, discriminator_norm="instance", **kw
    ),
}


class Watched:
    """Notes the discriminator's loss and the loudness of its voice while a model trains."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.ratios: list[float] = []
        self._step = DiffusionRun.step

    def __enter__(self) -> Watched:
        DiffusionRun.step = self._watch  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        DiffusionRun.step = self._step  # type: ignore[method-assign]

    @property
    def _watch(self) -> Callable[..., Losses]:
        def step(run: DiffusionRun, number: int, batch: Batch) -> Losses:
            late = number >= 0.8 * run.plan.tempo.train_steps
            if late and run.judge is not None and (number + 1) % 8 == 0:
                state = batch.generator.get_state()
                self.ratios.append(loudness(run, batch.x, batch.w, run.draw(batch)))
                batch.generator.set_state(state)
            losses = self._step(run, number, batch)
            if late and run.judge is not None:
                self.losses.append(float(losses["discriminator"].detach()))
            return losses

        return step


def loudness(run: DiffusionRun, x0: Tensor, w: Tensor, d: Draws) -> float:
    """Return the length of the adversarial gradient over that of the noise error."""
    plan = run.plan
    xt = q_sample(run.schedule, x0, d.t, d.eps)
    eps_hat = run.denoiser(xt, d.t / plan.n_steps)
    s = (d.t - plan.adversarial_stride).clamp(min=0)
    assert run.judge is not None
    state = {k: v.clone() for k, v in run.judge.state_dict().items()}  # power iteration moves it
    fake = denoised(run.schedule, xt, d, s, eps_hat)
    urge = plan.adversarial_weight * adversarial_loss(run.judge(fake, s / plan.n_steps), w)
    lengths = []
    for loss in (urge, ddpm_loss(d.eps, eps_hat, w)):
        parts = torch.autograd.grad(loss, list(run.denoiser.parameters()), retain_graph=True)
        lengths.append(float(torch.sqrt(sum((p.square().sum() for p in parts), torch.zeros(())))))
    run.judge.load_state_dict(state)
    return lengths[0] / lengths[1]


def run(args: argparse.Namespace) -> None:
    """Train every row that is not there yet."""
    parts = ixi(SIZE)
    train, test = some(parts["train"], 2000, 0), some(parts["tune"], N_TEST, 1)
    sick, lesion, _ = paste_lesions(
        test.images, test.brain, 1.0, np.random.default_rng(9), area=AREA
    )
    done = {(c["row"], c["seed"]) for c in read(args.out)}
    for seed in args.seeds:
        for name in args.rows:
            if (name, seed) in done:
                continue
            make = ROWS[name]
            started = time.perf_counter()
            model = make(train_steps=STEPS, random_state=seed, **PRINTED, **SCORING)
            with Watched() as watched:
                model.fit(train.images)
            maps = np.where(test.brain, model.anomaly_map(sick), 0)
            cell = {
                "row": name,
                "seed": seed,
                "auroc": float(np.mean([auroc(m, s) for m, s in zip(lesion, maps, strict=True)])),
                "dice_oracle": best_dice(lesion, maps)[0],
                "discriminator_loss": float(np.mean(watched.losses)) if watched.losses else None,
                "gradient_ratio": float(np.median(watched.ratios)) if watched.ratios else None,
                "seconds": time.perf_counter() - started,
                **environment(),
            }
            append(args.out, cell)
            print({k: cell[k] for k in list(cell)[:6]}, flush=True)


def table(args: argparse.Namespace) -> None:
    """Print the Markdown table."""
    cells = list(read(args.out))
    print("| setting | seeds | discriminator's loss | gradient ratio | AUROC | oracle Dice |")
    print("|---|---|---|---|---|---|")
    for name in ROWS:
        own = [c for c in cells if c["row"] == name]
        if not own:
            continue
        texts = [str(len(own))]
        for key, digits in (
            ("discriminator_loss", 3),
            ("gradient_ratio", 5),
            ("auroc", 3),
            ("dice_oracle", 3),
        ):
            values = [c[key] for c in own if c[key] is not None]
            texts.append(f"{np.mean(values):.{digits}f}" if values else "")
        print(f"| {name} | " + " | ".join(texts) + " |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.task](args)


if __name__ == "__main__":
    main()
