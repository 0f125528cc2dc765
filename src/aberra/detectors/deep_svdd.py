"""Deep SVDD: a network that maps normal rows close to one point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aberra.contract.members import Data, Members, Rows, row_counts
from aberra.data.tables import Encode, Missing
from aberra.detectors.base import TABLE_TILE
from aberra.detectors.network import NetworkDetector, tile_rows, tile_to_tensor
from aberra.detectors.scaling import Scaling
from aberra.detectors.training import (
    Lessons,
    Prepared,
    as_tensors,
    train_autoencoder,
    train_convolutions,
    train_perceptrons,
)
from aberra.nets.conv import ConvStack
from aberra.nets.perceptron import to_centre
from aberra.nets.stacked import Frozen, MLPStack, Stack
from aberra.rng import RandomState, torch_generator

CENTRE_MARGIN = 0.1


def distance(z: Tensor, c: Tensor) -> Tensor:
    """Squared distance of each mapped sample to its member's centre [IADC-6s]."""
    return (z - c).square().sum(dim=1)


def dsvdd_iadc(z: Tensor, c: Tensor, w: Tensor) -> Tensor:
    """Weighted mean squared distance to the centre, summed over members [IADC-6].

    With w = 1 this is plain Deep SVDD, IADC-5.
    """
    return (w * distance(z, c)).mean(dim=-1).sum()


class DeepSVDD(NetworkDetector):
    """Deep SVDD: the squared distance to the centre of a learnt hypersphere is the score.

    The encoder is first trained as part of an autoencoder, without the weights (the paper says so
    for this detector alone). The centre is the mean code of a member's own rows; coordinates
    closer than 0.1 to zero are moved there, because a centre at zero is reached by zero weights.

    Parameters
    ----------
    hidden : sequence of int, optional
        Encoder widths; chosen from the table's width by default, as in `AutoEncoder`.
    epochs : int
        Passes of the one-class training.
    pretrain_epochs : int
        Passes of the autoencoder before it.
    batch_size : int
        Rows a step, cut to a multiple of 16; the odd rest of an epoch is dropped.
    learning_rate, weight_decay : float
        Of Adam, in both parts.
    device : {"cpu"}
        Where to train.
    random_state : int, RandomState or None
        Seeds initial weights and shuffling; the global generators are left alone.
    threshold, missing, encode
        As in `IADC`.

    Attributes
    ----------
    threshold_, contamination_ : float
        Label-free threshold on the score, and the share of training rows above it.
    threshold_rule_ : str
        Name of the rule that placed the threshold.
    losses_ : list of float
        Mean one-class loss of each epoch.
    n_features_in_ : int
        Number of columns (pixels times channels for images).

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import DeepSVDD
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> DeepSVDD(epochs=5, pretrain_epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    losses_: list[float]

    def __init__(
        self,
        hidden: Sequence[int] | None = None,
        *,
        epochs: int = 50,
        pretrain_epochs: int = 100,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-6,
        device: str = "cpu",
        threshold: float | str = "auto",
        missing: Missing = "error",
        encode: Encode = "error",
        random_state: RandomState = None,
    ) -> None:
        self.hidden = hidden
        self.epochs = epochs
        self.pretrain_epochs = pretrain_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.device = device
        self.threshold = threshold
        self.missing = missing
        self.encode = encode
        self.random_state = random_state

    def _train(
        self, prepared: Prepared, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> Members:
        generators = [torch_generator(seed) for seed in seeds]
        encoder, decoder = self._autoencoder(prepared, generators)
        drawn, w = as_tensors(rows, weights)
        pretraining = self._schedule(self.pretrain_epochs, "pre-training")
        unweighted = Lessons(prepared, drawn, torch.ones_like(w), generators, pretraining)
        train_autoencoder(encoder, decoder, unweighted)
        centre = centres(encoder, prepared.data, rows)  # (m, k, 1)
        schedule = self._schedule(self.epochs, "Deep SVDD")
        lessons = Lessons(prepared, drawn, w, generators, schedule)
        self.losses_ = train_to_centre(encoder, centre, lessons)
        return Spheres(prepared.scaling, encoder.freeze(), centre.double())


def train_to_centre(encoder: Stack, centre: Tensor, lessons: Lessons) -> list[float]:
    """Train the encoder on the weighted distance to each member's centre (m, k, 1)."""
    if isinstance(encoder, MLPStack):
        aims = [to_centre(c[:, 0].numpy()) for c in centre]
        return train_perceptrons(encoder.chain(), aims, lessons)
    assert isinstance(encoder, ConvStack)

    def objective(x: Tensor, w: Tensor) -> Tensor:
        return dsvdd_iadc(encoder(x), centre, w)

    return train_convolutions([encoder], objective, lessons)


def centres(encoder: Stack, data: Tensor, rows: Rows) -> Tensor:
    """Return each member's mean code over its own rows, kept `CENTRE_MARGIN` away from zero."""
    frozen = encoder.freeze()
    counts = torch.from_numpy(row_counts(rows, len(data)))  # (m, n)
    total = torch.zeros(())
    for start in range(0, len(data), TABLE_TILE):
        tile = data[start : start + TABLE_TILE].double().T.contiguous()
        total = total + (frozen(tile) * counts[:, None, start : start + TABLE_TILE]).sum(dim=2)
    centre = total / counts.sum(dim=1, keepdim=True)
    small = (centre.abs() < CENTRE_MARGIN) & (centre != 0)
    return torch.where(small, CENTRE_MARGIN * centre.sign(), centre).float()[:, :, None]


class Spheres(Members):
    """Trained Deep SVDD members: encoders and their centres."""

    def __init__(self, scaling: Scaling, encoder: Frozen, centre: Tensor) -> None:
        self.scaling = scaling
        self.encoder = encoder
        self.centre = centre  # (m, k, 1)
        self.n_members = len(centre)
        self.tile_rows = tile_rows(scaling)

    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Return (m, n) squared distances to the centres."""
        return distance(self.encoder(tile_to_tensor(tile, self.scaling)), self.centre).numpy()
