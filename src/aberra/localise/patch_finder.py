"""A localiser that has seen foreign things in healthy images, and looks for them in new ones.

Notation as in `aberra.localise.patches`; besides, added (B, c, h, w) is what a patch has added to
an image, logit (B, 1, h, w) that of a pixel being foreign, and w (B,) are sample weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Adam

from aberra.data.images import TrainingImages
from aberra.declare import changed, estimator, learnt, parameter
from aberra.diffusion.losses import per_image
from aberra.localise.diffusion_settings import DIFFUSION_PRESETS, DiffusionPreset
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser, Style, StyleName, filled
from aberra.localise.patches import blurred, pasted, recontrasted
from aberra.localise.restorers import Rebuilders
from aberra.loop import Batch, Keeping, Losses, Run, Tempo, train
from aberra.nets.checkpoint import training_mark
from aberra.nets.place import Place
from aberra.nets.unet import Finder, UNetPlan, finder
from aberra.rng import draw_seeds
from aberra.scikit import Interval, StrOptions

PLAIN = 0.2  # a change of this size, of a range of 2, is certainly foreign
GROUPS = 8
LEAST_STEPS = 5000  # with 1000, bright lesions are hardly found: results/brain_pieces.md
LONGEST_GRADIENT = 1.0
GAIN, SHADE = (0.85, 1.1), 0.15  # of another scanner
BEST = Style(error="absolute", smooth=3)  # chosen on pasted lesions: results/brain_pieces.md


def foreignness(x: Tensor, y: Tensor, cover: Tensor) -> Tensor:
    """Return how foreign each pixel is, from 0 to 1: covered, and visibly changed around it."""
    change = blurred((y - x).abs().mean(dim=1, keepdim=True), 5)
    return (change / PLAIN).clamp(max=1) * (cover > 0)


def finder_loss(
    x: Tensor, y: Tensor, cover: Tensor, added: Tensor, logit: Tensor, w: Tensor
) -> Tensor:
    """Cross-entropy of being foreign, plus the error of the restored image.

    The error counts half on what is covered and half on everything, for else it would be least
    where nothing is ever changed.
    """
    target = foreignness(x, y, cover)
    crossed = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
    gap, inside = (y - added - x).abs(), (cover > 0).float()
    covered = (gap * inside).mean(dim=(1, 2, 3)) / inside.mean(dim=(1, 2, 3)).clamp(min=1e-3)
    return (w * (per_image(crossed) + 0.5 * covered + 0.5 * per_image(gap))).mean()


@dataclass(frozen=True)
class FinderPlan:
    """Everything that decides what is learnt, besides the images and the seed."""

    unet: UNetPlan
    tempo: Tempo
    ema: float
    contrast: float


class FinderRun(Run):
    """Learns to find what was pasted into images."""

    clip = LONGEST_GRADIENT

    def __init__(self, plan: FinderPlan, seed: int, place: Place) -> None:
        self.plan, self.place = plan, place
        own = draw_seeds(seed, 2, n=1)[0]
        self.net = finder(plan.unet, own).to(place.device)
        self.average = finder(plan.unet, own).to(place.device).requires_grad_(False)
        self.nets: dict[str, nn.Module] = {"net": self.net, "average": self.average}
        self.optimisers = {"net": Adam(self.net.parameters(), plan.tempo.learning_rate)}

    def step(self, step: int, batch: Batch) -> Losses:
        """Paste something into the images, and update the network; return its loss."""
        x = recontrasted(batch.x, batch, self.plan.contrast, GAIN, SHADE)
        y, cover = pasted(x, batch)
        with self.place.autocast():
            added, logit = self.net.found(y.contiguous(memory_format=torch.channels_last))
        loss = finder_loss(x, y, cover, added.float(), logit.float(), batch.w)
        self.update("net", loss)
        return {"loss": loss}

    def shown(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return images with something pasted into them, and what is left when it is taken out."""
        y, _ = pasted(batch.x, batch)
        added, _ = self.average.found(y.contiguous(memory_format=torch.channels_last))
        return y, (y - added).clamp(-1, 1)

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move the running average a little towards the network, at first a little faster."""
        keep = min(self.plan.ema, (1 + step) / (10 + step))
        own, new = tuple(self.average.parameters()), tuple(self.net.parameters())
        torch._foreach_lerp_(own, new, 1 - keep)


def train_finder(
    images: TrainingImages,
    weights: Tensor,
    plan: FinderPlan,
    seed: int,
    place: Place,
    keeping: Keeping | None = None,
    start: Finder | None = None,
) -> Finder:
    """Train a finder on images (n, c, h, w) in [-1, 1]; return its running average.

    The arguments are those of `aberra.loop.train`; `start` is a trained finder to begin with.
    """
    run, settings = FinderRun(plan, seed, place), (plan, "")
    if start is not None:
        for own in (run.net, run.average):
            own.load_state_dict(start.state_dict())
        settings = (plan, training_mark("start", start.state_dict().values()))
    train(run, settings, plan.tempo, images, weights, seed, keeping)
    return run.average.eval()


@dataclass
class Finders(Rebuilders):
    """Members that take out of an image what is foreign."""

    nets: list[Finder] = field(repr=False)


@estimator
class PatchFinder(NetworkLocaliser):
    """Learns to find foreign patches in healthy images, and finds what is foreign in others.

    Patches of random shape are pasted into healthy images: parts of other images, changed tissue,
    even levels with texture, faint and strong, dark and bright. A network learns where they are and
    what they have added, and takes it out of a new image in one step; what it takes out is odd. The
    idea is that of foreign patch interpolation and of DISYRE; shapes, patches and network are our
    own. Training images also change their contrast at random, so that another scanner matters less.

    See Also
    --------
    ADDM : Removes noise instead of patches.
    NearestHealthy : Compares with healthy images, without a network.

    References
    ----------
    Tan, Hou, Batten, Qiu and Kainz (2020), "Detecting outliers with foreign patch interpolation",
    arXiv:2011.04197.

    Naval Marimont, Baugh, Siomos, Tzelepis, Kainz and Tarroni (2024), "DISYRE:
    diffusion-inspired synthetic restoration for unsupervised anomaly detection", ISBI.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import PatchFinder
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = PatchFinder(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    contrast: float = parameter(
        Interval(Real, 0, 1, closed="both"),
        default=0.5,
        doc="""Share of the training images whose contrast, brightness and shade are changed at
        random. More of it helps with other scanners, and costs bright lesions.""",
    )
    style: StyleName | None = changed(
        StrOptions({"best"}), None, default=None, doc="There is one style, which None stands for."
    )
    train_steps: int | None = changed(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="Number of training steps. None takes it from the preset, but at least 5000.",
    )
    smooth: int | None = changed(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Side, in pixels, of the square over which the map is averaged; it must be odd, and 1
        averages nothing. None means 3.""",
    )

    members_: Finders = learnt()

    def _preset(self) -> DiffusionPreset:
        preset = DIFFUSION_PRESETS[self.preset]
        longer = max(preset.train_steps, LEAST_STEPS)
        return filled(replace(preset, train_steps=longer), self)

    def _style(self) -> Style:
        return filled(BEST, self)

    def _plan(self) -> FinderPlan:
        preset = self._preset()
        unet = UNetPlan(
            n_channels=self.image_shape_[0],
            widths=preset.widths,
            res_blocks=preset.res_blocks,
            attention=preset.attention,
            patch=preset.patch,
            groups=GROUPS,
        )
        return FinderPlan(unet, preset.tempo, preset.ema, self.contrast)

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Finder:
        return train_finder(images, weights, self._plan(), seed, self._place(), self._keeping())

    def _train_further(
        self, net: Finder, images: TrainingImages, weights: Tensor, seed: int
    ) -> Finder:
        place, keeping = self._place(), self._keeping()
        return train_finder(images, weights, self._plan(), seed, place, keeping, net)

    def _members(self, frame: Frame, nets: list[Finder]) -> Finders:
        return Finders(frame=frame, style=self._map_style(), nets=nets)
