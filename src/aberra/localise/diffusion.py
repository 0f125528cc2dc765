"""Localisers that restore an image by noising it and walking back: DDPM, AnoDDPM and ADDM."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from aberra.data.images import TrainingImages
from aberra.diffusion.noise import NOISES
from aberra.diffusion.process import SCHEDULES, ddim_step, p_sample, predict_x0, q_sample, walk
from aberra.diffusion.training import DiffusionPlan, train_denoiser
from aberra.localise.base import Error, Localiser, MapStyle, Restorers
from aberra.localise.frame import Frame
from aberra.loop import Keeping, Tempo
from aberra.nets.discriminator import DiscriminatorPlan, Norm
from aberra.nets.place import Precision, find_place
from aberra.nets.unet import Denoiser, UNetPlan
from aberra.rng import RandomState, torch_generator
from aberra.scikit import Interval, StrOptions

Sampler = Literal["ddpm", "ddim"]
SCORING_SEED = 20231204  # the same noise for every image: a score depends on the image alone


@dataclass(frozen=True)
class DiffusionPreset:
    """Network and training settings for one image size."""

    image_size: int
    widths: tuple[int, ...]
    res_blocks: int
    attention: tuple[bool, ...]
    patch: int
    discriminator_width: int
    discriminator_layers: int
    highest: float
    train_steps: int
    batch_size: int
    learning_rate: float
    decay: float
    decay_every: int
    ema: float
    sampling_steps: int | None


PRESETS = {
    "small": DiffusionPreset(
        64, (32, 64, 128), 1, (False, False, True), 2, 32, 3,
        0.5, 1500, 8, 4e-4, 1.0, 1000, 0.995, 10,
    ),
    "medium": DiffusionPreset(
        128, (32, 64, 128, 128), 2, (False, False, False, True), 2, 64, 3,
        0.5, 20_000, 16, 2e-4, 1.0, 1000, 0.999, 10,
    ),
    # AnoDDPM's network. An epoch there is a hundred slices: 25 steps of batch 4, 3000 times.
    "paper": DiffusionPreset(
        256, (128, 128, 256, 256, 512, 512), 2, (False, False, False, True, True, True), 1, 64, 3,
        0.8, 75_000, 4, 1e-4, 0.999, 200 * 25, 0.9999, None,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Walk:
    """How an image is noised and restored."""

    n_steps: int
    schedule: str
    noise: str
    start: float
    sampling_steps: int | None
    sampler: Sampler
    n_draws: int


@dataclass
class Denoisers(Restorers):
    """Members that restore by a walk from x_start back to x_0."""

    frame: Frame
    style: MapStyle
    way: Walk
    nets: list[Denoiser] = field(repr=False)

    @torch.inference_mode()
    def restore(self, x: Tensor) -> Tensor:
        """Return the mean restoration over the draws, (m, n, c, h, w)."""
        device = next(self.nets[0].parameters()).device
        x = x.to(device, memory_format=torch.channels_last)
        total = torch.zeros((self.n_members, *x.shape), device=device)
        for k in range(self.way.n_draws):
            generator = torch_generator(SCORING_SEED + k)
            start = self._noise(x, generator)
            state = generator.get_state()
            for member, net in enumerate(self.nets):
                generator.set_state(state)
                total[member] += self._walk(net, x, start, generator)
        return (total / self.way.n_draws).cpu()

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Raise an error unless the parts fit; one network call is enough to see."""
        quick = replace(self.way, sampling_steps=1, n_draws=1)
        super(Denoisers, replace(self, way=quick)).probe(n_features, image_shape)

    def _walk(self, net: Denoiser, x0: Tensor, eps: Tensor, generator: torch.Generator) -> Tensor:
        """Noise the images to the start step and walk back."""
        way = self.way
        schedule = SCHEDULES[way.schedule](way.n_steps)
        first = max(1, round(way.start * way.n_steps))
        step = torch.full((len(x0),), first, device=x0.device)
        x = q_sample(schedule, x0, step, eps)
        for t, s in walk(first, way.sampling_steps or first):
            at_t, at_s = torch.full_like(step, t), torch.full_like(step, s)
            eps_hat = net(x, at_t / way.n_steps)
            x0_hat = predict_x0(schedule, x, at_t, eps_hat).clamp(-1, 1)
            if s == 0:
                return x0_hat
            if way.sampler == "ddim":
                x = ddim_step(schedule, x, at_t, at_s, x0_hat)
            else:
                x = p_sample(schedule, x, at_t, at_s, x0_hat, self._noise(x, generator))
        raise AssertionError("a walk ends at 0")

    def _noise(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Return one field for all images, so that none depends on its neighbours."""
        shape = (1, x.shape[1], x.shape[2], x.shape[3])
        return NOISES[self.way.noise](shape, generator, x.device)


class DiffusionLocaliser(Localiser):
    """What the diffusion localisers share; they differ in noise and loss alone."""

    n_steps: int
    start: float
    sampling_steps: int | str | None
    sampler: Sampler
    n_draws: int
    schedule: str
    noise: str
    train_steps: int | None
    batch_size: int | None
    learning_rate: float | None
    device: str
    precision: Precision
    checkpoint: str | Path | None
    checkpoint_minutes: float
    members_: Denoisers
    adversarial_weight = 0.0
    adversarial_stride = 1
    stops_early = True

    _parameter_constraints: dict[str, list[Any]] = {
        **Localiser._localiser_constraints,
        "n_steps": [Interval(Integral, 2, None, closed="left")],
        "start": [Interval(Real, 0, 1, closed="right")],
        "sampling_steps": [Interval(Integral, 1, None, closed="left"), StrOptions({"all"}), None],
        "sampler": [StrOptions({"ddpm", "ddim"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "schedule": [StrOptions(set(SCHEDULES))],
        "noise": [StrOptions({"gaussian", "pyramid", "simplex"})],
        "train_steps": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "device": [str],
        "precision": [StrOptions({"auto", "float32", "bfloat16"})],
        "checkpoint": [str, Path, None],
        "checkpoint_minutes": [Interval(Real, 0, None, closed="left")],
    }

    def _unet(self) -> UNetPlan:
        preset = PRESETS[self.preset]
        return UNetPlan(
            self.image_shape_[0], preset.widths, preset.res_blocks, preset.attention, preset.patch
        )

    def _size_and_multiple(self) -> tuple[int, int]:
        return PRESETS[self.preset].image_size, self._unet().multiple

    def _plan(self, side: int) -> DiffusionPlan:
        preset = PRESETS[self.preset]
        return DiffusionPlan(
            unet=self._unet(),
            discriminator=self._discriminator(preset, side),
            n_steps=self.n_steps,
            schedule=self.schedule,
            noise=self.noise,
            highest=max(preset.highest, self.start),
            tempo=Tempo(
                self.train_steps or preset.train_steps,
                self.batch_size or preset.batch_size,
                self.learning_rate or preset.learning_rate,
            ),
            decay=preset.decay,
            decay_every=preset.decay_every,
            ema=preset.ema,
            clip=1.0,
            adversarial_weight=self.adversarial_weight,
            adversarial_stride=self.adversarial_stride,
        )

    def _discriminator(self, preset: DiffusionPreset, side: int) -> DiscriminatorPlan | None:
        return None

    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Denoiser:
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        plan = self._plan(min(images.shape[2:]))
        place = find_place(self.device, self.precision)
        keeping = Keeping(folder, self.checkpoint_minutes)
        return train_denoiser(images, weights, plan, seed, place, keeping)

    def _members(self, frame: Frame, trained: list[Denoiser]) -> Denoisers:
        steps = self.sampling_steps
        if steps is None:
            steps = PRESETS[self.preset].sampling_steps
        way = Walk(
            self.n_steps,
            self.schedule,
            self.noise,
            self.start,
            None if isinstance(steps, str) else steps,
            self.sampler,
            self.n_draws,
        )
        return Denoisers(frame, MapStyle(self.error, self.smooth), way, trained)


class DDPM(DiffusionLocaliser):
    """Restores images by a denoising diffusion model; what differs is the anomaly.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Network and training for 64, 128 or 256 pixels a side; "paper" has the published sizes.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    noise : {"gaussian", "pyramid", "simplex"}
        White noise, or noise with coarse structure, which hides lesions better.
    schedule : {"linear", "cosine"}
        How fast the noise grows.
    n_steps : int
        Steps T of the diffusion.
    start : float
        Share of T to which an image is noised before it is restored.
    sampling_steps : int or "all", optional
        Network calls on the way back, in even strides; "all" takes every step. From the preset by
        default: 10, and all of them for "paper".
    sampler : {"ddpm", "ddim"}
        With fresh noise on every step, or without.
    n_draws : int
        Restorations with different noise that are averaged.
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        From the preset by default.
    holdout : float
        Share of the training images (or of the patients, with `groups`) that is kept for the
        threshold; 0 places it on the training images themselves.
    false_alarm_rate : float
        Share of the pixels of healthy images that `segment` may flag.
    checkpoint : path, optional
        Folder that keeps the state of an unfinished training. The same `fit`, started again, goes
        on from there and gives the same bytes. Needs an integer `random_state`.
    checkpoint_minutes : float
        Minutes between two of them.
    device : str
        "auto" takes CUDA or MPS where there is one, else the CPU.
    precision : {"auto", "float32", "bfloat16"}
        "auto" takes bfloat16 where the hardware computes in it.
    random_state : int, RandomState or None
        Given a seed, global generators are left alone, and bytes repeat on one machine with
        one number of threads.

    Attributes
    ----------
    threshold_ : float
        Height of the map above which `segment` flags a pixel.
    image_shape_ : tuple
        Channels, height and width of the training images.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import DDPM
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = DDPM(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        noise: str = "gaussian",
        schedule: str = "linear",
        n_steps: int = 1000,
        start: float = 0.25,
        sampling_steps: int | str | None = None,
        sampler: Sampler = "ddpm",
        n_draws: int = 1,
        error: Error = "squared",
        smooth: int = 1,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        holdout: float = 0.1,
        false_alarm_rate: float = 0.01,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        device: str = "auto",
        precision: Precision = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.preset = preset
        self.image_size = image_size
        self.noise = noise
        self.schedule = schedule
        self.n_steps = n_steps
        self.start = start
        self.sampling_steps = sampling_steps
        self.sampler = sampler
        self.n_draws = n_draws
        self.error = error
        self.smooth = smooth
        self.train_steps = train_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.holdout = holdout
        self.false_alarm_rate = false_alarm_rate
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.device = device
        self.precision = precision
        self.random_state = random_state


class AnoDDPM(DDPM):
    """`DDPM` with simplex noise (Wyatt et al. 2022), whose coarse structure hides large lesions.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Network and training for 64, 128 or 256 pixels a side; "paper" has the published sizes.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    noise : {"gaussian", "pyramid", "simplex"}
        White noise, or noise with coarse structure, which hides lesions better.
    schedule : {"linear", "cosine"}
        How fast the noise grows.
    n_steps : int
        Steps T of the diffusion.
    start : float
        Share of T to which an image is noised before it is restored.
    sampling_steps : int or "all", optional
        Network calls on the way back, in even strides; "all" takes every step. From the preset by
        default: 10, and all of them for "paper".
    sampler : {"ddpm", "ddim"}
        With fresh noise on every step, or without.
    n_draws : int
        Restorations with different noise that are averaged.
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        From the preset by default.
    holdout : float
        Share of the training images (or of the patients, with `groups`) that is kept for the
        threshold; 0 places it on the training images themselves.
    false_alarm_rate : float
        Share of the pixels of healthy images that `segment` may flag.
    checkpoint : path, optional
        Folder that keeps the state of an unfinished training. The same `fit`, started again, goes
        on from there and gives the same bytes. Needs an integer `random_state`.
    checkpoint_minutes : float
        Minutes between two of them.
    device : str
        "auto" takes CUDA or MPS where there is one, else the CPU.
    precision : {"auto", "float32", "bfloat16"}
        "auto" takes bfloat16 where the hardware computes in it.
    random_state : int, RandomState or None
        Given a seed, global generators are left alone, and bytes repeat on one machine with
        one number of threads.

    Attributes
    ----------
    threshold_ : float
        Height of the map above which `segment` flags a pixel.
    image_shape_ : tuple
        Channels, height and width of the training images.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import AnoDDPM
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = AnoDDPM(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        noise: str = "simplex",
        schedule: str = "linear",
        n_steps: int = 1000,
        start: float = 0.25,
        sampling_steps: int | str | None = None,
        sampler: Sampler = "ddpm",
        n_draws: int = 1,
        error: Error = "squared",
        smooth: int = 1,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        holdout: float = 0.1,
        false_alarm_rate: float = 0.01,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        device: str = "auto",
        precision: Precision = "auto",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            preset,
            image_size=image_size,
            noise=noise,
            schedule=schedule,
            n_steps=n_steps,
            start=start,
            sampling_steps=sampling_steps,
            sampler=sampler,
            n_draws=n_draws,
            error=error,
            smooth=smooth,
            train_steps=train_steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            holdout=holdout,
            false_alarm_rate=false_alarm_rate,
            checkpoint=checkpoint,
            checkpoint_minutes=checkpoint_minutes,
            device=device,
            precision=precision,
            random_state=random_state,
        )


class ADDM(DDPM):
    """`DDPM` whose denoised x_{t-1} must also pass a discriminator (Yu et al. 2023).

    The paper leaves the discriminator open: here it is MONAI's patch discriminator with its own
    Adam (1e-4, betas 0.5 and 0.999), one step for each step of the denoiser.

    Parameters
    ----------
    preset : {"small", "medium", "paper"}
        Network and training for 64, 128 or 256 pixels a side; "paper" has the published sizes.
    image_size : int, optional
        Longest side the network sees; larger images are reduced to it. From the preset by default.
    noise : {"gaussian", "pyramid", "simplex"}
        White noise, or noise with coarse structure, which hides lesions better.
    schedule : {"linear", "cosine"}
        How fast the noise grows.
    n_steps : int
        Steps T of the diffusion.
    start : float
        Share of T to which an image is noised before it is restored.
    sampling_steps : int or "all", optional
        Network calls on the way back, in even strides; "all" takes every step. From the preset by
        default: 10, and all of them for "paper".
    sampler : {"ddpm", "ddim"}
        With fresh noise on every step, or without.
    n_draws : int
        Restorations with different noise that are averaged.
    error : {"squared", "absolute", "darker", "brighter"}
        What the map shows of the difference between image and restoration; "darker" only where the
        image is darker than its restoration.
    smooth : int
        Side of the square, in pixels, over which the map is averaged; odd, 1 for none.
    train_steps, batch_size, learning_rate : optional
        From the preset by default.
    holdout : float
        Share of the training images (or of the patients, with `groups`) that is kept for the
        threshold; 0 places it on the training images themselves.
    false_alarm_rate : float
        Share of the pixels of healthy images that `segment` may flag.
    checkpoint : path, optional
        Folder that keeps the state of an unfinished training. The same `fit`, started again, goes
        on from there and gives the same bytes. Needs an integer `random_state`.
    checkpoint_minutes : float
        Minutes between two of them.
    device : str
        "auto" takes CUDA or MPS where there is one, else the CPU.
    precision : {"auto", "float32", "bfloat16"}
        "auto" takes bfloat16 where the hardware computes in it.
    adversarial_weight : float
        Balance lambda between the noise error and the adversarial loss.
    adversarial_stride : int
        Length of the reverse step that the discriminator judges: 1 as printed.
    discriminator_norm : {"spectral", "instance"}
        Normalisation inside the discriminator.
    discriminator_sees_time : bool
        Tell the discriminator the step of the image it judges. Not so in print.
    random_state : int, RandomState or None
        Given a seed, global generators are left alone, and bytes repeat on one machine with
        one number of threads.

    Attributes
    ----------
    threshold_ : float
        Height of the map above which `segment` flags a pixel.
    image_shape_ : tuple
        Channels, height and width of the training images.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import ADDM
    >>> images = np.random.default_rng(0).random((20, 1, 16, 16))
    >>> model = ADDM(train_steps=2, batch_size=4, random_state=0).fit(images)
    >>> model.anomaly_map(images[:3]).shape
    (3, 16, 16)
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **DDPM._parameter_constraints,
        "adversarial_weight": [Interval(Real, 0, None, closed="left")],
        "adversarial_stride": [Interval(Integral, 1, None, closed="left")],
        "discriminator_norm": [StrOptions({"spectral", "instance"})],
        "discriminator_sees_time": ["boolean"],
    }

    def __init__(
        self,
        preset: str = "small",
        *,
        image_size: int | None = None,
        noise: str = "gaussian",
        schedule: str = "linear",
        n_steps: int = 1000,
        start: float = 0.25,
        sampling_steps: int | str | None = None,
        sampler: Sampler = "ddpm",
        n_draws: int = 1,
        error: Error = "squared",
        smooth: int = 1,
        adversarial_weight: float = 0.05,
        adversarial_stride: int = 1,
        discriminator_norm: Norm = "spectral",
        discriminator_sees_time: bool = False,
        train_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        holdout: float = 0.1,
        false_alarm_rate: float = 0.01,
        checkpoint: str | Path | None = None,
        checkpoint_minutes: float = 5.0,
        device: str = "auto",
        precision: Precision = "auto",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            preset,
            image_size=image_size,
            noise=noise,
            schedule=schedule,
            n_steps=n_steps,
            start=start,
            sampling_steps=sampling_steps,
            sampler=sampler,
            n_draws=n_draws,
            error=error,
            smooth=smooth,
            train_steps=train_steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            holdout=holdout,
            false_alarm_rate=false_alarm_rate,
            checkpoint=checkpoint,
            checkpoint_minutes=checkpoint_minutes,
            device=device,
            precision=precision,
            random_state=random_state,
        )
        self.adversarial_weight = adversarial_weight
        self.adversarial_stride = adversarial_stride
        self.discriminator_norm = discriminator_norm
        self.discriminator_sees_time = discriminator_sees_time

    def _discriminator(self, preset: DiffusionPreset, side: int) -> DiscriminatorPlan | None:
        deepest = max(1, int(math.log2(side)) - 2)  # more would leave no pixel to judge
        return DiscriminatorPlan(
            self.image_shape_[0],
            preset.discriminator_width,
            min(preset.discriminator_layers, deepest),
            self.discriminator_norm,
            self.discriminator_sees_time,
        )
