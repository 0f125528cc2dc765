"""A whole file of rows, scored chunk by chunk."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from aberra.data.blocks.chunks import ChunkedTable
from aberra.data.drift.packed import packed
from aberra.data.drift.portrait import Portrait
from aberra.data.drift.verdict import Drift, compared
from aberra.data.sources.csv_cells import OddCell
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.locks import alone, only_one
from aberra.progress import advance
from aberra.scoring import odd_cells
from aberra.scoring.odd_cells import OddColumn
from aberra.scoring.parts import Parts, check_output
from aberra.scoring.rows import RowAnswers

Table = TableFile | ChunkedTable

CHUNK_ROWS = 1 << 16
N_SHOWN = 10


@dataclass(frozen=True)
class TableSummary:
    """What came out of scoring a file.

    Parameters
    ----------
    n_rows, n_flagged : int
    n_resumed : int
        Rows that an earlier, interrupted run had finished.
    oddest : list of dict
        The rows of highest score, highest first.
    drift : Drift or None
        Whether the rows are still like the training rows; None where the model keeps no portrait.
    looks : str or None, default None
        What the rows looked like, packed, to be added to what other files look like.
    odd : list of OddColumn, default []
        Cells that are no numbers or dates, and counted as gaps.
    zoned : list of int, default []
        Columns whose dates have offsets from UTC, by position.
    """

    n_rows: int
    n_flagged: int
    n_resumed: int
    oddest: list[dict[str, Any]]
    drift: Drift | None = None
    looks: str | None = None
    odd: list[OddColumn] = field(default_factory=list)
    zoned: list[int] = field(default_factory=list)


def score_table(
    scorer: RowAnswers,
    table: Table,
    output: Path,
    model_digest: str,
    rows: int = CHUNK_ROWS,
    top: int | None = None,
    sort: bool = False,
    neutralise: bool = False,
    *,
    wait: bool = False,
) -> TableSummary:
    """Score a file of any length with memory for one chunk; rows keep their order.

    Every finished chunk is kept in `OUTPUT.parts` until the end, so the same call, made again
    after an interruption, goes on from there and writes the same bytes.

    Parameters
    ----------
    scorer : RowAnswers
    table : Table
        A file, or the parts of a long table.
    output : Path
        A `.parquet` or `.csv` file.
    model_digest : str
        What tells the model from others.
    rows : int
        Rows a chunk.
    top : int, optional
        Write only so many rows, those with the highest scores, the highest first. By default all
        rows are written in their order.
    sort : bool, default=False
        Whether all rows are written with the highest scores first; the result then has to fit into
        memory.
    neutralise : bool, default=False
        Whether text in a CSV file that spreadsheets would compute gets an apostrophe.
    wait : bool, default=False
        Whether to wait for another process that writes the same output, instead of refusing.

    Returns
    -------
    summary : TableSummary
    """
    check_output(output)
    settings = (model_digest, table.fingerprint(), scorer.wanted, scorer.reasons, rows)
    mark = sha256(repr((*settings, str(scorer.schema))).encode()).hexdigest()
    with only_one(output) if wait else alone(output):
        return _scored(scorer, table, Parts(output, mark, rows, neutralise), top, sort)


def _scored(
    scorer: RowAnswers, table: Table, parts: Parts, top: int | None, sort: bool
) -> TableSummary:
    done, rows = parts.begin(), parts.rows
    n_rows = done * rows
    odd: list[OddCell] = []
    found = table.chunks(
        scorer.wanted, scorer.kinds, rows, done * rows, odd if scorer.takes_gaps else None
    )
    for index, chunk in enumerate(found, start=done):
        try:
            cells = odd_cells.taken(odd, chunk.start + len(chunk.frame))
            cells += odd_cells.written_otherwise(scorer, chunk)
            parts.add(index, odd_cells.kept(scorer(chunk.frame, chunk.start), cells))
        except DataError as error:
            last = chunk.start + len(chunk.frame) - 1
            raise DataError(f"Rows {chunk.start} to {last} of {table.path}: {error}") from error
        n_rows = chunk.start + len(chunk.frame)
        advance("rows", min(chunk.done, 0.999), f"{n_rows:,} rows")
    if not n_rows:
        raise DataError(f"{table.path} has no rows.")
    summary = _summary(parts, scorer, n_rows, done * rows, max(top or 0, N_SHOWN))
    odd_cells.refuse_other_columns(summary.odd, n_rows, str(table.path))
    summary = replace(summary, odd=odd_cells.placed(summary.odd, table))
    if top is None and sort:
        parts.finish(scorer.schema, [_sorted(parts.pieces(n_rows))])
    elif top is None:
        parts.join(scorer.schema, n_rows)
    else:
        parts.finish(scorer.schema, [pa.Table.from_pylist(summary.oddest[:top], scorer.schema)])
    advance("rows", 1.0)
    return replace(summary, oddest=summary.oddest[:N_SHOWN])


def _sorted(pieces: Iterable[pa.Table]) -> pa.Table:
    """Return all rows, the highest scores first; ties in the order of the file."""
    every = pa.concat_tables([piece.replace_schema_metadata() for piece in pieces])
    order = np.argsort(-every.column("score").to_numpy(), kind="stable")
    return every.take(pa.array(order))


def _summary(
    parts: Parts, scorer: RowAnswers, n_rows: int, n_resumed: int, most: int
) -> TableSummary:
    seen = n_flagged = 0
    looks: Portrait | None = None
    odd: list[OddColumn] = []
    zoned: set[int] = set()
    oddest: list[tuple[float, int, dict[str, Any]]] = []
    for piece in parts.pieces(n_rows):
        scores = piece.column("score").to_numpy()
        for k in np.argsort(-scores, kind="stable")[:most]:
            line = piece.slice(int(k), 1).to_pylist()[0]
            entry = (float(scores[k]), -(seen + int(k)), line)
            (heapq.heappush if len(oddest) < most else heapq.heappushpop)(oddest, entry)
        n_flagged += int(piece.column("flag").to_numpy(zero_copy_only=False).sum())
        seen += len(piece)
        some = scorer.looked(piece)
        looks = some if looks is None or some is None else looks + some
        zoned |= scorer.zoned(piece)
        odd = odd_cells.added_up([*odd, *odd_cells.known(piece)])
    before = scorer.model.training_portrait()
    drift = None
    if before is not None and looks is not None:
        marked = scorer.model.review_marks() is not None
        drift = compared(before, looks, zoned, marked=marked)
    lines = [line for *_, line in sorted(oddest, reverse=True, key=lambda e: e[:2])]
    told = None if looks is None else packed(looks)
    return TableSummary(n_rows, n_flagged, n_resumed, lines, drift, told, odd, sorted(zoned))
