"""Aberra's models in other libraries' clothes."""

from __future__ import annotations

from typing import Any

from aberra.extras import need

__all__ = ["as_pyod"]


def as_pyod(detector: Any = None, contamination: float = 0.1) -> Any:
    """Return a detector that behaves like one of PyOD's.

    It has PyOD's attributes (`decision_scores_`, `labels_`, `threshold_`) and methods, so it can
    take part in PyOD's combinations, benchmarks and pipelines. What PyOD calls `threshold_` leaves
    a share `contamination` of the training rows above it; the model's own threshold, placed without
    being told a share, is that of `model_`.

    Parameters
    ----------
    detector : estimator, default=None
        An unfitted detector or ensemble of Aberra. None is `IADC()`.
    contamination : float, default=0.1
        The share of training rows that PyOD calls outliers.

    Returns
    -------
    adapter : pyod.models.base.BaseDetector
        Not fitted yet.

    Raises
    ------
    MissingExtraError
        If PyOD is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import MultiView, as_pyod
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = as_pyod(MultiView(random_state=0), contamination=0.05).fit(X)
    >>> int(found.labels_.sum()), found.decision_scores_.shape
    (5, (100,))
    """
    need("pyod", "pyod", "The adapter")
    from aberra.adapters.pyod_detector import PyODDetector

    return PyODDetector(detector, contamination)
