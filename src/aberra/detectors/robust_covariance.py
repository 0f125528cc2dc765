"""Centre and covariance of most of the rows: those that lie apart have no say in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape
from aberra.detectors.inverse_covariance import (
    InverseCovariance,
    WideInverseCovariance,
    ridge_precision,
    shrinkage,
    wide_ridge_precision,
)
from aberra.detectors.weighted import quantiles

Array = NDArray[np.float64]

KEPT = 0.8  # share of the trust that has a say
STEPS = 8
FEW_COLUMNS = 128  # with more, one start and two steps have to do
FEW_ROWS = 4  # a column; with fewer, a covariance knows its own rows too well
MOST_OWN = 1e-6  # what is left at least where a row is alone in its direction: rounding


@dataclass(frozen=True)
class Ellipse:
    """A centre and the inverse of the covariance around it."""

    centre: Annotated[Array, Shape("V")]
    precision: InverseCovariance | WideInverseCovariance

    def oddness(self, rows: Array) -> Array:
        """Return the Mahalanobis distance of every row."""
        return np.sqrt(np.maximum(self.precision.squares(rows - self.centre), 0.0))


def robust_ellipse(rows: Array, trust: Array, ridge: float) -> Ellipse:
    """Fit centre and covariance to the 80 % of the trust that lies closest together.

    A step fits them to the rows that are nearest by the last fit (Rousseeuw and Van Driessen,
    "A fast algorithm for the minimum covariance determinant estimator", 1999). It starts from all
    rows and from the rows nearest to the median, and the smaller determinant wins.
    """
    n, d = rows.shape
    if n <= d:
        return _fitted_wide(rows, trust, ridge)
    if not leaves_rows_out(n, d):
        return _fitted(rows, trust, ridge)
    near_median = np.abs(rows - np.median(rows, axis=0)).sum(axis=1)
    if d > FEW_COLUMNS:
        return _stepped(rows, trust, ridge, near_median, 2)
    starts = (_fitted(rows, trust, ridge).oddness(rows), near_median)
    found = [_stepped(rows, trust, ridge, start, STEPS) for start in starts]
    return min(found, key=_log_volume)


def leaves_rows_out(n: int, d: int) -> bool:
    """Say whether so many rows of so many columns are enough to leave some of them out."""
    return n > 2 * d


def distances_left_out(distances: Array, rows: Array, trust: Array, ridge: float) -> Array:
    """Return how far each row lies from an ellipse that was fitted to all the others.

    An ellipse of few rows reaches out to each of them: its own rows lie close to it, and all new
    ones far away. A row that has the part h in the covariance, and the distance m, has
    m / sqrt(1 - h m^2) without it (Sherman and Morrison). Centre and mean variance stay.

    Parameters
    ----------
    distances : ndarray of shape (n,)
        From an ellipse that `robust_ellipse` fitted to all these rows.
    rows, trust, ridge : ndarray of shape (n, d), ndarray of shape (n,), float
        As they were given to it.
    """
    _, A = _centred(rows, trust)
    kept = 1 - _ridge(A @ A.T if len(A) <= A.shape[1] else A.T @ A, trust, A, ridge)
    own = kept * trust / trust.sum() * np.square(distances)
    found: Array = distances / np.sqrt(np.maximum(1 - own, MOST_OWN))
    return found


def _stepped(rows: Array, trust: Array, ridge: float, oddness: Array, steps: int) -> Ellipse:
    before = np.zeros(len(rows), dtype=bool)
    for _ in range(steps):
        near = oddness <= quantiles(oddness, trust, (KEPT,))[0]
        if (near == before).all():
            break
        found, before = _fitted(rows[near], trust[near], ridge), near
        oddness = found.oddness(rows)
    return found


def _fitted(rows: Array, trust: Array, ridge: float) -> Ellipse:
    centre, A = _centred(rows, trust)
    covariance = A.T @ A
    return Ellipse(centre, ridge_precision(covariance, _ridge(covariance, trust, A, ridge)))


def _fitted_wide(rows: Array, trust: Array, ridge: float) -> Ellipse:
    centre, A = _centred(rows, trust)
    return Ellipse(centre, wide_ridge_precision(A, _ridge(A @ A.T, trust, A, ridge)))


def _ridge(product: Array, trust: Array, A: Array, ridge: float) -> float:
    """Return a share of the covariance to replace, larger where few rows know it.

    A covariance of few rows a column lies close to these rows, and all others would be far from it.
    """
    n, d = float(trust.sum() ** 2 / np.square(trust).sum()), A.shape[1]
    return max(ridge, shrinkage(product, n, d)) if n < FEW_ROWS * d else ridge


def _centred(rows: Array, trust: Array) -> tuple[Array, Array]:
    """Return the centre, and A such that A'A is the covariance."""
    share = trust / trust.sum()
    centre = share @ rows
    return centre, (rows - centre) * np.sqrt(share)[:, None]


def _log_volume(ellipse: Ellipse) -> float:
    assert isinstance(ellipse.precision, InverseCovariance)
    return -float(np.linalg.slogdet(ellipse.precision.matrix)[1])
