"""Dates as numbers: places on the circles of day, week and year, and the time that has passed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

EPOCH = pd.Timestamp("1970-01-01", tz="UTC").as_unit("s")  # nanoseconds would end in 2262
PERIODS = {"day": 86400.0, "week": 7 * 86400.0, "year": 365.2425 * 86400.0}
FEWEST_PERIODS = {"day": 2, "week": 2, "year": 2}  # that the training rows have to span
IN_ORDER = 0.9  # share of rows that are not earlier than the row before

Floats = NDArray[np.float64]


def parts_of_dates(seconds: Floats) -> list[str]:
    """Return the parts of dates that repeat, and whether the time that passed says anything."""
    span = float(np.ptp(seconds))
    within_a_day = len(np.unique(seconds % PERIODS["day"])) > 1
    parts = [
        part
        for part, periods in FEWEST_PERIODS.items()
        if span >= periods * PERIODS[part] and (part != "day" or within_a_day)
    ]
    in_order = np.mean(np.diff(seconds) >= 0) if len(seconds) > 1 else 1.0
    ordered = max(in_order, 1 - in_order) >= IN_ORDER
    return parts if ordered else [*parts, "elapsed"]


def numbers_of_dates(seconds: Floats, parts: Sequence[str], latest: list[float]) -> list[Floats]:
    """Return what dates become; `latest` is the latest training date, and an ordinary one."""
    end, ordinary = latest
    found = []
    for part in parts:
        if part == "elapsed":
            found.append(np.where(seconds > end, ordinary, seconds))
        else:
            angle = 2 * np.pi * (seconds / PERIODS[part])
            found += [np.sin(angle), np.cos(angle)]
    return found
