"""The autoencoder: what it cannot reconstruct is odd."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Rows
from aberra.declare import estimator, learnt
from aberra.detectors.network import Reconstruction, ReconstructionDetector
from aberra.detectors.training import Lessons, Prepared, train_autoencoder
from aberra.nets.networks import Frozen
from aberra.nets.stacked import Double, sigmoid
from aberra.twister import Twister


@estimator
class AutoEncoder(ReconstructionDetector):
    """A network that rebuilds every row from a short code; what it rebuilds badly is odd.

    The score is the squared distance between a row and its reconstruction. In training, the
    errors of the rows are weighted by `sample_weight`.

    See Also
    --------
    RSRAE : An autoencoder that is less easily led astray by odd rows.
    IADC : Trains an ensemble of these on data that may be contaminated.

    References
    ----------
    Kim, Yu, Kim, Oh and Choi, "An iterative method for unsupervised robust anomaly detection under
    data contamination", IEEE Transactions on Neural Networks and Learning Systems 35(10), 2024,
    doi:10.1109/TNNLS.2023.3267028, for the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import AutoEncoder
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> AutoEncoder(epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    members_: Reconstructors = learnt()

    def _train(
        self, prepared: Prepared, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> Reconstructors:
        generators = [Twister(seed) for seed in seeds]
        encoder, decoder = self._autoencoder(prepared, generators)
        schedule = self._schedule(self.epochs, "autoencoder")
        lessons = Lessons(prepared, rows, weights, generators, schedule)
        self.losses_ = train_autoencoder(encoder, decoder, lessons)
        return Reconstructors(prepared.scaling, encoder.freeze(), decoder.freeze())


@dataclass(eq=False)
class Reconstructors(Reconstruction):
    """Trained autoencoders."""

    decoder: Frozen

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_members(self.decoder.n_members)

    def _reconstruct(self, x: Double) -> Double:
        return sigmoid(self.decoder(self.encoder(x)))
