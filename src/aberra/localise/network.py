"""What the localisers that train networks share: their keywords."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from aberra.localise.base import Localiser
from aberra.loop import Keeping, Tempo
from aberra.nets.place import Place, Precision, find_place
from aberra.scikit import Interval, StrOptions


class NetworkLocaliser(Localiser):
    """Base of the localisers that train networks; the keywords are documented in each of them."""

    train_steps: int | None
    batch_size: int | None
    learning_rate: float | None
    checkpoint: str | Path | None
    checkpoint_minutes: float
    device: str
    precision: Precision

    _parameter_constraints: dict[str, list[Any]] = {
        **Localiser._localiser_constraints,
        "train_steps": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "checkpoint": [str, Path, None],
        "checkpoint_minutes": [Interval(Real, 0, None, closed="left")],
        "device": [str],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
    }

    def _place(self) -> Place:
        return find_place(self.device, self.precision)

    def _tempo(self, usual: Tempo) -> Tempo:
        """Return the preset's tempo, with the keywords that were given in its stead."""
        names = ("train_steps", "batch_size", "learning_rate")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(usual, **given)

    def _keeping(self) -> Keeping:
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        return Keeping(folder, self.checkpoint_minutes)
