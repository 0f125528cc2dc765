"""Four cheap views of a row, averaged: the default detector for tables.

Notation (shapes): a member sees n rows of d columns through trust c (n,), the row's weight times
the times it was drawn. Every view returns one number a row; each is brought to one scale by its
own median and quartiles on the training rows, so that none decides alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils._param_validation import Interval

from aberra.data.tables import Encode, Missing
from aberra.detectors.base import TABLE_TILE, Data, Detector, Members, Rows, row_counts
from aberra.detectors.scaling import Scaling, min_max, robust
from aberra.rng import RandomState

Array = NDArray[np.float64]

N_VIEWS = 4
FEWEST_BINS, MOST_BINS = 10, 60


@dataclass(frozen=True)
class Lenses:
    """What is learnt once from all rows: two scalings and the grid of the histograms."""

    robust: Scaling
    unit: Scaling
    grid: Scaling  # from asinh of the robust columns to bins
    n_bins: int

    def bins(self, r: Array) -> NDArray[np.int64]:
        """Return the bin of every cell, 1 to n_bins; 0 and n_bins + 1 lie outside the grid."""
        position = self.grid(np.arcsinh(r))
        inside = np.clip(position, 0, self.n_bins - 1).astype(np.int64) + 1
        inside[position < 0] = 0
        inside[position > self.n_bins * (1 + 1e-12)] = self.n_bins + 1
        return inside


def lenses(data: Data) -> Lenses:
    """Learn the scalings; the number of bins grows with the cube root of the rows."""
    scale = robust(data)
    span = min_max(np.arcsinh(np.stack([scale(data.min(axis=0)), scale(data.max(axis=0))])))
    n_bins = int(np.clip(2 * len(data) ** (1 / 3), FEWEST_BINS, MOST_BINS))
    grid = Scaling(span.shift, span.factor * n_bins)
    return Lenses(scale, min_max(data), grid, n_bins)


@dataclass(frozen=True)
class View:
    """One trained member: the four views and the scale of each."""

    lenses: Lenses
    mean: Array  # (d,)
    precision: Array  # (d, d)
    robust_landmarks: Array  # (s, d)
    unit_landmarks: Array  # (s, d)
    surprise: Array  # (d, n_bins + 2): minus log density of every bin
    n_neighbours: int
    middle: Array  # (4, 1)
    spread: Array  # (4, 1)

    def views(self, rows: Data) -> Array:
        """Return (4, n): Gaussian distance, two neighbour distances, surprise of the cells."""
        r, u = self.lenses.robust(rows), self.lenses.unit(rows)
        centred = r - self.mean
        cells = self.surprise[np.arange(r.shape[1]), self.lenses.bins(r)]
        return np.stack(
            [
                ((centred @ self.precision) * centred).sum(axis=1),
                neighbour_distance(r, self.robust_landmarks, self.n_neighbours),
                neighbour_distance(u, self.unit_landmarks, self.n_neighbours),
                cells.mean(axis=1),
            ]
        )

    def score(self, rows: Data) -> Array:
        """Return the mean of the four views on one scale; far tails grow as a logarithm."""
        return np.arcsinh(2 * (self.views(rows) - self.middle) / self.spread).mean(axis=0)


def neighbour_distance(x: Array, landmarks: Array, k: int) -> Array:
    """Return the distance of every row to its k-th nearest landmark."""
    k = min(k, len(landmarks)) - 1
    squares = x @ (-2 * landmarks.T)
    squares += (landmarks * landmarks).sum(axis=1)
    squares.partition(k, axis=1)  # in place: this is where most of the time goes
    nearest = squares[:, k] + (x * x).sum(axis=1)
    return np.sqrt(np.maximum(nearest, 0.0))


def ridge_precision(covariance: Array, ridge: float) -> Array:
    """Invert (1 - ridge) C + ridge tr(C) / d I."""
    d = len(covariance)
    level = ridge * np.trace(covariance) / d + 1e-9
    factor = cho_factor((1 - ridge) * covariance + level * np.eye(d), lower=True)
    return cho_solve(factor, np.eye(d))


def bin_surprise(counts: Array) -> Array:
    """Return minus log density of every bin, counts (d, n_bins) smoothed by (1/4, 1/2, 1/4).

    A bin outside the grid, one at either end, counts as empty.
    """
    n_bins, total = counts.shape[1], counts[0].sum()
    padded = np.pad(counts, ((0, 0), (1, 1)), mode="edge")
    smooth = 0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:]
    density = (np.pad(smooth, ((0, 0), (1, 1))) + 0.5) / (total + 0.5 * n_bins) * n_bins
    return -np.log(density)


class MultiView(Detector):
    """Four views of a row, averaged: the default detector of `IADC` on tables.

    A row is odd if it lies far from the bulk given the columns' correlations (Mahalanobis distance
    with a ridge), if it has no near neighbours among a few hundred trusted rows (on robustly and
    on min-max scaled columns), and if its cells fall into rare bins. Rows enter every view by
    their weight. There is nothing to train but sums, so a fit takes a pass or two over the data.

    Parameters
    ----------
    n_landmarks : int
        Trusted rows at most among which neighbours are looked for, drawn by weight; no more than
        the effective number of rows, (sum of weights)^2 / (sum of their squares).
    n_neighbours : int
        The distance to this many-th neighbour counts.
    ridge : float
        Share of the covariance that is replaced by its mean variance.
    random_state : int, RandomState or None
        Draws the landmarks.
    threshold, missing, encode
        As in `IADC`.

    Attributes
    ----------
    threshold_, contamination_ : float
        Label-free threshold on the score, and the share of training rows above it.
    threshold_rule_ : str
        Name of the rule that placed the threshold.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import MultiView
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> X[7] += 9
    >>> int(MultiView(random_state=0).fit(X).anomaly_score(X).argmax())
    7
    """

    _parameter_constraints: dict[str, list[Any]] = {
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "n_neighbours": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, 1, closed="right")],
        **Detector._scorer_constraints,
    }

    def __init__(
        self,
        n_landmarks: int = 256,
        n_neighbours: int = 5,
        ridge: float = 0.1,
        *,
        threshold: float | str = "auto",
        missing: Missing = "error",
        encode: Encode = "error",
        random_state: RandomState = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.n_neighbours = n_neighbours
        self.ridge = ridge
        self.threshold = threshold
        self.missing = missing
        self.encode = encode
        self.random_state = random_state

    def _prepare(self, data: Data) -> tuple[Data, Lenses]:
        return data, lenses(data)

    def _train(
        self, prepared: tuple[Data, Lenses], rows: Rows, weights: Array, seeds: Sequence[int]
    ) -> Members:
        data, lens = prepared
        trust = row_counts(rows, len(data)) * weights  # (m, n)
        pairs = zip(trust, seeds, strict=True)
        return Views([self._member(data, lens, c, seed) for c, seed in pairs])

    def _member(self, data: Data, lens: Lenses, c: Array, seed: int) -> View:
        """Take the sums of one member in two passes over the data."""
        c = c / c.sum() * len(c)
        # No more than the rows the weights amount to: if all became landmarks, none would be
        # left out for want of trust, and a distrusted cluster would stay its own neighbour.
        n_chosen = min(self.n_landmarks, max(1, round(float(c.sum() ** 2 / np.square(c).sum()))))
        generator = np.random.default_rng(seed)
        chosen = np.sort(generator.choice(len(c), n_chosen, replace=False, p=c / c.sum()))
        mean, covariance, counts = moments(data, lens, c)
        view = View(
            lens,
            mean,
            ridge_precision(covariance, self.ridge),
            lens.robust(data[chosen]),
            lens.unit(data[chosen]),
            bin_surprise(counts),
            self.n_neighbours,
            np.zeros((N_VIEWS, 1)),
            np.ones((N_VIEWS, 1)),
        )
        seen = np.concatenate([view.views(tile) for _, tile in tiles(data)], axis=1)
        low, middle, high = np.percentile(seen, (25, 50, 75), axis=1)
        spread = np.where(high > low, high - low, seen.std(axis=1))
        scale = {"middle": middle[:, None], "spread": np.where(spread > 0, spread, 1.0)[:, None]}
        return View(**{**vars(view), **scale})


def moments(data: Data, lens: Lenses, c: Array) -> tuple[Array, Array, Array]:
    """Return the trusted mean, covariance and histograms of the columns, tile by tile."""
    d = data.shape[1]
    mean = sum((c[part] @ lens.robust(tile) for part, tile in tiles(data)), np.zeros(d)) / c.sum()
    covariance, counts = np.zeros((d, d)), np.zeros((d, lens.n_bins + 2))
    offsets = np.arange(d) * (lens.n_bins + 2)
    for part, tile in tiles(data):
        r = lens.robust(tile)
        cells = (lens.bins(r) + offsets).ravel()
        counts += np.bincount(cells, np.repeat(c[part], d), counts.size).reshape(counts.shape)
        r -= mean
        covariance += (r * c[part, None]).T @ r
    return mean, covariance / c.sum(), counts[:, 1:-1]


def tiles(data: Data) -> Iterator[tuple[slice, Data]]:
    """Yield the data in pieces."""
    for start in range(0, len(data), 4 * TABLE_TILE):
        part = slice(start, start + 4 * TABLE_TILE)
        yield part, data[part]


class Views:
    """Trained members of `MultiView`."""

    tile_rows = TABLE_TILE

    def __init__(self, members: Sequence[View]) -> None:
        self.members = list(members)
        self.n_members = len(self.members)

    def scores(self, tile: Data) -> Array:
        """Return (m, n) mean views."""
        return np.stack([member.score(tile) for member in self.members])
