"""Four cheap views of a row, averaged: the default detector for tables.

Notation (shapes): a member sees n rows of d columns through trust c (n,), the row's weight times
the times it was drawn. Every view returns one number a row; each is brought to one scale by its
own median and quartiles on the training rows, so that none decides alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Data, Members, Rows, row_counts, tile_at
from aberra.declare import Shape, estimator, learnt, parameter
from aberra.detectors.base import TABLE_TILE, Detector
from aberra.detectors.inverse_covariance import (
    InverseCovariance,
    WideInverseCovariance,
    ridge_precision,
    wide_ridge_precision,
)
from aberra.detectors.scaling import Scaling, min_max, robust
from aberra.rng import for_each
from aberra.scikit import Interval

Array = NDArray[np.float64]

N_VIEWS = 4
FEWEST_BINS, MOST_BINS = 10, 60
FEWEST_ROWS = 32  # in a tile


@dataclass(frozen=True)
class Seen:
    """Rows as all members see them."""

    robust: Array  # (n, d)
    unit: Array  # (n, d)
    cells: NDArray[np.int64]  # (n, d): place of each cell's bin in the histograms of all columns


@dataclass(frozen=True)
class Lenses:
    """What is learnt once from all rows: two scalings and the grid of the histograms."""

    robust: Scaling
    unit: Scaling
    grid: Scaling  # from asinh of the robust columns to bins
    n_bins: int

    def look(self, rows: Data) -> Seen:
        """Scale rows and find their bins, once for all members."""
        r = self.robust(rows)
        return Seen(r, self.unit(rows), self.cells(r))

    def cells(self, r: Array) -> NDArray[np.int64]:
        """Return the bins of all cells, counted through from column to column."""
        bins = self.bins(r)
        bins += np.arange(r.shape[1]) * (self.n_bins + 2)
        return bins

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

    mean: Annotated[Array, Shape("D")]
    precision: InverseCovariance | WideInverseCovariance
    robust_landmarks: Annotated[Array, Shape("s", "D")]
    unit_landmarks: Annotated[Array, Shape("s", "D")]
    surprise: Annotated[Array, Shape("D", None)]  # (d, n_bins + 2): minus log density of every bin
    n_neighbours: int
    middle: Annotated[Array, Shape(N_VIEWS, 1)]
    spread: Annotated[Array, Shape(N_VIEWS, 1)]

    def views(self, seen: Seen) -> Array:
        """Return (4, n): Gaussian distance, two neighbour distances, surprise of the cells."""
        cells = self.surprise.ravel().take(seen.cells)
        return np.stack(
            [
                self.precision.squares(seen.robust - self.mean),
                neighbour_distance(seen.robust, self.robust_landmarks, self.n_neighbours),
                neighbour_distance(seen.unit, self.unit_landmarks, self.n_neighbours),
                cells.mean(axis=1),
            ]
        )

    def score(self, seen: Seen) -> Array:
        """Return the mean of the four views."""
        return self.mean_of(self.views(seen))

    def hidden_scores(self, seen: Seen, other: Seen) -> Array:
        """Return the scores (n, d) with each cell in turn as in the one row of `other`.

        One cell changes a square by a term of its own. Where the cell is all but the whole of
        the square, so that nothing of the rest is left in the rounding, call `score` instead.
        """
        from aberra.detectors.hidden import hidden_neighbour_distance  # imports a compiler

        x, step = seen.robust - self.mean, other.robust - seen.robust
        slope = 2 * self.precision.times(x) + step * self.precision.diagonal()
        cells, others = (self.surprise.ravel().take(one.cells) for one in (seen, other))
        surprise = cells.mean(axis=1, keepdims=True)
        far = partial(hidden_neighbour_distance, k=self.n_neighbours)
        views = np.stack(
            [
                np.maximum(self.precision.squares(x)[:, None] + step * slope, 0.0),
                far(seen.robust, other.robust, self.robust_landmarks),
                far(seen.unit, other.unit, self.unit_landmarks),
                surprise + (others - cells) / len(self.mean),
            ]
        )
        return self.mean_of(views.reshape(N_VIEWS, -1)).reshape(x.shape)

    def mean_of(self, views: Array) -> Array:
        """Return the mean of views (4, n) on one scale; far tails grow as a logarithm."""
        return np.arcsinh(2 * (views - self.middle) / self.spread).mean(axis=0)


def neighbour_distance(x: Array, landmarks: Array, k: int) -> Array:
    """Return the distance of every row to its k-th nearest landmark."""
    k = min(k, len(landmarks)) - 1
    squares = x @ (-2 * landmarks.T)
    squares += (landmarks * landmarks).sum(axis=1)
    squares.partition(k, axis=1)  # in place: this is where most of the time goes
    nearest = squares[:, k] + (x * x).sum(axis=1)
    return np.sqrt(np.maximum(nearest, 0.0))


def bin_surprise(counts: Array) -> Array:
    """Return minus log density of every bin, counts (d, n_bins) smoothed by (1/4, 1/2, 1/4).

    A bin outside the grid, one at either end, counts as empty.
    """
    n_bins, total = counts.shape[1], counts[0].sum()
    padded = np.pad(counts, ((0, 0), (1, 1)), mode="edge")
    smooth = 0.25 * padded[:, :-2] + 0.5 * padded[:, 1:-1] + 0.25 * padded[:, 2:]
    density = (np.pad(smooth, ((0, 0), (1, 1))) + 0.5) / (total + 0.5 * n_bins) * n_bins
    return -np.log(density)


@estimator
class MultiView(Detector):
    """Four views of a row, averaged: the default detector of `IADC` on tables.

    A row is odd if it lies far from the bulk given the columns' correlations (Mahalanobis distance
    with a ridge), if it has no near neighbours among a few hundred trusted rows (on robustly and
    on min-max scaled columns), and if its cells fall into rare bins. Rows enter every view by
    their weight. There is nothing to train but sums, so a fit takes a pass or two over the data.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import MultiView
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> X[7] += 9
    >>> int(MultiView(random_state=0).fit(X).anomaly_score(X).argmax())
    7
    """

    n_landmarks: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=256,
        kw_only=False,
        doc="""Most trusted rows among which neighbours are looked for. They are drawn by weight,
        and there are never more than the effective number of rows, (sum of weights)^2 / (sum of
        their squares).""",
    )
    n_neighbours: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=5,
        kw_only=False,
        doc="The score uses the distance to the k-th nearest of these rows; this is k.",
    )
    ridge: float = parameter(
        Interval(Real, 0, 1, closed="right"),
        default=0.1,
        kw_only=False,
        doc="""Share of the covariance that is replaced by its mean variance, so that it can be
        inverted.""",
    )

    members_: Views = learnt()

    def _prepare(self, data: Data) -> tuple[Data, Lenses]:
        return data, lenses(data)

    def _train(
        self, prepared: tuple[Data, Lenses], rows: Rows, weights: Array, seeds: Sequence[int]
    ) -> Members:
        data, lens = prepared
        trust = row_counts(rows, len(data)) * weights  # (m, n)
        trust = trust / trust.sum(axis=1, keepdims=True) * len(data)
        means, counts = moments(data, lens, trust)
        precisions = ridge_precisions(data, lens, trust, means, self.ridge)
        members = []
        for k, seed in enumerate(seeds):
            chosen = self._landmarks(trust[k], seed)
            members.append(
                View(
                    means[k],
                    precisions[k],
                    lens.robust(data[chosen]),
                    lens.unit(data[chosen]),
                    bin_surprise(counts[k]),
                    self.n_neighbours,
                    np.zeros((N_VIEWS, 1)),
                    np.ones((N_VIEWS, 1)),
                )
            )
        scaled, scores = on_one_scale(data, lens, members)
        trained = Views(lens, scaled)
        trained.training_scores = scores
        return trained

    def _landmarks(self, c: Array, seed: int) -> NDArray[np.int64]:
        # No more than the rows the weights amount to: if all became landmarks, none would be
        # left out for want of trust, and a distrusted cluster would stay its own neighbour.
        n_chosen = min(self.n_landmarks, max(1, round(float(c.sum() ** 2 / np.square(c).sum()))))
        generator = np.random.default_rng(seed)
        return np.sort(generator.choice(len(c), n_chosen, replace=False, p=c / c.sum()))


# Each of the following is one pass over the data for all members, tile by tile.


def moments(data: Data, lens: Lenses, trust: Array) -> tuple[Array, Array]:
    """Return the trusted means (m, d) and histograms (m, d, n_bins) of the columns."""
    m, d, width = len(trust), data.shape[1], lens.n_bins + 2
    means, counts = np.zeros((m, d)), np.zeros((m, d, width))
    for part, tile in tiles(data):
        r = lens.robust(tile)
        cells = lens.cells(r).ravel()
        for k, c in enumerate(trust[:, part]):
            means[k] += c @ r
            counts[k] += np.bincount(cells, np.repeat(c, d), d * width).reshape(d, width)
    return means / trust.sum(axis=1, keepdims=True), counts[:, :, 1:-1]


def ridge_precisions(
    data: Data, lens: Lenses, trust: Array, means: Array, ridge: float
) -> list[InverseCovariance | WideInverseCovariance]:
    """Return the inverse of each member's ridged covariance."""
    d = data.shape[1]
    wide = (trust > 0).sum(axis=1) < d
    sums = {k: np.zeros((d, d)) for k in np.flatnonzero(~wide).tolist()}
    for part, tile in tiles(data) if sums else ():
        r = lens.robust(tile)
        for k, total in sums.items():
            centred = r - means[k]
            total += (centred * trust[k, part, None]).T @ centred
    found: list[InverseCovariance | WideInverseCovariance] = []
    for k, c in enumerate(trust):
        if wide[k]:
            rows = lens.robust(data[c > 0]) - means[k]
            A = rows * np.sqrt(c[c > 0] / c.sum())[:, None]
            found.append(wide_ridge_precision(A, ridge))
        else:
            found.append(ridge_precision(sums.pop(k) / c.sum(), ridge))
    return found


def on_one_scale(data: Data, lens: Lenses, members: Sequence[View]) -> tuple[list[View], Array]:
    """Give members the median and spread of their views on the training rows; return the scores."""
    views = np.empty((len(members), N_VIEWS, len(data)))
    size = tile_rows(data.shape[1])

    def look(start: int) -> None:
        tile, n = tile_at(data, start, size)  # as in scoring, to the last bit
        seen = lens.look(tile)
        for k, member in enumerate(members):
            views[k, :, start : start + n] = member.views(seen)[:, :n]

    for_each(look, range(0, len(data), size))
    scaled, scores = [], np.empty((len(members), len(data)))
    for k, own in enumerate(views):
        low, middle, high = np.percentile(own, (25, 50, 75), axis=1, keepdims=True)
        spread = np.where(high > low, high - low, own.std(axis=1, keepdims=True))
        spread[spread == 0] = 1.0
        scaled.append(replace(members[k], middle=middle, spread=spread))
        scores[k] = scaled[k].mean_of(own)
    return scaled, scores


def tiles(data: Data) -> Iterator[tuple[slice, Data]]:
    """Yield the data in pieces."""
    size = 4 * tile_rows(data.shape[1])
    for start in range(0, len(data), size):
        part = slice(start, start + size)
        yield part, data[part]


def tile_rows(n_columns: int) -> int:
    """Return how many rows to score at a time: fewer if there are very many columns."""
    return max(FEWEST_ROWS, min(TABLE_TILE, TABLE_TILE**2 // n_columns))


@dataclass(eq=False)
class Views(Members):
    """Trained members of `MultiView`."""

    lenses: Lenses
    members: list[View]

    in_threads = True

    def __post_init__(self) -> None:
        self.n_members = len(self.members)
        self.tile_rows = tile_rows(len(self.lenses.robust.shift))
        self.training_scores: Array | None = None  # from training until somebody takes them

    def scores(self, tile: Data) -> Array:
        """Return (m, n) mean views."""
        seen = self.lenses.look(tile)
        return np.stack([member.score(seen) for member in self.members])

    def take_training_scores(self) -> Array | None:
        """Return the scores of the rows just trained on, (m, n), and forget them."""
        scores, self.training_scores = self.training_scores, None
        return scores

    def hidden_scores(self, rows: Data, reference: Array) -> Array:
        """Return the scores (m, n, d) with each cell in turn at its reference."""
        seen, other = self.lenses.look(rows), self.lenses.look(reference[None])
        scores = np.stack([member.hidden_scores(seen, other) for member in self.members])
        # The farthest cell of a row is hidden the long way: see `View.hidden_scores`.
        every = np.arange(len(rows))
        for now, then in ((seen.robust, other.robust), (seen.unit, other.unit)):
            farthest = np.abs(then - now).argmax(axis=1)
            variants = rows.copy()
            variants[every, farthest] = reference[farthest]
            scores[:, every, farthest] = self.scores(variants)
        return scores
