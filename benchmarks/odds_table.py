"""The ODDS table of results/README.md: ours with deviation over seeds, the paper's beside it.

    python -m benchmarks.odds_table [--table TABLE.csv] [--write results/README.md]

`aberra reproduce` makes TABLE.csv. With --write, the table in these files is replaced.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

DETECTORS = ("Deep SVDD", "AE", "OCSVM-H", "RSRAE", "DAGPR", "OCSVM")
SETS = ("satellite", "arrhythmia", "cardio", "shuttle", "thyroid", "satimage-2")
TABLES = {"Single": "odds-iadc", "ADC": "odds-adc", "IADC": "odds-iadc"}
USUAL_SEEDS = 5

Row = dict[str, str]


def cell(row: Row | None) -> str:
    """Return mean and deviation, the paper's mean in round brackets, few seeds in square ones."""
    if row is None or not row["mean"]:
        return "not run"
    text = f"{float(row['mean']):.1f} ± {float(row['std']):.1f}" if row["std"] else row["mean"]
    if row["paper_mean"]:
        text += f" ({float(row['paper_mean']):.1f})"
    return text if int(row["seeds"]) >= USUAL_SEEDS else f"{text} [{row['seeds']}]"


def table(path: Path) -> list[str]:
    """Return the lines of the Markdown table."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = {
            (row["table"], row["detector"], row["variant"], row["case"]): row
            for row in csv.DictReader(file)
        }
    lines = [f"| detector | training | {' | '.join(SETS)} |", "|---|---|" + "---|" * len(SETS)]
    for detector in DETECTORS:
        for variant, name in TABLES.items():
            cells = (cell(rows.get((name, detector, variant, case))) for case in SETS)
            lines.append(f"| {detector} | {variant} | {' | '.join(cells)} |")
    return lines


def replace_table(path: Path, lines: list[str]) -> None:
    """Put the table where the file has one with the same head."""
    old = path.read_text(encoding="utf-8").splitlines()
    start = old.index(lines[0])
    end = next(k for k in range(start, len(old) + 1) if k == len(old) or not old[k].startswith("|"))
    path.write_text("\n".join([*old[:start], *lines, *old[end:]]) + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, default=Path("results/TABLE.csv"))
    parser.add_argument("--write", type=Path, nargs="*", default=[])
    args = parser.parse_args()
    lines = table(args.table)
    print("\n".join(lines))
    for path in args.write:
        replace_table(path, lines)


if __name__ == "__main__":
    main()
