"""Dirt of many kinds, planted at a known share into tables of many kinds.

A *base* draws clean rows; a *dirt* takes clean rows of that base and spoils them. Both are pure:
every draw comes from the generator passed in. `planted` puts them together and shuffles.

Values are physical: a base has its own location and spread in every column, so a zero, a slipped
decimal or a swapped column is as visible as it would be in real records.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
Flags = NDArray[np.bool_]
Generator = np.random.Generator


@dataclass(frozen=True)
class Base:
    """Where clean rows come from; `draw` may be called again for more rows of the same kind."""

    draw: Callable[[int, Generator], Rows]
    centre: Rows  # (d,): a typical row
    spread: Rows  # (d,): how far rows usually are from it


def correlated(d: int, rng: Generator) -> Rows:
    """Return a factor (d, d) of a covariance in which columns 2k and 2k + 1 move together."""
    mix = np.eye(d) + 0.25 * rng.normal(size=(d, d)) / np.sqrt(d)
    for j in range(0, d - 1, 2):
        mix[j + 1] = 0.95 * mix[j] + 0.3 * mix[j + 1]
    scaled: Rows = mix / np.linalg.norm(mix, axis=1, keepdims=True)
    return scaled


def gaussian(d: int, rng: Generator) -> Base:
    """Correlated normal columns, five to twenty deviations from zero."""
    mix, spread = correlated(d, rng), np.exp(rng.normal(size=d))
    centre = spread * rng.uniform(5, 20, d)
    return Base(lambda n, r: centre + spread * (r.normal(size=(n, d)) @ mix.T), centre, spread)


def lognormal(d: int, rng: Generator) -> Base:
    """Correlated columns with a long upper tail."""
    mix, level = correlated(d, rng), rng.uniform(0, 3, d)
    centre = np.exp(level)
    return Base(lambda n, r: np.exp(level + 0.8 * (r.normal(size=(n, d)) @ mix.T)), centre, centre)


def multimodal(d: int, rng: Generator, n_modes: int = 4) -> Base:
    """Four groups of unlike size, well apart in most columns."""
    mix, spread = correlated(d, rng), np.exp(rng.normal(size=d))
    middles = spread * (rng.uniform(12, 20, d) + 3 * rng.normal(size=(n_modes, d)))
    shares = np.array([0.4, 0.3, 0.2, 0.1])

    def draw(n: int, r: Generator) -> Rows:
        which = r.choice(n_modes, n, p=shares)
        drawn: Rows = middles[which] + spread * (r.normal(size=(n, d)) @ mix.T)
        return drawn

    return Base(draw, middles.mean(axis=0), 3 * spread)


def discrete(d: int, rng: Generator) -> Base:
    """Make counts: small whole numbers, neighbours in pairs of columns going together."""
    mix, level = correlated(d, rng), rng.uniform(1.0, 2.2, d)

    def draw(n: int, r: Generator) -> Rows:
        counts = np.exp(level + 0.35 * (r.normal(size=(n, d)) @ mix.T))
        return np.asarray(np.round(counts), dtype=np.float64)

    centre = np.asarray(np.round(np.exp(level)), dtype=np.float64)
    return Base(draw, centre, 0.5 * np.exp(level) + 0.5)


def mixed(d: int, rng: Generator) -> Base:
    """Take a third each of normal columns, skewed amounts and counts."""
    parts = [gaussian, lognormal, discrete]
    sizes = [d - 2 * (d // 3), d // 3, d // 3]
    made = [part(size, rng) for part, size in zip(parts, sizes, strict=True)]

    def draw(n: int, r: Generator) -> Rows:
        return np.hstack([one.draw(n, r) for one in made])

    centre, spread = (np.concatenate([getattr(b, f) for b in made]) for f in ("centre", "spread"))
    return Base(draw, centre, spread)


Dirt = Callable[[Rows, Base, Generator], Rows]


def some_columns(d: int, share: float, rng: Generator) -> NDArray[np.int64]:
    """Choose a share of the columns, at least one."""
    return np.sort(rng.permutation(d)[: max(1, round(share * d))])


def dead_sensor(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Every cell reads zero."""
    return np.zeros_like(rows)


def duplicated_block(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Return the same five rows, pasted again and again."""
    block = base.draw(5, rng)
    return block[np.arange(len(rows)) % len(block)]


def stuck_value(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Hold a third of the columns still at one ordinary value each."""
    columns = some_columns(rows.shape[1], 1 / 3, rng)
    spoilt = rows.copy()
    spoilt[:, columns] = base.draw(1, rng)[0, columns]
    return spoilt


def wrong_unit(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Give a third of the columns in a unit a thousand times smaller."""
    columns = some_columns(rows.shape[1], 1 / 3, rng)
    spoilt = rows.copy()
    spoilt[:, columns] *= 1000.0
    return spoilt


def decimal_shift(rows: Rows, base: Base, rng: Generator) -> Rows:
    """One cell of each row is ten times too large or too small."""
    spoilt = rows.copy()
    columns = rng.integers(rows.shape[1], size=len(rows))
    spoilt[np.arange(len(rows)), columns] *= np.where(rng.random(len(rows)) < 0.5, 10.0, 0.1)
    return spoilt


def swapped_columns(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Two columns have changed places: those whose usual values differ most."""
    order = np.argsort(base.centre)
    spoilt = rows.copy()
    spoilt[:, [order[0], order[-1]]] = rows[:, [order[-1], order[0]]]
    return spoilt


def missing_run(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Empty a run of more than half of the columns (NaN)."""
    d = rows.shape[1]
    length = d // 2 + 1
    starts = rng.integers(d - length + 1, size=len(rows))
    spoilt = rows.copy()
    for row, start in zip(spoilt, starts, strict=True):
        row[start : start + length] = np.nan
    return spoilt


def broken_correlation(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Take the second column of each pair from another row."""
    spoilt = rows.copy()
    others = base.draw(len(rows), rng)
    spoilt[:, 1::2] = others[:, 1::2]
    return spoilt


def tight_cluster(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Put a small crowd far from the rest, all nearly the same."""
    d = rows.shape[1]
    place = base.centre + 4 * base.spread * rng.choice([-1.0, 1.0], d)
    return place + 0.1 * base.spread * rng.normal(size=rows.shape)


def loose_cluster(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Put a crowd at some distance, as wide as the rest."""
    step = 3 * base.spread * rng.choice([-1.0, 1.0], rows.shape[1])
    return rows + step


def local_anomalies(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Each row is moved by three times the usual deviation in a direction of its own."""
    return rows + 3 * base.spread * rng.normal(size=rows.shape) / np.sqrt(2)


def global_anomalies(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Cells drawn evenly from a box somewhat larger than the data."""
    clean = base.draw(1000, rng)
    low, high = clean.min(axis=0), clean.max(axis=0)
    return rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), rows.shape)


def dependency_anomalies(rows: Rows, base: Base, rng: Generator) -> Rows:
    """Every cell is ordinary in its column, but none belongs to the others of its row."""
    return np.column_stack([base.draw(len(rows), rng)[:, j] for j in range(rows.shape[1])])


BASES: dict[str, Callable[[int, Generator], Base]] = {
    "gaussian": gaussian,
    "lognormal": lognormal,
    "multimodal": multimodal,
    "discrete": discrete,
    "mixed": mixed,
}
DIRT: dict[str, Dirt] = {
    "dead sensor": dead_sensor,
    "duplicated block": duplicated_block,
    "stuck value": stuck_value,
    "wrong unit": wrong_unit,
    "decimal shift": decimal_shift,
    "swapped columns": swapped_columns,
    "missing run": missing_run,
    "broken correlation": broken_correlation,
    "tight cluster": tight_cluster,
    "loose cluster": loose_cluster,
    "local": local_anomalies,
    "global": global_anomalies,
    "dependency": dependency_anomalies,
}


def categories(n: int, rng: Generator, rare: bool) -> Rows:
    """Return a column of codes: six common ones, or one of many that hardly ever occur."""
    if rare:
        return np.asarray(rng.integers(1, 60, n) * 10.0 + 5.0, dtype=np.float64)
    return rng.choice(np.arange(6), n, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05]) * 100.0


def rare_category(n: int, d: int, share: float, base: str, rng: Generator) -> tuple[Rows, Flags]:
    """Ordinary rows with a code column in which the dirty ones have odd codes."""
    X, y = clean_and_flags(n, d - 1, share, base, rng)
    code = np.where(y, categories(n, rng, rare=True), categories(n, rng, rare=False))
    return np.column_stack([X, code]), y


def rare_combination(n: int, d: int, share: float, base: str, rng: Generator) -> tuple[Rows, Flags]:
    """Two code columns, each ordinary, whose pairing never occurs in clean rows."""
    X, y = clean_and_flags(n, d - 2, share, base, rng)
    first = rng.integers(6, size=n)
    second = (2 * first + rng.integers(2, size=n)) % 6  # two partners for every code
    wrong = (2 * first + 2 + rng.integers(4, size=n)) % 6
    return np.column_stack([X, first, np.where(y, wrong, second)]), y


def clean_and_flags(n: int, d: int, share: float, base: str, rng: Generator) -> tuple[Rows, Flags]:
    """Draw clean rows and choose which of them are to be spoilt."""
    X = BASES[base](max(d, 3), rng).draw(n, rng)
    y = np.zeros(n, dtype=bool)
    y[rng.permutation(n)[: round(share * n)]] = True
    return X, y


def fraud(n: int, d: int, share: float, base: str, rng: Generator) -> tuple[Rows, Flags]:
    """Payments: amounts with a heavy tail; fraud is large for its account, often, and at night."""
    y = np.zeros(n, dtype=bool)
    y[rng.permutation(n)[: round(share * n)]] = True
    usual = np.exp(rng.normal(4, 1, n))  # what this account usually pays
    amount = (
        usual * np.exp(0.5 * rng.standard_t(3, n)) * np.where(y, np.exp(rng.normal(2, 0.5, n)), 1)
    )
    hour = np.where(y, rng.normal(3, 2, n), rng.normal(14, 4, n)) % 24
    count = rng.poisson(np.where(y, 8.0, 2.0))
    noise = np.exp(rng.normal(size=(n, max(d - 4, 1))))
    return np.column_stack([usual, amount, hour, count, noise]), y


def seasonal(n: int, d: int, share: float, base: str, rng: Generator) -> tuple[Rows, Flags]:
    """Make a sensor with a daily course; a spike is a value of noon at midnight."""
    y = np.zeros(n, dtype=bool)
    y[rng.permutation(n)[: round(share * n)]] = True
    hour = rng.uniform(0, 24, n)
    seen = np.where(y, (hour + rng.uniform(8, 16, n)) % 24, hour)  # the hour it would fit
    phase = np.linspace(0, 1.2, max(d - 1, 2))
    course = np.sin(2 * np.pi * seen[:, None] / 24 + phase) * 5 + 20
    return np.column_stack([hour, course + 0.5 * rng.normal(size=course.shape)]), y


Whole = Callable[[int, int, float, str, Generator], tuple[Rows, Flags]]
WITH_BASE: dict[str, Whole] = {"rare category": rare_category, "rare combination": rare_combination}
ON_THEIR_OWN: dict[str, Whole] = {"fraud": fraud, "seasonal spike": seasonal}


def planted(kind: str, base: str, n: int, d: int, share: float, seed: int) -> tuple[Rows, Flags]:
    """Return a table with `share` of one kind of dirt, shuffled, and where the dirt is.

    Parameters
    ----------
    kind : str
        A key of `DIRT`, `WITH_BASE` or `ON_THEIR_OWN`.
    base : str
        A key of `BASES`; kinds of `ON_THEIR_OWN` ignore it.
    n, d : int
        Rows and columns.
    share : float in [0, 1)
        Dirty share of the rows; at least two rows where it is above zero.
    seed : int

    Returns
    -------
    X : ndarray of shape (n, d)
    y : ndarray of bool
        True for dirt.
    """
    rng = np.random.default_rng([seed, n, d])
    if share > 0:
        share = max(share, 2 / n)
    whole = WITH_BASE.get(kind) or ON_THEIR_OWN.get(kind)
    if whole is not None:
        return whole(n, d, share, base, rng)
    X, _ = clean_and_flags(n, d, 0.0, base, rng)
    return spoil(X, kind, base, share, [seed, n, d])


def spoil(X: Rows, kind: str, base: str, share: float, key: list[int]) -> tuple[Rows, Flags]:
    """Spoil a share of the rows of a table drawn with the generator of that key."""
    rng = np.random.default_rng(key)
    source = BASES[base](X.shape[1], rng)  # the same base again: its draws come first
    rng = np.random.default_rng([*key, 1])
    rows = rng.permutation(len(X))[: round(share * len(X))]
    y = np.zeros(len(X), dtype=bool)
    y[rows] = True
    spoilt = X.copy()
    if len(rows):
        spoilt[rows] = DIRT[kind](X[rows], source, rng)
    return spoilt, y
