"""Deep SVDD: a network that maps normal rows close to one point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Rows, row_counts
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.detectors.aims import to_centre
from aberra.detectors.base import TABLE_TILE
from aberra.detectors.network import CodeDetector, NetworkMembers, doubled_columns
from aberra.detectors.objectives import distance
from aberra.detectors.training import Lessons, Prepared, train_perceptrons
from aberra.nets.networks import Stack
from aberra.nets.stacked import Double, MLPStack, silently
from aberra.scikit import Interval
from aberra.twister import Single, Twister

CENTRE_MARGIN = 0.1


@estimator
class DeepSVDD(CodeDetector):
    """A network that moves all rows close to one point; what stays far away is odd.

    The score is the squared distance of a row's code to the centre. The encoder is first trained
    as part of an autoencoder, and this part alone ignores `sample_weight`, because the paper says
    so for this detector. The centre is the mean code of the rows that a member trains on. Its
    coordinates are then kept at least 0.1 away from zero: a network with all weights at zero would
    map every row to a centre at zero, and nothing would be learnt.

    See Also
    --------
    AutoEncoder : The network of the first part, as a detector of its own.
    IADC : Trains an ensemble of these on data that may be contaminated.

    References
    ----------
    Ruff, Vandermeulen, Goernitz, Deecke, Siddiqui, Binder, Mueller and Kloft, "Deep one-class
    classification", International Conference on Machine Learning, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import DeepSVDD
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> DeepSVDD(epochs=5, pretrain_epochs=5, random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    epochs: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=50,
        doc="""Number of times that the second part of training, towards the centre, goes through
        the data.""",
    )

    losses_: list[float] = learnt("Mean loss of each epoch of the second part of training.")
    members_: Spheres = learnt()

    def _train(
        self, prepared: Prepared, rows: Rows, weights: NDArray[np.float64], seeds: Sequence[int]
    ) -> Spheres:
        generators = [Twister(seed) for seed in seeds]
        encoder, _, _ = self._pretrained(prepared, rows, np.ones_like(weights), generators)
        centre = centres(encoder, prepared.data, rows)  # (m, k, 1)
        schedule = self._schedule(self.epochs, "Deep SVDD")
        lessons = Lessons(prepared, rows, weights, generators, schedule)
        self.losses_ = train_to_centre(encoder, centre, lessons)
        return Spheres(prepared.scaling, encoder.freeze(), centre.astype(np.float64))


def train_to_centre(encoder: Stack, centre: Single, lessons: Lessons) -> list[float]:
    """Train the encoder on the weighted distance to each member's centre (m, k, 1)."""
    if isinstance(encoder, MLPStack):
        aims = [to_centre(c[:, 0]) for c in centre]
        return train_perceptrons(encoder.chain(), aims, lessons)
    from aberra.detectors import convolutions

    return convolutions.train_to_centre(encoder, centre, lessons)


@silently
def centres(encoder: Stack, data: Single, rows: Rows) -> Single:
    """Return each member's mean code over its own rows, kept `CENTRE_MARGIN` away from zero."""
    frozen = encoder.freeze()
    counts = row_counts(rows, len(data))  # (m, n)
    total = np.zeros(())
    for start in range(0, len(data), TABLE_TILE):
        codes = frozen(doubled_columns(data[start : start + TABLE_TILE]))
        total = total + (codes * counts[:, None, start : start + TABLE_TILE]).sum(axis=2)
    centre = total / counts.sum(axis=1, keepdims=True)
    small = (np.abs(centre) < CENTRE_MARGIN) & (centre != 0)
    kept_off_zero = np.where(small, CENTRE_MARGIN * np.sign(centre), centre)
    return kept_off_zero.astype(np.float32)[:, :, None]


@dataclass(eq=False)
class Spheres(NetworkMembers):
    """Trained Deep SVDD members: encoders and their centres."""

    centre: Annotated[Double, Shape(None, None, 1)]  # (m, k, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_members(len(self.centre))

    @silently
    def scores(self, tile: Data) -> NDArray[np.float64]:
        """Return (m, n) squared distances to the centres."""
        return distance(self.codes(tile), self.centre)
