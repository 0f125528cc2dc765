"""Contamination made on purpose: clean data made dirty by a known share, for experiments.

Every draw comes from the generator that is passed, nothing passed in is changed, and one seed gives
the same bytes. For one seed the contamination is nested: what is dirty at a low share is dirty, in
the same way, at every higher share, so that experiments differ in the share alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import ndimage

from aberra.errors import DataError

Flags = NDArray[np.bool_]
Image = NDArray[np.float64]

# How lesions look: fitted by eye, and by brightness, texture and sharpness, to T1-weighted scans of
# 22 patients with tumours (Pernet et al., Scientific Data 2016). Those are 0.1 to 1.2 times as
# bright as what surrounds them, half of them 0.4 to 0.7 times. Lengths are in pixels of a 64 x 64
# slice and grow with the image.
STRETCH = (1.0, 1.8)  # long over short axis
ROUGHNESS = (0.2, 1.0)  # of the outline, in radii
EDGE = (0.8, 2.0)  # half the width of the soft edge
DARK = (0.1, 0.75)  # times the tissue around
BRIGHT = (1.15, 1.4)
TEXTURE = (0.1, 0.4)  # standard deviation, times the lesion
ANATOMY = (0.2, 0.8)  # share of the contrast of the tissue below that still shows
RIM_CHANCE = 0.25
RIM = (0.2, 0.6)  # contrast of rim and core, times the tissue around

# What happens to tables, in the words that pictures and tests use.
EVERYDAY = ("slipped comma", "columns exchanged", "row copied", "rows mixed up")


def contaminate(
    normal: ArrayLike, anomalous: ArrayLike, share: float, rng: np.random.Generator
) -> tuple[NDArray[Any], Flags]:
    """Mix anomalies into normal rows or images so that `share` of the result is anomalous.

    Every normal row is kept. Of the anomalous rows, n_normal * share / (1 - share) are drawn
    without replacement, rounded to the nearest whole number (halves up), so that the share is met
    to within half a row. The result is shuffled.

    Parameters
    ----------
    normal, anomalous : array-like of shape (n, ...) and (m, ...)
        Rows or images; all but the first dimension agree.
    share : float in [0, 1)
        Anomalous share of the result.
    rng : numpy.random.Generator

    Returns
    -------
    X : ndarray
    y : ndarray of bool
        True for anomalies.

    Examples
    --------
    >>> X, y = contaminate(np.zeros((8, 2)), np.ones((5, 2)), 0.2, np.random.default_rng(0))
    >>> X.shape, int(y.sum())
    ((10, 2), 2)
    """
    clean, odd = np.asarray(normal), np.asarray(anomalous)
    if clean.shape[1:] != odd.shape[1:]:
        raise DataError(f"normal has shape {clean.shape}, anomalous has shape {odd.shape}.")
    if not 0 <= share < 1:
        raise ValueError(f"share must be at least 0 and below 1, got {share}.")
    n_odd = _nearest(len(clean) * share / (1 - share))
    if n_odd > len(odd):
        raise DataError(
            f"A share of {share:g} beside {len(clean)} normal rows takes {n_odd} anomalous rows, "
            f"but there are {len(odd)}. Lower the share or pass fewer normal rows."
        )
    drawn = rng.permutation(len(odd))[:n_odd]
    order = rng.permutation(len(clean) + n_odd)
    return np.concatenate([clean, odd[drawn]])[order], (np.arange(len(order)) >= len(clean))[order]


def everyday_dirt(
    table: pd.DataFrame, share: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, NDArray[np.object_]]:
    """Damage a share of the rows in four ways that happen to every table.

    In equal parts: one cell is ten times too large (a comma slipped), two columns have exchanged
    their values, the whole row is a copy of one certain other row (an instrument got stuck), or a
    third of the cells comes from another row (a join went wrong).

    Parameters
    ----------
    table : DataFrame of shape (n, d)
        Numbers, at least three columns.
    share : float in [0, 1]
        Share of the rows to damage, rounded to the nearest whole number of them.
    rng : numpy.random.Generator

    Returns
    -------
    damaged : DataFrame
    what : ndarray of str
        What happened to each row; empty where nothing did.

    Examples
    --------
    >>> clean = pd.DataFrame(np.arange(40.0).reshape(10, 4), columns=list("abcd"))
    >>> damaged, what = everyday_dirt(clean, 0.2, np.random.default_rng(0))
    >>> [str(kind) for kind in what if kind]
    ['slipped comma', 'columns exchanged']
    """
    if not 0 <= share <= 1 or table.shape[1] < 3:
        raise ValueError(f"A share lies between 0 and 1, got {share}; three columns are needed.")
    values = table.to_numpy(dtype=np.float64)
    order = rng.permutation(len(table))
    seeds = rng.integers(1 << 32, size=len(table))  # each row its own, so that dirt is nested
    damaged, what = values.copy(), np.full(len(table), "", dtype=object)
    for k, row in enumerate(order[: _nearest(share * len(table))]):
        what[row] = EVERYDAY[k % len(EVERYDAY)]
        own = np.random.default_rng(seeds[row])
        damaged[row] = _damaged(values, row, what[row], int(order[-1]), own)
    return pd.DataFrame(damaged, index=table.index, columns=table.columns), what


def _damaged(
    values: NDArray[np.float64], row: int, kind: str, stuck: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a row as it looks after this damage; `stuck` is the row that copies are made of."""
    d = values.shape[1]
    if kind == "row copied":
        return values[stuck]
    cells = values[row].copy()
    if kind == "slipped comma":
        cells[rng.integers(d)] *= 10
    elif kind == "columns exchanged":
        pair = rng.choice(d, 2, replace=False)
        cells[pair] = cells[pair[::-1]]
    else:
        taken = rng.choice(d, d // 3, replace=False)
        cells[taken] = values[rng.integers(len(values)), taken]
    return cells


def paste_lesions(
    images: ArrayLike,
    brain: ArrayLike,
    share: float,
    rng: np.random.Generator,
    *,
    area: tuple[float, float] = (0.005, 0.08),
    brighter: float = 0.15,
) -> tuple[NDArray[Any], Flags, Flags]:
    """Paste one tumour-like lesion each into a random share of healthy brain slices.

    A lesion is a connected, irregular blob inside the brain, darker than the tissue around it (or
    brighter, with probability `brighter`), textured, at times with a bright rim, and with a soft
    edge. There is no mass effect: beyond the soft edge, which reaches at most 1/32 of the side out
    of the mask (2 of 64 pixels), and outside the brain, no pixel changes. Paste after the
    brightness has been windowed, or the window may cut a lesion off.

    Parameters
    ----------
    images : array-like of shape (n, h, w) or (n, 1, h, w)
        T1-like slices, dark background, of any integer or float type.
    brain : array-like of bool of shape (n, h, w)
        True inside the brain.
    share : float in [0, 1]
        Of the slices; the number of dirty ones is rounded to the nearest (halves up).
    rng : numpy.random.Generator
    area : tuple of float, default (0.005, 0.08)
        Least and greatest area of a lesion as a share of the brain in its slice; drawn evenly
        between them, and at least one pixel. Of a ragged outline only the largest connected part
        is kept, so a few lesions are smaller.
    brighter : float, default 0.15
        Probability that a lesion is brighter than the tissue around it. If the tissue is close to
        the greatest value of its slice, as it is where white matter is cut off, it is darker.

    Returns
    -------
    dirty : ndarray of the shape and type of `images`
        Values stay between the least and the greatest of each slice.
    masks : ndarray of bool of shape (n, h, w)
        True where a lesion covers at least half of a pixel's brightness.
    flags : ndarray of bool of shape (n,)
        True for slices with a lesion.

    Examples
    --------
    >>> healthy = np.random.default_rng(0).normal(100, 5, size=(10, 32, 32))
    >>> brain = np.zeros((10, 32, 32), dtype=bool)
    >>> brain[:, 4:28, 4:28] = True
    >>> dirty, masks, flags = paste_lesions(healthy, brain, 0.3, np.random.default_rng(1))
    >>> int(flags.sum()), bool((masks.any(axis=(1, 2)) == flags).all())
    (3, True)
    """
    dirty, inside = np.array(images, order="C"), np.asarray(brain, dtype=bool)
    slices = _slices(dirty, inside)
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, got {share}.")
    if not 0 < area[0] <= area[1] <= 1:
        raise ValueError(f"area must be two rising shares of the brain, got {area}.")
    masks: Flags = np.zeros(inside.shape, dtype=bool)
    flags: Flags = np.zeros(len(slices), dtype=bool)
    chosen = rng.permutation(len(slices))[: _nearest(len(slices) * share)]
    flags[chosen] = True
    for i in chosen:
        masks[i] = _blob(slices[i], inside[i], area, rng)
        slices[i] = _with_lesion(slices[i], inside[i], masks[i], brighter, rng)
    return dirty, masks, flags


def _blob(
    image: NDArray[Any], inside: Flags, area: tuple[float, float], rng: np.random.Generator
) -> Flags:
    """Return an irregular, connected blob inside the brain."""
    n_pixels = max(1, _nearest(rng.uniform(*area) * inside.sum()))
    radius = np.sqrt(n_pixels / np.pi)
    depth = _depth(inside)
    room = np.argwhere(depth >= min(0.7 * radius, depth.max() / 2))
    # Tumours grow in tissue: the darker half, where the ventricles are, is no place for a centre.
    bright = image[tuple(room.T)]
    tissue = room[bright >= np.median(bright)]
    centre = tissue[rng.integers(len(tissue))]
    distance = _ellipse(inside.shape, centre, rng) / radius
    height = rng.uniform(*ROUGHNESS) * _smooth_noise(inside.shape, radius / 2, rng) - distance
    height[~inside] = -np.inf
    return _largest_part(height >= np.partition(height, -n_pixels, axis=None)[-n_pixels])


def _with_lesion(
    image: NDArray[Any], inside: Flags, mask: Flags, brighter: float, rng: np.random.Generator
) -> NDArray[Any]:
    """Return the slice with a lesion where the mask is."""
    pixel = np.sqrt(image.size) / 64
    depth = _depth(mask)
    # A small lesion has a harder edge, for else it would nowhere show in full.
    edge = min(pixel * rng.uniform(*EDGE), depth.max())
    cover = inside * np.clip(0.5 + depth / (2 * edge), 0, 1)
    low, high = float(image.min()), float(image.max())
    healthy = image.astype(np.float64) - low  # so that black is 0 on every scale
    tissue = np.median(healthy[inside & (depth > -4 * pixel)])
    # Texture and rim have a mean of 0 over the lesion, or they could make up for the factor.
    noise = _smooth_noise(image.shape, 2.5 * pixel, rng) + _smooth_noise(image.shape, pixel, rng)
    texture = tissue * rng.uniform(*TEXTURE) * (noise - noise[mask].mean()) / np.sqrt(2)
    anatomy = rng.uniform(*ANATOMY) * (healthy - tissue)
    has_room = BRIGHT[1] * tissue <= high - low  # else a bright lesion would be cut off unseen
    factor = rng.uniform(*(BRIGHT if rng.random() < brighter and has_room else DARK))
    rim = np.exp(-0.5 * np.square((depth - pixel) / pixel))
    lift = tissue * rng.uniform(*RIM) * (rng.random() < RIM_CHANCE)
    lesion = factor * (tissue + texture + anatomy) + lift * (rim - rim[mask].mean())
    blend = np.clip(low + (1 - cover) * healthy + cover * lesion, low, high)
    whole = np.rint(blend) if image.dtype.kind in "iu" else blend
    return np.where(cover > 0, whole.astype(image.dtype), image)


def _ellipse(shape: tuple[int, ...], centre: NDArray[np.intp], rng: np.random.Generator) -> Image:
    """Return each pixel's distance from the centre, stretched along a random direction."""
    rows, columns = np.indices(shape) - centre[:, None, None]
    angle, stretch = rng.uniform(0, np.pi), rng.uniform(*STRETCH)
    along = np.cos(angle) * rows + np.sin(angle) * columns
    across = np.cos(angle) * columns - np.sin(angle) * rows
    return np.sqrt(along**2 / stretch + across**2 * stretch)


def _smooth_noise(shape: tuple[int, ...], sigma: float, rng: np.random.Generator) -> Image:
    """Return a random field of unit variance, smooth over `sigma` pixels."""
    field = ndimage.gaussian_filter(rng.standard_normal(shape), sigma)
    return np.asarray(field / field.std())


def _depth(mask: Flags) -> Image:
    """Return how far, in pixels, a pixel's centre is inside the outline; negative outside."""
    framed = np.pad(mask, 1)  # the border of the image is an outline too
    inner = ndimage.distance_transform_edt(framed) - 0.5
    outer = ndimage.distance_transform_edt(~framed) - 0.5
    return np.where(framed, inner, -outer)[1:-1, 1:-1]


def _largest_part(mask: Flags) -> Flags:
    labels, _ = ndimage.label(mask)
    return np.asarray(labels == np.bincount(labels[mask]).argmax())


def _nearest(number: float) -> int:
    return int(np.floor(number + 0.5))


def _slices(images: NDArray[Any], inside: Flags) -> NDArray[Any]:
    """Return a view of the images without the channel, or say what does not fit."""
    n, h, w = inside.shape if inside.ndim == 3 else (0, 0, 0)
    if n == 0 or images.shape not in ((n, h, w), (n, 1, h, w)):
        raise DataError(
            f"images has shape {images.shape}, brain has shape {inside.shape}; they must be "
            "(n, h, w) or (n, 1, h, w), and (n, h, w)."
        )
    empty = np.flatnonzero(~inside.any(axis=(1, 2)))
    if len(empty):
        raise DataError(
            f"The brain mask is empty in {len(empty)} slices, first {empty[:5].tolist()}: there "
            "is no place for a lesion. Drop these slices."
        )
    return images.reshape(n, h, w)
