"""Hybrid OC-SVM: the one-class machine on an autoencoder's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Rows
from aberra.declare import estimator, learnt
from aberra.detectors.base import TABLE_TILE
from aberra.detectors.network import CodeDetector, NetworkMembers, doubled_columns
from aberra.detectors.ocsvm import KernelExpansion, OneClassDetector
from aberra.detectors.scaling import Scaling, standard
from aberra.detectors.training import Prepared
from aberra.nets.networks import Frozen
from aberra.twister import Single, Twister


@estimator
class HybridOCSVM(OneClassDetector, CodeDetector):
    """A border around the bulk of the codes that an autoencoder gives to the rows.

    The autoencoder is trained first. Its codes are then brought to mean 0 and variance 1, so that
    no direction of the code decides alone, and a one-class support vector machine is trained on
    them. The score is the signed distance to its border. `sample_weight` counts in both parts.

    See Also
    --------
    OCSVM : The machine on the columns themselves.
    IADC : Trains an ensemble of these on data that may be contaminated.

    References
    ----------
    Schoelkopf, Platt, Shawe-Taylor, Smola and Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 13(7), 2001, for the machine.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import HybridOCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> HybridOCSVM(pretrain_epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    # The codes of rows that the autoencoder no longer sees move away, so the ranking swings.
    own_start: ClassVar[str] = "gentle"

    members_: CodeExpansions = learnt()

    def _train(
        self, prepared: Prepared, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> CodeExpansions:
        generators = [Twister(seed) for seed in seeds]
        encoder, _, self.losses_ = self._pretrained(prepared, rows, weights, generators)
        frozen = encoder.freeze()
        codes = encode(frozen, prepared.data)
        scalings = [standard(code[drawn]) for code, drawn in zip(codes, rows, strict=True)]
        inputs = (scale(code) for scale, code in zip(scalings, codes, strict=True))
        machines = self._machines(inputs, rows, weights, seeds)
        return CodeExpansions(prepared.scaling, frozen, scalings, machines)


def encode(encoder: Frozen, data: Single) -> NDArray[np.float64]:
    """Return every member's code of every row, (m, n, k)."""
    parts = [
        encoder(doubled_columns(data[start : start + TABLE_TILE]))
        for start in range(0, len(data), TABLE_TILE)
    ]
    return np.ascontiguousarray(np.concatenate(parts, axis=2).swapaxes(1, 2))


@dataclass(eq=False)
class CodeExpansions(NetworkMembers):
    """Trained hybrid members: an encoder, its code's scale and a one-class machine each."""

    code_scalings: list[Scaling]
    machines: list[KernelExpansion]

    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Return (m, n) signed distances, positive outside."""
        codes = self.codes(tile).swapaxes(1, 2)
        parts = zip(self.machines, self.code_scalings, codes, strict=True)
        return np.stack([machine.score(scale(code)) for machine, scale, code in parts])
