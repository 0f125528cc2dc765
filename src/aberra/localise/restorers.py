"""What a trained localiser consists of: members that restore images, and how a map comes of it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from aberra.contract.maps import image_scores
from aberra.contract.members import Members
from aberra.declare import Within
from aberra.localise.frame import Frame

Images = NDArray[Any]  # (n, c, h, w), any number type
Error = Literal["squared", "absolute", "net", "darker", "brighter"]

NET = 3  # pixels a side over which the two sides of a shifted outline cancel

WIDE = 64  # pixels a side from which on a square is taken as its rows, then its columns

TILE = 16  # images that are restored together


@dataclass(frozen=True)
class MapStyle:
    """How the difference between an image and its restoration becomes a map."""

    error: Error = "squared"
    smooth: Annotated[int, Within(1, 1 << 14)] = 1

    def __post_init__(self) -> None:
        if self.smooth % 2 == 0:
            raise ValueError(
                f"`smooth` is the side of a square with a pixel in its middle, so it must be odd, "
                f"but got {self.smooth}."
            )

    def __call__(self, x: Tensor, restored: Tensor) -> Tensor:
        """Return the map (n, 1, h, w) of images and their restorations (n, c, h, w)."""
        gap = x - restored
        if self.error == "net":
            gap = smoothed(gap, NET).abs()
        elif self.error == "squared":
            gap = gap.square()
        elif self.error == "absolute":
            gap = gap.abs()
        else:
            gap = (-gap if self.error == "darker" else gap).clamp(min=0)
        return smoothed(gap.mean(dim=1, keepdim=True), self.smooth)


def smoothed(maps: Tensor, side: int) -> Tensor:
    """Return the mean over a square around each pixel; beyond the border nothing counts.

    The time of a small square grows with its pixels. A wide one is cut off where it holds the whole
    map, and is the mean of the means of its rows, so that its time grows with its side only.
    """
    if side == 1:
        return maps
    if side < WIDE:
        return F.avg_pool2d(maps, side, stride=1, padding=side // 2, count_include_pad=False)
    tall, broad = (min(side, 2 * length - 1) for length in maps.shape[2:])
    for square in ((tall, 1), (1, broad)):
        pad = (square[0] // 2, square[1] // 2)
        maps = F.avg_pool2d(maps, square, stride=1, padding=pad, count_include_pad=False)
    return maps


@dataclass
class Restorers(Members):
    """Trained members of a localiser: each restores what it takes for normal.

    `scores` makes them members of an ensemble, so IADC can train any localiser.
    """

    frame: Frame
    style: MapStyle
    nets: list[Any] = field(repr=False)

    tile_rows = TILE

    @property
    def n_members(self) -> int:  # type: ignore[override]
        """Number of members."""
        return len(self.nets)

    @property
    def n_calls(self) -> int:
        """How often a network is asked about a tile of images."""
        return 1

    @abstractmethod
    def restore(self, x: Tensor) -> Tensor:
        """Restore images (n, c, h, w) as the network sees them: (m, n, c, h, w) out."""

    def as_trained(self, trained: Self) -> Self:
        """Return these settings for members that were trained as `trained`.

        Settings that the training has fixed raise a `DataError` if they are not the same any more.
        """
        return self

    def grid_maps(self, x: Tensor) -> Tensor:
        """Return the maps (m, n, 1, h, w) on the network's grid."""
        return torch.stack([self.style(x, restored) for restored in self.restore(x)])

    def maps(self, tile: Images) -> NDArray[np.float32]:
        """Return the maps of raw images, (m, n, h, w)."""
        maps = self.grid_maps(self.frame.inward(tile))
        return np.stack([self.frame.outward(member)[:, 0].cpu().numpy() for member in maps])

    def restored(self, tile: Images) -> NDArray[np.float32]:
        """Return the restored images in their units, (m, n, c, h, w)."""
        images = self.restore(self.frame.inward(tile))
        outward = [self.frame.units(self.frame.outward(member)) for member in images]
        return np.stack([member.cpu().numpy() for member in outward])

    def scores(self, tile: Images) -> NDArray[np.float64]:
        """Return one score per member and image, (m, n)."""
        return image_scores(self.maps(tile))

    def maps_and_scores(self, tile: Images) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return `maps` and `scores`, for the price of one."""
        maps = self.maps(tile)
        return maps, image_scores(maps)

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Raise an error unless the parts fit each other and images of this shape."""
        if image_shape is None:
            raise ValueError("a localiser was fitted on images, but there is no image shape")
        maps = self.maps(np.zeros((1, *image_shape), np.float32))
        if maps.shape != (self.n_members, 1, *image_shape[1:]):
            raise ValueError(f"an image of shape {image_shape} gives maps of shape {maps.shape}")
        if not np.isfinite(maps).all():
            raise ValueError("an empty image gives a map that is not finite")


@dataclass
class Rebuilders(Restorers):
    """Members that restore an image by one call of their network."""

    @torch.inference_mode()
    def restore(self, x: Tensor) -> Tensor:
        """Return what each member makes of the images, (m, n, c, h, w)."""
        device = next(self.nets[0].parameters()).device
        x = x.to(device, memory_format=torch.channels_last)
        return torch.stack([net(x).contiguous() for net in self.nets]).cpu()
