"""`aberra fit`: a model from a file or a folder."""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from aberra.cli.shell import command, shell
from aberra.cli.wishes import (
    DetectorName,
    LookFor,
    Missing,
    Preset,
    Robust,
    Wishes,
    checkpoint_folder,
)
from aberra.progress import keeping_trainings
from aberra.words import whole_percent

if TYPE_CHECKING:
    from aberra.recipe import Recipe


@command
def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, npy or npz file; folder of pictures; NIfTI file or folder; "
            "folder of DICOM series."
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    detector: Annotated[
        DetectorName | None,
        typer.Option(help="Tables: multiview by default. Images and volumes: addm by default."),
    ] = None,
    robust: Annotated[
        Robust | None,
        typer.Option(help="How to cope with dirty data: iadc by default for tables, else none."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column that names the rows; found by itself if it can be.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Column to leave out; may be given several times.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option(help="Column with labels, to evaluate; never used to train.")
    ] = None,
    missing: Annotated[
        Missing, typer.Option(help="Gaps take the column's median, or are an error.")
    ] = Missing.impute,
    preset: Annotated[
        Preset, typer.Option(help="Images and volumes: networks for 64, 128 or 256 pixels.")
    ] = Preset.small,
    look_for: Annotated[
        LookFor | None,
        typer.Option(help="What counts in images. Volumes: darker by default; images: both."),
    ] = None,
    pattern: Annotated[
        str, typer.Option(help='Which names in a folder are scans, such as "*_t1w.nii.gz".')
    ] = "*",
    axes: Annotated[
        str | None,
        typer.Option(
            help="Where the axes of the scans' arrays really point, such as SPR, if their headers "
            "are wrong."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same bytes.")] = 0,
    time_budget: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Minutes that training may take; reading and measuring come on top."
        ),
    ] = None,
) -> None:
    """Learn what is normal in DATA, and say what was chosen and which samples are least trusted.

    Labels are never needed. Interrupting (Ctrl-C) IADC after its first round keeps the rounds
    that are finished; an interrupted localiser goes on when the same command is given again.

    Example: aberra fit patients.csv -o patients.aberra --id-column patient --drop comment
    """
    from aberra.data.sources import kind_of_path

    wishes = Wishes(
        data, output, detector, robust, id_column, tuple(drop or ()), label_column, missing,
        preset, look_for, pattern, seed, time_budget, axes,
    )  # fmt: skip
    kind = kind_of_path(data)
    wishes.check(kind)
    _check_output(output, data)
    with keeping_trainings():  # until the model is saved
        with shell().progress():
            model, recipe = _fitted(kind, wishes)
        _save(model, recipe, output)
    with suppress(OSError):  # not there, or holds another training
        checkpoint_folder(output).rmdir()
    speaker = shell()
    speaker.say(summary(recipe, output))
    told = {name: value for name, value in asdict(recipe).items() if name != "quantiles"}
    speaker.result({"model": str(output), **told})


def _fitted(kind: str, wishes: Wishes) -> tuple[Any, Recipe]:
    started = time.perf_counter()
    if kind == "table":
        from aberra.cli.fit_table import fit_table

        model, recipe = fit_table(wishes)
    else:
        from aberra.cli.fit_images import fit_images, fit_volumes

        model, recipe = (fit_images if kind == "images" else fit_volumes)(wishes)
    return model, replace(recipe, seconds=time.perf_counter() - started)


def _save(model: Any, recipe: Recipe, output: Path) -> None:
    from aberra.model_file import save

    save(model, output, recipe.notes())


def _check_output(output: Path, data: Path) -> None:
    from aberra.errors import DataError
    from aberra.files import refuse_to_overwrite, starts_with
    from aberra.model_file.container import MAGIC

    refuse_to_overwrite(output, data)
    if output.is_file() and output.stat().st_size and not starts_with(output, MAGIC):
        raise DataError(f"{output} is there already and is no model. Give another name.")
    if output.is_dir():
        raise DataError(f"{output} is a folder. Give the name of a file, such as model.aberra.")
    if not output.parent.is_dir():
        raise DataError(f"There is no folder {output.parent}. Make it first.")
    if checkpoint_folder(output).is_file():
        raise DataError(f"{checkpoint_folder(output)} is in the way. Remove it.")


def summary(recipe: Recipe, output: Path) -> RenderableType:
    """Return one screen: what was chosen, what was measured, whom not to trust."""
    chosen = Table(show_header=False, box=None, pad_edge=False)
    chosen.add_column(style="bold", no_wrap=True)
    chosen.add_column(overflow="fold", max_width=110)
    for name, why in recipe.choices:
        chosen.add_row(name, shortened(why))
    if recipe.metrics:
        measured = ", ".join(f"{name.upper()} {v:.3f}" for name, v in recipe.metrics.items())
        chosen.add_row("measured", f"{measured} on the training rows, by the labels")
    chosen.add_row("time", f"{recipe.seconds:.1f} s")
    chosen.add_row("model", str(output))
    return Group(chosen, "", _doubts(recipe), "", _next(recipe, output))


def shortened(text: str, most: int = 200) -> str:
    """Cut a long list of names."""
    return text if len(text) <= most else f"{text[: most - 4].rsplit(' ', 1)[0]} ..."


def _doubts(recipe: Recipe) -> Table:
    table = Table(title=f"The {len(recipe.doubts)} least trusted training samples", box=None)
    for name, justify in (("sample", "left"), ("trust", "right"), ("score", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    table.add_column("because of", overflow="fold")
    for doubt in recipe.doubts:
        why = ", ".join(f"{name} {whole_percent(share)}" for name, share in doubt.reasons)
        table.add_row(doubt.name, f"{doubt.trust:.2f}", f"{doubt.score:.4g}", why)
    return table


def _next(recipe: Recipe, output: Path) -> str:
    out = "scores.csv" if recipe.kind == "table" else "maps"
    model = shlex.quote(str(output))
    return f"Next:  aberra score {model} DATA -o {out}\n       aberra report {model} -o report.html"
