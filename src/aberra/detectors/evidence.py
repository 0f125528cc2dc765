"""Things that hardly happen by chance: a rare code, codes that never meet, the same row again.

Distances and ranks do not see them. They are counted once, over all rows alike, in nats (minus log
of how unlikely), and are 0 for nearly every row of nearly every table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from aberra.declare import Shape
from aberra.detectors.far_cells import FarCells, far_cells
from aberra.rng import stream

Array = NDArray[np.float64]
Places = NDArray[np.int64]

COMMON_CODES, CODED_SHARE = 10, 0.5  # a column is coded if so few values cover so much of it
FEWEST_CODES, MOST_CODES, MOST_CODED = 3, 512, 64
ORDINARY = 0.6  # codes that together cover so much of a column are ordinary
RARE_FROM = 3.5  # nats below the rarest ordinary code
PAIRED_COLUMNS, MOST_PAIRS = 12, 4000
EXPECTED_PAIRS = 5.0  # a pair has to be expected so often before its absence says anything
MISSED_FROM = 1.0  # nats
UNSEEN, GAP = -1, -2
WEIGHT = 0.5  # of a nat of these two, beside a nat of a view
FAR_WEIGHT = 2.0  # of a nat of a cell beyond a gap
MORE_GAPS = 2.0  # of a nat of every gap in a row but one: one may be chance
BLOCK = 1 << 16  # rows whose gaps are weighed at once, so that no copy of the table is made
OFTEN, DRAWN_ROWS, FEWEST_DRAWN = 0.75, 4096, 10  # which gaps are usual
FEWEST_COPIES, COPIED_SHARE, MOST_COPIED = 5, 0.004, 64
UNIQUE_REST, FINE_COLUMNS = 0.9, 0.5


@dataclass(frozen=True)
class CodedColumn:
    """A column of few values, and how surprising each of them is."""

    column: int
    values: Annotated[Array, Shape("q")]
    nats: Annotated[Array, Shape("q")]
    unseen: float  # nats of a value that was not there

    def codes(self, rows: NDArray[np.generic]) -> Places:
        """Return the place of each row's value among the values, or UNSEEN, or GAP."""
        x = rows[:, self.column].astype(np.float64)
        place = np.minimum(np.searchsorted(self.values, x), len(self.values) - 1)
        found = np.where(self.values[place] == x, place, UNSEEN)
        return np.where(np.isnan(x), GAP, found)


@dataclass(frozen=True)
class CodePair:
    """Two coded columns, and how surprising it is that two of their codes meet."""

    first: int  # of the coded columns
    second: int
    nats: Annotated[Array, Shape(None, None)]


@dataclass(frozen=True)
class Evidence:
    """What was counted in the training rows."""

    gap_nats: Annotated[Array, Shape("D")]  # of a gap in each column
    usual_gaps: float  # nats of an ordinary row's gaps
    constant: Annotated[Places, Shape("k", dtype="int64")]  # columns of one value
    values: Annotated[Array, Shape("k")]  # these values
    constant_nats: float

    far: FarCells
    coded: list[CodedColumn]
    pairs: list[CodePair]
    copied: Annotated[Array, Shape(None, "D")]  # rows that occur again and again
    copied_nats: Annotated[Array, Shape(None)]

    def __post_init__(self) -> None:
        d = len(self.gap_nats)
        places = [*self.constant.tolist(), *(column.column for column in self.coded)]
        if any(not 0 <= place < d for place in places):
            raise ValueError("evidence is counted in a column that is not there")
        if len(self.copied) != len(self.copied_nats):
            raise ValueError("copied rows and their nats differ in number")
        for pair in self.pairs:
            sizes = tuple(len(self.coded[k].values) for k in (pair.first, pair.second))
            if pair.nats.shape != sizes:
                raise ValueError("a table of pairs does not fit its columns")

    def nats(self, rows: NDArray[np.generic]) -> Array:
        """Return the evidence against every row."""
        codes, broken = self._rare_codes(rows), self._broken_constants(rows)
        cells = WEIGHT * codes + FAR_WEIGHT * self.far.evidence(rows)
        return cells + self._copies(rows) + self._gaps(rows) + broken

    def _gaps(self, rows: NDArray[np.generic]) -> Array:
        """Return how much more or other gaps a row has than is usual.

        Gaps that come together, as in an outage, count double but for the rarest.
        """
        if rows.dtype.kind != "f":
            return np.zeros(len(rows))
        return np.maximum(_nats_of_gaps(np.isnan(rows), self.gap_nats) - self.usual_gaps, 0.0)

    def _broken_constants(self, rows: NDArray[np.generic]) -> Array:
        """Return whether a column that never changed now has."""
        if not len(self.constant):
            return np.zeros(len(rows))
        now = rows[:, self.constant].astype(np.float64)
        broken = ((now != self.values) & ~np.isnan(now)).any(axis=1)
        return self.constant_nats * broken

    def _rare_codes(self, rows: NDArray[np.generic]) -> Array:
        codes = [column.codes(rows) for column in self.coded]
        rare, missed = np.zeros(len(rows)), np.zeros(len(rows))
        for column, own in zip(self.coded, codes, strict=True):
            nats = np.where(own == UNSEEN, column.unseen, column.nats[own])
            np.maximum(rare, np.where(own == GAP, 0.0, nats), out=rare)
        for pair in self.pairs:
            a, b = codes[pair.first], codes[pair.second]
            np.maximum(missed, np.where((a < 0) | (b < 0), 0.0, pair.nats[a, b]), out=missed)
        return rare + missed

    def _copies(self, rows: NDArray[np.generic]) -> Array:
        found = np.zeros(len(rows))
        for row, nats in zip(self.copied, self.copied_nats, strict=True):
            found[(rows == row).all(axis=1)] = nats
        return found


def evidence(rows: NDArray[np.generic]) -> Evidence:
    """Count codes, pairs of codes and copies in the training rows."""
    n, d = rows.shape
    coded: list[CodedColumn] = []
    seen: list[Places] = []
    for j in range(d):
        values, codes, counts = _counted(rows[:, j])
        if len(coded) < MOST_CODED and _is_coded(counts, n):
            coded.append(_coded_column(j, values.astype(np.float64), counts, n))
            seen.append(codes)
    some = range(min(len(coded), PAIRED_COLUMNS))
    sizes = [len(column.values) for column in coded]
    pairs = [pair for a, b in combinations(some, 2) if (pair := _pair(a, b, seen, sizes))]
    return Evidence(
        *_gap_nats(rows),
        *_constants(rows),
        float(np.log(n + 1.0)),
        far_cells(rows),
        coded,
        pairs,
        *_copied(rows),
    )


def _constants(rows: NDArray[Any]) -> tuple[Places, Array]:
    """Return the columns of one value, and the value of each."""
    found = {j: own[0] for j, x in enumerate(rows.T) if len(own := _counted(x)[0]) == 1}
    return np.array([*found], dtype=np.int64), np.array([*found.values()], dtype=np.float64)


def _counted(x: NDArray[Any]) -> tuple[NDArray[Any], Places, Places]:
    """Return the different values of a column, which of them each row has, and how often."""
    values, codes, counts = np.unique(x, return_inverse=True, return_counts=True)
    if x.dtype.kind == "f" and np.isnan(values[-1]):  # gaps are sorted to the end
        values, counts = values[:-1], counts[:-1]
        codes = np.where(codes == len(values), GAP, codes)
    return values, codes, counts


def _nats_of_gaps(gaps: NDArray[np.bool_], nats: Array) -> Array:
    """Return the nats of every row's gaps; all but the rarest count double."""
    rarest = np.where(gaps, nats, 0.0).max(axis=1)
    return rarest + MORE_GAPS * (gaps @ nats - rarest)


def _gap_nats(rows: NDArray[Any]) -> tuple[Array, float]:
    """Return minus log of the share of gaps in each column, and what is usual for a row.

    Usual is what three quarters of the rows have. And where gaps are scattered over many columns,
    some rows have several by chance: see `_by_chance`.
    """
    n, d = rows.shape
    gaps = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros((0, d), dtype=bool)
    share = (gaps.sum(axis=0) + 0.5) / (n + 1.0)
    nats, mean = -np.log(share), float(-(share * np.log(share)).sum())
    if not gaps.any():
        return nats, mean
    each = [_nats_of_gaps(gaps[at : at + BLOCK], nats) for at in range(0, n, BLOCK)]
    often = float(np.quantile(np.concatenate(each), OFTEN))
    return nats, max(mean, often, _by_chance(share, nats))


def _by_chance(share: Array, nats: Array) -> float:
    """Return how many nats the gaps of a row are worth if gaps know nothing of each other.

    Rows are drawn with gaps of these shares. What is taken off is as much as is needed so that a
    row of x nats beyond it is no more frequent among them than exp(-x).
    """
    drawn = stream(0, len(share)).random((DRAWN_ROWS, len(share))) < share
    found = np.sort(_nats_of_gaps(drawn, nats))[::-1]
    frequent = np.log(DRAWN_ROWS / np.arange(1.0, DRAWN_ROWS + 1))
    return float((found - frequent)[FEWEST_DRAWN:].max())


def _is_coded(counts: Places, n: int) -> bool:
    common = np.sort(counts)[-COMMON_CODES:].sum()
    return FEWEST_CODES <= len(counts) <= MOST_CODES and bool(common >= CODED_SHARE * n)


def _coded_column(j: int, values: Array, counts: Places, n: int) -> CodedColumn:
    """Return how far below the rarest ordinary code each code lies."""
    by_count = np.sort(counts)[::-1]
    ordinary = by_count[np.searchsorted(np.cumsum(by_count), ORDINARY * n)]
    nats = np.maximum(np.log(ordinary / counts) - RARE_FROM, 0.0)
    unseen = max(float(np.log(ordinary / 0.5)) - RARE_FROM, 0.0)
    return CodedColumn(j, values, nats, unseen)


def _pair(a: int, b: int, seen: list[Places], sizes: list[int]) -> CodePair | None:
    """Return how much rarer two codes meet than they would by chance, if any do.

    A code whose every row has a gap in the other column counts as never expected.
    """
    both = (seen[a] >= 0) & (seen[b] >= 0)
    if not both.any() or sizes[a] * sizes[b] > MOST_PAIRS:
        return None
    x, y = seen[a][both], seen[b][both]
    first, second = np.bincount(x, minlength=sizes[a]), np.bincount(y, minlength=sizes[b])
    met = np.bincount(x * sizes[b] + y, minlength=sizes[a] * sizes[b])
    expected = np.outer(first.astype(np.float64), second) / both.sum()
    often = np.maximum(expected, EXPECTED_PAIRS)
    missed = np.log(often / (met.reshape(expected.shape) + 0.5)) - MISSED_FROM
    nats = np.where(expected >= EXPECTED_PAIRS, np.maximum(missed, 0.0), 0.0)
    return CodePair(a, b, nats) if nats.any() else None


def _copied(rows: NDArray[np.generic]) -> tuple[Array, Array]:
    """Return rows that were copied, and the log of how often.

    They count only in a table where copies stand out: all but a tenth of the other rows are
    unique, and half of the columns are fine enough that the other rows hardly share a value.
    """
    n, d = rows.shape
    nothing = np.empty((0, d)), np.empty(0)
    kinds, place, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    again = counts >= max(FEWEST_COPIES, COPIED_SHARE * n)
    rest = ~again[place.ravel()]
    if not again.any() or rest.sum() < n / 2 or again.sum() > MOST_COPIED:
        return nothing
    fine = [len(np.unique(column)) >= 0.5 * len(column) for column in rows[rest].T]
    unique = counts[place.ravel()[rest]] == 1
    if unique.mean() < UNIQUE_REST or np.mean(fine) < FINE_COLUMNS:
        return nothing
    return kinds[again].astype(np.float64), np.log(counts[again])
