"""Bring the intensities of an image to those of healthy images that look alike."""

from __future__ import annotations

import torch
from torch import Tensor

N_LEVELS = 8  # landmarks of the curve
FEWEST = 5  # pixels that make a landmark
FOREGROUND = -0.8  # on the scale [-1, 1]; what is darker in healthy images is background
STEP = 1e-4  # by which landmarks rise at least


def harmonised(image: Tensor, healthy: Tensor) -> Tensor:
    """Return an image whose tissues are as bright as the same tissues in a healthy image.

    Pixels are grouped by their brightness in the healthy image, where the same tissue lies at about
    the same place. The median of each group in the image, and in the healthy image, is one point
    of a rising curve, by which all intensities are changed. A lesion covers a small part of each
    group, so it hardly moves the medians and keeps its contrast.

    Parameters
    ----------
    image, healthy : Tensor of one shape
        On the scale [-1, 1]. Where `healthy` is background, the image stays as it is.

    Returns
    -------
    Tensor of the same shape
    """
    inside = healthy > FOREGROUND
    if int(inside.sum()) < N_LEVELS * FEWEST:
        return image
    there, wanted = landmarks(image[inside], healthy[inside])
    changed = image.clone()
    changed[inside] = interpolated(image[inside], there, wanted)
    return changed


def landmarks(values: Tensor, healthy: Tensor) -> tuple[Tensor, Tensor]:
    """Return rising intensities of an image, and those of the healthy image that belong to them."""
    edges = torch.quantile(healthy, torch.linspace(0, 1, N_LEVELS + 1))
    group = torch.bucketize(healthy, edges[1:-1], right=True)
    used = [k for k in range(N_LEVELS) if int((group == k).sum()) >= FEWEST]
    there = torch.stack([values[group == k].median() for k in used])
    wanted = torch.stack([healthy[group == k].median() for k in used])
    rise = STEP * torch.arange(len(used))
    there = (there + rise).cummax(0).values
    # Black stays black and white stays white, whatever lies between.
    low, high = torch.minimum(there[:1] - STEP, -torch.ones(1)), there[-1:].clamp(min=1) + STEP
    return torch.cat([low, there, high]), torch.cat([-torch.ones(1), wanted, torch.ones(1)])


def interpolated(values: Tensor, at: Tensor, heights: Tensor) -> Tensor:
    """Return the curve through the points (at, heights), read off at `values`."""
    right = torch.searchsorted(at, values.contiguous()).clamp(1, len(at) - 1)
    share = (values - at[right - 1]) / (at[right] - at[right - 1]).clamp(min=STEP / 10)
    return heights[right - 1] + share.clamp(0, 1) * (heights[right] - heights[right - 1])
