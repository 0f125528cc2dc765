"""What some rows look like as a line of text, kept beside a finished piece of a long run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from aberra.data.drift.distributions import Categories, Numbers
from aberra.data.drift.portrait import ColumnPortrait, Portrait


def packed(rows: Portrait) -> str:
    """Return the counts of some rows; the points that they belong to are the training data's."""
    scores = None if rows.scores is None else _numbers(rows.scores)
    columns = [_column(column) for column in rows.columns]
    return json.dumps([rows.n_rows, rows.n_flagged, scores, columns])


def unpacked(text: str, training: Portrait) -> Portrait:
    """Return what rows look like whose counts were packed."""
    n_rows, n_flagged, scores, columns = json.loads(text)
    pairs = zip(columns, training.columns, strict=True)
    return replace(
        training,
        columns=[_column_of(held, known) for held, known in pairs],
        scores=None if training.scores is None else _numbers_of(scores, training.scores),
        n_rows=n_rows,
        n_flagged=n_flagged,
    )


def _column(column: ColumnPortrait) -> list[Any]:
    if column.numbers is not None:
        return [column.n_gaps, _numbers(column.numbers)]
    assert column.categories is not None
    held = column.categories
    return [column.n_gaps, [held.counts.tolist(), held.n_others, held.others]]


def _column_of(held: list[Any], known: ColumnPortrait) -> ColumnPortrait:
    n_gaps, inside = held
    if known.numbers is not None:
        return replace(known, n_gaps=n_gaps, numbers=_numbers_of(inside, known.numbers))
    assert known.categories is not None
    return replace(known, n_gaps=n_gaps, categories=_categories_of(inside, known.categories))


def _numbers(held: Numbers) -> list[Any]:
    return [held.below.tolist(), held.upto.tolist(), held.n, held.lowest, held.highest]


def _numbers_of(held: list[Any], known: Numbers) -> Numbers:
    below, upto, n, lowest, highest = held
    counts = (np.asarray(below, np.int64), np.asarray(upto, np.int64))
    return Numbers(known.points, *counts, n, lowest, highest)


def _categories_of(held: list[Any], known: Categories) -> Categories:
    counts, n_others, others = held
    counted = np.asarray(counts, np.int64)
    return replace(known, counts=counted, n_others=n_others, others=others)
