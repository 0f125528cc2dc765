"""ADC: the ensemble on resampled data, one round, every row fully trusted."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from aberra.contract.scorer import all_or_nothing, checked_weights
from aberra.data.tables import Encode, Missing
from aberra.rng import RandomState, entropy_of
from aberra.robust.history import Round
from aberra.robust.iadc import Ensemble
from aberra.robust.resampling import Resample
from aberra.robust.rounds import Turn, train_round


class ADC(Ensemble):
    """Ensemble of one detector on resampled rows; the score is the members' mean.

    Parameters
    ----------
    detector : estimator, optional
        One of Aberra's detectors, or any outlier detector or pipeline of scikit-learn or PyOD.
        Members get seeds of their own, whatever its `random_state`.
    n_members : int
        Size of the ensemble.
    resample : bool or "subsample"
        True: n rows with replacement; "subsample": half of the rows without replacement; False:
        all rows.
    engine : str, optional
        Name of a joblib backend that spreads members over workers; None trains in this process.
    random_state : int, RandomState or None
        Seeds everything; given a seed, global generators are left alone.
    threshold, missing, encode
        As in `IADC`.

    Attributes
    ----------
    round_ : Round
        Scores of the training rows, and the time it took.
    threshold_, contamination_ : float
        Label-free threshold on the score, and the share of training rows above it.
    threshold_rule_ : str
        Name of the rule that placed the threshold.
    n_features_in_ : int
        Number of columns (pixels times channels for images).

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import ADC, OCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> ADC(OCSVM(), random_state=0).fit(X).anomaly_score(X).shape
    (200,)
    """

    round_: Round

    def __init__(
        self,
        detector: Any = None,
        n_members: int = 5,
        resample: Resample = True,
        *,
        engine: str | None = None,
        threshold: float | str = "auto",
        missing: Missing = "error",
        encode: Encode = "error",
        random_state: RandomState = None,
    ) -> None:
        self.detector = detector
        self.n_members = n_members
        self.resample = resample
        self.engine = engine
        self.threshold = threshold
        self.missing = missing
        self.encode = encode
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train the ensemble once: the first round of IADC.

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, channels, height, width)
            Training rows; they may be contaminated.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,), optional
            Trust from elsewhere.

        Returns
        -------
        self : ADC
        """
        self._validate_params()
        data = self._validate(X, reset=True)
        weights = checked_weights(sample_weight, data)
        turn = Turn(entropy_of(self.random_state), 0, weights)
        self.members_, (self.round_,) = train_round(self._setup(data), [turn])
        self._conclude(self.round_.scores, data)
        return self
