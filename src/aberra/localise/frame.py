"""How an image becomes what a network sees, and how a map finds its way back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from aberra.declare import Within

Side = Annotated[int, Within(1, 4096)]  # in pixels
GridSide = Annotated[int, Within(1, 512)]


@dataclass(frozen=True)
class Frame:
    """Intensities to [-1, 1], larger images reduced, sides filled up to what the network takes.

    Intensities between `low` and `high` of the training images become [-1, 1]; new images may go
    beyond. Images larger than the network's size are reduced to it by averaging, and maps are
    brought back by linear interpolation. Filling up repeats the border, and cutting it off again
    is exact.
    """

    image_shape: tuple[Side, Side, Side]  # channels, height, width as given
    grid: tuple[GridSide, GridSide]  # height, width after reduction, before filling up
    multiple: Annotated[int, Within(1, 256)]
    low: float
    high: float

    @property
    def padding(self) -> tuple[int, int, int, int]:
        """Pixels added left, right, above, below."""
        (h, w), k = self.grid, self.multiple
        missing_h, missing_w = -h % k, -w % k
        left, above = missing_w // 2, missing_h // 2
        return left, missing_w - left, above, missing_h - above

    def inward(self, images: NDArray[Any]) -> Tensor:
        """Return raw images (n, c, h, w) as the network sees them."""
        x = torch.from_numpy(np.ascontiguousarray(images, dtype=np.float32))
        x = (x.reshape(-1, *self.image_shape) - self.low) * (2 / (self.high - self.low)) - 1
        if self.grid != self.image_shape[1:]:
            x = F.interpolate(x, size=self.grid, mode="area")
        return F.pad(x, self.padding, mode="replicate") if any(self.padding) else x

    def cropped(self, x: Tensor) -> Tensor:
        """Cut off what was filled up."""
        left, _, above, _ = self.padding
        h, w = self.grid
        return x[..., above : above + h, left : left + w]

    def outward(self, x: Tensor) -> Tensor:
        """Return a map or image (n, c, h', w') at the size of the images."""
        x = self.cropped(x)
        if self.grid != self.image_shape[1:]:
            x = F.interpolate(x, size=self.image_shape[1:], mode="bilinear", align_corners=False)
        return x

    def units(self, x: Tensor) -> Tensor:
        """Return intensities in the units of the images."""
        return (x + 1) * ((self.high - self.low) / 2) + self.low


@dataclass(frozen=True)
class FramedImages:
    """Raw images, brought into the frame when they are asked for.

    So a training holds one batch in memory, and the raw images may stay in a file (a memory map).
    """

    raw: NDArray[Any]  # (n, c, h, w), or rows of c * h * w
    frame: Frame
    rows: NDArray[np.int64]  # which of them, in which order

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Images, channels, height and width as the network sees them."""
        (h, w), k = self.frame.grid, self.frame.multiple
        return len(self.rows), self.frame.image_shape[0], h + -h % k, w + -w % k

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self.frame.inward(self.raw[self.rows[rows.numpy()]])


def frame_for(images: NDArray[Any], shape: tuple[int, int, int], size: int, multiple: int) -> Frame:
    """Choose the frame for training images given as rows (n, c * h * w) or (n, c, h, w)."""
    if images.dtype == np.uint8:
        low, high = 0.0, 255.0
    else:
        low, high = float(images.min()), float(images.max())
        high = high if high > low else low + 1.0
    shrink = min(1.0, size / max(shape[1:]))
    grid = (max(1, round(shape[1] * shrink)), max(1, round(shape[2] * shrink)))
    return Frame(shape, grid, multiple, low, high)
