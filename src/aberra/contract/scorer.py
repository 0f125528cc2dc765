"""The contract of everything that scores: scikit-learn's, plus one score that is high where odd.

Detectors, ensembles and localisers all answer to `Scorer`. Two thresholds are kept apart by name:
`threshold_` belongs to the score of a whole sample (a row, an image), `map_threshold_` to the
height of a localiser's map at one pixel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Real
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.metaestimators import available_if

from aberra import thresholds
from aberra.contract.members import Data, Members, Scores
from aberra.data.tables import plain
from aberra.declare import estimator, learnt, parameter
from aberra.errors import DataError
from aberra.ordinary import Bulk, bulk, discoveries
from aberra.rng import RandomState
from aberra.scikit import Interval, StrOptions, check_sample_weight

Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """Let a `fit` that fails leave the estimator as it was: fitted before, or not at all."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Fit, guarded)


def _localises(model: Scorer) -> bool:
    return model.localises


@estimator
class Scorer(OutlierMixin, BaseEstimator, ABC):
    """What a fitted detector, ensemble or localiser answers; subclasses learn `members_`."""

    threshold: float | str = parameter(
        StrOptions({"auto", *thresholds.RULES}),
        Interval(Real, 0, 1, closed="neither"),
        default="auto",
        doc="""The rule that places `threshold_` on the training scores without labels; a number
        is the share of training samples to flag. "auto" means "fdr" for `MultiView`, whose scores
        are made for it, and "knee" for all others.""",
    )
    fdr: float = parameter(
        Interval(Real, 0, 1, closed="neither"),
        default=0.1,
        doc="""The share of the flagged samples that may be false alarms, for the threshold rule
        "fdr".""",
    )
    random_state: RandomState = parameter(
        "random_state",
        default=None,
        doc="""Seeds everything that is drawn. With a seed, the same data give the same bytes, and
        the global random generators are left alone.""",
    )

    members_: Members = learnt()
    image_shape_: tuple[int, int, int] | None = learnt(
        "Channels, height and width of the training images; None for tables."
    )
    threshold_: float = learnt("The score above which a sample is flagged, placed without labels.")
    bulk_: Bulk = learnt("Where the scores of ordinary training samples lie.")
    threshold_rule_: str = learnt("Name of the rule that placed `threshold_`.")
    contamination_: float = learnt(
        "Estimated share of the training samples that do not belong: those above `threshold_`."
    )

    @property
    def localises(self) -> bool:
        """Whether the model shows where in an image the anomaly is."""
        return False

    @property
    def stops_early(self) -> bool:
        """Whether a time limit ends training with what has been learnt by then."""
        return False

    @property
    def flag_rule(self) -> str:
        """The threshold rule that "auto" means."""
        return thresholds.DEFAULT

    @property
    def trust_rule(self) -> str:
        """How trust follows from the scores, unless the user says otherwise: a rule of `IADC`."""
        return "median"

    @abstractmethod
    def anomaly_score(self, X: ArrayLike) -> Scores:
        """Return one score per sample; the higher, the odder."""

    @property
    def offset_(self) -> float:
        """Minus `threshold_`: scikit-learn's name for it, in the sign of `score_samples`."""
        return -self.threshold_

    def score_samples(self, X: ArrayLike) -> Scores:
        """Return minus `anomaly_score`, scikit-learn's sign (high = normal)."""
        return -self.anomaly_score(X)

    def decision_function(self, X: ArrayLike) -> Scores:
        """Return `threshold_` minus `anomaly_score`: negative where `predict` says -1."""
        scores = self.anomaly_score(X)
        return self.threshold_ - scores

    def p_values(self, X: ArrayLike) -> Scores:
        """Return the chance that an ordinary sample is as odd as each of these.

        It follows from the bulk of the training scores, which dirt among them hardly moves.
        """
        scores = self.anomaly_score(X)
        return self.bulk_.p_values(scores)

    def predict(self, X: ArrayLike, fdr: float | None = None) -> NDArray[np.int64]:
        """Return -1 for anomalies and 1 for normal samples.

        With a number `fdr`, as many of these samples are flagged as can be if that share of them
        may be false alarms (Benjamini and Hochberg's rule); without it, those that score above
        `threshold_`.
        """
        if fdr is None:
            return np.where(self.decision_function(X) < 0, -1, 1)
        if not 0 < fdr < 1:
            raise ValueError(f"A share of false alarms lies between 0 and 1, but got {fdr!r}.")
        return np.where(discoveries(self.p_values(X), fdr), -1, 1)

    def _place_threshold(self, scores: Scores) -> None:
        """Place the threshold on the scores of samples, most of which are normal."""
        rule = self.flag_rule if self.threshold == "auto" else self.threshold
        self.threshold_, self.threshold_rule_ = thresholds.threshold(scores, rule, self.fdr)
        self.bulk_ = bulk(scores)
        self.contamination_ = float(np.mean(scores > self.threshold_))

    # What localisers and ensembles of them can do besides

    @available_if(_localises)
    def anomaly_map(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return how odd each pixel is, (n, height, width); outside `mask` the map is 0."""
        return self._maps(X, mask)

    @available_if(_localises)
    def reconstruct(self, X: ArrayLike) -> NDArray[np.float32]:
        """Return each image as the model would have it: (n, channels, height, width)."""
        return self._restored(X)

    @available_if(_localises)
    def segment(self, X: ArrayLike, mask: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Return the pixels whose map exceeds `map_threshold_`, (n, height, width)."""
        return self._segmented(X, mask)

    def maps_and_scores(self, X: ArrayLike) -> tuple[NDArray[np.float32], Scores]:
        """Return `anomaly_map` and `anomaly_score` for the price of one; for localisers."""
        raise NotImplementedError(f"{type(self).__name__} draws no maps")

    def _maps(self, X: ArrayLike, mask: ArrayLike | None) -> NDArray[np.float32]:
        raise NotImplementedError

    def _restored(self, X: ArrayLike) -> NDArray[np.float32]:
        raise NotImplementedError

    def _segmented(self, X: ArrayLike, mask: ArrayLike | None) -> NDArray[np.bool_]:
        raise NotImplementedError

    def as_saved(self) -> Self:
        """Return the model as a file keeps it: without training arrays that nobody needs."""
        return self

    # What is known about the training

    def training_scores(self) -> Scores | None:
        """Return the scores of the training samples in their order, where the model keeps them."""
        return None

    def training_sample(self) -> Any:
        """Return the `Round` of some training rows, where a file kept no more of a long table."""
        return None

    def training_trust(self) -> Scores | None:
        """Return the trust in each training sample, where training learnt any."""
        return None

    def training_rounds(self) -> Sequence[Any] | None:
        """Return the `History` of the rounds, where training had rounds."""
        return None

    def training_portrait(self) -> Any:
        """Return the `Portrait` of the training table, where the model keeps one."""
        return None

    def review_marks(self) -> Any:
        """Return the `Feedback` of reviewers, where the model was given any."""
        return None

    def column_names(self) -> list[str] | None:
        """Return the names of the columns, if the model was fitted on a table with names."""
        return None

    def column_kinds(self) -> list[str] | None:
        """Return what each column holds ("number", "text", "time"), if anything but numbers."""
        return None


def check_finite(scores: Scores, why: str) -> None:
    """Raise an error that counts the samples without a finite score, and says why they may be."""
    odd = np.flatnonzero(~np.isfinite(scores))
    if len(odd):
        raise DataError(
            f"{len(odd)} of {len(scores)} samples have no finite score, the first at position "
            f"{odd[0]}. {why}"
        )


def checked_weights(sample_weight: ArrayLike | None, data: Data) -> NDArray[np.float64]:
    """Return one non-negative weight per row, the positive ones 1 on average.

    Only their ratios mean something; weights that add up to 1 would all but stop a network.
    """
    given = plain(sample_weight)
    w = check_sample_weight(given, data, dtype=np.float64, ensure_non_negative=True)
    w = w / w.max()  # first: the sum of large weights may overflow
    return w / w[w > 0].mean()
