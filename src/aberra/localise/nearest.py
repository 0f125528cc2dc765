"""A localiser without a network: an image is rebuilt from the healthy images that resemble it.

Notation (shapes): image and restored (p,), the pixels of all channels; nearest (k, p), the healthy
images that resemble the image; trust (k,).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Annotated, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aberra.data.images import TrainingImages, parts
from aberra.declare import Within, changed, estimator, learnt, parameter
from aberra.errors import DataError
from aberra.localise.base import Localiser
from aberra.localise.frame import Frame
from aberra.localise.harmonise import harmonised
from aberra.localise.intensity import weighted_median
from aberra.localise.restorers import Error, MapStyle, Restorers, smoothed
from aberra.rng import stream
from aberra.scikit import Interval, StrOptions

Keep = Literal["images", "averages"]

USUAL_SIZE = 64
THUMBNAIL = 16  # pixels a side of the small pictures by which images are compared
COMPARED = 0.85  # share of a thumbnail that counts: a lesion must not choose the neighbours
RIDGE = 0.03  # per pixel: how strongly a blend is held to the plain mean
OUTLIER = 0.2  # a difference of this size, of a range of 2, counts half
ROUNDS = 6  # in which pixels that do not fit lose their say
CLOSEST = 5  # one neighbour in so many is close enough to say what varies at a place
LEAST_SPREAD = 0.2  # added to what varies at a place
FEWEST_AVERAGED = 4  # images that make an average: fewer would show a single patient


def thumbnails(x: Tensor) -> Tensor:
    """Return images (n, c, h, w) as rows of a few pixels."""
    side = min(THUMBNAIL, x.shape[2]), min(THUMBNAIL, x.shape[3])
    return F.adaptive_avg_pool2d(x, side).flatten(1)


def nearest_rows(thumbnail: Tensor, others: Tensor, k: int) -> Tensor:
    """Return the k of the thumbnails (n, q) that differ least, their worst pixels left out."""
    gaps = (others - thumbnail).abs()
    left_out = min(round((1 - COMPARED) * gaps.shape[1]), gaps.shape[1] - 1)
    distance = gaps.sum(dim=1) - gaps.topk(left_out, dim=1).values.sum(dim=1)
    return distance.argsort(stable=True)[:k]


def blended(image: Tensor, nearest: Tensor, trust: Tensor) -> Tensor:
    """Return the blend of the nearest healthy images (k, c, h, w) that is closest to an image.

    A blend is their mean plus a combination of their differences from it, found by weighted least
    squares; pixels that fit badly lose weight from round to round, so that a lesion is not blended
    in. The less an image is trusted, the more its share is held down.
    """
    share = trust / trust.sum()
    mean = (share[:, None, None, None] * nearest).sum(dim=0)
    basis, wanted = (nearest - mean).flatten(1), (image - mean).flatten()
    hold = torch.diag(RIDGE * len(wanted) * trust.mean() / trust)
    restored, w = mean, torch.ones_like(wanted)
    for _ in range(ROUNDS):
        weighted = basis * w
        shares = torch.linalg.solve(weighted @ basis.T + hold, weighted @ wanted)
        restored = mean + (shares @ basis).reshape(mean.shape)
        gap = smoothed((image - restored).abs()[None], 3)[0]
        w = 1 / (1 + (gap / OUTLIER).square()).flatten()
    return restored


def spread_of(nearest: Tensor, trust: Tensor) -> Tensor:
    """Return how far the closest of the nearest images lie apart at each pixel, (c, h, w)."""
    n = max(1, len(nearest) // CLOSEST)
    few, share = nearest[:n].flatten(1), trust[:n] / trust[:n].sum()
    gaps = (few - weighted_median(few, share)).abs()
    return (share @ gaps).reshape(nearest.shape[1:])


def averages(images: TrainingImages, weights: Tensor, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return the means of groups of similar images, and how far each group is trusted."""
    from sklearn.cluster import KMeans

    small = torch.cat([thumbnails(part) for part in parts(images)]).double().numpy()
    groups = KMeans(n, n_init=1, max_iter=50, random_state=seed % 2**32)
    label = groups.fit(small, sample_weight=weights.double().numpy()).labels_
    own = [torch.from_numpy(np.flatnonzero(label == k)) for k in range(n)]
    own = [rows for rows in own if len(rows) >= FEWEST_AVERAGED]
    means = [torch.einsum("n,nchw->chw", weights[r], images[r]) / weights[r].sum() for r in own]
    return torch.stack(means), torch.stack([weights[rows].mean() for rows in own])


@dataclass(frozen=True)
class AtlasPlan:
    """Everything that decides the shape of an atlas."""

    n_kept: int
    n_channels: int
    size: tuple[int, int]


class Atlas(nn.Module):
    """The healthy images that were kept."""

    plan: AtlasPlan
    images: Tensor  # (n, c, h, w)
    trust: Tensor  # (n,)

    def __init__(self, plan: AtlasPlan) -> None:
        super().__init__()
        self.plan = plan
        self.register_buffer("images", torch.zeros(plan.n_kept, plan.n_channels, *plan.size))
        self.register_buffer("trust", torch.ones(plan.n_kept))


def atlas_of(images: Tensor, trust: Tensor) -> Atlas:
    """Return an atlas of images (n, c, h, w), each trusted so far (n,)."""
    net = Atlas(AtlasPlan(len(images), images.shape[1], (images.shape[2], images.shape[3])))
    net.images.copy_(images)
    net.trust.copy_(trust)
    return net.eval()


@dataclass(frozen=True)
class Comparison:
    """How an image is compared with the atlas."""

    n_neighbours: Annotated[int, Within(1, 1 << 30)]
    relative: bool
    harmonise: bool


@dataclass
class Atlases(Restorers):
    """Members that rebuild an image from the nearest of the images they kept."""

    comparison: Comparison
    nets: list[Atlas] = field(repr=False)

    def restore(self, x: Tensor) -> Tensor:
        """Return the blends of each member, (m, n, c, h, w)."""
        return torch.stack(
            [torch.stack([y for _, y, _ in self.compared(net, x)]) for net in self.nets]
        )

    def grid_maps(self, x: Tensor) -> Tensor:
        """Return the maps; a difference counts less where healthy images differ, too."""
        return torch.stack([torch.cat(self._maps(net, x)) for net in self.nets])

    def _maps(self, net: Atlas, x: Tensor) -> list[Tensor]:
        if not self.comparison.relative:
            return [self.style(seen[None], y[None]) for seen, y, _ in self.compared(net, x)]
        found = self.compared(net, x)
        return [self.style(seen[None] / unit, y[None] / unit) for seen, y, unit in found]

    def compared(self, net: Atlas, x: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return each image as it is compared, its blend, and the spread that goes with it."""
        small = thumbnails(net.images)
        return [self._one(net, small, image) for image in x]

    def _one(self, net: Atlas, small: Tensor, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        seen, k = image, self.comparison.n_neighbours
        rows = nearest_rows(thumbnails(seen[None]), small, k)
        if self.comparison.harmonise:
            for _ in range(2):  # with intensities set right, other neighbours may be nearer
                close = rows[: max(1, k // CLOSEST)]
                middle = weighted_median(net.images[close].flatten(1), net.trust[close])
                seen = harmonised(image, middle.reshape(image.shape))
                rows = nearest_rows(thumbnails(seen[None]), small, k)
        nearest, trust = net.images[rows], net.trust[rows]
        return seen, blended(seen, nearest, trust), spread_of(nearest, trust) + LEAST_SPREAD


@estimator
class NearestHealthy(Localiser):
    """Compares an image with a blend of the healthy images that resemble it; no network.

    Healthy images are kept as they are. A new image is compared with those that resemble it most,
    and rebuilt as a blend of them: what the blend cannot show is odd. Nothing is trained, so `fit`
    takes seconds. A localiser with a network that does not find more than this is not worth its
    training. Images must be aligned, as the slices of `aberra.data.mri` are, and come from the same
    kind of scanner: in scans of another one, `PatchFinder` and `ADDM` find more.

    By default a saved model holds the images themselves: pass it on only where they could be
    passed on, too, or keep averages (`keep="averages"`).

    See Also
    --------
    IntensityThreshold : Compares with one healthy image, the median of all.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import NearestHealthy
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = NearestHealthy(random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    n_neighbours: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=200,
        kw_only=False,
        doc="Number of healthy images, the most similar ones, that are blended.",
    )
    n_kept: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=2000,
        doc="""Number of healthy images, or of averages of them, that are kept at most. If there are
        more images, some are drawn, in proportion to their weights.""",
    )
    keep: Keep = parameter(
        StrOptions({"images", "averages"}),
        default="images",
        doc="""What is kept: healthy images as they are, or the averages of groups of at least four
        images that resemble each other. 300 averages with `n_neighbours=40` find nearly as much as
        2000 images, make a small file, and show no single patient.""",
    )
    error: Error = parameter(
        StrOptions({"squared", "absolute", "net", "darker", "brighter"}),
        default="net",
        doc="""What the map shows of the difference between an image and the blend: its square, its
        size, or only where the image is darker or brighter. "net" is the size of the mean
        difference over 3 x 3 pixels, in which the two sides of an outline that lies a pixel off
        cancel each other.""",
    )
    relative: bool = parameter(
        "boolean",
        default=True,
        doc="""Whether a difference is divided by how much the nearest healthy images differ from
        each other at the same place.""",
    )
    harmonise: bool = parameter(
        "boolean",
        default=False,
        doc="""Whether intensities are first brought to those of the nearest healthy images, tissue
        by tissue. It helps to find dark lesions in scans of another scanner, and costs some of the
        bright ones.""",
    )
    image_size: int | None = changed(
        default=None,
        doc="""Longest side, in pixels, at which images are kept and compared; larger ones are
        reduced to it. None means 64.""",
    )
    smooth: int = changed(
        Interval(Integral, 1, None, closed="left"),
        default=5,
        doc="""Side, in pixels, of the square over which the map is averaged; it must be an odd
        number, and 1 averages nothing.""",
    )

    members_: Atlases = learnt()

    def _size_and_multiple(self) -> tuple[int, int]:
        return self.image_size or USUAL_SIZE, 1

    def _map_style(self) -> MapStyle:
        return MapStyle(self.error, self.smooth)

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Atlas:
        return atlas_of(*self._kept(images, weights, seed))

    def _train_further(
        self, net: Atlas, images: TrainingImages, weights: Tensor, seed: int
    ) -> Atlas:
        """Keep new images, or averages of them, besides those that are there."""
        kept, trust = self._kept(images, weights, seed)
        return atlas_of(torch.cat([net.images, kept]), torch.cat([net.trust, trust]))

    def _kept(self, images: TrainingImages, weights: Tensor, seed: int) -> tuple[Tensor, Tensor]:
        """Return what is kept of the images, and how far it is trusted."""
        n, rows = len(images), torch.arange(len(images))
        if self.keep == "averages":
            n_groups = min(self.n_kept, n // FEWEST_AVERAGED)
            if n_groups < 1:
                raise DataError(f"Averages need at least {FEWEST_AVERAGED} images, but got {n}.")
            return averages(images, weights, n_groups, seed)
        if n > self.n_kept:
            share = weights.double().numpy()
            drawn = stream(seed, 1).choice(n, self.n_kept, replace=False, p=share / share.sum())
            rows = torch.from_numpy(drawn).sort().values
        return images[rows], weights[rows]

    def _members(self, frame: Frame, nets: list[Atlas]) -> Atlases:
        comparison = Comparison(self.n_neighbours, self.relative, self.harmonise)
        return Atlases(frame=frame, style=self._map_style(), comparison=comparison, nets=nets)
