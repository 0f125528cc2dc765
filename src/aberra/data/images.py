"""Training images: many, looked at a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

PART = 256  # images looked at together where all are wanted


class TrainingImages(Protocol):
    """What a training asks of its images: a tensor is one, and so is a view of a file on disk."""

    @property
    def shape(self) -> torch.Size | tuple[int, ...]:
        """(n, channels, height, width)."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Tensor) -> Tensor: ...


def parts(images: TrainingImages, size: int = PART) -> Iterator[Tensor]:
    """Yield all images, a few at a time."""
    for start in range(0, len(images), size):
        yield images[torch.arange(start, min(start + size, len(images)))]
