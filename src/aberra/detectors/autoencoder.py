"""The autoencoder: what it cannot reconstruct is odd."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aberra.contract.members import Rows
from aberra.declare import estimator, learnt
from aberra.detectors.network import Reconstruction, ReconstructionDetector
from aberra.detectors.scaling import Scaling
from aberra.detectors.training import Lessons, Prepared, as_tensors, train_autoencoder
from aberra.nets.stacked import Frozen
from aberra.rng import torch_generator


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
