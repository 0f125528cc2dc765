"""Where tensors live, in which precision, and how several processes share a batch.

A process that was started alone trains alone. Started by `torchrun` or `fabric run`, on any number
of GPUs or nodes, it trains together with the others through Lightning Fabric: every process draws
the numbers of the whole batch and works on its share, so the result is that of one process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from aberra.errors import ArgumentError

TrainingPrecision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True)
class Place:
    """One process's part of a training."""

    device: torch.device
    half: bool = False  # bfloat16 where it is safe
    rank: int = 0
    world_size: int = 1
    fabric: Any = None

    def share(self, batch_size: int) -> slice:
        """Return the part of a batch that this process works on."""
        if batch_size % self.world_size:
            raise ValueError(
                f"A batch of {batch_size} cannot be shared by {self.world_size} processes: make "
                "batch_size a multiple of them."
            )
        part = batch_size // self.world_size
        return slice(self.rank * part, (self.rank + 1) * part)

    def average(self, gradients: Sequence[Tensor]) -> None:
        """Replace gradients by their mean over the processes, in one exchange."""
        if self.fabric is None:
            return
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        mean = self.fabric.all_reduce(flat, reduce_op="mean")
        for gradient, part in zip(
            gradients, mean.split([g.numel() for g in gradients]), strict=True
        ):
            gradient.copy_(part.view_as(gradient))

    def autocast(self) -> AbstractContextManager[Any]:
        """Let networks compute in bfloat16 where that was chosen."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)


def find_place(device: str = "auto", precision: TrainingPrecision = "auto") -> Place:
    """Return this process's place: `device` may be "auto", "cpu", "cuda", "cuda:1", "mps"."""
    n_processes = int(os.environ.get("WORLD_SIZE", "1"))
    if n_processes == 1:
        where = usable(device)
        return Place(where, bfloat16_pays(where) if precision == "auto" else precision != "float32")
    from lightning_fabric import Fabric

    n_local = int(os.environ.get("LOCAL_WORLD_SIZE", n_processes))
    accelerator = "auto" if device == "auto" else device.split(":")[0]
    fabric = Fabric(
        accelerator=accelerator,
        strategy="ddp",
        devices=n_local,
        num_nodes=n_processes // n_local,
    )
    fabric.launch()
    half = bfloat16_pays(fabric.device) if precision == "auto" else precision != "float32"
    return Place(fabric.device, half, fabric.global_rank, n_processes, fabric)


def device_named(name: str) -> torch.device:
    """Return a device by its name; "auto" is the best there is."""
    try:
        return torch.device(best_device() if name == "auto" else name)
    except RuntimeError as error:
        raise ArgumentError(
            "device",
            f"torch knows no device of the name {name!r}. Give `device` one such as 'cpu', "
            "'cuda:1' or 'mps', or 'auto' for the best there is.",
        ) from error


def usable(name: str) -> torch.device:
    """Return a device by its name, if it can compute here."""
    where = device_named(name)
    try:
        torch.zeros(1, device=where).item()
    except (AssertionError, RuntimeError, NotImplementedError) as error:
        why = str(error).partition("\n")[0].rstrip(".")
        raise ArgumentError(
            "device",
            f"torch cannot compute on the device {name!r} here ({why}). Leave `device` at 'auto' "
            "for the best there is.",
        ) from error
    return where


def best_device() -> str:
    """Return the fastest kind of device that is there."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def bfloat16_pays(device: torch.device) -> bool:
    """Tell whether the hardware computes in bfloat16 itself.

    Where it does not, the numbers are converted back and forth, and training is far slower than in
    single precision.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return device.type == "cpu" and bool(supported())
