"""The contract of every localiser: it shows where in an image something does not belong."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from aberra.contract.maps import (
    CALIBRATION_IMAGES,
    foreground,
    image_scores,
    masked,
    upper_quantile,
)
from aberra.contract.members import Rows, Scores, tiles
from aberra.contract.scorer import Scorer, all_or_nothing, check_finite, checked_weights
from aberra.data.images import TrainingImages
from aberra.declare import changed, estimator, learnt, parameter
from aberra.errors import DataError, DivergenceError
from aberra.localise.checks import checked_images
from aberra.localise.frame import Frame, FramedImages, frame_for
from aberra.localise.restorers import TILE, Images, MapStyle, Restorers
from aberra.progress import keeping_trainings
from aberra.rng import draw_seeds, entropy_of, single_thread_by_default, stream
from aberra.scikit import Interval

Maps = NDArray[np.float32]  # (n, h, w)


@dataclass(frozen=True)
class PreparedImages:
    """The images as they came, and how the network sees them."""

    raw: NDArray[Any]
    frame: Frame


@estimator
class Localiser(Scorer):
    """Base of the localisers, which score an image pixel by pixel.

    A localiser learns what healthy images look like, restores a new image accordingly, and shows
    the difference. Settings of the map may change after `fit`; the thresholds then have to be
    placed again with `calibrate`.
    """

    draws_rows: ClassVar[bool] = False
    own_start: ClassVar[str] = "equal"

    image_size: int | None = parameter(
        Interval(Integral, 8, None, closed="left"),
        None,
        default=None,
        doc="""Longest side, in pixels, that the network sees; larger images are reduced to it and
        their maps brought back to full size. None takes it from the preset: 64, 128 or 256.""",
    )
    smooth: int | None = parameter(
        Interval(Integral, 1, None, closed="left"),
        None,
        default=None,
        doc="""Side, in pixels, of the square over which the map is averaged; it must be odd, and 1
        averages nothing. None takes it from `style`: 5, or 1 as printed.""",
    )
    holdout: float = parameter(
        Interval(Real, 0, 1, closed="left"),
        default=0.1,
        doc="""Share of the training images (or of the patients, where `groups` are given) that
        does not train and serves to place the thresholds. With 0 they are placed on the training
        images themselves.""",
    )
    false_alarm_rate: float = parameter(
        Interval(Real, 0, 1, closed="neither"),
        default=0.01,
        doc="""Share of the pixels of healthy images that `segment` may flag. Black background does
        not count.""",
    )
    threshold: float | str = changed(
        default="auto",
        doc="""The rule that places `threshold_`, above which a whole image is flagged, on the
        scores of the images that were held out. A number is the share of them to flag.""",
    )

    members_: Restorers = learnt()
    image_shape_: tuple[int, int, int] = learnt(
        "Channels, height and width of the training images."
    )
    contamination_: float = learnt(
        "Share of the images that placed the thresholds whose score exceeds `threshold_`."
    )
    map_threshold_: float = learnt("Height of the map above which `segment` flags a pixel.")
    calibrated_for_: str = learnt()  # the settings of the map for which thresholds were placed

    @property
    def localises(self) -> bool:
        """Whether the model shows where in an image the anomaly is: it does."""
        return True

    @abstractmethod
    def _size_and_multiple(self) -> tuple[int, int]:
        """Return the network's image size, and what its sides must be multiples of."""

    @abstractmethod
    def _map_style(self) -> MapStyle:
        """Return how a difference becomes a map."""

    @abstractmethod
    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Any:
        """Train one member on images as the network sees them."""

    @abstractmethod
    def _members(self, frame: Frame, nets: list[Any]) -> Restorers:
        """Join trained members with the settings that decide how they score."""

    def _threads(self) -> AbstractContextManager[None]:
        """Return the block in which to train and to score; see `single_thread_by_default`."""
        return single_thread_by_default()

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn what healthy images look like, and place the thresholds.

        Parameters
        ----------
        X : array-like of shape (n, channels, height, width)
            Healthy images with one or three channels, of any size. A few bad ones do little harm
            inside `IADC`.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,), optional
            How far each image is to be trusted; None means 1 everywhere.
        groups : array-like of shape (n,), optional
            Patient of each image. Whole patients are held out for the thresholds then.

        Returns
        -------
        self : the fitted localiser
        """
        self._validate_params()
        self._map_style()  # refuses impossible settings before the training, not after it
        data = self._checked(X, reset=True)
        return self._learnt(data, sample_weight, groups, self._train)

    @all_or_nothing
    def adapt(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Go on from what was learnt with healthy images of one's own, and place the thresholds.

        For a model from elsewhere and a few images of another scanner: networks train `train_steps`
        further, and `NearestHealthy` keeps the images besides those that it has.

        Parameters
        ----------
        X, y, sample_weight, groups
            As for `fit`. Images have the shape that the localiser was fitted on, and their
            intensities the same units.

        Returns
        -------
        self : the localiser

        Raises
        ------
        DataError
            If this localiser can only learn from nothing.
        """
        self._validate_params()
        before = self._current()
        return self._learnt(
            self._checked(X, reset=False), sample_weight, groups, partial(self._train_on, before)
        )

    def _learnt(
        self,
        data: Images,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None,
        train: Callable[..., Restorers],
    ) -> Self:
        """Train on some of the images, and place the thresholds on the others."""
        weights = checked_weights(sample_weight, data)
        entropy = entropy_of(self.random_state)
        held = self._held_out(len(data), groups, weights, stream(entropy, 1))
        rows = np.flatnonzero((weights > 0) & ~held)[None]
        which = np.flatnonzero(held if held.any() else weights > 0)
        which = np.sort(stream(entropy, 2).permutation(which)[:CALIBRATION_IMAGES])
        with self._threads(), keeping_trainings():
            seeds = draw_seeds(entropy, 0, n=1)
            prepared = self._prepare(data)
            self.members_ = train(prepared, rows, weights[None], seeds)
            return self._calibrated(data[which], foreground(data[which]), weights[which])

    def calibrate(self, X: ArrayLike, mask: ArrayLike | None = None) -> Self:
        """Place both thresholds on healthy images that were not trained on.

        Parameters
        ----------
        X : array-like of shape (n, channels, height, width)
            Healthy images, held out.
        mask : array-like of shape (n, height, width), optional
            Pixels that count for `map_threshold_`, for instance the brain; by default all that are
            not black background. The score of a whole image never knows a mask, and neither does
            `threshold_`.

        Returns
        -------
        self : the localiser, whose `segment` now flags `false_alarm_rate` of these pixels
        """
        check_is_fitted(self, "members_")
        data = self._checked(X, reset=False)
        counted = foreground(data) if mask is None else mask
        return self._calibrated(data, counted, np.ones(len(data)))

    def anomaly_score(self, X: ArrayLike) -> Scores:
        """Return one score per image, the mean over its oddest pixels; high = anomalous.

        Parameters
        ----------
        X : array-like of shape (n, channels, height, width)
            Images of the shape that the localiser was fitted on.

        Returns
        -------
        scores : ndarray of shape (n,)
            An image's score does not depend on the other images.
        """
        return self.maps_and_scores(X)[1]

    def decision_function(self, X: ArrayLike) -> Scores:
        """Return `threshold_` minus `anomaly_score`: negative where `predict` says -1."""
        self._check_calibrated()
        return super().decision_function(X)

    def maps_and_scores(self, X: ArrayLike) -> tuple[Maps, Scores]:
        """Return `anomaly_map` and `anomaly_score`, for the price of one."""
        maps = self._maps(X, None)
        return maps, image_scores(maps)

    def _maps(self, X: ArrayLike, mask: ArrayLike | None) -> Maps:
        maps = self._answered(Restorers.maps, X)
        check_finite(image_scores(maps), "Look for images of extreme intensities.")
        return masked(maps, mask)

    def _restored(self, X: ArrayLike) -> NDArray[np.float32]:
        return self._answered(Restorers.restored, X)

    def _segmented(self, X: ArrayLike, mask: ArrayLike | None) -> NDArray[np.bool_]:
        self._check_calibrated()
        return self._maps(X, mask) > self.map_threshold_

    # How an ensemble trains and uses localisers: rows of pixels in, members out.

    def _prepare(self, data: Images) -> PreparedImages:
        size, multiple = self._size_and_multiple()
        frame = frame_for(data, self.image_shape_, size, multiple)
        return PreparedImages(data, frame)

    def _train(
        self,
        prepared: PreparedImages,
        rows: Rows,
        weights: NDArray[np.float64],
        seeds: Sequence[int],
    ) -> Restorers:
        trained = []
        for drawn, w, seed in zip(rows, weights, seeds, strict=True):
            own = torch.from_numpy(w[drawn].astype(np.float32))
            images = FramedImages(prepared.raw, prepared.frame, drawn)
            trained.append(self._train_one(images, own, seed))
        return self._members(prepared.frame, trained)

    def _train_on(
        self,
        before: Restorers,
        prepared: PreparedImages,
        rows: Rows,
        weights: NDArray[np.float64],
        seeds: Sequence[int],
    ) -> Restorers:
        """Train the member of a fitted localiser further, on images as it has always seen them."""
        own = torch.from_numpy(weights[0][rows[0]].astype(np.float32))
        images = FramedImages(prepared.raw, before.frame, rows[0])
        net = self._train_further(before.nets[0], images, own, seeds[0])
        return self._members(before.frame, [net]).as_trained(before)

    def _train_further(self, net: Any, images: TrainingImages, weights: Tensor, seed: int) -> Any:
        """Train a member that has been trained before; most localisers cannot."""
        raise DataError(
            f"{type(self).__name__} cannot go on from what was learnt elsewhere. Fit it on your "
            "images alone, or use NearestHealthy, PatchFinder, DDPM, AnoDDPM or ADDM."
        )

    def _held_out(
        self,
        n: int,
        groups: ArrayLike | None,
        weights: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> NDArray[np.bool_]:
        """Mark the images, or all images of the patients, that are kept from training."""
        names = np.arange(n) if groups is None else np.asarray(groups)
        if names.shape != (n,):
            raise DataError(f"`groups` has shape {names.shape}, but there are {n} images.")
        kinds = np.unique(names)
        n_held = min(round(self.holdout * len(kinds)), len(kinds) - 1)
        held = np.isin(names, rng.permutation(kinds)[:n_held])
        if not weights[~held].any():
            raise DataError("All images of positive weight would be held out: set holdout=0.")
        return held

    # Thresholds, and settings that change after the training

    def _calibrated(self, data: Images, mask: ArrayLike, weights: NDArray[np.float64]) -> Self:
        maps = self._answered(Restorers.maps, data)
        if not np.isfinite(maps).all():
            raise DivergenceError(
                f"Training of {type(self).__name__} diverged: some maps are not finite. Lower the "
                "learning rate."
            )
        counts = np.broadcast_to(weights[:, None, None], maps.shape)
        self.map_threshold_ = upper_quantile(maps, masked(counts, mask), self.false_alarm_rate)
        self._place_threshold(image_scores(maps))
        self.calibrated_for_ = self._map_settings()
        return self

    def _current(self) -> Restorers:
        """Return the members with the settings of the map as they are now."""
        check_is_fitted(self, "members_")
        trained = self.members_
        return self._members(trained.frame, trained.nets).as_trained(trained)

    def _map_settings(self) -> str:
        """Return all settings that decide the map, for comparison."""
        held = vars(self._current())
        return repr({name: value for name, value in held.items() if name != "nets"})

    def _check_calibrated(self) -> None:
        if self._map_settings() != self.calibrated_for_:
            raise DataError(
                "The settings of the map have changed since the thresholds were placed. Call "
                "calibrate(healthy_images) first."
            )

    def _answered(self, ask: Callable[[Any, Images], NDArray[Any]], X: ArrayLike) -> NDArray[Any]:
        """Answer tile by tile, every tile of one size; a localiser has one member."""
        members = self._current()
        data = self._checked(X, reset=False)
        with self._threads():
            return np.concatenate([ask(members, full)[0, :n] for full, n in tiles(data, TILE)])

    def _checked(self, X: ArrayLike, reset: bool) -> Images:
        fitted = None if reset else self.image_shape_
        data = checked_images(X, type(self).__name__, fitted)
        if reset:
            self.image_shape_ = (int(data.shape[1]), int(data.shape[2]), int(data.shape[3]))
        return data
