"""The contract of every localiser: it shows where in an image something does not belong."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn import functional as F

from aberra import thresholds
from aberra.contract.maps import CALIBRATION_IMAGES, image_scores, upper_quantile
from aberra.contract.members import Members, Rows, tiles
from aberra.contract.scorer import Scorer, all_or_nothing, checked_weights
from aberra.data.images import PART, TrainingImages
from aberra.errors import DataError, DivergenceError
from aberra.localise.frame import Frame, FramedImages, frame_for
from aberra.progress import keeping_trainings
from aberra.rng import RandomState, draw_seeds, entropy_of, stream
from aberra.scikit import Interval, StrOptions

Images = NDArray[Any]  # (n, c, h, w), any number type
Maps = NDArray[np.float32]  # (n, h, w)
Error = Literal["squared", "absolute", "darker", "brighter"]

TILE = 16


@dataclass(frozen=True)
class MapStyle:
    """How a difference becomes a map."""

    error: Error = "squared"
    smooth: int = 1

    def __call__(self, x: Tensor, restored: Tensor) -> Tensor:
        """Return the map (n, 1, h, w) of images and their restorations (n, c, h, w)."""
        gap = x - restored
        if self.error == "squared":
            gap = gap.square()
        elif self.error == "absolute":
            gap = gap.abs()
        else:
            gap = (-gap if self.error == "darker" else gap).clamp(min=0)
        return smoothed(gap.mean(dim=1, keepdim=True), self.smooth)


def smoothed(maps: Tensor, side: int) -> Tensor:
    """Return the mean over a square around each pixel; beyond the border nothing counts."""
    if side == 1:
        return maps
    return F.avg_pool2d(maps, side, stride=1, padding=side // 2, count_include_pad=False)


class Restorers(Members):
    """Trained members of a localiser: each restores what it takes for normal.

    `scores` makes them members of an ensemble, so IADC can train any localiser.
    """

    frame: Frame
    style: MapStyle
    nets: list[Any]
    tile_rows = TILE

    @property
    def n_members(self) -> int:  # type: ignore[override]
        """Number of members."""
        return len(self.nets)

    @abstractmethod
    def restore(self, x: Tensor) -> Tensor:
        """Restore images (n, c, h, w) as the network sees them: (m, n, c, h, w) out."""

    def grid_maps(self, x: Tensor) -> Tensor:
        """Return the maps (m, n, 1, h, w) on the network's grid."""
        return torch.stack([self.style(x, restored) for restored in self.restore(x)])

    def maps(self, tile: Images) -> NDArray[np.float32]:
        """Return the maps of raw images, (m, n, h, w)."""
        maps = self.grid_maps(self.frame.inward(tile))
        return np.stack([self.frame.outward(member)[:, 0].cpu().numpy() for member in maps])

    def restored(self, tile: Images) -> NDArray[np.float32]:
        """Return the restored images in their units, (m, n, c, h, w)."""
        images = self.restore(self.frame.inward(tile))
        outward = [self.frame.units(self.frame.outward(member)) for member in images]
        return np.stack([member.cpu().numpy() for member in outward])

    def scores(self, tile: Images) -> NDArray[np.float64]:
        """Return one score per member and image, (m, n)."""
        return image_scores(self.maps(tile))

    def maps_and_scores(self, tile: Images) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return `maps` and `scores`, for the price of one."""
        maps = self.maps(tile)
        return maps, image_scores(maps)

    def probe(self, n_features: int, image_shape: tuple[int, int, int] | None) -> None:
        """Raise an error unless the parts fit each other and images of this shape."""
        if image_shape is None:
            raise ValueError("a localiser was fitted on images, but there is no image shape")
        maps = self.maps(np.zeros((1, *image_shape), np.float32))
        if maps.shape != (self.n_members, 1, *image_shape[1:]):
            raise ValueError(f"an image of shape {image_shape} gives maps of shape {maps.shape}")


@dataclass(frozen=True)
class PreparedImages:
    """The images as they came, and how the network sees them."""

    raw: NDArray[Any]
    frame: Frame


class Localiser(Scorer):
    """Base of the localisers; the keywords are documented in each of them."""

    preset: str
    image_size: int | None
    error: Error
    smooth: int
    holdout: float
    false_alarm_rate: float
    random_state: RandomState
    image_shape_: tuple[int, int, int]
    members_: Restorers
    map_threshold_: float
    calibrated_for_: str

    @property
    def localises(self) -> bool:
        """Whether the model shows where in an image the anomaly is: it does."""
        return True

    _localiser_constraints: dict[str, list[Any]] = {
        "preset": [StrOptions({"small", "medium", "paper"})],
        "image_size": [Interval(Integral, 8, None, closed="left"), None],
        "error": [StrOptions({"squared", "absolute", "darker", "brighter"})],
        "smooth": [Interval(Integral, 1, None, closed="left")],
        "holdout": [Interval(Real, 0, 1, closed="left")],
        "false_alarm_rate": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _size_and_multiple(self) -> tuple[int, int]:
        """Return the network's image size, and what its sides must be multiples of."""

    @abstractmethod
    def _train_one(self, images: TrainingImages, weights: Tensor, seed: int) -> Any:
        """Train one member on images as the network sees them."""

    @abstractmethod
    def _members(self, frame: Frame, trained: list[Any]) -> Restorers:
        """Join trained members with the settings that decide how they score."""

    @all_or_nothing
    def fit(
        self,
        images: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn what healthy images look like.

        Parameters
        ----------
        images : array-like of shape (n, channels, height, width)
            Healthy images with one or three channels, of any size. A few bad ones do little harm
            inside `IADC`.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,), optional
            How far each image is to be trusted.
        groups : array-like of shape (n,), optional
            Patient of each image. Whole patients are held out for the threshold then.

        Returns
        -------
        self : the fitted localiser
        """
        self._validate_params()
        data = self._checked(images, reset=True)
        weights = checked_weights(sample_weight, data)
        entropy = entropy_of(self.random_state)
        held = self._held_out(len(data), groups, weights, stream(entropy, 1))
        prepared = self._prepare(data)
        rows = np.flatnonzero((weights > 0) & ~held)[None]
        seeds = draw_seeds(entropy, 0, n=1)
        which = np.flatnonzero(held if held.any() else weights > 0)
        which = np.sort(stream(entropy, 2).permutation(which)[:CALIBRATION_IMAGES])
        with keeping_trainings():
            self.members_ = self._train(prepared, rows, weights[None], seeds)
            return self._calibrated(data[which], None, weights[which])

    def calibrate(self, images: ArrayLike, mask: ArrayLike | None = None) -> Self:
        """Place both thresholds on healthy images that were not trained on.

        Parameters
        ----------
        images : array-like of shape (n, channels, height, width)
            Healthy images, held out.
        mask : array-like of shape (n, height, width), optional
            Pixels that count, for instance the brain; all by default.

        Returns
        -------
        self : the localiser, whose `segment` now flags `false_alarm_rate` of these pixels
        """
        check_is_fitted(self, "members_")
        data = self._checked(images, reset=False)
        return self._calibrated(data, mask, np.ones(len(data)))

    def reconstruct(self, images: ArrayLike) -> Images:
        """Return each image as the model would have it: (n, channels, height, width)."""
        return self._in_tiles(images, "restored")

    def anomaly_map(self, images: ArrayLike, mask: ArrayLike | None = None) -> Maps:
        """Return how odd each pixel is, (n, height, width); outside `mask` the map is 0."""
        maps = self._in_tiles(images, "maps")
        return maps if mask is None else np.where(self._checked_mask(mask, maps.shape), maps, 0)

    def anomaly_score(self, images: ArrayLike) -> NDArray[np.float64]:
        """Return one score per image, the mean over its oddest pixels; high = anomalous."""
        return image_scores(self.anomaly_map(images))

    def maps_and_scores(self, images: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return `anomaly_map` and `anomaly_score`, for the price of one."""
        maps = self.anomaly_map(images)
        return maps, image_scores(maps)

    def segment(self, images: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Return the pixels above `map_threshold_`, (n, height, width)."""
        check_is_fitted(self, "map_threshold_")
        if self._map_settings() != self.calibrated_for_:
            raise DataError(
                "The settings of the map have changed since the threshold was placed. Call "
                "calibrate(healthy_images) first."
            )
        return self.anomaly_map(images, mask) > self.map_threshold_

    # How an ensemble trains and uses localisers: rows of pixels in, members out.

    def _prepare(self, data: Images) -> PreparedImages:
        size, multiple = self._size_and_multiple()
        frame = frame_for(data, self.image_shape_, self.image_size or size, multiple)
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

    def _calibrated(
        self, data: Images, mask: ArrayLike | None, weights: NDArray[np.float64]
    ) -> Self:
        maps = self._in_tiles(data, "maps")
        if not np.isfinite(maps).all():
            raise DivergenceError(
                f"Training of {type(self).__name__} diverged: some maps are not finite. Lower the "
                "learning rate."
            )
        counts = np.broadcast_to(weights[:, None, None], maps.shape)
        if mask is not None:
            counts = counts * self._checked_mask(mask, maps.shape)
        self.map_threshold_ = upper_quantile(maps, counts, self.false_alarm_rate)
        scores = image_scores(maps)
        self.threshold_, self.threshold_rule_ = thresholds.threshold(scores)
        self.contamination_ = float(np.mean(scores > self.threshold_))
        self.calibrated_for_ = self._map_settings()
        return self

    def _map_settings(self) -> str:
        """Return all settings that decide the map, for comparison."""
        held = vars(self._members(self.members_.frame, []))
        return repr({name: value for name, value in held.items() if name != "nets"})

    def _in_tiles(self, images: ArrayLike, what: str) -> Any:
        """Answer tile by tile, every tile of one size: a localiser has one member."""
        check_is_fitted(self, "members_")
        data = self._checked(images, reset=False)
        self.members_ = self._members(self.members_.frame, self.members_.nets)
        answer = getattr(self.members_, what)
        return np.concatenate([answer(full)[0, :n] for full, n in tiles(data, TILE)])

    def _checked(self, images: ArrayLike, reset: bool) -> Images:
        data = np.asarray(images)
        name = type(self).__name__
        if data.ndim != 4 or data.shape[1] not in (1, 3):
            raise DataError(
                f"{name} takes images of shape (n, channels, height, width) with 1 or 3 channels, "
                f"but got {data.shape}. One grey image (height, width) is image[None, None]."
            )
        if data.dtype.kind not in "fiub" or data.size == 0:
            raise DataError(f"{name} takes numbers, but got {data.dtype} of shape {data.shape}.")
        if data.dtype.kind == "f" and len(bad := not_finite(data)):
            raise DataError(
                f"{len(bad)} of {len(data)} images hold NaN or infinity, the first is image "
                f"{bad[0]}. Replace these pixels or leave the images out."
            )
        shape = tuple(int(side) for side in data.shape[1:])
        if reset:
            self.image_shape_ = (shape[0], shape[1], shape[2])
        elif shape != self.image_shape_:
            raise DataError(
                f"{name} was fitted on images {self.image_shape_} (channels, height, width), but "
                f"got {shape}."
            )
        return data

    def _checked_mask(self, mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        found = np.asarray(mask)
        if found.shape != shape:
            raise DataError(f"The mask has shape {found.shape}, but the maps have {shape}.")
        return found.astype(bool)


def not_finite(images: NDArray[Any]) -> NDArray[np.int64]:
    """Return which images hold NaN or infinity, a few looked at at a time."""
    found = [
        start + np.flatnonzero(~np.isfinite(part).reshape(len(part), -1).all(axis=1))
        for start in range(0, len(images), PART)
        for part in [images[start : start + PART]]
    ]
    return np.concatenate(found)
