"""The state of a training, kept so that it can go on with the bytes it would have had.

One safetensors file, written atomically: networks, optimisers, the step reached, and the
fingerprint of the training they belong to. Nothing in it is run when it is read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from aberra.errors import ModelFileError
from aberra.files import write_atomically
from aberra.progress import kept_for_later, stop_requested


@dataclass
class Checkpoint:
    """Keeps the parts of one training in a folder, every so many minutes; None keeps nothing.

    The file is named after the fingerprint of the training, so many can share a folder.
    """

    folder: Path | None
    fingerprint: str
    nets: Mapping[str, nn.Module]
    optimisers: Mapping[str, Optimizer]
    minutes: float
    writes: bool  # one of several processes writes, all read
    _last: float = field(default_factory=time.monotonic)

    @property
    def path(self) -> Path | None:
        """The file, whether it is there or not."""
        return None if self.folder is None else self.folder / f"{self.fingerprint[:24]}.safetensors"

    def resume(self) -> int:
        """Put everything back as it was; return the number of steps done."""
        if self.folder is None or self.path is None:
            return 0
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            return 0
        tensors, about = self._read(self.path)
        for name, net in self.nets.items():
            net.load_state_dict(_under(tensors, f"net.{name}."))
        for name, optimiser in self.optimisers.items():
            _restore(optimiser, _under(tensors, f"optimiser.{name}."), about["rates"][name])
        return int(about["step"])

    def step_done(self, step: int, n_steps: int) -> None:
        """Write, if it is time, or if the training is to stop here and go on another day."""
        if stop_requested():
            self.write(step)
            kept = "" if self.path is None else " The same command goes on from there."
            raise KeyboardInterrupt(f"Interrupted after step {step:,} of {n_steps:,}.{kept}")
        if time.monotonic() - self._last >= 60 * self.minutes:
            self.write(step)

    def write(self, step: int) -> None:
        """Write the state after `step` steps."""
        if self.path is None or not self.writes:
            return
        tensors = {}
        for name, net in self.nets.items():
            for key, value in net.state_dict().items():
                tensors[f"net.{name}.{key}"] = value.detach().cpu().contiguous()
        for name, optimiser in self.optimisers.items():
            for key, value in _memory_of(optimiser).items():
                tensors[f"optimiser.{name}.{key}"] = value.detach().cpu().contiguous()
        rates = {name: _rates(optimiser) for name, optimiser in self.optimisers.items()}
        about = {"step": step, "fingerprint": self.fingerprint, "rates": rates}
        write_atomically(self.path, save(tensors, {"aberra": json.dumps(about)}))
        self._last = time.monotonic()

    def finish(self, step: int) -> None:
        """End the training after `step` steps: its file goes, unless it may still be of use."""
        if self.path is None or not self.writes:
            return
        if kept_for_later(self.path):
            self.write(step)
        else:
            self.path.unlink(missing_ok=True)

    def _read(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        data = path.read_bytes()
        try:
            size = int.from_bytes(data[:8], "little")
            about = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["aberra"])
            if about["fingerprint"] != self.fingerprint:
                raise ValueError("it belongs to another training")
            return load(data), about
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"The checkpoint {path} is damaged ({error}). Delete it to start again."
            ) from error


def training_mark(settings: object, *arrays: Iterable[Tensor]) -> str:
    """Return a digest of settings and data."""
    digest = sha256(repr(settings).encode())
    for array in chain(*arrays):
        digest.update(repr((array.shape, array.dtype)).encode())
        digest.update(array.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _memory_of(optimiser: Optimizer) -> dict[str, Tensor]:
    """Return the optimiser's memory of each parameter, by number and name."""
    state = optimiser.state_dict()["state"]
    return {f"{k}.{name}": torch.as_tensor(v) for k, d in state.items() for name, v in d.items()}


def _rates(optimiser: Optimizer) -> list[float]:
    return [group["lr"] for group in optimiser.param_groups]


def _restore(optimiser: Optimizer, tensors: Mapping[str, Tensor], rates: list[float]) -> None:
    whole = optimiser.state_dict()
    for key, value in tensors.items():
        number, name = key.split(".", 1)
        whole["state"].setdefault(int(number), {})[name] = value
    for group, rate in zip(whole["param_groups"], rates, strict=True):
        group["lr"] = rate
    optimiser.load_state_dict(whole)
