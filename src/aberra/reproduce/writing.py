"""From finished cells to files: one table or figure, and the summary of all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aberra.files import write_atomically
from aberra.reproduce.claims import claims_text
from aberra.reproduce.drawing import as_svg
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.experiments import EXPERIMENTS
from aberra.reproduce.page import page
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Store
from aberra.reproduce.tables import Row, as_csv, as_latex, as_markdown

LEGEND = (
    "The paper's figure in brackets; ± is the deviation over seeds; † was computed by an earlier "
    "version of the code and waits to be computed again."
)


def write_results(name: str, profile: Profile, folder: Path) -> list[Path]:
    """Write the table or figure of an experiment from what is finished; return the files."""
    store, experiment = Store(folder), EXPERIMENTS[name]
    made: dict[str, bytes] = {}
    if experiment.figure is not None:
        made[f"{name}.svg"] = as_svg(experiment.figure(store, profile))
    if experiment.rows is not None:
        made |= _table_files(experiment, experiment.rows(store, profile), profile)
    return _written(folder, made)


def _table_files(experiment: Experiment, rows: list[Row], profile: Profile) -> dict[str, bytes]:
    name, head, digits = experiment.name, experiment.head(profile), experiment.digits
    table = as_markdown(rows, digits, experiment.heads)
    return {
        f"{name}.md": f"# {name}\n\n{head} {LEGEND}\n\n{table}".encode(),
        f"{name}.csv": experiment.csv(rows).encode(),
        f"{name}.tex": f"% {head}\n{as_latex(rows, digits)}".encode(),
    }


def write_summary(profile: Profile, folder: Path) -> list[Path]:
    """Write all tables in one CSV file, the claims, and one page with all tables and figures."""
    store = Store(folder)
    every = EXPERIMENTS.values()
    rows = {e.name: e.rows(store, profile) for e in every if e.rows is not None}
    made = {
        "TABLE.csv": as_csv(row for held in rows.values() for row in held).encode(),
        "claims.md": claims_text(every, store, profile, rows).encode(),
        "index.html": _page(rows, profile, folder).encode(),
    }
    return _written(folder, made)


def _page(rows: Mapping[str, list[Row]], profile: Profile, folder: Path) -> str:
    run = {name: held for name, held in rows.items() if any(r.mean is not None for r in held)}
    tables = {
        name: (e.head(profile), held, e.digits, e.heads)
        for name, held in run.items()
        for e in [EXPERIMENTS[name]]
    }
    figures = {
        e.name: (e.title, (folder / f"{e.name}.svg").read_bytes())
        for e in EXPERIMENTS.values()
        if e.figure is not None and (folder / f"{e.name}.svg").exists()
    }
    return page(tables, figures)


def _written(folder: Path, made: Mapping[str, bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in made.items():
        write_atomically(folder / file, data)
    return [folder / file for file in made]
