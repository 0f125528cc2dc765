"""How far two distributions differ, and how likely that is if nothing but dirt has changed.

All tests ask the same question. Suppose that new rows come from the training distribution, except
for a share `dirt` that may be anything. Then no difference of shares exceeds `dirt` but by chance,
and how far chance goes beyond it is bounded by the inequality of Dvoretzky, Kiefer and Wolfowitz
(numbers) or of McDiarmid (labels), which have the same form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aberra.data.drift.distributions import Categories, Numbers

DIRT = 0.05  # the share of rows that may be anything without being called a drift


def shifted(before: Numbers, now: Numbers) -> float:
    """Return the largest difference between two cumulative distributions.

    So much of the rows, at least, would have to move to turn one into the other.
    """
    if not (before.n and now.n):
        return 0.0
    return float(np.abs(before.shares - now.shares).max(initial=0.0))


def turned_over(before: Categories, now: Categories) -> float:
    """Return the share of rows that have to change their label, less what chance would give."""
    if not (before.n and now.n):
        return 0.0
    one, two = before.shares, now.shares
    pooled = (one * before.n + two * now.n) / (before.n + now.n)
    spread = np.sqrt(pooled * (1 - pooled) * (1 / before.n + 1 / now.n))
    by_chance = float(np.sqrt(2 / np.pi) * spread.sum() / 2)
    return max(0.0, float(np.abs(one - two).sum() / 2) - by_chance)


def chance(effect: float, n_before: int, n_now: int, dirt: float = DIRT) -> float:
    """Return at most how likely such a difference is if only a share `dirt` of rows changed."""
    if not (n_before and n_now):
        return 1.0
    n = n_before * n_now / (n_before + n_now)
    return float(min(1.0, 2 * np.exp(-2 * n * max(0.0, effect - dirt) ** 2)))


def corrected(chances: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm): any of them below 5 % is rare."""
    given = np.asarray(chances, np.float64)
    order = np.argsort(given, kind="stable")
    factors = len(given) - np.arange(len(given))
    risen = np.maximum.accumulate(np.minimum(1.0, given[order] * factors))
    found = np.empty(len(given))
    found[order] = risen
    return [float(p) for p in found]


def interval(k: int, n: int) -> tuple[float, float]:
    """Return between what an underlying share lies when k of n are counted (95 %, Wilson)."""
    if not n:
        return 0.0, 1.0
    z = 1.959964
    middle = (k + z * z / 2) / (n + z * z)
    half = z * np.sqrt(k * (n - k) / n + z * z / 4) / (n + z * z)
    return float(max(0.0, middle - half)), float(min(1.0, middle + half))
