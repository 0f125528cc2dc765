"""Label-free thresholds on real tables: estimated contamination and F1 of every rule.

    ABERRA_DATA=... python -m benchmarks.thresholds [--sets ...] [--scores FOLDER]

Each set is fitted with IADC(random_state=0), and all rules see the same scores. Sets of more than
50,000 rows are cut to 50,000, drawn without replacement by default_rng(0). Labels only evaluate.
A set that is in the csv file already is left alone. With --scores, scores are kept in that folder
as NAME.npz (scores, y), and read from there if present.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import IADC, MultiView
from aberra.reproduce.store import PACKAGES
from aberra.thresholds import DEFAULT, RULES
from benchmarks.records import data_folder, environment, load_set

MOST_ROWS = 50_000
CSV = Path("results/thresholds.csv")
MARKDOWN = Path("results/thresholds.md")
DEFAULTS = {MultiView().flag_rule: "default of `IADC()`", DEFAULT: "default of other models"}
MADE_BY = ("commit", "python", "processor", *PACKAGES)
FIELDS = [
    *("set", "n", "true", "oracle_f1", "ten_percent_f1"),
    *(f"{rule}_{what}" for rule in RULES for what in ("share", "f1")),
    *MADE_BY,
]
Labels = NDArray[np.bool_]
Scores = NDArray[np.float64]


def f1(y: Labels, flagged: Labels) -> float:
    """Return the harmonic mean of precision and recall; 0 where nothing is found."""
    return float(2 * (y & flagged).sum() / (y.sum() + flagged.sum()))


def oracle_f1(y: Labels, scores: Scores) -> float:
    """Return the best F1 of any threshold, chosen with the labels: the ceiling of every rule."""
    order = np.argsort(-scores)
    n_flagged = np.arange(1, len(y) + 1)
    values = 2 * np.cumsum(y[order]) / (n_flagged + y.sum())
    last_of_tie = np.append(np.diff(scores[order]) != 0, True)
    return float(values[last_of_tie].max())


def scored(name: str, folder: Path | None) -> tuple[Scores, Labels]:
    """Return the scores of one set by IADC, fitted or kept, and its labels."""
    kept = folder / f"{name}.npz" if folder else None
    if kept and kept.exists():
        with np.load(kept) as file:
            return file["scores"], file["y"].astype(bool)
    data, y = load_set(name)
    if len(data) > MOST_ROWS:
        rows = np.random.default_rng(0).permutation(len(data))[:MOST_ROWS]
        data, y = data[rows], y[rows]
    scores = IADC(random_state=0).fit(data).anomaly_score(data)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, scores=scores, y=y)
    return scores, y.astype(bool)


def measured(name: str, scores: Scores, y: Labels) -> dict[str, Any]:
    """Return one line of the csv file."""
    line: dict[str, Any] = {
        "set": name,
        "n": len(y),
        "true": round(float(y.mean()), 4),
        "oracle_f1": round(oracle_f1(y, scores), 4),
        "ten_percent_f1": round(f1(y, scores > np.quantile(scores, 0.9)), 4),
    }
    for rule, threshold in RULES.items():
        flagged = scores > threshold(scores)
        line[f"{rule}_share"] = round(float(flagged.mean()), 4)
        line[f"{rule}_f1"] = round(f1(y, flagged), 4)
    return line | environment()


def finished() -> list[dict[str, str]]:
    """Return the lines of the csv file, or none where its columns are not today's."""
    if not CSV.exists():
        return []
    with CSV.open(newline="") as file:
        reader = csv.DictReader(file)
        return list(reader) if reader.fieldnames == FIELDS else []


def append(line: dict[str, Any]) -> None:
    """Add one set to the csv file; columns that are not today's start it anew."""
    lines = finished()
    CSV.parent.mkdir(parents=True, exist_ok=True)
    with CSV.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows([*lines, line])


def table(lines: list[dict[str, str]]) -> list[str]:
    """Return the table: share flagged and F1 of every rule, beside the labels' own share."""
    heads = ["set", "n", "true", "oracle F1", "10 % F1", *RULES]
    shown = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for line in sorted(lines, key=lambda line: line["set"].lower()):
        entries = [line["set"], line["n"], f"{100 * float(line['true']):.1f} %"]
        entries += [f"{float(line[key]):.2f}" for key in ("oracle_f1", "ten_percent_f1")]
        for rule in RULES:
            share, value = float(line[f"{rule}_share"]), float(line[f"{rule}_f1"])
            entries.append(f"{100 * share:.1f} %, {value:.2f}")
        shown.append("| " + " | ".join(entries) + " |")
    return shown


def summary(lines: list[dict[str, str]]) -> list[str]:
    """Return one line per rule: error of the share, mean F1, sets ahead of the 10 % rule."""

    def column(key: str) -> NDArray[np.float64]:
        return np.array([float(line[key]) for line in lines])

    true, ten = column("true"), column("ten_percent_f1")
    shown = [
        "| rule | median absolute error of the share | mean F1 | F1 ahead of 10 % | behind |",
        "|---|---|---|---|---|",
    ]
    for rule in RULES:
        error, value = np.abs(column(f"{rule}_share") - true), column(f"{rule}_f1")
        ahead, behind = int((value > ten).sum()), int((value < ten).sum())
        mark = f" ({DEFAULTS[rule]})" if rule in DEFAULTS else ""
        shown.append(
            f"| {rule}{mark} | {100 * np.median(error):.1f} points | {value.mean():.3f} "
            f"| {ahead} of {len(lines)} | {behind} |"
        )
    error = np.abs(0.1 - true)
    shown.append(f"| 10 % | {100 * np.median(error):.1f} points | {ten.mean():.3f} | | |")
    shown.append(f"| oracle | | {column('oracle_f1').mean():.3f} | | |")
    return shown


def write_markdown() -> None:
    """Write the readable page from the csv file."""
    lines = finished()
    versions = sorted({", ".join(f"{k} {line[k]}" for k in MADE_BY) for line in lines})
    page = [
        "# Label-free thresholds",
        "",
        "Written by `python -m benchmarks.thresholds`. Scores: `IADC(random_state=0)`, all rows.",
        f"Sets of more than {MOST_ROWS:,} rows are cut to that many, drawn by default_rng(0).",
        "The rules see no labels. Labels evaluate, and the labels of these sets also judged which",
        "of about a hundred variants became rules, with the scores of a former default: figures",
        "flatter them.",
        "",
        "`10 %` flags the top tenth of the same scores. `oracle` is the best F1 of any threshold,",
        "chosen with the labels: a ceiling, not a rule. `true` is the share of anomalies.",
        "",
        *summary(lines),
        "",
        "Each entry of a rule: share of rows flagged, F1.",
        "",
        *table(lines),
        "",
        *versions,
    ]
    MARKDOWN.write_text("\n".join(page) + "\n")


def main() -> None:
    """Fill the sets that are missing, and write the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", help="names; all that are found, small ones first")
    parser.add_argument("--scores", type=Path, help="folder where scores are kept")
    args = parser.parse_args()
    files = [
        path for group in ("odds", "odds_extra") for path in data_folder().glob(f"{group}/*.npz")
    ]
    names = args.sets or [path.stem for path in sorted(files, key=lambda path: path.stat().st_size)]
    done = {line["set"] for line in finished()}
    for name in names:
        if name not in done:
            line = measured(name, *scored(name, args.scores))
            append(line)
            write_markdown()
            print(name, line["true"], line[f"{DEFAULT}_share"], line[f"{DEFAULT}_f1"], flush=True)


if __name__ == "__main__":
    main()
