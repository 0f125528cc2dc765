"""Rows of the tables: our numbers beside the papers', and how they compare."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np

Verdict = Literal["ahead", "level", "behind", "withheld", "stale", "paper had none", "not run"]
CSV_COLUMNS = (
    "table",
    "detector",
    "variant",
    "case",
    "mean",
    "std",
    "seeds",
    "paper_mean",
    "paper_std",
    "difference",
    "verdict",
    "seconds",
    "member_epochs",
    "note",
)


@dataclass(frozen=True)
class Target:
    """One cell of a paper's table; mean and deviation are None where the paper has no figure."""

    detector: str
    variant: str
    case: str
    mean: float | None
    std: float | None


@dataclass(frozen=True)
class Row:
    """One cell of our table, with the paper's figure beside it.

    `seconds` and `member_epochs` are sums over what the cell is the mean of. `stale` says that an
    earlier version of the code computed some of it; `withheld` says why the two figures cannot
    be compared, where they cannot.
    """

    table: str
    detector: str
    variant: str
    case: str
    mean: float | None = None
    std: float | None = None
    seeds: int = 0
    paper_mean: float | None = None
    paper_std: float | None = None
    seconds: float = 0.0
    member_epochs: int = 0
    less_is_better: bool = False
    stale: bool = False
    withheld: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus theirs."""
        if self.mean is None or self.paper_mean is None:
            return None
        return self.mean - self.paper_mean

    @property
    def note(self) -> str:
        """What a reader must know about the verdict."""
        return "computed by an earlier version of the code" if self.stale else self.withheld

    @property
    def verdict(self) -> Verdict:
        """Ahead or behind by more than one standard deviation, the larger of the two; or level."""
        if self.mean is None:
            return "not run"
        gain = self.difference
        if gain is None:
            return "paper had none"
        if self.stale:
            return "stale"
        if self.withheld:
            return "withheld"
        gain = -gain if self.less_is_better else gain
        spread = max(self.std or 0.0, self.paper_std or 0.0)
        if abs(gain) <= spread:
            return "level"
        return "ahead" if gain > 0 else "behind"


def target_lines(file: str) -> list[dict[str, str]]:
    """Return a paper's table as it was written down."""
    text = files("aberra.reproduce").joinpath("targets", f"{file}.csv").read_text("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def targets(file: str) -> list[Target]:
    """Return the cells of a paper's table, in its order."""
    return [
        Target(
            line["detector"],
            line["variant"],
            line["case"],
            float(line["mean"]) if line["mean"] else None,
            float(line["std"]) if line["std"] else None,
        )
        for line in target_lines(file)
    ]


def row(
    table: str,
    target: Target,
    values: Sequence[float],
    seconds: float = 0.0,
    member_epochs: int = 0,
    **more: Any,
) -> Row:
    """Return the row of a cell from its values, one per seed; `more` goes to `Row`."""
    return Row(
        table,
        target.detector,
        target.variant,
        target.case,
        float(np.mean(values)) if len(values) else None,
        float(np.std(values)) if len(values) else None,
        len(values),
        target.mean,
        target.std,
        seconds,
        member_epochs,
        **more,
    )


def as_csv(rows: Iterable[Row]) -> str:
    """Return rows as CSV."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for line in rows:
        writer.writerow([_csv_text(getattr(line, name), name) for name in CSV_COLUMNS])
    return held.getvalue()


def _csv_text(value: Any, name: str) -> Any:
    if isinstance(value, float):
        return f"{value:.0f}" if name == "seconds" else f"{value:.4f}".rstrip("0").rstrip(".")
    return "" if value is None else value


def grid(rows: Sequence[Row]) -> tuple[list[str], list[tuple[str, str, list[Row | None]]]]:
    """Return the cases, and for each detector and variant its rows in the order of the cases."""
    cases = list(dict.fromkeys(line.case for line in rows))
    found = {(line.detector, line.variant, line.case): line for line in rows}
    lines = dict.fromkeys((line.detector, line.variant) for line in rows)
    return cases, [(d, v, [found.get((d, v, case)) for case in cases]) for d, v in lines]


HEADS = ("detector", "training")


def as_markdown(rows: Sequence[Row], digits: int = 1, heads: tuple[str, str] = HEADS) -> str:
    """Return a table with the paper's figure in brackets."""
    cases, lines = grid(rows)
    head = "| " + " | ".join([*heads, *cases]) + " |"
    body = [
        f"| {d} | {v} | " + " | ".join(words(cell, digits, " ± ") for cell in cells) + " |"
        for d, v, cells in lines
    ]
    return "\n".join([head, "|---|---|" + "---|" * len(cases), *body]) + "\n"


def as_latex(rows: Sequence[Row], digits: int = 1) -> str:
    """Return a table for a paper; needs booktabs."""
    cases, lines = grid(rows)
    head = " & ".join(["", "", *(_tex(case) for case in cases)]) + r" \\"
    body = [
        " & ".join([_tex(d), _tex(v), *(words(cell, digits, r" $\pm$ ") for cell in cells)])
        + r" \\"
        for d, v, cells in lines
    ]
    start = r"\begin{tabular}{ll" + "r" * len(cases) + "}"
    parts = [start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(parts) + "\n"


def words(cell: Row | None, digits: int, between: str) -> str:
    """Return a cell as a person reads it."""
    if cell is None or cell.mean is None:
        return "not run"
    ours = f"{cell.mean:.{digits}f}"
    if cell.seeds > 1 and cell.std is not None:
        ours += f"{between}{cell.std:.{digits}f}"
    ours += "†" if cell.stale else ""
    return ours if cell.paper_mean is None else f"{ours} ({cell.paper_mean:.{digits}f})"


def _tex(text: str) -> str:
    for character in "&%#_$":
        text = text.replace(character, "\\" + character)
    return text
