"""The page of an evaluation: tables, and pictures of scans that went as usual, or badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import ndimage

from aberra.report.page import rendered
from aberra.report.pictures import data_uri, grey, heat

N_CASES = 3  # in the middle, and at the end
OUTLINED, FLAGGED = (86, 180, 233), (240, 161, 58)


@dataclass(frozen=True)
class OutlinedSlice:
    """The slice of a scan that shows most of its lesion."""

    name: str
    depth: float  # mm below the top of the brain
    image: NDArray[np.float32]  # (h, w) in [0, 1], like the restored image
    restored: NDArray[np.float32]
    heights: NDArray[np.float32]  # of the map
    lesion: NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """One scan in pictures: what each shows, and its address."""

    name: str
    note: str
    pictures: list[tuple[str, str]]


@dataclass(frozen=True)
class Cases:
    """Scans that belong together."""

    title: str
    cases: list[Case]


@dataclass(frozen=True)
class PageTable:
    """A table of the page, all values as they are to be shown."""

    title: str
    columns: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class EvaluationPage:
    """Everything that the page of an evaluation shows."""

    title: str
    sentences: list[str]
    cases: list[Cases]
    tables: list[PageTable]


def evaluation_page(page: EvaluationPage) -> str:
    """Return the page: one string that needs no network."""
    return rendered("evaluation.html.j2", page=page)


def table_of(title: str, frame: pd.DataFrame) -> PageTable:
    """Return a data frame as a table of the page; gaps stay empty."""
    rows = [[_shown(value) for value in row] for row in frame.itertuples(index=False)]
    return PageTable(title, [str(name) for name in frame.columns], rows)


def _shown(value: object) -> str:
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.3f}"
    return str(value)


def chosen_cases(
    slices: Sequence[OutlinedSlice], dices: Sequence[float], threshold: float
) -> list[Cases]:
    """Return the scans in the middle and at the end of the ranking by Dice; never the best.

    Scans come in the order of `slices`, one Dice each; those without a lesion are left out.
    """
    known = [k for k, one in enumerate(slices) if one.lesion.any() and not np.isnan(dices[k])]
    order = sorted(known, key=lambda k: dices[k])
    if not order:
        return []
    top = max(float(np.quantile(slices[k].heights, 0.999)) for k in order)
    worst = order[:N_CASES]
    first = max(0, (len(order) - N_CASES) // 2)
    middle = [k for k in order[first : first + N_CASES] if k not in worst]
    groups = {"In the middle, by Dice": middle, "The worst, by Dice": worst}
    return [
        Cases(title, [_case(slices[k], dices[k], threshold, top) for k in some])
        for title, some in groups.items()
        if some
    ]


def _case(one: OutlinedSlice, dice: float, threshold: float, top: float) -> Case:
    outlines = grey(one.image[None], 0.0, 1.0)
    coloured = np.repeat(outlines[..., None], 3, axis=-1) if outlines.ndim == 2 else outlines
    if coloured.shape[:2] == one.lesion.shape:  # a reduced picture has no room for outlines
        coloured = coloured.copy()
        coloured[_edge(one.heights > threshold)] = FLAGGED
        coloured[_edge(one.lesion)] = OUTLINED
    pictures = {
        "input": grey(one.image[None], 0.0, 1.0),
        "restored": grey(one.restored[None], 0.0, 1.0),
        "map": heat(one.heights, top),
        "outlined (blue), flagged (orange)": coloured,
    }
    note = f"Dice {dice:.2f} over the scan; slice {one.depth:g} mm below the top of the brain"
    return Case(one.name, note, [(what, data_uri(p)) for what, p in pictures.items()])


def _edge(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(mask & ~ndimage.binary_erosion(mask))
