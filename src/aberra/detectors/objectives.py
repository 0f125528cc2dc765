"""The objectives of the network detectors, one function per equation.

These functions score rows, which are NumPy arrays, and autograd trains the convolutional members
with them, on torch tensors. Perceptrons are trained with the same objectives in a compiled form
(`aberra.detectors.compiled_training`).

Notation (shapes): m members, B rows in a batch; x, x_hat (m, d, B) rows and reconstructions; z
(m, k, B) codes; w (m, B) weights of the rows. The members share no parameter, so the gradient of a
sum over members is each member's own gradient.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", NDArray[Any], "Tensor")


def squared_error(x: Values, x_hat: Values) -> Values:
    """Squared distance of each sample to its reconstruction; also the AE's score [IADC-4s]."""
    return ((x - x_hat) ** 2).sum(1)


def ae_iadc(error: Tensor, w: Tensor) -> Tensor:
    """Weighted mean of the squared errors of each member, summed over members [IADC-4].

    With w = 1 this is the plain autoencoder's loss, IADC-3.
    """
    return (w * error).mean(dim=-1).sum()


def unit_sphere(z: Values) -> Values:
    """Scale every code to length one, as DAGPR does."""
    squares = (z**2).sum(1)[:, None] + 1e-12
    return z / (np.sqrt(squares) if isinstance(squares, np.ndarray) else squares.sqrt())


def distance(z: Values, c: Values) -> Values:
    """Squared distance of each code to its member's centre c (m, k, 1) [IADC-6s]."""
    return ((z - c) ** 2).sum(1)


def dsvdd_iadc(z: Tensor, c: Tensor, w: Tensor) -> Tensor:
    """Weighted mean squared distance to the centre, summed over members [IADC-6].

    With w = 1 this is plain Deep SVDD, IADC-5.
    """
    return (w * distance(z, c)).mean(dim=-1).sum()


def rsrae_iadc(
    error: Tensor, z: Tensor, A: Tensor, w: Tensor, lambda1: float, lambda2: float
) -> Tensor:
    """Weighted reconstruction and projection norms plus the orthogonality of A [IADC-8].

    `error` is the squared reconstruction error (m, B), A (m, k', k) the subspace of the codes z.
    With w = 1 this is plain RSRAE, IADC-7.

    Deviation: the first two terms are means over the batch and not sums over all rows, so that
    `lambda2` means the same for batches and data of any size.
    """
    residual = z - A.transpose(1, 2) @ (A @ z)
    norms = _root(error) + lambda1 * _root(residual.square().sum(dim=1))
    return (w * norms).mean(dim=-1).sum() + lambda2 * orthogonality(A)


def orthogonality(A: Tensor) -> Tensor:
    """Squared Frobenius distance of A A^T to the identity, summed over members."""
    from torch import eye

    return (A @ A.transpose(1, 2) - eye(A.shape[1])).square().sum()


def _root(squares: Tensor) -> Tensor:
    return (squares + 1e-12).sqrt()  # the norm has no gradient at zero
