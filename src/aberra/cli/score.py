"""`aberra score`: what a model says about new data."""

from __future__ import annotations

import shlex
import time
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from aberra.cli.shell import command, shell
from aberra.words import count

if TYPE_CHECKING:
    from aberra.recipe import Recipe


class Reasons(StrEnum):
    """Which rows get reasons."""

    none = "none"
    flagged = "flagged"
    all = "all"


@command
def score(
    model: Annotated[Path, typer.Argument(help="The model file.")],
    data: Annotated[Path, typer.Argument(help="Of the kind that the model was fitted on.")],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="scores.parquet or scores.csv; a folder for images and volumes."
        ),
    ],
    reasons: Annotated[
        Reasons,
        typer.Option(help="Tables: which rows get reasons. One costs three scorings a column."),
    ] = Reasons.flagged,
    id_column: Annotated[
        str | None, typer.Option(help="Tables: column that names the rows; the model's by default.")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(help='Volumes: which names are scans, such as "*_t1w.nii.gz".'),
    ] = None,
) -> None:
    """Score DATA of any length with little memory; a run that was stopped goes on.

    Tables get score, percentile (against the training rows), flag and up to three reasons a row.
    Images and volumes get anomaly maps, and scores.csv beside them.

    Example: aberra score patients.aberra new.parquet -o scores.parquet
    """
    from aberra.data.sources import kind_of_path
    from aberra.errors import DataError
    from aberra.files import refuse_to_overwrite
    from aberra.model_file import load, load_notes
    from aberra.recipe import Recipe

    refuse_to_overwrite(output, model, data)
    kind = kind_of_path(data)
    fitted, recipe = load(model), Recipe.of(load_notes(model))
    trained = ("images" if hasattr(fitted, "anomaly_map") else "table") if recipe is None else None
    expected = recipe.kind if recipe is not None else trained
    if kind != expected:
        raise DataError(
            f"{model} was fitted on {expected}, but {data} holds {kind}. Give the same."
        )
    digest = sha256(model.read_bytes()).hexdigest()
    if kind == "table":
        _score_table(fitted, recipe, data, output, reasons, id_column, digest)
    elif kind == "images":
        _score_images(fitted, recipe, data, output, digest)
    else:
        assert recipe is not None
        _score_volumes(fitted, recipe, data, output, digest, pattern)


def _score_table(
    model: Any,
    recipe: Recipe | None,
    data: Path,
    output: Path,
    reasons: Reasons,
    id_column: str | None,
    digest: str,
) -> None:
    from aberra.data.sources.table_file import TableFile
    from aberra.errors import DataError
    from aberra.explain.subject import reference_scores
    from aberra.scoring.rows import TEXT, RowScorer, matched_columns
    from aberra.scoring.table import score_table

    speaker, file = shell(), TableFile(data)
    named = id_column or (recipe.id_column if recipe is not None else None)
    if id_column is not None and id_column not in file.columns:
        raise DataError(f"There is no column {id_column!r} in {data}. Check --id-column.")
    if named not in file.columns:
        if named is not None:
            speaker.say(f"{data} has no column {named!r}: rows are named by position.")
        named = None
    columns, surplus = matched_columns(model, file.columns, named)
    ignored = [name for name in surplus if name != named]
    if ignored:
        speaker.say(f"Not used by the model: {', '.join(ignored[:8])}{' ...' * (len(ignored) > 8)}")
    scorer = RowScorer(
        model,
        columns,
        named,
        TEXT if named is None else file.id_type(named),
        reference_scores(model, recipe.quantiles if recipe is not None else []),
        reasons.value,
    )
    started = time.perf_counter()
    with speaker.progress():
        found = score_table(scorer, file, output, digest)
    seconds = time.perf_counter() - started
    new = found.n_rows - found.n_resumed
    if found.n_resumed:
        speaker.say(f"Went on after the {found.n_resumed:,} rows of an interrupted run.")
    if not speaker.json:
        speaker.say(_oddest(found.oddest))
    speaker.say(
        f"{count(found.n_rows, 'row')}, {found.n_flagged:,} flagged "
        f"({100 * found.n_flagged / found.n_rows:.1f} %), {new / seconds:,.0f} rows/s.\n"
        f"Scores: {output}"
    )
    speaker.result(
        {
            "scores": str(output),
            "rows": found.n_rows,
            "flagged": found.n_flagged,
            "resumed_rows": found.n_resumed,
            "seconds": seconds,
            "rows_per_second": new / seconds,
            "ignored_columns": ignored,
            "oddest": found.oddest,
        }
    )


def _oddest(lines: list[dict[str, Any]]) -> Table:
    table = Table(title=f"The {len(lines)} oddest rows", box=None)
    first = "id" if "id" in lines[0] else "row"
    for name in (first, "score", "percentile"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("because of", overflow="fold")
    for line in lines:
        why = ", ".join(line[f"reason_{k}"] for k in (1, 2, 3) if line[f"reason_{k}"])
        share = line["percentile"]
        shown = "" if share is None else f"{share:.1f}"
        table.add_row(str(line[first]), f"{line['score']:.4g}", shown, why)
    return table


def _score_images(model: Any, recipe: Recipe | None, data: Path, output: Path, digest: str) -> None:
    from aberra import thresholds
    from aberra.cli.image_source import image_source
    from aberra.errors import DataError
    from aberra.explain.subject import reference_scores
    from aberra.scoring.folder import ResultFolder
    from aberra.scoring.pictures import COLUMNS, ImageRule, score_images

    held = reference_scores(model, recipe.quantiles if recipe is not None else [])
    if recipe is None or recipe.map_threshold is None or held is None:
        raise DataError("This model was not made by aberra fit. Score images from Python instead.")
    rule = ImageRule(recipe.map_threshold, thresholds.threshold(held)[0], held)
    source = image_source(data, recipe, model.image_shape_)
    results = ResultFolder(output, digest, COLUMNS)
    results.begin()
    speaker = shell()
    with speaker.progress():
        lines = list(score_images(model, source, results, rule))
    results.write(source.names)
    every = [results.lines[name] for name in source.names]
    flagged = sum(line["flag"] == "true" for line in every)
    errors = {line["image"]: line["error"] for line in every if line["error"]}
    _refuse_if_none(len(every), errors)
    speaker.say(
        f"{count(len(every), 'image')}, {len(lines) - len(errors):,} scored now, "
        f"{len(every) - len(lines):,} before; {flagged:,} flagged.\n{_failures(errors)}"
        f"Maps and scores.csv: {output}"
    )
    speaker.result(
        {
            "maps": str(output),
            "scores": str(output / "scores.csv"),
            "images": len(every),
            "scored": len(lines) - len(errors),
            "flagged": flagged,
            "errors": errors,
        }
    )


def _score_volumes(
    model: Any, recipe: Recipe, data: Path, output: Path, digest: str, pattern: str | None
) -> None:
    from aberra.data.mri.files import find_volumes
    from aberra.data.mri.prepare import Preparation
    from aberra.errors import DataError
    from aberra.scoring.folder import ResultFolder
    from aberra.scoring.scans import COLUMNS, ScanScoring, score_scans

    if recipe.map_threshold is None:
        raise DataError("The model file holds no threshold for maps. Fit it again with aberra fit.")
    scans = find_volumes(data, pattern or recipe.pattern) if data.is_dir() else [data]
    root = data.parent if scans == [data] else data  # one file, or the folder of one series
    keywords = {**recipe.preparation, "below_top": tuple(recipe.preparation["below_top"])}
    way = ScanScoring(Preparation(**keywords), recipe.map_threshold, recipe.axes)
    results = ResultFolder(output, digest, COLUMNS)
    results.begin()
    speaker = shell()
    with speaker.progress():
        lines = list(score_scans(model, scans, root, results, way))
    names = [path.relative_to(root).as_posix() for path in scans]
    results.write(names)
    every = [results.lines[name] for name in names]
    errors = {line["scan"]: line["error"] for line in every if line["error"]}
    _refuse_if_none(len(every), errors)
    view = f"aberra view {shlex.quote(str(output))} --scans {shlex.quote(str(root))}"
    speaker.say(_scan_table(every))
    scored = len(lines) - len(errors)
    speaker.say(
        f"{scored} of {count(len(scans), 'scan')} scored now.\n{_failures(errors)}"
        f"Look at them: {view}"
    )
    speaker.result(
        {
            "maps": str(output),
            "scores": str(output / "scores.csv"),
            "scans": len(scans),
            "scored": scored,
            "errors": errors,
            "view": view,
        }
    )


def _refuse_if_none(n: int, errors: dict[str, str]) -> None:
    """Raise an error where nothing at all could be scored; scores.csv says why of each."""
    from aberra.errors import DataError

    if len(errors) == n:
        name, why = next(iter(errors.items()))
        raise DataError(f"None of {n} could be scored. {name}: {why}")


def _failures(errors: dict[str, str]) -> str:
    """Return a line for each of the first inputs that failed."""
    shown = [f"Failed: {name}: {why}\n" for name, why in list(errors.items())[:5]]
    more = f"and {len(errors) - 5:,} more, see scores.csv\n" if len(errors) > 5 else ""
    return "".join(shown) + more


def _scan_table(lines: list[Any]) -> Table:
    fine = sorted((ln for ln in lines if not ln["error"]), key=lambda ln: -float(ln["score"]))
    table = Table(title=f"{count(len(fine), 'scan')}, oddest first", box=None)
    table.add_column("scan", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("flagged ml", justify="right")
    for line in fine[:10]:
        table.add_row(line["scan"], f"{float(line['score']):.4g}", line["millilitres"])
    return table
