"""The autoencoder: what it cannot reconstruct is odd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aberra.contract.members import Members, Rows
from aberra.data.tables import Encode, Missing
from aberra.detectors.network import NetworkDetector, Reconstruction
from aberra.detectors.scaling import Scaling
from aberra.detectors.training import Lessons, Prepared, as_tensors, train_autoencoder
from aberra.nets.stacked import Frozen
from aberra.rng import RandomState, torch_generator


class AutoEncoder(NetworkDetector):
    """Autoencoder whose weighted squared reconstruction error is the anomaly score.

    Parameters
    ----------
    hidden : sequence of int, optional
        Encoder widths, the last being the code; the decoder mirrors them. By default chosen from
        the table's width: 32-16-8, or 32-16-4 up to six columns, or 128-64-32 from a hundred on.
        Images use the LeNets of Deep SVDD.
    epochs : int
        Passes over the data.
    batch_size : int
        Rows a step, cut to a multiple of 16; the odd rest of an epoch is dropped.
    learning_rate, weight_decay : float
        Of Adam.
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
        Mean training loss of each epoch.
    n_features_in_ : int
        Number of columns (pixels times channels for images).

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import AutoEncoder
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> AutoEncoder(epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    losses_: list[float]

    def __init__(
        self,
        hidden: Sequence[int] | None = None,
        *,
        epochs: int = 100,
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
        schedule = self._schedule(self.epochs, "autoencoder")
        lessons = Lessons(prepared, *as_tensors(rows, weights), generators, schedule)
        self.losses_ = train_autoencoder(encoder, decoder, lessons)
        return Reconstructors(prepared.scaling, encoder.freeze(), decoder.freeze())


class Reconstructors(Reconstruction):
    """Trained autoencoders."""

    def __init__(self, scaling: Scaling, encoder: Frozen, decoder: Frozen) -> None:
        super().__init__(scaling)
        self.encoder = encoder
        self.decoder = decoder
        self.n_members = len(next(iter(encoder.arrays().values())))

    def _reconstruct(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.decoder(self.encoder(x)))
