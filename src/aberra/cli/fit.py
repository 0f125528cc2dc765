"""`aberra fit`: a model from a file or a folder."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, get_args

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from aberra.cli.long_tables import Address, Unreadable
from aberra.cli.shell import choice, command, loading, shell
from aberra.methods import Method
from aberra.words import whole_percent
from aberra.workflow.choices import (
    ALONE,
    DETECTOR,
    FLAGGING,
    ROBUST,
    LookFor,
    Missing,
    Preset,
    detectors,
    ensembles,
)

if TYPE_CHECKING:
    from aberra.workflow import Fitted

FOR_TABLES, FOR_IMAGES = detectors("table"), detectors("images")


def _lines(title: str, found: list[tuple[str, str]]) -> str:
    """Return names with what they mean, as a block that help pages do not fold again."""
    lines = [fill(f"{name}: {text}", 78, initial_indent="  ", subsequent_indent="      ")
             for name, text in found]  # fmt: skip
    return "\n".join(["\b", title, *lines])


def _named(known: list[Method]) -> list[tuple[str, str]]:
    return [(method.shell, method.sentence) for method in known]


LISTS = ("columns used", "left out")  # lines that are short by themselves
METHODS = "\n\n".join(
    [
        _lines("Detectors for tables (--detector):", _named(FOR_TABLES)),
        _lines("Detectors for images and scans (--detector):", _named(FOR_IMAGES)),
        _lines(
            "Robust training (--robust):",
            [
                *((name, method.sentence) for name, method in ensembles().items()),
                (ALONE, "The detector trains once, and every sample counts fully."),
            ],
        ),
    ]
)


@command
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A CSV, TSV, Parquet, Feather, Excel, JSON, npy or npz file, packed or not, or a "
            "folder of them, or a pattern such as 'big/*.parquet'; - for a table from standard "
            "input; a database, with --sql; a folder of pictures; a NIfTI file; "
            "a folder of NIfTI files or DICOM series.",
        ),
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    detector: Annotated[
        str | None,
        choice(
            [method.shell for method in (*FOR_TABLES, *FOR_IMAGES)],
            f"The method, by a name from the list below. Default: {DETECTOR['table']} for tables, "
            f"{DETECTOR['images']} for images, {DETECTOR['volumes']} for scans.",
            metavar="<name>",
        ),
    ] = None,
    robust: Annotated[
        str | None,
        choice(
            [*ensembles(), ALONE],
            "How to cope with training data that is partly anomalous; see below. "
            f"Default: {ROBUST['table']} for tables, {ROBUST['images']} for images and scans.",
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Tables: the column that names the rows. Default: a column in which every value "
            "is different, if there is one."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Tables: a column to leave out. May be given several times."),
    ] = None,
    label_column: Annotated[
        str | None,
        typer.Option(
            help="Tables: a column of labels. They measure the result and are never used to train."
        ),
    ] = None,
    missing: Annotated[
        str | None,
        choice(
            get_args(Missing),
            "Tables: fill gaps with the median of their column (impute, the default), or "
            "refuse them (error).",
        ),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(
            help="Tables: a query whose result is the table. DATA is then an SQLite or DuckDB "
            "file, the address of another database as SQLAlchemy writes it, or a file of rows, "
            "which the query calls data."
        ),
    ] = None,
    header: Annotated[
        bool,
        typer.Option(help="Tables: whether the first line of a CSV file names the columns."),
    ] = True,
    marks: Annotated[
        Path | None,
        typer.Option(
            help="Tables: what a reviewer decided about some of the rows: aberra-marks.json, or a "
            "CSV file with the columns id (or row) and mark (reject or accept)."
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Tables: the rule that decides which rows are flagged: "
            f"{', '.join(FLAGGING)}. Default: {FLAGGING[0]} for multiview, knee for others."
        ),
    ] = None,
    contamination: Annotated[
        float | None,
        typer.Option(
            min=0.0, max=1.0, help="Tables: the share of the training rows to flag, such as 0.02."
        ),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Tables: the share of the flagged rows that may be false alarms. Default: 0.1.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        choice(
            get_args(Preset),
            "Images and scans: networks for 64 (small, the default), 128 (medium) or 256 "
            "pixels a side (paper, the sizes of the publications).",
        ),
    ] = None,
    look_for: Annotated[
        str | None,
        choice(
            get_args(LookFor),
            "Images and scans: count only what is darker, or brighter, than the model would "
            "have it, or both. Default: what is best for the detector.",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help='Scans: which names in the folder are scans, such as "*_t1w.nii.gz". Default: all.'
        ),
    ] = None,
    axes: Annotated[
        str | None,
        typer.Option(
            help="Scans: where the axes of the arrays really point, such as SPR, if the headers "
            "of the files are wrong."
        ),
    ] = None,
    whole_brain: Annotated[
        bool,
        typer.Option(
            "--whole-brain",
            help="Scans: cut slices down to the end of the brain, cerebellum and brain stem "
            "included. Without it they end 78 mm below its top.",
        ),
    ] = False,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Scans: a model to go on from, a file or the name brain-t1, for the few healthy "
            "scans that you have of your own scanner.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="The same data and seed give the same model file.")
    ] = 0,
    time_budget: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Minutes that training may take. Reading the data and scoring it afterwards "
            "come on top.",
        ),
    ] = None,
    watch: Annotated[
        Path | None,
        typer.Option(
            help="Images and scans: a folder that gets losses.csv and restored.png as training "
            "goes, and TensorBoard's files where that is installed."
        ),
    ] = None,
    on_error: Unreadable = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Long tables: where the work runs: ray for a Ray cluster, loky for all "
            "processors of this machine. Default: in this process."
        ),
    ] = None,
    address: Address = None,
) -> None:
    """Learn what is normal in DATA.

    DATA may contain anomalies, and no labels are needed. The summary says what was chosen and
    why, and which training samples the model trusts least.

    If you interrupt IADC with Ctrl-C after its first round, the model of the finished rounds
    is saved. The same command continues a fit of more than about a million rows that was
    interrupted, and the training of a network on images or scans, unless the network is part of
    an ensemble (--robust). All other training starts again from the beginning.

    Example: aberra fit patients.csv -o patients.aberra --id-column patient --drop comment
    """
    with loading():
        from aberra.workflow import fit as fit_path

    speaker = shell()
    with speaker.progress():
        fitted = fit_path(
            data,
            output,
            detector=detector,
            robust=robust,
            id_column=id_column,
            label_column=label_column,
            drop=drop or None,
            missing=missing,  # type: ignore[arg-type]
            sql=sql,
            header=None if header else False,
            marks=marks,
            threshold=threshold,
            contamination=contamination,
            fdr=fdr,
            preset=preset,  # type: ignore[arg-type]
            look_for=look_for,  # type: ignore[arg-type]
            pattern=pattern,
            axes=axes,
            whole_brain=whole_brain or None,
            start_from=start_from,
            seed=seed,
            time_budget=time_budget,
            watch=watch,
            on_error=on_error,  # type: ignore[arg-type]
            engine=engine,
            address=address,
        )
    speaker.say(summary(fitted))
    told = {name: value for name, value in asdict(fitted.recipe).items() if name != "quantiles"}
    speaker.result({"model": str(output), **told, "seconds": fitted.seconds})


def summary(fitted: Fitted) -> RenderableType:
    """Return one screen: what was chosen, what was measured, and what is trusted least."""
    recipe = fitted.recipe
    chosen = Table(show_header=False, box=None, pad_edge=False)
    chosen.add_column(style="bold", no_wrap=True)
    chosen.add_column(overflow="fold", max_width=110)
    for name, why in recipe.shown_choices():
        chosen.add_row(name, why if name in LISTS else shortened(why))
    if recipe.metrics:
        measured = ", ".join(f"{name.upper()} {v:.3f}" for name, v in recipe.metrics.items())
        chosen.add_row("measured", f"{measured} on the training rows, by the labels")
    chosen.add_row("time", f"{fitted.seconds:.1f} s")
    chosen.add_row("model", str(fitted.path))
    parts: list[RenderableType] = [chosen, "", _doubts(fitted), ""]
    if fitted.about_trust:
        parts += [fitted.about_trust, ""]
    return Group(*parts, _next(fitted))


def shortened(text: str, most: int = 200) -> str:
    """Cut a long list of names."""
    return text if len(text) <= most else f"{text[: most - 4].rsplit(' ', 1)[0]} ..."


def _doubts(fitted: Fitted) -> Table:
    doubts = fitted.recipe.doubts
    trusted = "training samples with the highest scores"
    which = "least trusted training samples" if fitted.doubted else trusted
    table = Table(title=f"The {len(doubts)} {which}", box=None)
    for name, justify in (("sample", "left"), ("trust", "right"), ("score", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    table.add_column("because of", overflow="fold")
    for doubt in doubts:
        why = ", ".join(f"{name} {whole_percent(share)}" for name, share in doubt.reasons)
        table.add_row(doubt.name, f"{doubt.trust:.2f}", f"{doubt.score:.4g}", why)
    return table


def _next(fitted: Fitted) -> str:
    out = "scores.csv" if fitted.recipe.kind == "table" else "maps"
    model = shlex.quote(str(fitted.path))
    return f"Next:  aberra score {model} DATA -o {out}\n       aberra report {model} -o report.html"
