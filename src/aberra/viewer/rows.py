"""What lies behind a score: the row itself, what is usual, and ordinary rows like it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aberra.data.drift.overlay import outlined
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.explain.neighbours import Neighbours
from aberra.explain.reasons import columns_in_words, shown_value
from aberra.recipe import Recipe
from aberra.scoring.odd_cells import told_chunks
from aberra.scoring.rows import RowAnswers, matched_columns

CHUNK_ROWS = 1 << 16
N_NEIGHBOURS = 3


@dataclass(frozen=True)
class Range:
    """A condition on a column: between two numbers, or containing a text."""

    column: str
    low: float | None = None
    high: float | None = None
    text: str = ""


class ScoredRows:
    """The table that was scored, with the model that scored it.

    Parameters
    ----------
    model : RowScorer
        Fitted on a table.
    recipe : Recipe or None
        What was noted when it was fitted.
    file : TableFile
        The table, whole in memory from now on.
    """

    def __init__(self, model: Any, recipe: Recipe | None, file: TableFile) -> None:
        named = None if recipe is None else recipe.id_column
        id_column = named if named in file.columns else None
        self.model = model
        self.columns, _ = matched_columns(model, file.columns, id_column)
        answers = RowAnswers(model, self.columns, id_column)
        chunks = told_chunks(file, answers, CHUNK_ROWS)
        self.table = pd.concat([chunk.frame for chunk in chunks], ignore_index=True)
        self.kinds = answers.kinds
        self.id_column = id_column

    @cached_property
    def _by_name(self) -> pd.Index[Any]:
        return pd.Index(self.table[self.id_column].astype(str))

    def positions(self, names: pd.Series[Any]) -> NDArray[np.int64]:
        """Return where the rows of some names are in the table, the first of several; -1 if not."""
        if self.id_column is None:
            numbers = pd.to_numeric(names, errors="coerce").fillna(-1).to_numpy(np.int64)
            return np.where(numbers < len(self.table), numbers, -1)
        known = self._by_name
        first = ~known.duplicated()
        found = known[first].get_indexer(pd.Index(names.astype(str)))
        return np.where(found >= 0, np.flatnonzero(first)[found], -1)

    def name(self, position: int) -> str:
        """Return what a row is called."""
        return str(position) if self.id_column is None else str(self._by_name[position])

    def matching(self, condition: Range) -> NDArray[np.bool_]:
        """Say which rows of the table fulfil a condition."""
        if condition.column not in self.columns:
            raise DataError(f"There is no column {condition.column!r}.")
        cells = self.table[condition.column]
        if condition.text:
            found = cells.astype(str).str.contains(condition.text, case=False, regex=False)
            return np.asarray(found & cells.notna(), dtype=bool)
        if self.kinds[condition.column] != "number":
            return np.ones(len(cells), dtype=bool)
        values = cells.to_numpy(np.float64, na_value=np.nan)
        keep = np.ones(len(values), dtype=bool)
        if condition.low is not None:
            keep &= values >= condition.low
        if condition.high is not None:
            keep &= values <= condition.high
        return keep

    def about(self, position: int, neighbours: Neighbours) -> dict[str, Any]:
        """Return a row's columns, the most telling first, and ordinary rows like it."""
        row = self.table[self.columns].iloc[[position]]
        (words,) = columns_in_words(self.model, row)
        near = [int(k) for k in neighbours.nearest(row, N_NEIGHBOURS + 1) if k != position]
        near = near[:N_NEIGHBOURS]
        return {
            "columns": [self._column(one, row, near) for one in words],
            "neighbours": [self.name(k) for k in near],
        }

    def _column(self, words: Any, row: pd.DataFrame, near: list[int]) -> dict[str, Any]:
        drawn = None
        portrait = self.model.training_portrait()
        if portrait is not None:
            known = portrait.columns[self.columns.index(words.column)]
            drawn = outlined(known, row[words.column])
        others = [shown_value(self.table[words.column].iat[k]) for k in near]
        return {**asdict(words), "drawn": drawn and asdict(drawn), "others": others}

    def neighbours(self, ordinary: NDArray[np.int64]) -> Neighbours:
        """Return the ordinary rows, among which the nearest to a row are looked for."""
        return Neighbours(self.model, self.table[self.columns], ordinary)
