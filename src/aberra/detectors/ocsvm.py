"""The one-class support vector machine, exact or with landmarks, with a weight for every row.

Notation (shapes): x (n, d) rows; a (s,) dual coefficients, sum 1; v (s, d) support vectors or
landmarks; the score of a row is rho - sum_k a_k k(v_k, x), with k the Gaussian kernel.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize
from sklearn.svm import OneClassSVM

from aberra.contract.members import Data, Members, Rows
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.detectors.base import TABLE_TILE, Detector
from aberra.detectors.scaling import Scaling, min_max, pixels
from aberra.scikit import Interval, StrOptions

logger = logging.getLogger(__name__)

Array = NDArray[np.float64]
Solved = Literal["exact", "nystroem"]
Solver = Literal["auto", "exact", "nystroem"]

EXACT_ROWS = 2000  # distinct rows up to which `solver="auto"` is exact
NYSTROEM_ROWS = 50_000  # rows the landmark solver looks at; more are drawn by weight


def gaussian_kernel(x: Array, v: Array, gamma: float) -> Array:
    """Return exp(-gamma |x - v|^2) for all pairs, (n, s)."""
    squares = (v * v).sum(axis=1) - 2.0 * (x @ v.T)
    squares += (x * x).sum(axis=1)[:, None]
    np.maximum(squares, 0.0, out=squares)
    squares *= -gamma
    return np.exp(squares, out=squares)


def scale_gamma(x: Array, counts: Array) -> float:
    """Return 1 / (d * variance of all numbers), scikit-learn's "scale"."""
    share = counts / counts.sum()
    mean = float(share @ x.mean(axis=1))
    variance = float(share @ np.square(x).mean(axis=1)) - mean**2
    return 1.0 / (x.shape[1] * variance) if variance > 0 else 1.0


@dataclass(frozen=True)
class KernelExpansion:
    """A solved one-class problem."""

    vectors: Annotated[Array, Shape("s", "k")]
    coefficients: Annotated[Array, Shape("s")]
    rho: float
    gamma: float

    def score(self, x: Array) -> Array:
        """Signed distance to the hyperplane, positive outside [IADC-2s]."""
        return self.rho - gaussian_kernel(x, self.vectors, self.gamma) @ self.coefficients


def ocsvm_iadc(x: Array, w: Array, nu: float, gamma: float) -> KernelExpansion:
    """Solve the weighted one-class problem exactly [IADC-2].

    In the dual: 0 <= a_i <= w_i / (nu sum w), sum a = 1. With w = 1 this is the plain machine,
    IADC-1.

    Deviation: in print the weight stands in the objective and in the constraint, and then cancels
    (put zeta = w xi); here it stands in the objective alone. The box is w / (nu sum w) instead of
    w / (nu n), so that nu stays the share of the total weight that may lie outside.
    """
    positive = w > 0
    x, w = x[positive], w[positive]
    # libsvm wants weights of about 1: its tolerance is absolute.
    machine = OneClassSVM(nu=nu, gamma=gamma, cache_size=500)
    machine.random_state = 0  # not a keyword there; None would draw from the global generator
    machine.fit(x, sample_weight=w / w.mean())
    total = machine.dual_coef_.sum()
    return KernelExpansion(
        machine.support_vectors_,
        machine.dual_coef_[0] / total,
        float(-machine.intercept_[0] / total),
        gamma,
    )


def ocsvm_landmarks(
    x: Array, w: Array, nu: float, gamma: float, n_landmarks: int, generator: np.random.Generator
) -> KernelExpansion:
    """Solve the same problem in the span of some rows (Nystroem features).

    In these features the problem is linear and is minimised in the primal, its hinge rounded over
    a width that shrinks to a thousandth of the scores' range. Cost and memory grow linearly with
    the rows, and scoring needs `n_landmarks` kernels a row instead of nu * n.

    Deviation: the paper names no approximation. By default more than 2,000 distinct rows are solved
    in this way, which is so on Thyroid, Satimage-2, Satellite and Shuttle, for the machine and
    for the hybrid; `solver="exact"` is as printed. On all rows of the six sets the AUROC of the
    two differs by at most 0.04 points (results/ocsvm_solvers.md).
    """
    if len(x) > NYSTROEM_ROWS:
        # With replacement: without it, drawing most of the rows would undo their weights.
        drawn = generator.choice(len(x), NYSTROEM_ROWS, p=w / w.sum())
        chosen, counts = np.unique(drawn, return_counts=True)
        x, w = x[chosen], counts.astype(np.float64)
    n_landmarks = min(n_landmarks, int(np.count_nonzero(w)))
    landmarks = x[generator.choice(len(x), n_landmarks, replace=False, p=w / w.sum())]
    whiten = _inverse_root(gaussian_kernel(landmarks, landmarks, gamma))
    features = (gaussian_kernel(x, landmarks, gamma) @ whiten).astype(np.float32)
    direction, rho = _linear_one_class(features, w / (nu * w.sum()))
    return KernelExpansion(landmarks, whiten @ direction, rho, gamma)


def _inverse_root(kernel: Array) -> Array:
    values, vectors = eigh(kernel)
    keep = values > 1e-8 * values[-1]
    return vectors[:, keep] / np.sqrt(values[keep])


def _linear_one_class(features: NDArray[np.float32], cost: Array) -> tuple[Array, float]:
    """Minimise |u|^2 / 2 - rho + sum cost * hinge(rho - features u) over (u, rho)."""
    u = cost @ features / cost.sum()
    projections = features @ u
    rho = float(np.median(projections))
    spread = float(np.ptp(projections)) or 1.0
    point = np.append(u, rho)
    for width in (0.05 * spread, 0.01 * spread, 0.001 * spread):
        solution = minimize(
            _rounded_objective,
            point,
            args=(features, cost, width),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 200, "ftol": 1e-10, "gtol": 1e-6},
        )
        point = solution.x
    return point[:-1], float(point[-1])


def _rounded_objective(
    point: Array, features: NDArray[np.float32], cost: Array, width: float
) -> tuple[float, Array]:
    u, rho = point[:-1], point[-1]
    miss = (rho - features @ u.astype(np.float32)).astype(np.float64)
    inside = np.clip((miss + width) / (2 * width), 0.0, 1.0)  # slope of the rounded hinge
    hinge = np.where(miss < width, width * inside**2, miss)
    pull = cost * inside
    value = 0.5 * u @ u - rho + cost @ hinge
    gradient = np.append(u - pull.astype(np.float32) @ features, pull.sum() - 1.0)
    return float(value), gradient


def fit_one_class(
    x: Array,
    counts: Array,
    weights: Array,
    nu: float,
    gamma: float | str,
    solver: Solved,
    n_landmarks: int,
    seed: int,
) -> KernelExpansion:
    """Solve for the rows drawn `counts` times each; a row drawn twice counts as weight 2."""
    drawn = counts > 0
    x, counts, w = x[drawn], counts[drawn], (counts * weights)[drawn]
    width = scale_gamma(x, counts) if gamma == "scale" else float(gamma)
    if solver == "exact":
        return ocsvm_iadc(x, w, nu, width)
    return ocsvm_landmarks(x, w, nu, width, n_landmarks, np.random.default_rng(seed))


def resolve_solver(solver: Solver, n_rows: int) -> Solved:
    """Choose the exact solver up to `EXACT_ROWS` distinct rows."""
    if solver != "auto":
        return solver
    return "exact" if n_rows <= EXACT_ROWS else "nystroem"


@dataclass(eq=False)
class Expansions(Members):
    """Trained one-class machines on scaled rows."""

    scaling: Scaling
    machines: list[KernelExpansion]

    tile_rows = TABLE_TILE
    in_threads = True

    def __post_init__(self) -> None:
        self.n_members = len(self.machines)

    def scores(self, tile: Data) -> Array:
        """Return (m, n) signed distances, positive outside."""
        x = self.scaling(tile)
        return np.stack([machine.score(x) for machine in self.machines])


@estimator
class OneClassDetector(Detector):
    """Base of the detectors that draw a border with a one-class support vector machine."""

    nu: float = parameter(
        Interval(Real, 0, 1, closed="right"),
        default=0.5,
        kw_only=False,
        doc="""Share of the training rows, counted by weight, that may lie outside of the border.
        The default of 0.5 suits contaminated data: the border then follows the densest half,
        whatever the other half holds.""",
    )
    gamma: float | Literal["scale"] = parameter(
        StrOptions({"scale"}),
        Interval(Real, 0, None, closed="neither"),
        default="scale",
        kw_only=False,
        doc="""How quickly the kernel `exp(-gamma |x - y|^2)` falls with the distance: the larger,
        the closer the border follows single rows. It applies to columns that were scaled to
        [0, 1], or to codes that were brought to variance 1. "scale" means 1 / (number of columns *
        variance of all numbers), as in scikit-learn.""",
    )
    solver: Solver = parameter(
        StrOptions({"auto", "exact", "nystroem"}),
        default="auto",
        doc="""How the border is found. "exact" is libsvm. "nystroem" is an approximation by
        `n_landmarks` of the rows, for which time and memory grow in proportion to the data.
        "auto" is exact up to 2,000 distinct rows. On the six ODDS sets the two differ by at most
        0.1 points of AUROC at nu 0.5 (benchmarks/ocsvm_solvers).""",
    )
    n_landmarks: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=256,
        doc="Number of rows that carry the approximate solution; the exact one does not use it.",
    )

    solver_: Literal["exact", "nystroem"] = learnt("The solver that was used.")

    def _machines(
        self, inputs: Iterable[Array], rows: Rows, weights: Array, seeds: Sequence[int]
    ) -> list[KernelExpansion]:
        """Solve each member's problem on the rows it drew; `inputs` has one (n, k) per member."""
        sizes = [len(np.unique(drawn)) for drawn in rows]
        solvers = [resolve_solver(self.solver, size) for size in sizes]
        self.solver_ = "nystroem" if "nystroem" in solvers else "exact"
        if self.solver == "auto" and self.solver_ == "nystroem":
            logger.info(
                "one-class SVM: %d distinct rows are over %d, so %d landmarks replace the exact "
                "solution (solver='exact' forces it)",
                max(sizes),
                EXACT_ROWS,
                self.n_landmarks,
            )
        return [
            self._machine(x, drawn, w, solver, seed)
            for x, drawn, w, solver, seed in zip(inputs, rows, weights, solvers, seeds, strict=True)
        ]

    def _machine(
        self, x: Array, drawn: NDArray[np.int64], weights: Array, solver: Solved, seed: int
    ) -> KernelExpansion:
        counts = np.bincount(drawn, minlength=len(x)).astype(np.float64)
        return fit_one_class(
            x, counts, weights, self.nu, self.gamma, solver, self.n_landmarks, seed
        )


@estimator
class OCSVM(OneClassDetector):
    """A smooth border around the bulk of the rows; the score is the distance beyond it.

    This is the one-class support vector machine with a Gaussian kernel. A row outside of the
    border costs in proportion to its `sample_weight`, so rows that are not trusted hardly bend it.

    See Also
    --------
    HybridOCSVM : The same on the code of an autoencoder, for images or very many columns.
    IADC : Trains an ensemble of these on data that may be contaminated.

    References
    ----------
    Schoelkopf, Platt, Shawe-Taylor, Smola and Williamson, "Estimating the support of a
    high-dimensional distribution", Neural Computation 13(7), 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import OCSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> OCSVM().fit(X).solver_
    'exact'
    """

    members_: Expansions = learnt()

    def _prepare(self, data: Data) -> tuple[Array, Scaling]:
        scaling = min_max(data) if self.image_shape_ is None else pixels(data)
        return scaling(data), scaling

    def _train(
        self, prepared: tuple[Array, Scaling], rows: Rows, weights: Array, seeds: Sequence[int]
    ) -> Expansions:
        x, scaling = prepared
        return Expansions(scaling, self._machines([x] * len(rows), rows, weights, seeds))
