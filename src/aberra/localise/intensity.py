"""The floor that every localiser should beat: darker or brighter than healthy images are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from aberra.data.images import TrainingImages, parts
from aberra.localise.base import Error, Localiser, MapStyle, Restorers
from aberra.localise.frame import Frame
from aberra.rng import RandomState
from aberra.scikit import StrOptions

Side = Literal["dark", "bright", "both"]
Reference = Literal["pixel", "overall"]
ERRORS: dict[Side, Error] = {"dark": "darker", "bright": "brighter", "both": "absolute"}
AS_THEY_COME = 1 << 30  # no image is larger, so none is reduced
CHUNK = 1 << 22  # numbers that are sorted at a time


def weighted_median(values: Tensor, w: Tensor) -> Tensor:
    """Return the smallest value of each column (n, k) that half of the weight does not exceed."""
    order = values.argsort(dim=0, stable=True)
    below = w.double()[order].cumsum(dim=0)
    # The last row is the whole weight, with the rounding that the others have too.
    place = (below < below[-1:] / 2).sum(dim=0, keepdim=True)
    return values.gather(0, order.gather(0, place))[0]


@dataclass(frozen=True)
class LevelPlan:
    """Everything that decides the shape of a reference image."""

    n_channels: int
    size: tuple[int, int]


class Level(nn.Module):
    """What healthy images look like in the middle."""

    level: Tensor  # (c, h, w)

    def __init__(self, plan: LevelPlan) -> None:
        super().__init__()
        self.plan = plan
        self.register_buffer("level", torch.zeros(plan.n_channels, *plan.size))


@dataclass
class Levels(Restorers):
    """Members that restore every image to the same one."""

    frame: Frame
    style: MapStyle
    nets: list[Level] = field(repr=False)

    def restore(self, x: Tensor) -> Tensor:
        """Return each member's reference for each image, (m, n, c, h, w)."""
        return torch.stack([net.level.expand_as(x) for net in self.nets])


class IntensityThreshold(Localiser):
    """How much darker or brighter a pixel is than in healthy images; no network.

    Where lesions are simply dark or bright, as in many a benchmark, this is hard to beat (Meissen
    et al. 2021). A localiser that does not is not worth its training.

    Parameters
    ----------
    side : {"dark", "bright", "both"}
        Which pixels are odd.
    reference : {"pixel", "overall"}
        The median of the healthy images at the same pixel, which supposes that images are aligned,
        or the median of all their pixels, which makes the map a plain threshold on intensity. Give
        masks with the latter, or the background is as odd as can be.
    image_size : int, optional
        Longest side the map is computed at; larger images are reduced to it. As they come by
        default.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    holdout : float
        Share of the training images (or of the patients, with `groups`) that is kept for the
        threshold; 0 places it on the training images themselves.
    false_alarm_rate : float
        Share of the pixels of healthy images that `segment` may flag.
    random_state : int, RandomState or None
        Chooses the images that are held out.

    Attributes
    ----------
    threshold_ : float
        Height of the map above which `segment` flags a pixel.
    image_shape_ : tuple
        Channels, height and width of the training images.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.intensity import IntensityThreshold
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = IntensityThreshold(side="bright", random_state=0).fit(images)
    >>> model.segment(images).shape
    (20, 16, 16)
    """

    members_: Levels

    _parameter_constraints: dict[str, list[Any]] = {
        **{
            name: allowed
            for name, allowed in Localiser._localiser_constraints.items()
            if name not in ("preset", "error")
        },
        "side": [StrOptions({"dark", "bright", "both"})],
        "reference": [StrOptions({"pixel", "overall"})],
    }

    def __init__(
        self,
        side: Side = "both",
        *,
        reference: Reference = "pixel",
        image_size: int | None = None,
        smooth: int = 1,
        holdout: float = 0.1,
        false_alarm_rate: float = 0.01,
        random_state: RandomState = None,
    ) -> None:
        self.side = side
        self.reference = reference
        self.image_size = image_size
        self.smooth = smooth
        self.holdout = holdout
        self.false_alarm_rate = false_alarm_rate
        self.random_state = random_state

    def _size_and_multiple(self) -> tuple[int, int]:
        return AS_THEY_COME, 1

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Level:
        n, c, h, w = images.shape
        net = Level(LevelPlan(c, (h, w)))
        if self.reference == "overall":
            each = weights.repeat_interleave(h * w)
            channels = torch.cat(list(parts(images))).transpose(0, 1).reshape(c, -1)
            overall = [weighted_median(channel[:, None], each) for channel in channels]
            middle = torch.stack(overall)[:, :, None].expand(c, h, w)
        else:
            some = torch.arange(c * h * w).split(max(1, CHUNK // n))
            columns = (torch.cat([p.flatten(1)[:, at] for p in parts(images)]) for at in some)
            middle = torch.cat([weighted_median(values, weights) for values in columns])
        net.level.copy_(middle.reshape(c, h, w))
        return net.eval()

    def _members(self, frame: Frame, trained: list[Level]) -> Levels:
        return Levels(frame, MapStyle(ERRORS[self.side], self.smooth), trained)
