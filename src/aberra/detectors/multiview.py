"""Cheap views of a row, pooled: the default detector for tables.

Notation (shapes): a member sees n rows of d columns through trust c (n,), the row's weight times
the times it was drawn. A view returns one number a row, `oddness`. Each is brought to one scale,
nats, by its own bulk, so that none decides alone; what stands in the bulk is decided by the lower
half of a view, which dirt, being odd, hardly reaches. Five views are averaged. A sixth, and two of
the five, may lift a row above the mean: what only they can see, a mean would drown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Integral, Real
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from aberra.contract.members import Data, Members, Rows
from aberra.declare import LATER, Shape, estimator, learnt, parameter
from aberra.detectors.base import TABLE_TILE, Detector
from aberra.detectors.column_tails import ColumnTails, column_tails
from aberra.detectors.evidence import Evidence, evidence
from aberra.detectors.gain_forest import Forest, grow
from aberra.detectors.landmarks import Landmarks, landmarks
from aberra.detectors.lumps import Lump, lumps, put_in_place
from aberra.detectors.robust_covariance import (
    Ellipse,
    distances_left_out,
    leaves_rows_out,
    robust_ellipse,
)
from aberra.detectors.scaling import Scaling, robust
from aberra.detectors.weighted import quantiles
from aberra.ordinary import SKEW, TENTH
from aberra.scikit import Interval

Array = NDArray[np.float64]
Single = NDArray[np.float32]

N_VIEWS, ELLIPSE = 6, 3
MOST_ROWS = 16_384  # a member learns from no more than this, however long the table
FEWEST_ROWS = 32  # in a tile
FARTHEST = 1e30  # robust deviations; their products still fit into single precision
FAR = 8.0  # nats, from which on surprise grows as a logarithm
SHARES = (3, 2, 3)  # of the trees: tight groups in raw and in tamed columns, large groups
# Of the views in their order (`View.oddness`): parts in the mean, and of what they are above it.
COUNTS = np.array([1, 1, 1, 1, 1, 0]) / 5
LIFTS = np.array([0, 0, 0, 0.6, 0.3, 0.3])


class Seen(NamedTuple):
    """Rows as all members see them."""

    raw: Single  # (n, d): median 0, quartiles of a standard normal, tails as they are
    tamed: Single  # (n, d): asinh of it, with deviation 1
    precise: Array  # (n, d): the same in double precision, for the covariance


@dataclass(frozen=True)
class Lens:
    """What is learnt once from all rows, whatever the trust: scalings, and what can be counted."""

    used: Annotated[NDArray[np.int64], Shape("u", dtype="int64")]  # columns that vary
    robust: Scaling
    spread: Annotated[Array, Shape("u")]  # of these columns after asinh
    evidence: Evidence
    lumps: list[Lump] = field(default_factory=list, metadata=LATER)

    def __post_init__(self) -> None:
        if any(not 0 <= lump.column < len(self.used) for lump in self.lumps):
            raise ValueError("a column of few values is not there")

    def look(self, rows: Data, generator: np.random.Generator | None = None) -> Seen:
        """Scale rows, once for all members; a generator spreads lumped columns (`lumps`)."""
        scaled = filled(self.robust(rows[:, self.used]))
        put_in_place(scaled, self.lumps, generator)
        tamed = np.arcsinh(scaled) / self.spread
        return Seen(scaled.astype(np.float32), tamed.astype(np.float32), tamed)


def lens(data: Data) -> Lens:
    """Learn the scalings, and count."""
    rows = some_rows(data)
    counted = evidence(rows)
    varying = np.setdiff1d(np.arange(data.shape[1]), counted.constant)
    used = varying if len(varying) else np.arange(1)
    scale = robust(rows[:, used])
    scaled = filled(scale(rows[:, used]))
    found = lumps(scaled)
    spread = np.arcsinh(put_in_place(scaled, found, np.random.default_rng(0))).std(axis=0)
    return Lens(used, scale, np.where(spread > 0, spread, 1.0), counted, found)


def filled(scaled: Array) -> Array:
    """Return scaled columns with gaps at the median, 0, and nothing beyond single precision."""
    scaled[np.isnan(scaled)] = 0.0
    return np.clip(scaled, -FARTHEST, FARTHEST, out=scaled)


def some_rows(data: Data) -> Data:
    """Return all rows of a table, or of a long one some that are drawn with a fixed seed."""
    if len(data) <= MOST_ROWS:
        return data
    chosen = np.random.default_rng(0).choice(len(data), MOST_ROWS, replace=False)
    return data[np.sort(chosen)]


def surprise(z: Array) -> Array:
    """Return minus log of the chance that a standard normal exceeds z, in nats.

    Beyond 8 nats it grows as a logarithm: there the law is a guess.
    """
    nats = -log_ndtr(-z)
    return np.where(nats > FAR, FAR + FAR * np.log(np.maximum(nats, FAR) / FAR), nats)


@cache
def surprises() -> Array:
    """Return the surprise of z from -8 to 40, 64 values a unit."""
    return surprise(np.arange(-8 * 64, 40 * 64 + 1) / 64)


@dataclass(frozen=True)
class View:
    """One trained member: its views, and where the bulk of each lies."""

    tight: Forest  # cuts off small groups, in raw columns
    tight_tamed: Forest  # and in tamed ones
    parted: Forest  # parts large groups, in raw columns
    ellipse: Ellipse
    tails: ColumnTails
    crowd: Landmarks
    low: Annotated[Array, Shape(N_VIEWS)]  # tenth
    middle: Annotated[Array, Shape(N_VIEWS)]  # median

    def __post_init__(self) -> None:
        d = len(self.ellipse.centre)
        for forest in (self.tight, self.tight_tamed, self.parted):
            forest.check_columns(d)

    def oddness(self, seen: Seen) -> Array:
        """Return (6, n): what each view says."""
        return np.stack(
            [
                self.tight.oddness(seen.raw),
                self.tight_tamed.oddness(seen.tamed),
                self.parted.oddness(seen.raw),
                self.ellipse.oddness(seen.precise),
                self.tails.oddness(seen.tamed),
                self.crowd.oddness(seen.tamed),
            ]
        )

    def score(self, seen: Seen) -> Array:
        """Return the mean surprise, lifted where one of three views is surprised more.

        The oddness of an ordinary row is taken to be log-normal, shifted: (exp(b z) - 1) a / b
        above the median for a standard normal z. The skew b is the same for all views; the scale
        a follows from the lowest tenth.

        Broken dependence is seen by the covariance alone, one cell far out by the columns' tails,
        a place between two groups by the distance to the nearest rows.
        """
        from aberra.detectors.compiled_views import pooled_nats

        scale = (self.middle - self.low) / TENTH
        return pooled_nats(self.oddness(seen), self.middle, scale, SKEW, surprises(), COUNTS, LIFTS)


@estimator
class MultiView(Detector):
    """Several views of a row, pooled: the default detector of `IADC` on tables.

    A row is odd if few cuts part it from the others (three small forests), if it lies far from
    the bulk given the columns' correlations (a robust covariance), if its cells are far out in
    their columns, and if it is far from its nearest neighbours. Skewed columns are tamed, except
    where a long tail says something, and a flag or a code that some rows have is as odd as it is
    rare. Besides, rare codes, combinations of codes that never occur
    and rows that were copied again and again count as evidence. Rows enter every view by their
    weight. A member learns from at most 16,384 rows, so that long tables cost little.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import MultiView
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> X[7] += 9
    >>> int(MultiView(random_state=0).fit(X).anomaly_score(X).argmax())
    7
    """

    draws_rows: ClassVar[bool] = True  # for the trees and the landmarks

    @property
    def flag_rule(self) -> str:
        """The threshold rule that "auto" means: scores are nats, so chances follow from them."""
        return "fdr"

    @property
    def trust_rule(self) -> str:
        """Rows are trusted unless their scores, which are nats, lie apart."""
        return "apart"

    @property
    def sees_gaps(self) -> bool:
        """Gaps reach the detector: a row with unusual ones is odd."""
        return True

    n_trees: int = parameter(
        Interval(Integral, 3, None, closed="left"),
        default=32,
        kw_only=False,
        doc="""Trees of the three forests together. An ensemble of five members, the default of
        `IADC`, has five times as many.""",
    )
    n_landmarks: int = parameter(
        Interval(Integral, 1, None, closed="left"),
        default=128,
        kw_only=False,
        doc="""Most trusted rows to which distances are measured. They are drawn by weight, and
        there are never more than the effective number of rows, (sum of weights)^2 / (sum of their
        squares).""",
    )
    ridge: float = parameter(
        Interval(Real, 0, 1, closed="right"),
        default=0.02,
        kw_only=False,
        doc="""Share of the covariance that is replaced by its mean variance, so that it can be
        inverted.""",
    )

    members_: Views = learnt()

    def _prepare(self, data: Data) -> tuple[Data, Lens]:
        return data, lens(data)

    def _train(
        self, prepared: tuple[Data, Lens], rows: Rows, weights: Array, seeds: Sequence[int]
    ) -> Members:
        data, shared = prepared
        members = []
        for own, w, seed in zip(rows, weights, seeds, strict=True):  # one member's counts at a time
            trust = np.bincount(own, minlength=len(data)) * w
            members.append(self._member(data, shared, trust, seed))
        return Views(shared, members)

    def _member(self, data: Data, shared: Lens, trust: Array, seed: int) -> View:
        generator = np.random.default_rng(seed)
        chosen = np.flatnonzero(trust)
        if len(chosen) > MOST_ROWS:
            chosen = np.sort(generator.choice(chosen, MOST_ROWS, replace=False))
        c = trust[chosen] / trust[chosen].mean()
        seen = settled = shared.look(data[chosen])
        if shared.lumps:
            seen = shared.look(data[chosen], generator)
        # What is spread hides what belongs together; it is needed only where rows are left out.
        together = seen if leaves_rows_out(*seen.precise.shape) else settled
        n = [max(1, self.n_trees * share // sum(SHARES)) for share in SHARES]
        nothing = np.zeros(N_VIEWS)
        member = View(
            grow(seen.raw, c, generator, n[0], n_planes=10, pooled=False),
            grow(seen.tamed, c, generator, n[1], n_planes=10, pooled=False),
            grow(seen.raw, c, generator, n[2], n_planes=1, pooled=True),
            robust_ellipse(together.precise, c, self.ridge),
            column_tails(seen.tamed, c),
            landmarks(seen.tamed, c, self.n_landmarks, generator),
            nothing,
            nothing,
        )
        return with_bulk(member, settled, c, self.ridge)


def with_bulk(member: View, seen: Seen, trust: Array, ridge: float) -> View:
    """Learn where the bulk of each view lies, for new rows as well.

    A covariance of few rows a column lies so close to them that the bulk of new rows is elsewhere;
    it is where the training rows would be if each had been left out.
    """
    views = member.oddness(seen)
    if not leaves_rows_out(*seen.precise.shape):
        views[ELLIPSE] = distances_left_out(views[ELLIPSE], seen.precise, trust, ridge)
    places = np.array([quantiles(v, trust, (0.1, 0.5)) for v in views])
    low, middle = np.ascontiguousarray(places.T)
    spread = views.std(axis=1)
    spread = np.where(spread > 0, spread, 1.0)
    low = np.where(middle - low > 1e-9 * spread, low, middle - spread)
    return replace(member, low=low, middle=middle)


def tile_rows(n_columns: int) -> int:
    """Return how many rows to score at a time: fewer if there are very many columns."""
    return max(FEWEST_ROWS, min(TABLE_TILE, TABLE_TILE**2 // n_columns))


@dataclass(eq=False)
class Views(Members):
    """Trained members of `MultiView`."""

    lens: Lens
    members: list[View]

    in_threads = True

    def __post_init__(self) -> None:
        self.n_members = len(self.members)
        self.tile_rows = tile_rows(len(self.lens.evidence.gap_nats))
        # Compiled code does not look whether a column is there.
        if any(len(one.ellipse.centre) != len(self.lens.used) for one in self.members):
            raise ValueError("a member looks at other columns than the lens")

    def scores(self, tile: Data) -> Array:
        """Return (m, n): what each member says, and the evidence, the same for all."""
        seen = self.lens.look(tile)
        return np.stack([member.score(seen) for member in self.members]) + self.lens.evidence.nats(
            tile
        )
