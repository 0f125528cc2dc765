"""RSRAE: an autoencoder with a robust subspace recovery layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Rows
from aberra.declare import Shape, changed, estimator, learnt, parameter
from aberra.detectors.aims import to_reconstruct
from aberra.detectors.network import Reconstruction, ReconstructionDetector, conv_stacks
from aberra.detectors.training import Lessons, Prepared, train_perceptrons
from aberra.nets.conv_plan import strided
from aberra.nets.networks import Frozen, Stack
from aberra.nets.stacked import Double, MLPStack, linear_layer, sigmoid
from aberra.scikit import Interval
from aberra.twister import Single, Twister


@estimator
class RSRAE(ReconstructionDetector):
    """An autoencoder whose code is projected onto a few directions that most rows share.

    Between encoder and decoder stands a linear layer, the robust subspace recovery layer, that
    learns the directions. Because the loss takes distances and not their squares, a few rows that
    lie far off have little influence on them. The score is the squared distance between a row and
    its reconstruction.

    See Also
    --------
    AutoEncoder : The same without the subspace.
    IADC : Trains an ensemble of these on data that may be contaminated.

    References
    ----------
    Lai, Zou and Lerman, "Robust subspace recovery layer for unsupervised anomaly detection",
    International Conference on Learning Representations, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import RSRAE
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> RSRAE(epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    hidden: Sequence[int] | None = changed(
        default=None,
        kw_only=False,
        doc="""Widths of the encoder's layers and, last, the number of directions of the subspace;
        at least two numbers. None takes the widths that `AutoEncoder` chooses, but ten directions
        from 100 columns on. Leave it None for images, which go through three strided convolutions
        and a subspace of ten directions.""",
    )
    lambda1: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=0.1,
        doc="""Weight of the projection term in the loss: how far the codes may lie from the
        subspace.""",
    )
    lambda2: float = parameter(
        Interval(Real, 0, None, closed="left"),
        default=0.1,
        doc="""Weight of the orthogonality term in the loss: how far the directions may be from
        being orthogonal and of length one.""",
    )

    members_: Subspaces = learnt()

    def _train(
        self, prepared: Prepared, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> Subspaces:
        generators = [Twister(seed) for seed in seeds]
        encoder, decoder, A = self._networks(prepared, generators)
        schedule = self._schedule(self.epochs, "RSRAE")
        lessons = Lessons(prepared, rows, weights, generators, schedule)
        self.losses_ = self._minimise(encoder, decoder, A, lessons)
        subspace = A.astype(np.float64)
        return Subspaces(prepared.scaling, encoder.freeze(), subspace, decoder.freeze())

    def _minimise(self, encoder: Stack, decoder: Stack, A: Single, lessons: Lessons) -> list[float]:
        """Train the networks and A, in place."""
        if isinstance(encoder, MLPStack) and isinstance(decoder, MLPStack):
            into = encoder.chain()
            layers = [*into, linear_layer(A), *decoder.chain()]
            aim = to_reconstruct(len(into), self.lambda1, self.lambda2)
            return train_perceptrons(layers, [aim] * len(A), lessons)
        from aberra.detectors.convolutions import train_subspace

        return train_subspace(encoder, decoder, A, lessons, (self.lambda1, self.lambda2))

    def _networks(
        self, prepared: Prepared, generators: Sequence[Twister]
    ) -> tuple[Stack, Stack, Single]:
        encoder: Stack
        decoder: Stack
        if prepared.image is not None:
            self._check_image(prepared.image)
            plan, _ = strided(prepared.image, None)
            n_code, n_subspace = plan.n_code, 10
            encoder, decoder = conv_stacks(plan, strided(prepared.image, n_subspace)[1], generators)
        else:
            *hidden, n_subspace = self._hidden(prepared)
            widths = [prepared.data.shape[1], *hidden]
            n_code = widths[-1]
            encoder = MLPStack(widths, generators, linear_output=False)
            decoder = MLPStack([n_subspace, *widths[::-1]], generators)
        # Standard normal, as the official code draws it, scaled so that A A^T starts near I.
        scale = np.float32(n_code**0.5)
        drawn = [generator.normal(n_subspace, n_code) / scale for generator in generators]
        return encoder, decoder, np.stack(drawn)

    def _hidden(self, prepared: Prepared) -> tuple[int, ...]:
        widths = super()._hidden(prepared)
        if len(widths) < 2:
            raise ValueError(
                "`hidden` of RSRAE needs at least two widths, the encoder's and the subspace's, "
                f"but got {widths}."
            )
        if self.hidden is None and prepared.data.shape[1] >= 100:
            return (*widths[:-1], 10)
        return widths


@dataclass(eq=False)
class Subspaces(Reconstruction):
    """Trained RSRAE members."""

    A: Annotated[Double, Shape(None, None, None)]  # (m, d, D)
    decoder: Frozen

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_members(len(self.A))
        self._check_members(self.decoder.n_members)

    def _reconstruct(self, x: Double) -> Double:
        return sigmoid(self.decoder(self.A @ self.encoder(x)))
