"""The inverse of a covariance, for few columns and for more columns than rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from aberra.declare import Shape

Array = NDArray[np.float64]


@dataclass(frozen=True)
class InverseCovariance:
    """The inverse of a covariance."""

    matrix: Annotated[Array, Shape("V", "V")]

    def squares(self, x: Array) -> Array:
        """Return x' P x for every row."""
        return ((x @ self.matrix) * x).sum(axis=1)

    def times(self, x: Array) -> Array:
        """Return P x for every row."""
        return x @ self.matrix

    def diagonal(self) -> Array:
        """Return the diagonal of P."""
        return np.diagonal(self.matrix)


@dataclass(frozen=True)
class WideInverseCovariance:
    """The same from fewer rows than columns, P = (I - B'B) / level: no (d, d) matrix."""

    level: float
    basis: Annotated[Array, Shape("s", "V")]

    def squares(self, x: Array) -> Array:
        """Return x' P x for every row."""
        inside = np.square(x @ self.basis.T).sum(axis=1)
        return np.maximum(np.square(x).sum(axis=1) - inside, 0.0) / self.level

    def times(self, x: Array) -> Array:
        """Return P x for every row."""
        return (x - (x @ self.basis.T) @ self.basis) / self.level

    def diagonal(self) -> Array:
        """Return the diagonal of P."""
        return (1 - np.square(self.basis).sum(axis=0)) / self.level


def shrinkage(product: Array, n: float, d: int) -> float:
    """Return the share of a covariance that its mean variance had better replace.

    Oracle approximating shrinkage (Chen, Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE
    covariance estimation", 2010), without its terms in 2 / d, as in scikit-learn.

    Parameters
    ----------
    product : ndarray
        A'A, the covariance, or AA', which has the same trace and the same sum of squares.
    n : float
        Rows that it was learnt from.
    d : int
        Columns.
    """
    squares, trace = float(np.square(product).sum()), float(np.trace(product)) ** 2
    uneven = squares - trace / d
    return min(1.0, (squares + trace) / ((n + 1) * uneven)) if uneven > 0 else 1.0


def ridge_precision(covariance: Array, ridge: float) -> InverseCovariance:
    """Invert (1 - ridge) C + ridge tr(C) / d I."""
    d = len(covariance)
    level = ridge * np.trace(covariance) / d + 1e-9
    factor = cho_factor((1 - ridge) * covariance + level * np.eye(d), lower=True)
    return InverseCovariance(cho_solve(factor, np.eye(d)))


def wide_ridge_precision(A: Array, ridge: float) -> WideInverseCovariance:
    """Do so for C = A'A with A (n, d) of fewer rows than columns, by Woodbury's identity."""
    n, d = A.shape
    level = float(ridge * np.square(A).sum() / d + 1e-9)
    factor = cholesky((1 - ridge) * (A @ A.T) + level * np.eye(n), lower=True)
    return WideInverseCovariance(
        level, solve_triangular(factor, np.sqrt(1 - ridge) * A, lower=True)
    )
