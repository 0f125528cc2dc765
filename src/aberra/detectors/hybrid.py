"""Hybrid OC-SVM: the one-class machine on an autoencoder's code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aberra.contract.members import Data, Members, Rows
from aberra.data.tables import Encode, Missing
from aberra.detectors.base import TABLE_TILE
from aberra.detectors.network import NetworkDetector, tile_rows, tile_to_tensor
from aberra.detectors.ocsvm import KernelExpansion, OneClassKeywords, Solver
from aberra.detectors.scaling import Scaling, standard
from aberra.detectors.training import Lessons, Prepared, as_tensors, train_autoencoder
from aberra.nets.stacked import Frozen
from aberra.rng import RandomState, torch_generator


class HybridOCSVM(OneClassKeywords, NetworkDetector):
    """One-class SVM on the standardised code of an autoencoder; both take the weights.

    Parameters
    ----------
    hidden : sequence of int, optional
        Encoder widths; chosen from the table's width by default, as in `AutoEncoder`.
    nu, gamma, solver, n_landmarks
        Of the one-class machine, as in `OCSVM`; gamma applies to the codes.
    pretrain_epochs : int
        Passes of the autoencoder.
    batch_size, learning_rate, weight_decay, device, random_state
        As in `AutoEncoder`.
    threshold, missing, encode
        As in `IADC`.

    Attributes
    ----------
    solver_ : {"exact", "nystroem"}
        The solver that was used.
    threshold_, contamination_ : float
        Label-free threshold on the score, and the share of training rows above it.
    threshold_rule_ : str
        Name of the rule that placed the threshold.
    losses_ : list of float
        Mean loss of the autoencoder in each epoch.
    n_features_in_ : int
        Number of columns (pixels times channels for images).

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import HybridOCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> HybridOCSVM(pretrain_epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    losses_: list[float]

    _parameter_constraints: dict[str, list[Any]] = {
        **{k: v for k, v in NetworkDetector._parameter_constraints.items() if k != "epochs"},
        **OneClassKeywords._one_class_constraints,
    }

    def __init__(
        self,
        hidden: Sequence[int] | None = None,
        *,
        nu: float = 0.5,
        gamma: float | str = "scale",
        solver: Solver = "auto",
        n_landmarks: int = 256,
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
        self.nu = nu
        self.gamma = gamma
        self.solver = solver
        self.n_landmarks = n_landmarks
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
        schedule = self._schedule(self.pretrain_epochs, "autoencoder")
        lessons = Lessons(prepared, *as_tensors(rows, weights), generators, schedule)
        self.losses_ = train_autoencoder(encoder, decoder, lessons)
        frozen = encoder.freeze()
        codes = encode(frozen, prepared.data)
        scalings = [standard(code[drawn]) for code, drawn in zip(codes, rows, strict=True)]
        machines = [
            self._one_class(scalings[j](codes[j]), rows[j], weights[j], seeds[j])
            for j in range(len(seeds))
        ]
        return CodeExpansions(prepared.scaling, frozen, scalings, machines)


def encode(encoder: Frozen, data: Tensor) -> NDArray[np.float64]:
    """Return every member's code of every row, (m, n, k)."""
    parts = [
        encoder(data[start : start + TABLE_TILE].double().T.contiguous())
        for start in range(0, len(data), TABLE_TILE)
    ]
    return np.ascontiguousarray(torch.cat(parts, dim=2).transpose(1, 2).numpy())


class CodeExpansions(Members):
    """Trained hybrid members: an encoder, its code's scale and a one-class machine each."""

    def __init__(
        self,
        scaling: Scaling,
        encoder: Frozen,
        code_scalings: Sequence[Scaling],
        machines: Sequence[KernelExpansion],
    ) -> None:
        self.scaling = scaling
        self.encoder = encoder
        self.code_scalings = list(code_scalings)
        self.machines = list(machines)
        self.n_members = len(self.machines)
        self.tile_rows = tile_rows(scaling)

    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Return (m, n) signed distances, positive outside."""
        codes = self.encoder(tile_to_tensor(tile, self.scaling)).transpose(1, 2).numpy()
        parts = zip(self.machines, self.code_scalings, codes, strict=True)
        return np.stack([machine.score(scale(code)) for machine, scale, code in parts])
