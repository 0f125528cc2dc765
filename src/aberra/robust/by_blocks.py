"""Fitting a table of any size: two passes over its blocks, with the rounds between them.

The first pass draws a sample of 262,144 rows by hashed keys, and counts. A member of the default
learns from 16,384 rows at most, so the rounds run on the sample as they would on a table of that
length. The second pass scores every row: threshold, contamination and the portrait of the table
come from all rows. Both passes add up states, so the result is the same bytes however the rows are
cut, in whatever order blocks come, and wherever they are worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from aberra import thresholds
from aberra.contract.rows import RowScorer
from aberra.data.blocks.counts import Counts, counted, together
from aberra.data.blocks.keys import key_bound
from aberra.data.blocks.sample import Sample
from aberra.data.blocks.scores import ScoreSketch
from aberra.data.blocks.source import Blocks, Task
from aberra.data.drift.portrait import Portrait
from aberra.engine import run_tasks
from aberra.errors import DataError
from aberra.ordinary import Bulk, bulk, group_apart, middle_and_upper_spread
from aberra.progress import Pace

REPRESENTATIVES = 1 << 16  # quantiles that stand for all scores where a rule wants scores
NEVER = np.inf  # a threshold that nothing exceeds: it is not known before all rows are scored


@dataclass(frozen=True)
class FirstLook:
    """What the first pass brings: a sample of the rows, and counts of the columns."""

    sample: Sample
    counts: Counts

    def __add__(self, other: Self) -> Self:
        """Return what both parts of a table bring together."""
        return replace(
            self, sample=self.sample + other.sample, counts=together(self.counts, other.counts)
        )


@dataclass(frozen=True)
class Survey:
    """What the second pass brings: all scores as a sketch, and the portrait of the table."""

    scores: ScoreSketch
    portrait: Portrait

    def __add__(self, other: Self) -> Self:
        """Return what both parts of a table bring together."""
        return replace(
            self, scores=self.scores + other.scores, portrait=self.portrait + other.portrait
        )


def first_look(
    blocks: Blocks,
    columns: Sequence[str] | None = None,
    engine: str | None = None,
) -> FirstLook:
    """Draw a sample and count, in one pass over all blocks.

    Parameters
    ----------
    blocks : Blocks
    columns : sequence of str, optional
        Those to read; by default all.
    engine : str or None, default None
        Where the work runs, see `engine.run_tasks`.
    """
    size = blocks.sample_rows
    bound = key_bound(blocks.n_rows, size)

    def look(task: Task) -> FirstLook:
        sample, counts = Sample(size, bound=bound), Counts()
        for block in blocks.read(task, columns):
            sample = sample.add(block.position, block.rows)
            counts = together(counts, counted(block.rows))
        return FirstLook(sample, counts)

    found = FirstLook(Sample(size, bound=bound), Counts())
    for _, one in _paced("looking", look, blocks, blocks.tasks(), engine):
        found = found + one
    return found


def survey(
    model: RowScorer,
    blocks: Blocks,
    columns: Sequence[str] | None = None,
    engine: str | None = None,
    keep: Callable[[Task, Survey], None] | None = None,
    done: dict[Task, Survey] | None = None,
) -> Survey:
    """Score every row, in one pass over all blocks.

    Parameters
    ----------
    model : RowScorer
        Fitted on a sample.
    blocks : Blocks
    columns : sequence of str, optional
        Those that the model learnt from; by default all.
    engine : str or None, default None
        Where the work runs, see `engine.run_tasks`.
    keep : callable, optional
        Is given what each task brought, to keep it for another run.
    done : dict, optional
        What an earlier run brought; these tasks are not worked on again.
    """
    origin, before = _origin(model), model.portrait_

    def look(task: Task) -> Survey:
        scores, portraits = ScoreSketch(origin), []
        for block in blocks.read(task, columns):
            found = model.anomaly_score(block.rows)
            scores = scores.add(block.position, found)
            portraits.append(before.count(block.rows, found, NEVER))
        return Survey(scores, _sum(portraits))

    found = list((done or {}).values())
    waiting = [task for task in blocks.tasks() if task not in (done or {})]
    total = _sum(found) if found else None
    for task, one in _paced("scoring", look, blocks, waiting, engine):
        if keep is not None:
            keep(task, one)
        total = one if total is None else total + one
    if total is None:
        raise DataError(f"{blocks.name} has no rows.")
    return total


def conclude(model: RowScorer, found: Survey) -> None:
    """Let the scores of all rows decide where the threshold lies and what the table looks like."""
    scores = found.scores
    rule = model.flag_rule if model.threshold == "auto" else model.threshold
    some = scores.evenly(REPRESENTATIVES)
    model.bulk_ = bulk(some)
    model.threshold_, model.threshold_rule_ = placed(scores, rule, model.fdr)
    values, at_least = scores.falling()
    above = values > model.threshold_
    n_flagged = int(at_least[above][-1]) if above.any() else 0
    model.contamination_ = n_flagged / scores.n
    model.portrait_ = replace(found.portrait, n_flagged=n_flagged)


def placed(scores: ScoreSketch, rule: str | float, rate: float) -> tuple[float, str]:
    """Return the threshold on all scores, and the name of the rule that set it.

    The rule "fdr" counts all rows. The others look at the shape of the distribution alone, for
    which 65,536 evenly spaced quantiles stand.
    """
    some = scores.evenly(REPRESENTATIVES)
    if rule != "fdr":
        return thresholds.threshold(some, rule, rate)
    few = thresholds.fdr(some, rate)  # where there is no spread, it is another rule's
    ordinary = bulk(some)
    if not middle_and_upper_spread(some)[1] > 0:
        return few, "fdr"
    group = group_apart(some)
    below = float(some[~group].max()) if group.any() else np.inf
    return min(_discovered(scores, ordinary, rate), below), "fdr"


def _discovered(scores: ScoreSketch, ordinary: Bulk, rate: float) -> float:
    """Return the threshold of Benjamini and Hochberg's rule over all rows."""
    values, at_least = scores.falling()
    stand = np.flatnonzero(ordinary.p_values(values) <= rate * at_least / scores.n)
    if not len(stand):
        return max(ordinary.score_of(rate / scores.n), float(scores.top[0]))
    last = int(stand[-1])
    if last + 1 < len(scores.top):  # the highest score that is not flagged
        return max(float(scores.top[last + 1]), ordinary.middle)
    return max(float(np.nextafter(values[last], -np.inf)), ordinary.middle)


def fit_by_blocks(model: Any, blocks: Blocks) -> Any:
    """Fit a model on a table of any size: sample, rounds, and a second pass over all rows.

    A table of no more rows than the sample is fitted as if it were in memory.
    """
    look = first_look(blocks, engine=model.engine)
    positions, rows = look.sample.drawn()
    with _in_this_process(model):  # the sample is small: to send it around would take longer
        model.fit(rows)
    if len(rows) == blocks.n_rows:
        return model
    conclude(model, survey(model, blocks, engine=model.engine))
    model.positions_ = positions
    return model


@contextmanager
def _in_this_process(model: Any) -> Iterator[None]:
    engine = model.engine
    model.set_params(engine=None)
    try:
        yield
    finally:
        model.set_params(engine=engine)


def _origin(model: RowScorer) -> float:
    """Return where the bins of scores are finest: the median of the sample's scores."""
    return float(model.bulk_.middle)


def _sum(states: list[Any]) -> Any:
    total = states[0]
    for state in states[1:]:
        total = total + state
    return total


def _paced(
    name: str,
    work: Callable[[Task], Any],
    blocks: Blocks,
    tasks: Sequence[Task],
    engine: str | None,
) -> Iterator[tuple[Task, Any]]:
    """Work on tasks, and say how far and how fast."""
    pace = Pace(name, blocks.n_rows, blocks.n_rows - sum(task.n_rows for task in tasks))
    for k, found in run_tasks(work, tasks, engine):
        pace.step(tasks[k].n_rows)
        yield tasks[k], found
    pace.end()
