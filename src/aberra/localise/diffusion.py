"""Localisers that restore an image by noising it and walking back: DDPM, AnoDDPM and ADDM."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real

from torch import Tensor

from aberra.data.images import TrainingImages
from aberra.declare import changed, estimator, learnt, parameter
from aberra.diffusion.process import SCHEDULES
from aberra.diffusion.training import DiffusionPlan, train_denoiser
from aberra.localise.diffusion_settings import (
    BEST_DIFFUSION,
    DIFFUSION_PRESETS,
    PRINTED_DIFFUSION,
    All,
    DiffusionPreset,
    DiffusionStyle,
    NoiseName,
)
from aberra.localise.frame import Frame
from aberra.localise.network import NetworkLocaliser, StyleName, filled
from aberra.localise.walk import Denoisers, Sampler, Walk
from aberra.nets.discriminator import DiscriminatorPlan, Norm
from aberra.nets.unet import Denoiser, UNetPlan
from aberra.scikit import Interval, StrOptions

LONGEST_GRADIENT = 1.0


@estimator
class DDPM(NetworkLocaliser):
    """Restores images by a denoising diffusion model; what differs is the anomaly.

    A network learns to remove noise from healthy images (Ho et al. 2020). A new image is noised a
    little and restored. What does not look healthy gets lost on the way, so it shows in the
    difference between the image and its restoration.

    See Also
    --------
    AnoDDPM : The same with simplex noise.
    ADDM : The same, trained against a discriminator.

    References
    ----------
    Ho, Jain and Abbeel (2020), "Denoising diffusion probabilistic models", NeurIPS.

    Pinaya et al. (2022), "Fast unsupervised brain anomaly detection and segmentation with
    diffusion models", MICCAI.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import DDPM
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = DDPM(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    noise: NoiseName | None = parameter(
        StrOptions({"gaussian", "pyramid", "simplex"}),
        None,
        default=None,
        doc="""The noise that is added and removed: white ("gaussian"), or with coarse structure,
        which hides whole lesions and not just pixels. None takes it from `style`: "pyramid", or
        "gaussian" as printed.""",
    )
    schedule: str = parameter(
        StrOptions(set(SCHEDULES)),
        default="linear",
        doc="How fast the noise grows from step to step.",
    )
    n_steps: int = parameter(
        Interval(Integral, 2, None, closed="left"),
        default=1000,
        doc="Number T of steps from an image to pure noise.",
    )
    start: float | None = parameter(
        Interval(Real, 0, 1, closed="right"),
        None,
        default=None,
        doc="""Share of the T steps to which an image is noised before it is restored. None takes it
        from `style`: 0.1, or 0.25 as printed.""",
    )
    sampling_steps: int | All | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        StrOptions({"all"}),
        None,
        default=None,
        doc="""Number of network calls on the way back, in even strides; "all" takes every step.
        None takes it from `style`: 1, or as printed 10 (all of them for the preset "paper").""",
    )
    sampler: Sampler = parameter(
        StrOptions({"ddpm", "ddim"}),
        default="ddpm",
        doc="""The way back: "ddpm" adds fresh noise on every step, "ddim" adds none.""",
    )
    n_draws: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Number of restorations with different noise that are averaged. None takes it from
        `style`: 4, or 1 as printed.""",
    )
    norm_groups: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Groups of channels that the denoiser normalises together. None takes it from `style`:
        8, or 32 as printed, which at 64 pixels is as many as there are channels.""",
    )

    members_: Denoisers = learnt()

    def _preset(self) -> DiffusionPreset:
        return filled(DIFFUSION_PRESETS[self.preset], self)

    def _style(self) -> DiffusionStyle:
        return filled(self._usual_style(self._style_name()), self)

    def _usual_style(self, name: StyleName) -> DiffusionStyle:
        """Return the style before anything is given."""
        if name == "best":
            return BEST_DIFFUSION
        return replace(
            PRINTED_DIFFUSION, sampling_steps=DIFFUSION_PRESETS[self.preset].printed_steps
        )

    def _unet(self) -> UNetPlan:
        preset = self._preset()
        return UNetPlan(
            n_channels=self.image_shape_[0],
            widths=preset.widths,
            res_blocks=preset.res_blocks,
            attention=preset.attention,
            patch=preset.patch,
            groups=self._style().norm_groups,
        )

    def _plan(self, side: int) -> DiffusionPlan:
        preset, style = self._preset(), self._style()
        stride = style.adversarial_stride
        return DiffusionPlan(
            unet=self._unet(),
            discriminator=self._discriminator(preset, side),
            n_steps=self.n_steps,
            schedule=self.schedule,
            noise=style.noise,
            highest=max(preset.highest, style.start),
            tempo=preset.tempo,
            decay=preset.decay,
            decay_every=preset.decay_every,
            ema=preset.ema,
            clip=LONGEST_GRADIENT,
            adversarial_weight=style.adversarial_weight,
            adversarial_stride=self.n_steps if stride == "all" else stride,
        )

    def _discriminator(self, preset: DiffusionPreset, side: int) -> DiscriminatorPlan | None:
        return None

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Denoiser:
        plan = self._plan(min(images.shape[2:]))
        return train_denoiser(images, weights, plan, seed, self._place(), self._keeping())

    def _train_further(
        self, net: Denoiser, images: TrainingImages, weights: Tensor, seed: int
    ) -> Denoiser:
        plan = self._plan(min(images.shape[2:]))
        return train_denoiser(images, weights, plan, seed, self._place(), self._keeping(), net)

    def _members(self, frame: Frame, nets: list[Denoiser]) -> Denoisers:
        style = self._style()
        way = Walk(
            n_steps=self.n_steps,
            schedule=self.schedule,
            noise=style.noise,
            highest=max(self._preset().highest, style.start),
            start=style.start,
            sampling_steps=None if style.sampling_steps == "all" else style.sampling_steps,
            sampler=self.sampler,
            n_draws=style.n_draws,
        )
        return Denoisers(frame=frame, style=self._map_style(), way=way, nets=nets)


@estimator
class AnoDDPM(DDPM):
    """`DDPM` with simplex noise, whose coarse structure hides large lesions (Wyatt et al. 2022).

    See Also
    --------
    DDPM : The same with other noise; the parameters are explained there.

    References
    ----------
    Wyatt, Leach, Schmon and Willcocks (2022), "AnoDDPM: anomaly detection with denoising diffusion
    probabilistic models using simplex noise", CVPR workshops.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import AnoDDPM
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = AnoDDPM(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    noise: NoiseName = changed(
        StrOptions({"gaussian", "pyramid", "simplex"}),
        default="simplex",
        doc="The noise that is added and removed.",
    )


@estimator
class ADDM(DDPM):
    """`DDPM` whose denoised image must also pass a discriminator (Yu et al. 2023).

    A second network, the discriminator, learns to tell denoised images from real ones, and the
    denoiser learns to pass for real besides removing the noise. The paper leaves the discriminator
    open. Here it is MONAI's patch discriminator with its own Adam (learning rate 1e-4, betas 0.5
    and 0.999), one step for each step of the denoiser.

    Deviation: in print the discriminator judges x_{t-1}, one small step of denoising. Nearly all of
    such an image is noise that real and denoised ones share, so the discriminator stays at chance
    and teaches nothing. By default it judges the restored image x_0, and its loss weighs ten times
    as much; `style="printed"` has the paper's objective.

    See Also
    --------
    DDPM : The same without a discriminator.

    References
    ----------
    Yu et al. (2023), "Adversarial denoising diffusion model for unsupervised anomaly detection",
    arXiv:2312.04382.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import ADDM
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = ADDM(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    adversarial_weight: float | None = parameter(
        Interval(Real, 0, None, closed="left"),
        None,
        default=None,
        doc="""Weight lambda of the adversarial loss beside the noise error. None takes it from
        `style`: 0.5, or 0.05 as printed.""",
    )
    adversarial_stride: int | All | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        StrOptions({"all"}),
        None,
        default=None,
        doc="""Length of the reverse step that the discriminator judges; "all" goes to the restored
        image x_0. None takes it from `style`: "all", or 1 as printed.""",
    )
    discriminator_norm: Norm = parameter(
        StrOptions({"spectral", "instance"}),
        default="spectral",
        doc="""How the layers of the discriminator are normalised: by the largest singular value of
        their weights, or each channel of each image by its own mean and deviation.""",
    )
    discriminator_sees_time: bool = parameter(
        "boolean",
        default=False,
        doc="Whether the discriminator is told the step of the image it judges; not so in print.",
    )

    def _usual_style(self, name: StyleName) -> DiffusionStyle:
        style = super()._usual_style(name)
        if name == "best":
            # The discriminator sees the restored image: results/mri.md, "the adversarial term".
            return replace(style, adversarial_weight=0.5, adversarial_stride="all")
        return replace(style, adversarial_weight=0.05, adversarial_stride=1)

    def _discriminator(self, preset: DiffusionPreset, side: int) -> DiscriminatorPlan | None:
        deepest = max(1, int(math.log2(side)) - 2)  # more would leave no pixel to judge
        return DiscriminatorPlan(
            n_channels=self.image_shape_[0],
            width=preset.discriminator_width,
            n_layers=min(preset.discriminator_layers, deepest),
            norm=self.discriminator_norm,
            sees_time=self.discriminator_sees_time,
        )
