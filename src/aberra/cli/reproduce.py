"""`aberra reproduce`: tables and figures of the papers, our numbers beside theirs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aberra.cli.shell import command, shell
from aberra.errors import DataError

if TYPE_CHECKING:
    from aberra.reproduce.profiles import Profile


@command
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of tables or figures, or `all`.")
    ] = None,
    *,
    show_list: Annotated[
        bool,
        typer.Option("--list", help="List what there is, and how much of it has been computed."),
    ] = False,
    profile: Annotated[
        str, typer.Option(help="How much of the papers' protocol to follow: smoke, small or paper.")
    ] = "small",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds each number is averaged over.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="The folder of the data sets. Default: $ABERRA_DATA.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many processes to use.")] = 1,
    out: Annotated[Path, typer.Option(help="The folder for results.")] = Path("results"),
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--afresh", help="Use results that are already there, or compute all again."
        ),
    ] = True,
    compute: Annotated[
        bool,
        typer.Option(
            "--compute/--draw", help="Compute what is missing, or only draw what is there."
        ),
    ] = True,
) -> None:
    """Compute a table or figure of the papers.

    It is written with our numbers beside theirs. Each number is kept as soon as it is
    computed, so an interrupted run continues where it stopped, and several processes can share
    the work.

    Example: aberra reproduce odds-iadc --profile small --jobs 2
    """
    from aberra.reproduce.experiments import EXPERIMENTS
    from aberra.reproduce.profiles import profiles
    from aberra.reproduce.writing import write_results, write_summary

    if profile not in profiles():
        raise typer.BadParameter(f"{profile!r} is none of {', '.join(profiles())}.")
    chosen = profiles()[profile].with_seeds(seeds)
    if show_list or not names:
        _show(chosen, out)
        return
    wanted = list(EXPERIMENTS) if names == ["all"] else names
    if unknown := [name for name in wanted if name not in EXPERIMENTS]:
        raise DataError(
            f"There is nothing called {unknown[0]!r} to reproduce. "
            f"Choose from {', '.join(EXPERIMENTS)}, or `all`."
        )
    if not resume:
        _set_aside(out)
    started = time.perf_counter()
    written: list[Path] = []
    for name in wanted:
        if compute:
            _compute(name, chosen, out, data_dir, jobs)
        written += write_results(name, chosen, out)
        for path in written[-3:]:
            shell().say(f"{path}")
    written += write_summary(chosen, out)
    shell().say(f"Everything on one page: {out / 'index.html'}")
    seconds = round(time.perf_counter() - started, 1)
    shell().result({"profile": profile, "files": [str(p) for p in written], "seconds": seconds})


def _compute(name: str, chosen: Profile, out: Path, data_dir: Path | None, jobs: int) -> None:
    from aberra.reproduce.experiments import EXPERIMENTS
    from aberra.reproduce.work import do_jobs

    elsewhere = 0
    with shell().progress():
        for job, how in do_jobs(EXPERIMENTS[name].jobs(chosen), out, data_dir, jobs):
            elsewhere += how == "elsewhere"
            shell().say(f"{name}: {job.title} ({how})")
    if elsewhere:
        shell().say(
            f"{name}: another process is working on {elsewhere} jobs. Run this command again when "
            "it has finished."
        )


def _show(chosen: Profile, out: Path) -> None:
    from rich.table import Table

    from aberra.reproduce.experiments import EXPERIMENTS
    from aberra.reproduce.store import Store
    from aberra.reproduce.work import finished

    table, store, found = Table(title=f"Profile {chosen.name}: {chosen.note}"), Store(out), {}
    for title in ("name", "what", "cells done"):
        table.add_column(title)
    for name, experiment in EXPERIMENTS.items():
        jobs = experiment.jobs(chosen)
        total = sum(len(job.settings) for job in jobs)
        done = total - sum(len(job.missing(store)) for job in jobs)
        old = len(finished(store, jobs)) - done
        found[name] = {"what": experiment.title, "done": done, "stale": old, "cells": total}
        aside = f", {old} stale" if old else ""
        table.add_row(name, experiment.title, f"{done} of {total}{aside}")
    shell().say(table)
    shell().result(found)


def _set_aside(out: Path) -> None:
    """Move old cells out of the way: computed things are never deleted."""
    cells = out / "cells"
    if cells.exists():
        new = out / f"cells-before-{time.strftime('%Y%m%d-%H%M%S')}"
        cells.rename(new)
        shell().say(f"The earlier results have been moved to {new}.")
