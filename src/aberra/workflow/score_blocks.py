"""What a model says about a table in many files, or one that is too long to be converted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from aberra.data.blocks.chunks import ChunkedTable
from aberra.data.blocks.opening import OnError, blocks_of, files_at
from aberra.errors import ArgumentError
from aberra.progress import remark
from aberra.ray_cluster import connect
from aberra.scoring import Reasons
from aberra.scoring.partitions import Partitions, score_partitions
from aberra.scoring.parts import OUTPUTS
from aberra.scoring.table import score_table
from aberra.workflow.opened import Opened
from aberra.workflow.score_files import answers_for
from aberra.workflow.scored import ScoredTable


def score_blocks(
    known: Opened,
    data: str,
    output: Path,
    *,
    reasons: Reasons,
    id_column: str | None,
    written: dict[str, Any],
    on_error: OnError,
    engine: str | None,
    address: str | None,
) -> ScoredTable:
    """Score a table of any length: into one file, in order, or into a folder, file by file."""
    started, one_file = time.perf_counter(), output.name.lower().endswith(OUTPUTS)
    if one_file and engine is not None:
        raise ArgumentError("engine", "Scores in one file are written here: give a folder for -o.")
    for name in ("top", "sort"):
        if written[name] and not one_file:
            raise ArgumentError(name, "The oddest rows of all go to one file: give a file for -o.")
    if engine == "ray":
        connect(address)
    blocks = blocks_of(data, on_error)
    table = ChunkedTable(blocks)
    scorer, ignored, remarks = answers_for(known, table, reasons, id_column)
    remark(f"{blocks.n_rows:,} rows x {len(scorer.columns)} columns in {len(blocks.parts):,} files")
    errors = dict(blocks.skipped)
    if one_file:
        found = score_table(scorer, table, output, known.digest(), **written)
    else:
        partitions = Partitions(blocks, output.absolute(), files_at(data)[0])
        skip = on_error == "skip"
        found, bad = score_partitions(scorer, partitions, known.digest(), engine, skip)
        errors |= bad
    return ScoredTable(
        output,
        found.n_rows,
        found.n_flagged,
        found.n_resumed,
        found.oddest,
        scorer.id_column,
        ignored,
        time.perf_counter() - started,
        remarks,
        found.drift,
        errors,
        found.odd,
    )
