"""`aberra score`: what a model says about new data."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.table import Table

from aberra.cli.long_tables import Address, Unreadable
from aberra.cli.shell import Exit, choice, command, loading, shell
from aberra.scoring import Reasons
from aberra.words import count, percent

if TYPE_CHECKING:
    from aberra.workflow import ScoredImages, ScoredScans, ScoredTable

STDOUT = "-"
SHOWN_ERRORS = 5
SHOWN_REASONS = 8


@command
def score(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A file that aberra fit wrote, or brain-t1: a model for T1-weighted brain scans "
            "that comes with Aberra.",
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Data of the kind that the model was fitted on; - for a table from standard "
            "input; a database, with --sql.",
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Tables: the file to write, ending in .parquet or .csv, or - for CSV to standard "
            "output; for a folder of files also a folder, which gets a file for each. Images and "
            "scans: the folder to write to.",
        ),
    ],
    reasons: Annotated[
        str,
        choice(
            get_args(Reasons),
            "Tables: which rows get reasons. They take longer than the scores themselves.",
        ),
    ] = "flagged",
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Tables: the column that names the rows. Default: the one that the model was "
            "fitted with."
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help='Scans: which names in the folder are scans, such as "*_t1w.nii.gz". Default: '
            "the pattern that the model was fitted with."
        ),
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(
            help="Scans: where the axes of the arrays really point, such as SPR, if the headers "
            "of the files are wrong. Default: what the model was fitted with."
        ),
    ] = None,
    relative: Annotated[
        bool,
        typer.Option(
            "--relative",
            help="Scans: write each map also as percentiles of healthy scans at the same place "
            "(NAME_percentile.nii.gz) and as deviations from them (NAME_z.nii.gz).",
        ),
    ] = False,
    sql: Annotated[
        str | None,
        typer.Option(help="Tables: a query whose result is the table. DATA is then a database."),
    ] = None,
    header: Annotated[
        bool,
        typer.Option(help="Tables: whether the first line of a CSV file names the columns."),
    ] = True,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tables: write only so many rows, the oddest first. Default: all rows, in their "
            "order.",
        ),
    ] = None,
    sort: Annotated[
        bool,
        typer.Option("--sort", help="Tables: write all rows, the oddest first."),
    ] = False,
    fail_on_drift: Annotated[
        bool,
        typer.Option(
            help="Tables: end with exit code 5 if the rows are no longer like the training rows. "
            "The scores are written all the same."
        ),
    ] = False,
    neutralise: Annotated[
        bool,
        typer.Option(
            "--neutralise",
            help="Tables, into a CSV file: put an apostrophe before identifiers and other text "
            "that begin with = + - or @, so that a spreadsheet does not compute them.",
        ),
    ] = False,
    on_error: Unreadable = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Tables in many files, into a folder: where files are scored: ray for a Ray "
            "cluster, loky for all processors of this machine. Default: in this process."
        ),
    ] = None,
    address: Address = None,
) -> None:
    """Score DATA with a model.

    For a table you get a file with a score, a percentile (compared with the training rows), a
    flag and up to three reasons for each row, and a verdict whether the rows are still like the
    training rows: steady, watch or moved. For images and scans you get a folder with anomaly
    maps, and a table scores.csv beside them.

    A picture or scan that cannot be read, or with --on-error skip a file of a table, is named at
    the end, the others are scored, and the exit code is 3.

    The data may be larger than memory. If the command is interrupted, give it again and it
    continues where it stopped.

    Example: aberra score patients.aberra new.parquet -o scores.parquet
    """
    with loading():
        from aberra.workflow import ScoredImages, ScoredTable
        from aberra.workflow import score as score_path

    with shell().progress(), _place(output) as place:
        found = score_path(
            model,
            data,
            place,
            reasons=reasons,  # type: ignore[arg-type]
            id_column=id_column,
            sql=sql,
            header=header,
            top=top,
            sort=sort,
            pattern=pattern,
            neutralise=neutralise,
            axes=axes,
            relative=relative,
            on_error=on_error,  # type: ignore[arg-type]
            engine=engine,
            address=address,
        )
    if isinstance(found, ScoredTable) and place != output:
        _tell_beside(found)
    elif isinstance(found, ScoredTable):
        _tell_table(found)
    elif isinstance(found, ScoredImages):
        _tell_images(found)
    else:
        _tell_scans(found)
    moved = isinstance(found, ScoredTable) and found.drift and found.drift.verdict == "moved"
    if fail_on_drift and moved:
        raise typer.Exit(int(Exit.MOVED))
    if found.errors:
        raise typer.Exit(
            int(Exit.DATA)
        )  # the others are scored, but a script must not overlook these


@contextmanager
def _place(output: Path) -> Iterator[Path]:
    """Yield where to write; what is meant for standard output goes there when it is complete."""
    if str(output) != STDOUT:
        yield output
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.csv"
        yield file
        if file.exists():
            with file.open("rb") as scores:
                shutil.copyfileobj(scores, sys.stdout.buffer)
            sys.stdout.flush()


def _tell_beside(found: ScoredTable) -> None:
    """Say on standard error what the scores on standard output do not say."""
    if not (shell().quiet or shell().json):
        from aberra.scoring.odd_cells import sentences

        flagged = f"{count(found.n_rows, 'row')}, {found.n_flagged:,} flagged."
        verdict = "" if found.drift is None else _drift(found.drift.verdict, found.drift.why)
        said = [flagged, *sentences(found.odd_cells), verdict]
        typer.echo("\n".join(filter(None, said)), err=True)


def _tell_table(found: ScoredTable) -> None:
    from aberra.scoring.odd_cells import as_dicts, sentences

    speaker = shell()
    for remark in found.remarks:
        speaker.say(f"Note: {remark}")
    if found.n_resumed:
        done = count(found.n_resumed, "row")
        speaker.say(f"Continued an interrupted run, which had finished {done}.")
    speaker.say(_oddest(found.oddest))
    rate = (found.n_rows - found.n_resumed) / found.seconds
    speaker.say(
        f"{count(found.n_rows, 'row')}, {found.n_flagged:,} flagged "
        f"({percent(found.n_flagged / found.n_rows)}), {rate:,.0f} rows/s.\n"
        f"{_failures(found.errors)}Scores: {found.path}"
    )
    for sentence in sentences(found.odd_cells):
        speaker.say(sentence)
    if found.drift is not None:
        speaker.say(_drift(found.drift.verdict, found.drift.why))
    speaker.result(
        {
            "scores": str(found.path),
            "rows": found.n_rows,
            "flagged": found.n_flagged,
            "resumed_rows": found.n_resumed,
            "seconds": found.seconds,
            "rows_per_second": rate,
            "ignored_columns": found.ignored_columns,
            "errors": found.errors,
            "odd_cells": as_dicts(found.odd_cells),
            "oddest": found.oddest,
            "drift": None if found.drift is None else found.drift.as_dict(),
        }
    )


def _drift(verdict: str, why: list[str]) -> str:
    """Return the verdict on the rows, with as many reasons as fit on a screen."""
    left = len(why) - SHOWN_REASONS
    more = f"\n  and {left} more, see --json or aberra report" if left > 0 else ""
    shown = "\n".join(f"  {sentence}" for sentence in why[:SHOWN_REASONS])
    return f"Compared with the training rows: {verdict}\n{shown}{more}"


def _oddest(lines: list[dict[str, Any]]) -> Table:
    n = len(lines)
    table = Table(title="The oddest row" if n == 1 else f"The {n} oddest rows", box=None)
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


def _tell_images(found: ScoredImages) -> None:
    shell().say(
        f"{count(found.n_images, 'image')}, {found.n_scored:,} scored now, "
        f"{found.n_resumed:,} before; {found.n_flagged:,} flagged.\n{_failures(found.errors)}"
        f"Maps and scores.csv: {found.folder}"
    )
    shell().result(
        {
            "maps": str(found.folder),
            "scores": str(found.path),
            "images": found.n_images,
            "scored": found.n_scored,
            "flagged": found.n_flagged,
            "errors": found.errors,
        }
    )


def _tell_scans(found: ScoredScans) -> None:
    folder, scans = shlex.quote(str(found.folder)), shlex.quote(str(found.scans))
    view = f"aberra view {folder} --scans {scans}"
    shell().say(_scan_table(found))
    shell().say(
        f"{found.n_scored} of {count(found.n_scans, 'scan')} scored now.\n"
        f"{_failures(found.errors)}{_remarks(found)}{_not_scored(found)}Look at them: {view}"
    )
    shell().result(
        {
            "maps": str(found.folder),
            "scores": str(found.path),
            "scans": found.n_scans,
            "scored": found.n_scored,
            "errors": found.errors,
            "view": view,
        }
    )


def _remarks(found: ScoredScans) -> str:
    """Return a line for each of the oddest scans that is unlike the training scans."""
    unlike = [line for line in found.oddest if line["remark"]]
    shown = [f"Note: {line['scan']} is {line['remark']}\n" for line in unlike[:SHOWN_ERRORS]]
    left = len(unlike) - len(shown)
    return "".join(shown) + (f"and {left:,} more, see scores.csv\n" if left else "")


def _not_scored(found: ScoredScans) -> str:
    """Say how much of the brain no slice covers."""
    shares = [float(line["not_scored"]) for line in found.oddest]
    if not shares or max(shares) < 0.01:
        return ""
    least, most = (f"{100 * share:.0f}" for share in (min(shares), max(shares)))
    share = most if least == most else f"{least} to {most}"
    return (
        f"Not looked at: {share} % of the brain, which lies below the lowest slice (NAME_scored."
        "nii.gz shows what was looked at).\n"
    )


def _scan_table(found: ScoredScans) -> Table:
    n = found.n_scans - len(found.errors)
    table = Table(title=f"{count(n, 'scan')}, oddest first", box=None)
    table.add_column("scan", overflow="fold")
    table.add_column("score", justify="right")
    table.add_column("flagged ml", justify="right")
    for line in found.oddest:
        table.add_row(line["scan"], f"{float(line['score']):.4g}", line["millilitres"])
    return table


def _failures(errors: dict[str, str]) -> str:
    """Return a line for each of the first inputs that failed."""
    shown = [f"Failed: {name}: {why}\n" for name, why in list(errors.items())[:SHOWN_ERRORS]]
    left = len(errors) - len(shown)
    return "".join(shown) + (f"and {left:,} more, see scores.csv\n" if left else "")
