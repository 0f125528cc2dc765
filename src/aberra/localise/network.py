"""What the localisers that train networks share: presets, styles and parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeVar

from sklearn.base import BaseEstimator

from aberra.data.images import TrainingImages
from aberra.declare import estimator, parameter
from aberra.localise.base import Localiser
from aberra.localise.restorers import Error, MapStyle
from aberra.loop import Keeping, Tempo
from aberra.nets.place import Place, TrainingPrecision, device_named, find_place
from aberra.scikit import Interval, StrOptions

PresetName = Literal["small", "medium", "paper"]
StyleName = Literal["best", "printed"]


@dataclass(frozen=True, kw_only=True)
class NetworkPreset(ABC):
    """Networks and training for one size of image; parameters of the same name override it."""

    image_size: int
    train_steps: int
    batch_size: int
    learning_rate: float

    @property
    def tempo(self) -> Tempo:
        """How long and how fast the network trains."""
        return Tempo(self.train_steps, self.batch_size, self.learning_rate)

    @property
    @abstractmethod
    def multiple(self) -> int:
        """Sides of an image must be multiples of this, which is also what they are reduced by."""

    def coarsest(self, images: TrainingImages) -> tuple[int, int]:
        """Return height and width of the network's coarsest map."""
        return images.shape[2] // self.multiple, images.shape[3] // self.multiple


@dataclass(frozen=True, kw_only=True)
class Style:
    """What a map shows; parameters of the same name override it."""

    error: Error
    smooth: int


BEST = Style(error="absolute", smooth=5)
PRINTED = Style(error="squared", smooth=1)


Usual = TypeVar("Usual", bound=NetworkPreset | Style)


def filled(usual: Usual, model: BaseEstimator) -> Usual:
    """Return a preset or style with those of its fields that the model was given."""
    given = model.get_params(deep=False)
    own = {f.name: given.get(f.name) for f in fields(usual)}
    return replace(usual, **{name: value for name, value in own.items() if value is not None})


@estimator
class NetworkLocaliser(Localiser):
    """Base of the localisers that train networks."""

    preset: PresetName = parameter(
        StrOptions({"small", "medium", "paper"}),
        default="small",
        kw_only=False,
        doc="""Networks and training for images of 64, 128 or 256 pixels a side. "small" trains on
        two cores, "medium" wants a GPU, and "paper" has the published sizes.""",
    )
    style: StyleName | None = parameter(
        StrOptions({"best", "printed"}),
        None,
        default=None,
        doc="""What the settings that are left at None stand for: "best" is what found lesions best
        that were pasted into healthy brains, "printed" is what the paper has. None means "printed"
        for the preset "paper" and "best" for the others.""",
    )
    error: Error | None = parameter(
        StrOptions({"squared", "absolute", "net", "darker", "brighter"}),
        None,
        default=None,
        doc="""What the map shows of the difference between an image and its restoration: its
        square or its size, the size of its mean over 3 x 3 pixels ("net"), or only where the image
        is darker or brighter than restored. None takes it from `style`: "absolute", or "squared"
        as printed.""",
    )
    train_steps: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="Number of training steps. None takes it from the preset.",
    )
    batch_size: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="Number of images in one training step. None takes it from the preset.",
    )
    learning_rate: float | None = parameter(
        Interval(Real, 0, None, closed="neither"),
        None,
        default=None,
        doc="Step size of the optimiser. None takes it from the preset.",
    )
    checkpoint: str | Path | None = parameter(
        str,
        Path,
        None,
        default=None,
        doc="""Folder that keeps the state of an unfinished training. The same `fit`, started
        again, goes on from there and gives the same bytes; it needs an integer `random_state` to
        be the same. None keeps nothing.""",
    )
    checkpoint_minutes: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=5.0,
        doc="Minutes between two copies of that state.",
    )
    device: str = parameter(
        str,
        default="auto",
        doc="""Where to compute, such as "cpu", "cuda:1" or "mps". "auto" takes a GPU where there
        is one. On a CPU one thread is used, whatever else the machine is doing, unless the
        environment variable OMP_NUM_THREADS says otherwise.""",
    )
    precision: TrainingPrecision = parameter(
        StrOptions({"auto", "float32", "bfloat16"}),
        default="auto",
        doc="""Numbers to train with: "auto" takes bfloat16 where the hardware computes in it, and
        float32 elsewhere.""",
    )

    @property
    def stops_early(self) -> bool:
        """Whether a time limit ends training with what has been learnt by then.

        It does where there is one training; a second one that builds on the first would never
        begin.
        """
        return True

    def settings(self) -> dict[str, Any]:
        """Return all parameters, with those that were left at None as preset and style have them.

        Returns
        -------
        settings : dict
            By name, in the form of `get_params`.
        """
        given = self.get_params(deep=False)
        usual = {**asdict(self._preset()), **asdict(self._style())}
        return {name: usual.get(name, value) for name, value in given.items()}

    @abstractmethod
    def _preset(self) -> NetworkPreset:
        """Return networks and training, with what was given in place of the preset's."""

    def _size_and_multiple(self) -> tuple[int, int]:
        preset = self._preset()
        return preset.image_size, preset.multiple

    def _style(self) -> Style:
        """Return objective and map, with what was given in place of the style's."""
        return filled(BEST if self._style_name() == "best" else PRINTED, self)

    def _style_name(self) -> StyleName:
        return self.style or ("printed" if self.preset == "paper" else "best")

    def _map_style(self) -> MapStyle:
        style = self._style()
        return MapStyle(style.error, style.smooth)

    def _place(self) -> Place:
        return find_place(self.device, self.precision)

    def _keeping(self) -> Keeping:
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        return Keeping(folder, self.checkpoint_minutes)

    def _threads(self) -> AbstractContextManager[None]:
        on_cpu = device_named(self.device).type == "cpu"
        return super()._threads() if on_cpu else nullcontext()
