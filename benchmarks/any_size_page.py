"""results/any_size.md, from the lines that `benchmarks.any_size` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.records import read

PAGE = Path("results/any_size.md")

HEAD = """# Tables of any size

`python -m benchmarks.any_size run 100000 1000000 10000000`, then `table`. 20 columns of single
precision in Parquet files of 500,000 rows; 1 % of the rows is dirty: far in one cell, in a tight
group, or torn apart. Everything with all defaults, in one process. The machine has two cores and
did other work at the same time: rely on seconds of processor time (user and system), and take the
wall time for what it is. Start-up (some seconds for Python, its libraries and compiled code) is
left out of the processor time and is part of the wall time and of the peak memory.
"""


def write_page(lines: Path) -> None:
    """Write the page."""
    found = {line["rows"]: line for line in read(lines)}
    rows = [found[n] for n in sorted(found)]
    text = [HEAD, *_costs(rows), *_growth(rows), *_ranking(rows), *_made(rows)]
    PAGE.write_text("\n".join(text) + "\n")


def _table(head: list[str], body: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *body]
    return ["| " + " | ".join(cells) + " |" for cells in lines] + [""]


STEPS = [
    ("fit", "fit", "call_s"),
    ("score", "score, no reasons", "call_s"),
    ("reasons", "score, reasons for flagged rows", "call_s"),
    ("forest", "pyarrow + IsolationForest", "call_s"),
]


def _costs(rows: list[dict[str, Any]]) -> list[str]:
    body = [
        [
            f"{line['rows']:,}",
            name,
            f"{line[step][seconds]:,.1f}",
            f"{line['rows'] / line[step][seconds]:,.0f}",
            f"{line[step]['wall_s']:,.0f}",
            f"{line[step]['peak_mb']:,}",
            " to ".join(str(load) for load in line[step]["load_average"]),
        ]
        for line in rows
        for step, name, seconds in STEPS
        if step in line
    ]
    head = ["rows", "step", "CPU s", "rows per CPU s", "wall s", "peak MB", "load average"]
    return ["## What it takes", "", *_table(head, body)]


def _growth(rows: list[dict[str, Any]]) -> list[str]:
    body = []
    for line in rows:
        fit, million = line["fit"], line["rows"] / 1e6
        body.append(
            [
                f"{line['rows']:,}",
                f"{line['make']['data_mb']:,}",
                f"{fit['look_s'] / million:.2f}",
                f"{fit['rounds_s']:.1f} ({fit['rounds']} rounds, {fit['sample']:,} rows)",
                f"{fit['survey_s'] / million:.2f}",
                f"{line['score']['call_s'] / million:.2f}",
                f"{line['forest']['call_s'] / million:.2f}",
            ]
        )
    head = [
        "rows", "MB of Parquet", "first pass, CPU s a million rows", "rounds, CPU s in all",
        "second pass, CPU s a million", "score, CPU s a million", "forest, CPU s a million",
    ]  # fmt: skip
    return ["## Growth", "", *_table(head, body)]


def _ranking(rows: list[dict[str, Any]]) -> list[str]:
    names = ["aberra", "forest", "aberra, first million", "in memory, first million"]
    body = [
        [
            f"{line['rows']:,}",
            *(f"{line['ranking'][name]:.4f}" for name in names),
            f"{100 * line['fit']['flagged_share']:.2f} %",
            f"{100 * line['in_memory']['flagged_share']:.2f} %",
        ]
        for line in rows
    ]
    head = ["rows", *names, "flagged", "flagged in memory"]
    note = (
        "AUROC by the planted labels, which nothing else has seen; on at most ten million evenly "
        "spaced rows."
    )
    return ["## Ranking", "", note, "", *_table(head, body)]


def _made(rows: list[dict[str, Any]]) -> list[str]:
    made = rows[-1]["environment"]
    versions = ", ".join(f"{name} {what}" for name, what in made.items() if name != "commit")
    commits = ", ".join(f"{line['rows']:,}: {line['environment']['commit']}" for line in rows)
    return [f"Commits: {commits}. {versions}."]
