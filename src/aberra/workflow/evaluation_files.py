"""What an evaluation found, and the files that say so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from aberra.files import write_atomically
from aberra.report.evaluation import (
    EvaluationPage,
    OutlinedSlice,
    chosen_cases,
    evaluation_page,
    table_of,
)
from aberra.words import count

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Evaluated:
    """What an evaluation found, and where it was written.

    Parameters
    ----------
    folder : Path
        Holds `evaluation.json`, `evaluation.md`, `patients.csv`, and `evaluation.html` where
        Jinja is installed (`pip install "aberra[report]"`).
    patients : DataFrame
        One row a scan: the standard protocol's metrics, and the lesion's millilitres.
    intervals : DataFrame
        One row a protocol and metric: mean, and its confidence interval over the scans.
    by_size : DataFrame
        Slices with a small, medium and large lesion.
    threshold : float
        Height of the map above which a pixel was flagged; placed without labels.
    errors : dict
        Scans that could not be evaluated, and why.
    """

    folder: Path
    patients: pd.DataFrame
    intervals: pd.DataFrame
    by_size: pd.DataFrame
    threshold: float
    errors: dict[str, str]


def write_evaluation(found: Evaluated, model: str, slices: Sequence[OutlinedSlice]) -> None:
    """Write an evaluation to its folder: JSON, a table of the scans, pages to read."""
    found.folder.mkdir(parents=True, exist_ok=True)
    tables = {"patients": found.patients.reset_index(), "intervals": found.intervals}
    tables["by_size"] = found.by_size.reset_index()
    whole: dict[str, object] = {
        "model": model, "threshold": found.threshold, "errors": found.errors
    }  # fmt: skip
    whole |= {name: json.loads(t.to_json(orient="records")) for name, t in tables.items()}
    write_atomically(found.folder / "evaluation.json", json.dumps(whole, indent=1).encode())
    write_atomically(found.folder / "patients.csv", found.patients.to_csv().encode())
    write_atomically(found.folder / "evaluation.md", page(found, model).encode())
    if find_spec("jinja2") is not None:
        html = evaluation_page(page_with_pictures(found, model, slices))
        write_atomically(found.folder / "evaluation.html", html.encode())


def page_with_pictures(
    found: Evaluated, model: str, slices: Sequence[OutlinedSlice]
) -> EvaluationPage:
    """Return what the HTML page shows."""
    dices = [float(found.patients["dice"][one.name]) for one in slices]
    tables = {
        "Metrics, with their intervals": found.intervals,
        "By size of the lesion on a slice (standard)": found.by_size.reset_index(),
        "Scan by scan (standard)": found.patients.reset_index(),
        "Left out": pd.DataFrame(list(found.errors.items()), columns=["scan", "why"]),
    }
    return EvaluationPage(
        f"{model} on {count(len(found.patients), 'scan')}",
        [about(found)],
        chosen_cases(slices, dices, found.threshold),
        [table_of(title, table) for title, table in tables.items() if len(table)],
    )


def about(found: Evaluated) -> str:
    """Say what the numbers mean."""
    return (
        f"A pixel is flagged where the map exceeds {found.threshold:.4g}, a height that was placed "
        f"without labels. Intervals hold {CONFIDENCE:.0%} of the means of scans drawn again. "
        "Metrics with `oracle` chose their threshold with the labels in view."
    )


def page(found: Evaluated, model: str) -> str:
    """Return the evaluation as Markdown."""
    n, failed = len(found.patients), [f"- {name}: {why}" for name, why in found.errors.items()]
    lines = [
        f"# {model} on {n} scans",
        "",
        about(found),
        "",
        *_markdown(found.intervals.round(3)),
        "",
        "## By size of the lesion on a slice (standard)",
        "",
        *_markdown(found.by_size.round(3).reset_index()),
        "",
        "## Scan by scan (standard)",
        "",
        *_markdown(found.patients.round(3).reset_index()),
    ]
    return "\n".join([*lines, *(["", "## Left out", "", *failed] if failed else []), ""])


def _markdown(table: pd.DataFrame) -> list[str]:
    if table.empty:
        return ["(none)"]
    rows = [" | ".join(map(str, row)) for row in table.itertuples(index=False)]
    head = [" | ".join(map(str, table.columns)), " | ".join(["---"] * len(table.columns))]
    return [f"| {row} |" for row in [*head, *rows]]
