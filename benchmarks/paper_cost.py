"""What a training at the size of the paper would cost on one GPU: counted, not measured.

python -m benchmarks.paper_cost        results/paper_cost.json

Multiplications and kept activations of one image are counted in a real training step of `ADDM`
with `preset="paper"` and a batch of one. Everything else follows by arithmetic, for a GPU that
reaches so many operations a second.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from aberra import ADDM
from aberra.diffusion.training import DiffusionRun
from aberra.loop import batch_of
from aberra.nets.place import Place
from benchmarks.records import environment

OUT = Path("results/paper_cost.json")
REACHED = 50e12  # operations a second that a data-centre GPU keeps up in half precision
PER_WEIGHT = 4 * 4  # bytes: weight, gradient, two of Adam's moments
SIDE = 256


class Kept:
    """Counts the bytes that autograd keeps for the way back, each storage once."""

    def __init__(self) -> None:
        self.storages: dict[int, int] = {}

    def pack(self, tensor: Tensor) -> Tensor:
        """Note a tensor that is kept."""
        storage = tensor.untyped_storage()
        self.storages[storage.data_ptr()] = storage.nbytes()
        return tensor


def counted() -> dict[str, Any]:
    """Count one training step with one image of 256 x 256 pixels."""
    model = ADDM(preset="paper", batch_size=1)
    model.image_shape_ = (1, SIDE, SIDE)
    run = DiffusionRun(model._plan(SIDE), 0, Place(torch.device("cpu")))
    images = torch.rand((1, 1, SIDE, SIDE), generator=torch.Generator().manual_seed(0))
    batch = batch_of(images, torch.ones(1), 1, 0, 0, run.place)
    kept = Kept()
    hooks = torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda tensor: tensor)
    with FlopCounterMode(display=False) as flops, hooks:
        run.step(0, batch)
    weights = sum(p.numel() for net in run.nets.values() for p in net.parameters())
    return {
        "operations an image and step": flops.get_total_flops(),
        "bytes kept for the way back, an image": sum(kept.storages.values()),
        "weights": weights,
    }


def main() -> None:
    """Count, and write down what follows."""
    found = counted()
    preset = ADDM(preset="paper")._preset()
    steps, batch = preset.tempo.train_steps, preset.tempo.batch_size
    operations = found["operations an image and step"] * steps * batch
    memory = found["bytes kept for the way back, an image"] * batch + found["weights"] * PER_WEIGHT
    computed = {
        "steps": steps,
        "batch": batch,
        "operations": operations,
        "hours at 50 Tera operations a second": round(operations / REACHED / 3600, 1),
        "gigabytes": round(memory / 1e9, 1),
    }
    OUT.write_text(json.dumps({**found, **computed, **environment()}, indent=1) + "\n")
    print(OUT.read_text())


if __name__ == "__main__":
    main()
