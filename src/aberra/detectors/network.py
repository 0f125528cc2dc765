"""What the network detectors share: parameters, choice of network, preparation of data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Members, Rows
from aberra.declare import estimator, learnt, parameter
from aberra.detectors.base import IMAGE_TILE, TABLE_TILE, Detector
from aberra.detectors.objectives import squared_error
from aberra.detectors.scaling import Scaling, min_max, pixels
from aberra.detectors.training import (
    EpochPlan,
    Lessons,
    Prepared,
    train_autoencoder,
)
from aberra.errors import DataError
from aberra.nets.conv_plan import ConvPlan, lenet
from aberra.nets.networks import Frozen, Stack
from aberra.nets.stacked import Double, MLPStack, silently
from aberra.rng import load_torch
from aberra.scikit import Interval
from aberra.twister import Single, Twister

if TYPE_CHECKING:
    from aberra.nets.conv import ConvStack


def default_hidden(n_features: int) -> tuple[int, ...]:
    """Choose encoder widths from the table's width, as the Deep-SAD code does for its six sets.

    The last number is the code; it stays below the number of features, or nothing is compressed.
    """
    if n_features >= 100:
        return (128, 64, 32)
    return (32, 16, min(8 if n_features > 6 else 4, max(1, n_features - 1)))


@estimator
class NetworkDetector(Detector):
    """Base of the detectors that train a network."""

    own_start: ClassVar[str] = "advised"  # a first round may be no better than chance

    hidden: Sequence[int] | None = parameter(
        "array-like",
        None,
        default=None,
        kw_only=False,
        kind="sequence of int or None",
        doc="""Widths of the encoder's layers. The last one is the length of the code, and the
        decoder has the same widths in reverse. None chooses them by the number of columns:
        32-16-4 up to 6 columns, 32-16-8 up to 99, and 128-64-32 from 100 on, with a code that is
        always shorter than a row. Leave it None for images, which go through the convolutional
        networks of Deep SVDD.""",
    )
    batch_size: int = parameter(
        Interval(Integral, 2, None, closed="left"),
        default=128,
        doc="""Number of rows in one training step. From 16 on it is rounded down to a multiple of
        16. The rows that are left over at the end of an epoch are skipped; every epoch shuffles
        the rows anew.""",
    )
    learning_rate: float = parameter(
        Interval(Real, 0, None, closed="neither"),
        default=1e-3,
        doc="Step size of the Adam optimiser.",
    )
    weight_decay: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=1e-6,
        doc="""How strongly the weights of the network are pulled towards zero, as Adam's weight
        decay.""",
    )

    losses_: list[float] = learnt("Mean training loss of each epoch.")

    def _prepare(self, data: Data) -> Prepared:
        scaling = self._scaling(data)
        return Prepared(scaling.copy(data), scaling, self.image_shape_)

    def _scaling(self, data: Data) -> Scaling:
        return min_max(data) if self.image_shape_ is None else pixels(data)

    def _autoencoder(
        self, prepared: Prepared, generators: Sequence[Twister]
    ) -> tuple[Stack, Stack]:
        """Build the members' encoder and decoder for this table or these images."""
        if prepared.image is not None:
            self._check_image(prepared.image)
            return conv_stacks(*lenet(prepared.image), generators)
        widths = [prepared.data.shape[1], *self._hidden(prepared)]
        return MLPStack(widths, generators), MLPStack(widths[::-1], generators)

    def _hidden(self, prepared: Prepared) -> tuple[int, ...]:
        if self.hidden is not None:
            whole = all(isinstance(width, Integral) and width >= 1 for width in self.hidden)
            if not whole or len(self.hidden) == 0:
                raise ValueError(
                    f"`hidden` must hold whole numbers of at least 1, but got {self.hidden}."
                )
            return tuple(int(width) for width in self.hidden)
        return default_hidden(prepared.data.shape[1])

    def _check_image(self, image: tuple[int, int, int]) -> None:
        if self.hidden is not None:
            raise ValueError("`hidden` describes the network for tables; leave it None for images.")
        if min(image[1:]) < 8:
            raise DataError(
                f"Images of {image[1]} x {image[2]} pixels are too small for the network, which "
                "halves them three times. Give at least 8 x 8, or flatten them into a table."
            )

    def _schedule(self, epochs: int, task: str) -> EpochPlan:
        return EpochPlan(epochs, self.batch_size, self.learning_rate, self.weight_decay, task)


def conv_stacks(
    encoder: ConvPlan, decoder: ConvPlan, generators: Sequence[Twister]
) -> tuple[ConvStack, ConvStack]:
    """Build the members' convolutional encoder and decoder, which need torch."""
    load_torch("A network for images")
    from aberra.nets.conv import ConvStack

    return ConvStack(encoder, generators), ConvStack(decoder, generators)


@estimator
class ReconstructionDetector(NetworkDetector):
    """Base of the detectors that train a network in one go, to reconstruct its input."""

    epochs: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=100,
        doc="Number of times that training goes through the data.",
    )


@estimator
class CodeDetector(NetworkDetector):
    """Base of the detectors that train an autoencoder first and then work with its code."""

    pretrain_epochs: int = parameter(
        Interval(Integral, 0, None, closed="left"),
        default=100,
        doc="Number of times that the training of the autoencoder goes through the data.",
    )

    losses_: list[float] = learnt("Mean loss of the autoencoder in each epoch.")

    def _pretrained(
        self,
        prepared: Prepared,
        rows: Rows,
        weights: NDArray[np.float64],
        generators: Sequence[Twister],
        on_sphere: bool = False,
    ) -> tuple[Stack, Stack, list[float]]:
        """Return the members' trained encoder and decoder, and the mean loss of each epoch."""
        encoder, decoder = self._autoencoder(prepared, generators)
        schedule = self._schedule(self.pretrain_epochs, "autoencoder")
        lessons = Lessons(prepared, rows, weights, generators, schedule)
        return encoder, decoder, train_autoencoder(encoder, decoder, lessons, on_sphere)


@dataclass(eq=False)
class NetworkMembers(Members):
    """Trained members that begin with scaling and an encoder."""

    scaling: Scaling
    encoder: Frozen

    def __post_init__(self) -> None:
        self.n_members = self.encoder.n_members
        self.tile_rows = tile_rows(self.scaling)

    def codes(self, tile: Data) -> Double:
        """Return each member's codes (m, k, n) of raw rows."""
        return self.encoder(scaled_columns(tile, self.scaling))

    def why_not_finite(self, model: str) -> str:
        """Say that the training diverged, and what to do about it."""
        return (
            f"{model} returned scores that are not finite, because the training of its network "
            "diverged. Lower the learning rate, or look for columns of extreme scale."
        )

    def why_all_equal(self) -> str:
        """Say that the network collapsed, and what to do about it."""
        return (
            "The network has collapsed to a constant map. Train for fewer epochs, with a lower "
            "learning rate, or with less weight decay."
        )

    def _check_members(self, n: int) -> None:
        """Refuse parts of a model that belong to different numbers of members."""
        if n != self.n_members:
            raise ValueError(f"there are encoders of {self.n_members} members, but parts of {n}")


class Reconstruction(NetworkMembers):
    """Members that reconstruct a row; the squared error is the score."""

    @silently
    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Return (m, n) squared reconstruction errors."""
        x = scaled_columns(tile, self.scaling)
        return squared_error(x, self._reconstruct(x))

    @abstractmethod
    def _reconstruct(self, x: Double) -> Double:
        """Return each member's reconstruction (m, d, n) of shared rows (d, n)."""


def scaled_columns(tile: Data, scaling: Scaling) -> Double:
    """Return raw rows as the (d, n) numbers that frozen stacks take."""
    return np.ascontiguousarray(scaling(tile).T)


def doubled_columns(rows: Single) -> Double:
    """Return rows that are scaled already as frozen stacks take them."""
    return np.ascontiguousarray(rows.T, dtype=np.float64)


def tile_rows(scaling: Scaling) -> int:
    """Return how many rows to score at once: fewer where a row is an image."""
    return IMAGE_TILE if scaling.shift.size == 1 else TABLE_TILE
