"""What happened to a column, in a sentence that needs no statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from aberra.data.drift.distributions import Categories, Numbers
from aberra.data.drift.portrait import ColumnPortrait
from aberra.words import number, percent

DAY = 86_400.0
IN_UTC = "time in UTC"  # the kind of dates that had offsets


def zoned_columns(rows: Any) -> list[int]:
    """Return the positions of columns of dates with offsets from UTC."""
    if not isinstance(rows, pd.DataFrame):
        return []
    return [j for j, kind in enumerate(rows.dtypes) if isinstance(kind, pd.DatetimeTZDtype)]


def about(before: ColumnPortrait, now: ColumnPortrait, kind: str) -> list[str]:
    """Say what is different in a column of this kind; nothing if there is nothing to say."""
    if not now.n and now.n_gaps:
        return [f"is empty now; {percent(before.gap_share)} of it was in training"]
    said = _gaps(before, now)
    if before.categories is not None and now.categories is not None:
        said += _labels(before.categories, now.categories)
    elif before.numbers is not None and now.numbers is not None and now.n:
        said += _numbers(before.numbers, now.numbers, kind)
    return said


def _gaps(before: ColumnPortrait, now: ColumnPortrait) -> list[str]:
    if abs(before.gap_share - now.gap_share) < 0.005:
        return []
    return [f"{percent(now.gap_share)} gaps now, {percent(before.gap_share)} before"]


def _labels(before: Categories, now: Categories) -> list[str]:
    if not now.n:
        return []
    said, change = [], now.shares[:-1] - before.shares[:-1]
    if now.n_others and before.complete:
        shown = ", ".join(repr(label) for label in now.others)
        said.append(f"{percent(now.n_others / now.n)} values never seen in training ({shown})")
    if len(change) and float(np.abs(change).max()) >= 0.005:
        k = int(np.abs(change).argmax())
        was, is_now = percent(before.shares[k]), percent(now.shares[k])
        said.append(f"{before.labels[k]!r} makes up {is_now}, before {was}")
    return said


def _numbers(before: Numbers, now: Numbers, kind: str) -> list[str]:
    if not before.n:
        return [f"had no value in training, now runs from {_range(now, kind)}"]
    if now.lowest == now.highest:
        if before.lowest == before.highest == now.lowest:
            return []
        return [f"is always {shown(now.lowest, kind)} now; before, {_range(before, kind)}"]
    said, middle, usual = [], now.quantile(0.5), before.quantile(0.5)
    if not before.lowest <= middle <= before.highest:  # how they are spread there is not counted
        said.append(f"now {_range(now, kind)}, median before {shown(usual, kind)}")
    elif shown(middle, kind) != shown(usual, kind):
        said.append(f"median about {shown(middle, kind)}, before {shown(usual, kind)}")
    outside = 1 - float(now.upto[-1] - now.below[0]) / now.n
    if outside > 0:
        said.append(f"{percent(outside)} outside the range of training ({_range(before, kind)})")
    return said


def _range(held: Numbers, kind: str) -> str:
    if held.lowest == held.highest:
        return f"always {shown(held.lowest, kind)}"
    return f"{shown(held.lowest, kind)} to {shown(held.highest, kind)}"


def shown(value: float, kind: str) -> str:
    """Return a value as people write it: dates as dates, and in UTC if they had offsets."""
    if kind == IN_UTC:
        return f"{np.datetime64(int(value), 's')} UTC"
    if kind == "time":
        unit = "D" if value % DAY == 0 else "s"
        return str(np.datetime64(int(value), "s").astype(f"datetime64[{unit}]"))
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e6 else number(value)
