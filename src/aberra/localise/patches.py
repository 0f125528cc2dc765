"""Healthy images with something foreign in them, and in other contrasts: what a finder learns from.

Notation (shapes): x, y (B, c, h, w) in [-1, 1], healthy and with a patch; cover (B, 1, h, w), how
much of each pixel is foreign; sign (B, 1, 1, 1), 1 for a bright patch and -1 for a dark one.
Lengths are in pixels of an image of 64 x 64 and grow with it.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from aberra.diffusion.noise import clouds
from aberra.localise.restorers import smoothed
from aberra.loop import Batch

AREA = (0.004, 0.22)  # of a patch, as a share of what is not background
ROUGH = 1.2  # of the outline, in radii, at most
STRETCH = 2.0  # long over short axis, squared, at most
EDGE = (0.05, 0.6)  # width of the soft edge, in radii
STRENGTH = (0.3, 1.0)  # share of a patch that covers what is below
SECOND = 0.4  # chance of a second patch
NONE = 0.1  # chance that there is none
BLACK = -0.85  # what is darker is background
PIECES = 4  # of a random curve of contrast
BEND = (0.4, 1.6)  # how steep its pieces are, relative to each other


def span(batch: Batch, low: float, high: float) -> Tensor:
    """Draw uniform numbers (B, 1, 1, 1) between two values."""
    return low + (high - low) * batch.uniform(1, 1, 1)


def cloud(batch: Batch, length: float) -> Tensor:
    """Draw one smooth field of unit variance for each image, (B, 1, h, w)."""
    cell = max(1, round(length * unit(batch.x)))
    return batch.fields(partial(clouds, cell=cell))[:, :1]


def unit(x: Tensor) -> float:
    """Return how many pixels a pixel of an image of 64 x 64 has become."""
    return max(x.shape[2:]) / 64


def blurred(x: Tensor, side: int) -> Tensor:
    """Return the mean over a square of so many pixels of an image of 64 x 64."""
    return smoothed(x, 2 * round((side * unit(x) - 1) / 2) + 1)


def recontrasted(
    x: Tensor, batch: Batch, chance: float, gain: tuple[float, float], shade: float
) -> Tensor:
    """Return some of the images as another scanner might show them.

    Intensities go through a random rising curve, are multiplied by a gain and by shade across the
    image, and are cut off at white.
    """
    level = ((x + 1) / 2).clamp(0, 1)
    rises = BEND[0] + (BEND[1] - BEND[0]) * batch.uniform(PIECES)
    knots = F.pad(rises.cumsum(1) / rises.sum(1, keepdim=True), (1, 0))
    place = level.flatten(1) * PIECES
    piece = place.long().clamp(max=PIECES - 1)
    low, high = knots.gather(1, piece), knots.gather(1, piece + 1)
    curved = (low + (high - low) * (place - piece)).view_as(level)
    shades = 1 + span(batch, 0, shade) * cloud(batch, 32)
    other = (curved * span(batch, *gain) * shades).clamp(0, 1)
    return torch.where(batch.uniform(1, 1, 1) < chance, 2 * other - 1, x)


def body(x: Tensor) -> Tensor:
    """Return what is not black background, (B, 1, h, w); everything, where all is black."""
    seen = blurred((x.amax(dim=1, keepdim=True) > BLACK).float(), 5) > 0.5
    return seen | ~seen.any(dim=3, keepdim=True).any(dim=2, keepdim=True)


def covers(x: Tensor, batch: Batch, sign: Tensor) -> Tensor:
    """Draw the shape of a patch: a blob with a ragged, soft outline, where there is room for it."""
    _, _, h, w = x.shape
    inside = body(x)
    brightness = blurred(x.mean(dim=1, keepdim=True), 7)
    room = inside * (0.3 + 0.35 * (1 - sign * brightness))
    # The largest of log(room) + Gumbel noise is a pixel that was drawn in proportion to room.
    gumbel = -batch.uniform(1, h, w).clamp(min=1e-9).log().neg().clamp(min=1e-9).log()
    centre = (room.clamp(min=1e-9).log() + gumbel).flatten(1).argmax(dim=1)[:, None, None, None]
    down = torch.arange(h, device=x.device)[:, None] - centre // w
    right = torch.arange(w, device=x.device) - centre % w
    angle, stretch = span(batch, 0, math.pi), span(batch, 1, STRETCH)
    along = angle.cos() * down + angle.sin() * right
    across = angle.cos() * right - angle.sin() * down
    share = AREA[0] + (AREA[1] - AREA[0]) * batch.uniform(1) ** 1.5
    n = (share * inside.flatten(1).sum(dim=1, keepdim=True)).clamp(min=4)
    radius = (n / math.pi).sqrt()[:, :, None, None]
    distance = (along.square() / stretch + across.square() * stretch).sqrt() / radius
    height = span(batch, 0, ROUGH) * ragged(batch) - distance
    height = height.masked_fill(~inside, -1e3)
    ranked = height.flatten(1).sort(dim=1, descending=True).values
    last = ranked.gather(1, n.long().clamp(max=h * w - 1))[:, :, None, None]
    return ((height - last) / span(batch, *EDGE) + 0.5).clamp(0, 1) * inside


def ragged(batch: Batch) -> Tensor:
    """Draw a field of unit variance that is coarse in one image and fine in another."""
    octaves = torch.stack([cloud(batch, length) for length in (8, 16, 32)])
    shares = batch.uniform(3, 1, 1, 1).transpose(0, 1)
    return (shares * octaves).sum(dim=0) / shares.square().sum(dim=0).sqrt()


def foreign(x: Tensor, batch: Batch, sign: Tensor) -> Tensor:
    """Draw what is pasted: an even level with texture, changed tissue, or another image."""
    around, bright = blurred(x, 9), sign > 0
    far = span(batch, 0.15, 1)
    level = torch.where(bright, around + far * (1 - around), around - far * (around + 1))
    texture = span(batch, 0, 0.2) * (cloud(batch, 4) + cloud(batch, 2))
    even = level + texture + span(batch, 0, 0.7) * (x - blurred(x, 15))
    some = span(batch, 0.15, 0.9)
    changed = torch.where(bright, x + some * (1 - x), x - some * (x + 1))
    other = (1 + moved(x, batch)) * span(batch, 0.5, 1.3) - 1
    kind = batch.uniform(1, 1, 1)
    return torch.where(kind < 0.5, even, torch.where(kind < 0.75, changed, other)).clamp(-1, 1)


def moved(x: Tensor, batch: Batch) -> Tensor:
    """Return for each image another one of the batch, turned round or not, and shifted."""
    reach = max(1, round(16 * unit(x)))
    down, right = torch.randint(-reach, reach + 1, (2,), generator=batch.generator).tolist()
    others = torch.roll(x.roll(1, dims=0), (down, right), dims=(2, 3))
    return torch.where(batch.uniform(1, 1, 1) < 0.5, others, others.flip(3))


def pasted(x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the images with up to two patches, and how much of each pixel they cover."""
    y, cover = x, torch.zeros_like(x[:, :1])
    for chance in (1 - NONE, SECOND):
        there = batch.uniform(1, 1, 1) < chance
        sign = torch.where(batch.uniform(1, 1, 1) < 0.5, 1.0, -1.0)
        own = covers(x, batch, sign) * span(batch, *STRENGTH) * there
        y = y + own * (foreign(x, batch, sign) - y)
        cover = torch.maximum(cover, own)
    return y, cover
