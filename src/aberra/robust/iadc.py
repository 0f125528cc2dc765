"""IADC: an ensemble retrained in rounds, with less and less trust in what looks odd."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from aberra.contract.members import Data, tiles
from aberra.contract.rows import RowScorer
from aberra.contract.scorer import all_or_nothing, checked_weights
from aberra.data.tables import Encode, Missing
from aberra.detectors.foreign import Trainer, as_trainer
from aberra.detectors.multiview import MultiView
from aberra.errors import DataError, RoundsExhaustedWarning
from aberra.progress import advance
from aberra.rng import RandomState, entropy_of, single_thread
from aberra.robust.committee import Committee
from aberra.robust.history import History
from aberra.robust.resampling import Resample
from aberra.robust.rounds import Setup, Turn, train_round
from aberra.scikit import HasMethods, Interval, StrOptions

logger = logging.getLogger(__name__)

# Settings that a warm start may change: they decide when to stop and what follows, not what is
# learnt in a round.
FREE = {"max_rounds", "patience", "engine", "warm_start", "random_state", "threshold"}


def _localises(ensemble: Ensemble) -> bool:
    return hasattr(ensemble.detector, "anomaly_map")


class Ensemble(RowScorer):
    """What ADC and IADC share: one round of resampled members."""

    detector: Any
    n_members: int
    resample: Resample
    engine: str | None
    random_state: RandomState

    _parameter_constraints: dict[str, list[Any]] = {
        "detector": [HasMethods("fit"), None],
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "resample": ["boolean", StrOptions({"subsample"})],
        "engine": [str, None],
        **RowScorer._parameter_constraints,
    }

    def _trainer(self) -> Trainer:
        default = self.detector is None
        detector = default_detector(self.image_shape_) if default else self.detector
        return as_trainer(detector, self.image_shape_)

    def _setup(self, data: Data) -> Setup:
        """Return what all rounds of this fit have in common."""
        trainer = self._trainer()
        with single_thread():
            prepared = trainer._prepare(data)
        return Setup(trainer, prepared, data, self.n_members, self.resample, self.engine)

    @available_if(_localises)
    def anomaly_map(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return how odd each pixel is, (n, height, width): the mean map of all members."""
        return self._mean_over_members("maps", X)

    @available_if(_localises)
    def reconstruct(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return the mean restoration of all members, (n, channels, height, width)."""
        return self._mean_over_members("restored", X)

    def _maps_and_scores(self, X: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return `anomaly_map` and `anomaly_score`, for the price of one.

        An image's score is the mean of its members' scores, not the score of their mean map.
        """
        data, members = self._validate(X, reset=False), self.members_
        assert isinstance(members, Committee)
        parts = []
        for full, n in tiles(data, members.tile_rows or len(data)):
            maps, scores = members.maps_and_scores(full)
            parts.append((maps[:, :n].mean(axis=0, dtype=np.float32), scores[:, :n].mean(axis=0)))
        every_map, every_score = zip(*parts, strict=True)
        return np.concatenate(every_map), np.concatenate(every_score)

    def _mean_over_members(self, what: str, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self, "members_")
        data = self._validate(X, reset=False)
        answer, size = getattr(self.members_, what), self.members_.tile_rows or len(data)
        parts = [
            answer(full)[:, :n].mean(axis=0, dtype=np.float32) for full, n in tiles(data, size)
        ]
        return np.concatenate(parts)


def default_detector(image: tuple[int, int, int] | None = None) -> Any:
    """Return the detector used when none is given: `MultiView`, or `HybridOCSVM` for images."""
    if image is not None:
        from aberra.detectors.hybrid import HybridOCSVM

        return HybridOCSVM()
    return MultiView()


class IADC(Ensemble):
    """Robust ensemble: members train in rounds, with less and less trust in what looks odd.

    In every round each member trains from scratch on resampled rows, with the rows' importance
    weights in its objective; the mean score of all members then gives the weights of the next
    round (`aberra.robust.weighting.importance_weights`). Rounds end when the ranking has settled.

    Parameters
    ----------
    detector : estimator, optional
        One of Aberra's detectors, or any outlier detector or pipeline of scikit-learn or PyOD;
        `MultiView` for tables and `HybridOCSVM` for images by default. Where `fit` takes no
        `sample_weight`, rows are kept at random by their weight instead. Members get
        seeds of their own, whatever its `random_state`.
    n_members : int
        Size of the ensemble.
    outlier_ratio : float
        Share r of the ranking that is watched for crossings. Decides when to stop, nothing else.
    max_rounds : int
        Rounds at most.
    resample : bool or "subsample"
        True: n rows with replacement, new in every round; "subsample": half of the rows without
        replacement; False: all rows.
    temperature : float
        Softness of the weights; small means a hard cut at the median score.
    patience : int
        Rounds without a new minimum of the crossings after which training stops, provided that
        the minimum is below a quarter of what two unrelated rankings would have.
    engine : str, optional
        Name of a joblib backend ("loky", "threading", ...) that spreads members over workers.
        None trains in this process. The result is the same bytes either way.
    warm_start : bool
        Go on from the rounds of the last fit instead of starting again.
    random_state : int, RandomState or None
        Seeds everything; given a seed, global generators are left alone.
    threshold : "auto", rule name or float
        Rule that places `threshold_` on the training scores without labels; a number is the share
        of training rows to flag.
    missing : {"error", "impute"}
        What to do with gaps: say where they are, or fill them with the column's median.
    encode : {"error", "auto"}
        What to do with text columns: refuse them, or turn every value into how rare it is.

    Attributes
    ----------
    weights_ : ndarray of shape (n,)
        Final trust in each training row, in [0, 1].
    history_ : History
        Scores, weights, crossings and time of every round, the round kept, why it stopped.
    threshold_, contamination_ : float
        Label-free threshold on the score, and the share of training rows above it.
    threshold_rule_ : str
        Name of the rule that placed the threshold.
    n_features_in_ : int
        Number of columns (pixels times channels for images).

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import IADC, OCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> X[:20] += 6
    >>> model = IADC(OCSVM(), random_state=0).fit(X)
    >>> bool(model.weights_[:20].max() < model.weights_[20:].min())
    True
    """

    history_: History
    weights_: NDArray[np.float64]

    _parameter_constraints: dict[str, list[Any]] = {
        **Ensemble._parameter_constraints,
        "outlier_ratio": [Interval(Real, 0, 1, closed="neither")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        detector: Any = None,
        n_members: int = 5,
        outlier_ratio: float = 0.5,
        max_rounds: int = 30,
        resample: Resample = True,
        temperature: float = 0.5,
        *,
        patience: int = 2,
        engine: str | None = None,
        warm_start: bool = False,
        threshold: float | str = "auto",
        missing: Missing = "error",
        encode: Encode = "error",
        random_state: RandomState = None,
    ) -> None:
        self.detector = detector
        self.n_members = n_members
        self.outlier_ratio = outlier_ratio
        self.max_rounds = max_rounds
        self.resample = resample
        self.temperature = temperature
        self.patience = patience
        self.engine = engine
        self.warm_start = warm_start
        self.threshold = threshold
        self.missing = missing
        self.encode = encode
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train the ensemble and the trust in each row together [IADC-A1].

        Parameters
        ----------
        X : array-like of shape (n, n_features) or (n, channels, height, width)
            Training rows; they may be contaminated.
        y : ignored
            Present for scikit-learn's conventions.
        sample_weight : array-like of shape (n,), optional
            Trust from elsewhere; multiplies the learnt weights.

        Returns
        -------
        self : IADC
            Interrupting (Ctrl-C) after the first round leaves a model fitted on the finished
            rounds; with `warm_start=True` another `fit` goes on from there.
        """
        self._validate_params()
        data = self._validate(X, reset=True)
        prior = checked_weights(sample_weight, data)
        history = self._begin(data, prior)
        setup = self._setup(data)
        w = history.next_weights(len(data))  # A1.1
        while history.goes_on(self.max_rounds):  # A1.2, A1.21
            turn = Turn(self._entropy, len(history), w * prior)
            try:
                members, (found,) = train_round(setup, [turn])  # A1.3 to A1.19
            except KeyboardInterrupt:
                if len(history) == 0:
                    raise
                history.reason = "interrupted"
                logger.warning("interrupted: keeping the %d finished rounds", len(history))
                break
            history.append(found)
            w = history.next_weights(len(data))  # A1.20
            if history.kept == len(history) - 1:
                self.members_ = members
            advance("rounds", len(history) / self.max_rounds, history.note())
        return self._finish(data)

    def _begin(self, data: Data, prior: NDArray[np.float64]) -> History:
        """Start a history, or go on with a copy of the last one."""
        mark = self._fingerprint(data, prior)
        last = getattr(self, "history_", None)
        if not (self.warm_start and last):
            self._entropy = entropy_of(self.random_state)
            self.history_ = self._new_history(mark)
            return self.history_
        if last.fingerprint != mark:
            raise DataError(
                "warm_start goes on with the rows and settings of the last fit, but these differ. "
                "Pass the same, or set warm_start=False."
            )
        rounds = list(last.rounds)
        self.history_ = replace(last, patience=self.patience, reason="", rounds=rounds)
        return self.history_

    def _new_history(self, fingerprint: str = "") -> History:
        return History(self.outlier_ratio, self.patience, self.temperature, fingerprint)

    def _fingerprint(self, data: Data, prior: NDArray[np.float64]) -> str:
        """Return a digest of rows, their weights and every setting that decides what is learnt."""
        settings = {
            name: value.item() if isinstance(value, np.generic) else value  # as a file keeps it
            for name, value in self.get_params().items()
            if name not in FREE and name != "detector"
        }
        digest = sha256(repr((type(self.detector), sorted(settings.items()), data.shape)).encode())
        digest.update(np.ascontiguousarray(data).data)
        digest.update(prior.data)
        return digest.hexdigest()

    def _finish(self, data: Data) -> Self:
        history = self.history_
        advance("rounds", 1.0)
        if not history.reason:
            history.reason = "settled" if history.settled() else "max_rounds"
        kept = history[history.kept]
        self.weights_ = history.weights(history.kept)
        self._conclude(kept.scores, data)
        if history.reason == "max_rounds" and self.max_rounds > 1:
            warnings.warn(
                f"The ranking had not settled after max_rounds={self.max_rounds} rounds "
                f"(crossings {history.crossings()[-3:]}). Raise max_rounds, or take the scores "
                "as they are: history_ shows how they moved.",
                RoundsExhaustedWarning,
                stacklevel=4,  # this, fit, the guard around it
            )
        return self
