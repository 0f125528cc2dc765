"""Who takes part in the races over tables: Aberra's defaults and the usual detectors.

Every method is a function (X, seed) -> score of every row, high = odd; all rows train. Peers run
with their library's defaults on standardised columns without the constant ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

Rows = NDArray[np.float64]
Method = Callable[[Rows, int], Rows]

OURS = ("IADC", "ADC", "MultiView")
PEERS = (
    "IForest", "isotree", "ECOD", "COPOD", "HBOS", "kNN", "LOF", "PCA", "CBLOF", "MCD", "INNE",
    "OCSVM",
)  # fmt: skip
METHODS = OURS + PEERS
WIDE = 500  # MCD is left out from this many columns on: it needs more rows than columns


def scores(method: str, X: Rows, seed: int) -> Rows | None:
    """Return the scores of all rows by one method, or None where it is left out."""
    if method in OURS:
        return our_scores(method, X, seed)
    if method == "MCD" and X.shape[1] >= WIDE:
        return None
    scaled = standardised(X)
    if method == "IForest":
        return forest_scores(scaled, seed)
    if method == "isotree":
        return isotree_scores(scaled, seed)
    return np.asarray(pyod_detector(method, seed).fit(scaled).decision_scores_)


def standardised(X: Rows) -> Rows:
    """Fill gaps with the median, drop constant columns, standardise: what peers are given."""
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    scaled: Rows = StandardScaler().fit_transform(filled[:, np.ptp(filled, axis=0) > 0])
    return scaled


def our_scores(method: str, X: Rows, seed: int) -> Rows:
    """Return the scores of one of Aberra's estimators with its defaults."""
    import aberra

    model = getattr(aberra, method)(missing="impute", random_state=seed).fit(X)
    return np.asarray(model.anomaly_score(X))


def forest_scores(X: Rows, seed: int) -> Rows:
    """Return the scores of scikit-learn's isolation forest."""
    from sklearn.ensemble import IsolationForest

    return -np.asarray(IsolationForest(random_state=seed).fit(X).score_samples(X))


def isotree_scores(X: Rows, seed: int) -> Rows:
    """Return the scores of isotree's extended isolation forest.

    isotree is no part of the `bench` extra, because it has to be compiled: pip install isotree.
    """
    from isotree import IsolationForest

    return np.asarray(IsolationForest(random_seed=seed, nthreads=1).fit(X).predict(X))


def pyod_detector(method: str, seed: int) -> Any:
    """Return PyOD's detector of that name with its defaults."""
    from pyod.models.cblof import CBLOF
    from pyod.models.copod import COPOD
    from pyod.models.ecod import ECOD
    from pyod.models.hbos import HBOS
    from pyod.models.inne import INNE
    from pyod.models.knn import KNN
    from pyod.models.lof import LOF
    from pyod.models.mcd import MCD
    from pyod.models.ocsvm import OCSVM
    from pyod.models.pca import PCA

    made: dict[str, Callable[[], Any]] = {
        "ECOD": ECOD,
        "COPOD": COPOD,
        "HBOS": HBOS,
        "kNN": KNN,
        "LOF": LOF,
        "PCA": PCA,
        "CBLOF": lambda: CBLOF(random_state=seed),
        "MCD": lambda: MCD(random_state=seed),
        "INNE": lambda: INNE(random_state=seed),
        "OCSVM": OCSVM,
    }
    return made[method]()
