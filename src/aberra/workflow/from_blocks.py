"""A model from a table that is too long to be read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aberra import __version__
from aberra.data.blocks.counts import Counts
from aberra.data.blocks.opening import OnError, blocks_of
from aberra.data.blocks.sample import Rows
from aberra.data.blocks.source import Blocks, PartError
from aberra.data.sources.columns import COUNTER, ColumnChoice, choose_columns
from aberra.data.tables import kind_of
from aberra.explain.doubts import N_DOUBTS, Doubt, doubts, trust_in
from aberra.explain.reasons import reasons
from aberra.progress import remark
from aberra.recipe import N_QUANTILES, Recipe
from aberra.robust.by_blocks import FirstLook, Survey, conclude, first_look, survey
from aberra.robust.ensemble import Ensemble
from aberra.words import count
from aberra.workflow import about_table, labels
from aberra.workflow.budget import fit_within
from aberra.workflow.kept_rounds import KeptRounds
from aberra.workflow.outcome import checkpoint_folder
from aberra.workflow.plan import Plan


@dataclass(frozen=True)
class Asked:
    """What was asked about a table."""

    id_column: str | None = None
    label_column: str | None = None
    drop: Sequence[str] = ()
    missing: str = "impute"


def learn_by_blocks(
    path: str,
    output: Path | None,
    plan: Plan,
    asked: Asked,
    on_error: OnError = "stop",
    engine: str | None = None,
) -> tuple[Any, Recipe]:
    """Train on a table of any length; return the model and its recipe.

    If `output` is given, finished work is kept in the folder `OUTPUT.training`, and the same call
    goes on from there.
    """
    blocks = blocks_of(path, on_error)
    needed = (asked.id_column, asked.label_column)
    unread = [name for name in blocks.kinds if name in asked.drop and name not in needed]
    blocks = replace(blocks, unread=tuple(unread))
    settings = (__version__, repr(plan), repr(plan.detector.get_params()), repr(asked))
    mark = sha256(repr((blocks.fingerprint(), *settings)).encode()).hexdigest()
    kept = KeptRounds(None if output is None else checkpoint_folder(output), mark)
    _announce(blocks)
    held = kept.rounds()
    if held is None:
        blocks, look = _looked(blocks, on_error, engine)
        model, recipe = _rounds(blocks, look, plan, asked)
        kept.keep_rounds(model, recipe, list(blocks.skipped))
    else:
        model, recipe, bad = held
        known = {part.name for part in blocks.parts}
        blocks = blocks.without({name: "damaged" for name in bad if name in known})
    done = kept.done(model.portrait_)
    if done:
        n = sum(task.n_rows for task in done)
        remark(f"Continued an interrupted run, which had scored {n:,} of {blocks.n_rows:,} rows.")
    found = survey(model, blocks, recipe.columns, engine, kept.keep, done)
    if blocks.n_rows > blocks.sample_rows:  # else all rows have had their say
        conclude(model, found)
    return model, _finished(model, recipe, blocks, found)


def _announce(blocks: Blocks) -> None:
    """Say what is going to be read, and how much memory that takes, before the work starts."""
    size = f"{blocks.n_rows:,} rows x {len(blocks.kinds)} columns"
    files = f"{count(len(blocks.parts), 'file')}, about {blocks.memory() / 2**30:.1f} GB of memory"
    remark(f"{size} in {files}.")
    for name, why in blocks.skipped.items():
        remark(f"Left out: {name} ({why})")


def _looked(blocks: Blocks, on_error: OnError, engine: str | None) -> tuple[Blocks, FirstLook]:
    """Read all rows once; leave out files that turn out to be damaged inside, if asked."""
    while True:
        try:
            return blocks, first_look(blocks, engine=engine)
        except PartError as error:
            if on_error == "stop":
                raise
            remark(f"Left out: {error.part} ({error.why})")
            blocks = blocks.without({error.part: error.why})


def _rounds(blocks: Blocks, look: FirstLook, plan: Plan, asked: Asked) -> tuple[Any, Recipe]:
    """Train on the sample; return the model and what is known of its recipe by then."""
    positions, rows = look.sample.drawn()
    table = rows if isinstance(rows, pd.DataFrame) else _named(rows, blocks.columns)
    columns = chosen(table.assign(**dict.fromkeys(blocks.unread, np.nan)), look.counts, asked)
    used = table[columns.used]
    text = any(kind_of(column) == "text" for _, column in used.items())
    model = plan.model(missing=asked.missing, encode="auto" if text else "error")
    ending = fit_within(model, used, plan.minutes)
    if isinstance(model, Ensemble):
        model.positions_ = positions
    gaps = pd.Series({name: look.counts[name].gaps for name in columns.used})
    choices = [
        *about_table.long_data(blocks, len(rows), columns),
        *about_table.training(
            model, used, gaps, plan, ending, lambda k: f"row {int(positions[k])}"
        ),
    ]
    metrics = {}
    if asked.label_column is not None:
        column = table[asked.label_column]
        choices += about_table.labels(
            asked.label_column, labels.anomalies(column.dropna())[1], len(rows)
        )
        metrics = labels.measured(column, _scores(model, used))
    recipe = Recipe(
        "table", blocks.name, blocks.n_rows, columns=columns.used, dropped=columns.dropped,
        id_column=columns.id_column, label_column=asked.label_column, choices=choices,
        metrics=metrics,
    )  # fmt: skip
    return model, recipe


def chosen(sample: pd.DataFrame, counts: Counts, asked: Asked) -> ColumnChoice:
    """Choose the columns by a sample of the rows, and by what was counted in all of them."""
    seen = {
        name: _varied(column, counts[str(name)].varies) if str(name) in counts else column
        for name, column in sample.items()
    }
    columns = choose_columns(
        pd.DataFrame(seen),
        id_column=asked.id_column,
        label_column=asked.label_column,
        drop=asked.drop,
    )
    counters = [
        name for name in columns.used
        if counts[name].spans_rows and sample[name].is_unique and len(sample) > 2
    ]  # fmt: skip
    if len(counters) == len(columns.used) or not counters:
        return columns
    return ColumnChoice(
        [name for name in columns.used if name not in counters],
        {**columns.dropped, **dict.fromkeys(counters, COUNTER)},
        columns.id_column or counters[0],
    )


def _varied(column: pd.Series[Any], varies: bool) -> pd.Series[Any]:
    """Return a column that looks as if it varied, where only rows outside the sample do."""
    if not varies or column.nunique() != 1 or kind_of(column) != "number":
        return column
    return pd.Series(np.where(np.arange(len(column)) % 2, 0.0, 1.0), name=column.name)


def _named(rows: Rows, columns: Sequence[str]) -> pd.DataFrame:
    return pd.DataFrame(np.asarray(rows), columns=list(columns))


def _scores(model: Any, used: pd.DataFrame) -> Any:
    held = model.training_scores()
    return model.anomaly_score(used) if held is None else held


def _finished(model: Any, recipe: Recipe, blocks: Blocks, found: Survey) -> Recipe:
    """Return the recipe with what all rows said."""
    choices = [
        about_table.threshold(model) if name == "threshold" else (name, why)
        for name, why in recipe.choices
    ]
    levels = found.scores.quantiles(np.linspace(0, 1, N_QUANTILES))
    return replace(
        recipe,
        choices=choices,
        doubts=_doubts(model, recipe, blocks, found),
        quantiles=[float(q) for q in np.maximum.accumulate(levels)],
    )


def _doubts(model: Any, recipe: Recipe, blocks: Blocks, found: Survey) -> list[Doubt]:
    """Return the oddest of all rows, with reasons; trust follows from the sample's."""
    scores, positions = found.scores.top[:N_DOUBTS], found.scores.positions[:N_DOUBTS]
    named = [] if recipe.id_column in (None, *recipe.columns) else [str(recipe.id_column)]
    rows = blocks.take(positions, [*recipe.columns, *named])
    table = rows if isinstance(rows, pd.DataFrame) else _named(rows, recipe.columns)
    names = [f"row {p}" for p in positions]
    if recipe.id_column is not None:
        names = [_name(value) for value in table[recipe.id_column]]
    known = model.portrait_.scores
    trust = _trust(model, scores) if known is not None else np.zeros(len(scores))
    why = reasons(np.asarray(model.explain(table[recipe.columns])), recipe.columns)
    found_doubts = doubts(trust, scores, names, lambda which: [why[k] for k in which])
    return [replace(one, row=int(positions[one.row])) for one in found_doubts]


def _name(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _trust(model: Any, scores: Any) -> Any:
    """Return the trust in other rows than the sample's: that of sampled rows of such scores."""
    held = model.training_scores()
    if held is None:
        return np.zeros(len(scores))
    order = np.argsort(held)
    return np.interp(scores, held[order], trust_in(model, held)[order])
