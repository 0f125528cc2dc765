"""The floor that every localiser should beat: darker or brighter than healthy images are."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Literal

import torch
from torch import Tensor, nn

from aberra.data.images import TrainingImages, parts
from aberra.declare import changed, estimator, learnt, parameter
from aberra.localise.base import Localiser
from aberra.localise.frame import Frame
from aberra.localise.restorers import Error, MapStyle, Restorers
from aberra.scikit import Interval, StrOptions

Side = Literal["dark", "bright", "both"]
Reference = Literal["pixel", "overall"]
SIDE_ERRORS: dict[Side, Error] = {"dark": "darker", "bright": "brighter", "both": "absolute"}
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

    plan: LevelPlan
    level: Tensor  # (c, h, w)

    def __init__(self, plan: LevelPlan) -> None:
        super().__init__()
        self.plan = plan
        self.register_buffer("level", torch.zeros(plan.n_channels, *plan.size))


@dataclass
class Levels(Restorers):
    """Members that restore every image to the same one."""

    nets: list[Level] = field(repr=False)

    def restore(self, x: Tensor) -> Tensor:
        """Return each member's reference for each image, (m, n, c, h, w)."""
        return torch.stack([net.level.expand_as(x) for net in self.nets])


@estimator
class IntensityThreshold(Localiser):
    """How much darker or brighter a pixel is than in healthy images; no network.

    Where lesions are simply dark or bright, as in many a benchmark, this is hard to beat (Meissen
    et al. 2021). A localiser that does not is not worth its training.

    References
    ----------
    Meissen, Kaissis and Rueckert (2021), "Challenging current semi-supervised anomaly segmentation
    methods for brain MRI", MICCAI BrainLes workshop.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra.localise.intensity import IntensityThreshold
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = IntensityThreshold(side="bright", random_state=0).fit(images)
    >>> model.segment(images).shape
    (20, 16, 16)
    """

    side: Side = parameter(
        StrOptions({"dark", "bright", "both"}),
        default="both",
        kw_only=False,
        doc="Which pixels are odd: those that are too dark, too bright, or both.",
    )
    reference: Reference = parameter(
        StrOptions({"pixel", "overall"}),
        default="pixel",
        doc="""What a pixel is compared with: the median of the healthy images at the same pixel,
        which supposes that images are aligned, or the median of all their pixels, which makes the
        map a plain threshold on intensity. Give masks with the latter, or the background is as odd
        as can be.""",
    )
    image_size: int | None = changed(
        default=None,
        doc="""Longest side, in pixels, at which the map is computed; larger images are reduced to
        it. None takes the images as they come.""",
    )
    smooth: int = changed(
        Interval(Integral, 1, None, closed="left"),
        default=5,
        doc="""Side, in pixels, of the square over which the map is averaged; it must be odd, and 1
        averages nothing.""",
    )

    members_: Levels = learnt()

    def _size_and_multiple(self) -> tuple[int, int]:
        return self.image_size or AS_THEY_COME, 1

    def _map_style(self) -> MapStyle:
        return MapStyle(SIDE_ERRORS[self.side], self.smooth)

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

    def _members(self, frame: Frame, nets: list[Level]) -> Levels:
        return Levels(frame, self._map_style(), nets)
