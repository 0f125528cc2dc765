"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: float, digits: int = 4) -> str:
    """Return a number with so many digits that count; whole ones in full.

    Examples
    --------
    >>> number(1234.5678), number(0.25), number(12345678), number(0.0000123), number(-3.0)
    ('1,235', '0.25', '12,345,678', '1.23e-05', '-3')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.2e}"
    return f"{value:.2e}" if abs(value) < 1e-3 else f"{value:.{digits}g}"


def score(value: float) -> str:
    """Return a score with four digits, zeros at the end kept, so that columns line up.

    Examples
    --------
    >>> score(2.7), score(12.3456), score(1234.5), score(0.000012)
    ('2.700', '12.35', '1,234', '1.20e-05')
    """
    return f"{value:#.4g}" if 1e-3 <= abs(value) < 1000 else number(value)


def percent(share: float) -> str:
    """Return a share as a percentage with one decimal, or with one digit if it is small.

    Examples
    --------
    >>> percent(0.1234), percent(0), percent(0.00067), percent(1e-7), percent(1)
    ('12.3 %', '0 %', '0.07 %', 'under 0.0001 %', '100 %')
    """
    if 0 < share < 1e-6:
        return "under 0.0001 %"
    if 0 < share < 0.00095:
        return f"{float(f'{100 * share:.1g}'):f}".rstrip("0") + " %"
    return f"{100 * share:.0f} %" if share in (0, 1) else f"{100 * share:.1f} %"


def whole_percent(share: float) -> str:
    """Return a share as a whole percentage, a small one with a decimal.

    Examples
    --------
    >>> whole_percent(0.433), whole_percent(0.0021), whole_percent(0)
    ('43 %', '0.2 %', '0 %')
    """
    return percent(share) if share < 0.01 else f"{100 * share:.0f} %"


def out_of(n: int, total: int, thing: str) -> str:
    """Return how many of some things, and their share.

    Examples
    --------
    >>> out_of(201, 300_000, "row")
    '201 of 300,000 rows (0.07 %)'
    """
    return f"{n:,} of {count(total, thing)} ({percent(n / max(total, 1))})"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return the first of many names, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed([f"x{j}" for j in range(2000)], most=2)
    ('a, b, c', 'x0, x1 and 1,998 more')
    """
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left:,} more" if left > 0 else "")


def count(n: int, thing: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1, "row"), count(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {thing}" + ("" if n == 1 else "s")
