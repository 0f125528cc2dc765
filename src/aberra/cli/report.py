"""`aberra report`: one HTML file about a model and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, shell


@command
def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that aberra fit wrote.")],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="Table, images or scans to look for anomalies in."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    pattern: Annotated[
        str | None,
        typer.Option(help='Which names in a folder are scans, such as "*_t1w.nii.gz".'),
    ] = None,
    top: Annotated[int, typer.Option(min=1, max=1000, help="Anomalies to list.")] = 24,
) -> None:
    """Write one HTML file: what was trained, what lost trust and why, what stands out in DATA.

    The file needs no network and no other file. With the training data as DATA it says why
    training samples lost trust.

    Example: aberra report model.aberra patients.csv -o report.html
    """
    from aberra.cli.report_data import data_at
    from aberra.extras import need
    from aberra.files import refuse_to_overwrite

    need("jinja2", "report", "A report")
    from aberra.model_file import load, load_notes
    from aberra.recipe import Recipe
    from aberra.report import html
    from aberra.report.writing import check_place, write

    speaker = shell()
    check_place(output)
    refuse_to_overwrite(output, *[path for path in (model, data) if path is not None])
    recipe = Recipe.of(load_notes(model))
    fitted = load(model)
    with speaker.progress():
        found = None if data is None else data_at(data, fitted, recipe, pattern)
        page = html(fitted, found, recipe=recipe, title=title or f"Report on {model.name}", top=top)
    size = write(output, page)
    speaker.say(f"Report: {output} ({size / 1e6:.1f} MB, opens in any browser)")
    speaker.result({"report": str(output), "bytes": size})
