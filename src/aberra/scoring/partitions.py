"""A table in many files, scored file by file into a folder of the same shape."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from aberra.data.blocks.chunks import ChunkedTable
from aberra.data.blocks.source import Blocks, PartError
from aberra.data.drift.verdict import compared
from aberra.engine import run_tasks
from aberra.errors import DataError
from aberra.files import replacing, result_mark, write_atomically
from aberra.locks import alone
from aberra.progress import Pace
from aberra.scoring.odd_cells import added_up, as_dicts, from_dicts
from aberra.scoring.rows import RowAnswers
from aberra.scoring.table import N_SHOWN, TableSummary, score_table

RUN = ".aberra-run.json"


@dataclass(frozen=True)
class Partitions:
    """Files of a table, and the files that their scores go to.

    Rows are numbered within their file, so that the scores of a file do not depend on which others
    there are: a new file is scored, and nothing else is done again.

    Parameters
    ----------
    blocks : Blocks
        The table.
    folder : Path
        Where the scores go, one Parquet file for each file of the table.
    root : Path
        The folder that the files of the table lie in; results lie in folders of the same names.
    """

    blocks: Blocks
    folder: Path
    root: Path

    def target(self, k: int) -> Path:
        """Return where the scores of a file go."""
        file = Path(self.blocks.parts[k].name)
        inside = file.relative_to(self.root) if file.is_relative_to(self.root) else Path(file.name)
        same = inside.suffix.lower() == ".parquet"
        return self.folder / (inside if same else inside.with_name(f"{inside.name}.parquet"))

    def single(self, k: int) -> Blocks:
        """Return one file as a table of its own."""
        return replace(self.blocks, parts=(self.blocks.parts[k],))


@dataclass
class Run:
    """Which files are finished, with what they brought; kept in the folder."""

    file: Path
    done: dict[str, dict[str, Any]] = field(default_factory=dict)

    def begin(self) -> None:
        """Take over what earlier runs finished."""
        try:
            held = json.loads(self.file.read_bytes())
            self.done = {str(name): dict(about) for name, about in held.items()}
        except (OSError, ValueError, AttributeError, TypeError):
            self.done = {}

    def keep(self, name: str, about: dict[str, Any]) -> None:
        """Note that a file is finished."""
        self.done[name] = about
        write_atomically(self.file, json.dumps(self.done).encode())


def score_partitions(
    scorer: RowAnswers,
    table: Partitions,
    model_digest: str,
    engine: str | None = None,
    skip: bool = False,
) -> tuple[TableSummary, dict[str, str]]:
    """Score every file that has no scores yet; return what came out, and what could not be read.

    Parameters
    ----------
    scorer : RowAnswers
    table : Partitions
    model_digest : str
        What tells the model from others.
    engine : str or None, default None
        Where files are scored, see `engine.run_tasks`; workers write to the same folder.
    skip : bool, default False
        Whether to go on without files that cannot be read.
    """
    if table.folder.exists() and not table.folder.is_dir():
        raise DataError(f"{table.folder} is a file, but scores of many files need a folder.")
    table.folder.mkdir(parents=True, exist_ok=True)
    with alone(table.folder / RUN):
        run = Run(table.folder / RUN)
        run.begin()
        marks = [_mark(scorer, table, k, model_digest) for k in range(len(table.blocks.parts))]
        names = [table.target(k).relative_to(table.folder).as_posix() for k in range(len(marks))]
        if len(set(names)) < len(names):
            raise DataError("Two files of the table would have the same name. Rename one of them.")
        waiting = [k for k, name in enumerate(names) if not _is_done(run, table, k, name, marks[k])]
        errors = _score_waiting(scorer, table, (waiting, names, marks), run, engine, skip)
        fine = [run.done[name] for name in names if name not in errors]
        n_before = sum(run.done[names[k]]["n_rows"] for k in set(range(len(names))) - set(waiting))
        return _summary(scorer, fine, n_before), {
            table.blocks.parts[names.index(name)].name: why for name, why in errors.items()
        }


def _score_waiting(
    scorer: RowAnswers,
    table: Partitions,
    work: tuple[list[int], list[str], list[str]],
    run: Run,
    engine: str | None,
    skip: bool,
) -> dict[str, str]:
    waiting, names, marks = work
    errors: dict[str, str] = {}
    n_rows = [part.n_rows for part in table.blocks.parts]
    pace = Pace("files", sum(n_rows), sum(n_rows) - sum(n_rows[k] for k in waiting))
    for place, found in run_tasks(_scoring(scorer, table, marks, skip), waiting, engine):
        k = waiting[place]
        if "error" in found:
            errors[names[k]] = str(found["error"])
        else:
            run.keep(names[k], {**found, "mark": marks[k]})
        pace.step(n_rows[k])
    pace.end()
    return errors


def _scoring(
    scorer: RowAnswers, table: Partitions, marks: list[str], skip: bool
) -> Callable[[int], dict[str, Any]]:
    """Return the work on one file: its scores are written, and what they say comes back."""

    def work(k: int) -> dict[str, Any]:
        target = table.target(k)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not table.blocks.parts[k].n_rows:
            with replacing(target) as temporary, temporary.open("wb") as file:
                pq.write_table(scorer.schema.empty_table(), file)
            return {"n_rows": 0, "n_flagged": 0, "oddest": [], "written": result_mark(target)}
        rows = ChunkedTable(table.single(k))
        try:  # a worker that was given up for dead may still hold the file for a moment
            found = score_table(scorer, rows, target, marks[k], wait=True)
        except PartError as error:
            if not skip:
                raise
            return {"error": str(error)}
        return {
            "n_rows": found.n_rows,
            "n_flagged": found.n_flagged,
            "oddest": [{**line, "file": table.blocks.parts[k].name} for line in found.oddest],
            "looks": found.looks,
            "odd": as_dicts(found.odd),
            "zoned": found.zoned,
            "written": result_mark(target),
        }

    return work


def _mark(scorer: RowAnswers, table: Partitions, k: int, digest: str) -> str:
    settings = (digest, table.single(k).fingerprint(), scorer.wanted, scorer.reasons)
    return sha256(repr((*settings, str(scorer.schema))).encode()).hexdigest()


def _is_done(run: Run, table: Partitions, k: int, name: str, mark: str) -> bool:
    """Say whether a file's scores are there, and still the ones that such a run wrote."""
    held = run.done.get(name)
    if held is None or held.get("mark") != mark:
        return False
    written = held.get("written")
    return written is not None and written == result_mark(table.target(k))


def _summary(scorer: RowAnswers, found: list[dict[str, Any]], n_before: int) -> TableSummary:
    if not found:
        raise DataError("None of the files could be scored.")
    lines = (line for one in found for line in one["oddest"])
    oddest = heapq.nlargest(N_SHOWN, lines, key=lambda line: line["score"])
    before = scorer.model.training_portrait()
    looks = [one["looks"] for one in found if one["n_rows"]]
    drift = None
    if before is not None and looks and None not in looks:
        now = [scorer.unpacked(text) for text in looks]
        total = now[0]
        for more in now[1:]:
            total = total + more
        zoned = {j for one in found for j in one.get("zoned", [])}
        marked = scorer.model.review_marks() is not None
        drift = compared(before, total, zoned, marked=marked)
    n_rows, n_flagged = (sum(one[name] for one in found) for name in ("n_rows", "n_flagged"))
    odd = added_up(column for one in found for column in from_dicts(one.get("odd", [])))
    return TableSummary(n_rows, n_flagged, n_before, oddest, drift, odd=odd)
