"""A detector of PyOD's kind around a model of Aberra."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyod.models.base import BaseDetector
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted

from aberra.robust.iadc import IADC


class PyODDetector(BaseDetector):
    """A model of Aberra with PyOD's attributes and methods; see `aberra.as_pyod`.

    Parameters
    ----------
    detector : estimator, default=None
        An unfitted detector or ensemble of Aberra. None is `IADC()`.
    contamination : float, default=0.1
        The share of training rows that are called outliers.

    Attributes
    ----------
    model_ : estimator
        The fitted model.
    decision_scores_ : ndarray of shape (n,)
        Scores of the training rows.
    threshold_ : float
        The score that a share `contamination` of the training rows lies above.
    labels_ : ndarray of shape (n,)
        1 for outliers among the training rows, 0 for all others.
    """

    def __init__(self, detector: Any = None, contamination: float = 0.1) -> None:
        super().__init__(contamination=contamination)
        self.detector = detector

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn what is normal in `X`; labels are ignored."""
        rows = check_array(X)
        self._set_n_classes(y)
        self.model_ = (IADC() if self.detector is None else clone(self.detector)).fit(rows)
        # What predict would say, rather than what training saw last: PyOD compares the two.
        self.decision_scores_ = self.model_.anomaly_score(rows)
        self._process_decision_scores()
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return one score per row; the higher, the odder."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return np.asarray(self.model_.anomaly_score(check_array(X)))
