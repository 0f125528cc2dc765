"""Rounds on a sample against rounds on all rows, with the luck of the draw measured.

python -m benchmarks.sample_size run                  results/sample_size.jsonl
python -m benchmarks.sample_size table                results/sample_size.md

300,000 rows x 20 columns with three kinds of dirt in three shares. Each draw shuffles the rows and
takes another seed; then all rows are fitted in memory, and block by block with a sample of a
quarter of them, as a million rows would be. AUROC is by the labels on 100,000 rows, which nothing
else sees; the flagged share is that of all rows. Beside it stands what Benjamini and Hochberg's
rule would flag if it stopped at the first rank from the top that fails, instead of going on to the
last that passes: the last one jumps where the tail of ordinary scores is about ten times (one over
the rate) as heavy as the law says.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.records import append, environment, read

LINES, PAGE = Path("results/sample_size.jsonl"), Path("results/sample_size.md")
N_ROWS, SAMPLE, N_COLUMNS, CHECKED, DRAWS = 300_000, 75_000, 20, 100_000, 5
KINDS, SHARES = ("far cells", "a tight group", "columns torn apart"), (0.0005, 0.01, 0.1)

Array = NDArray[Any]


def table_of(kind: str, share: float) -> tuple[Array, Array]:
    """Return rows and which of them are dirty."""
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(N_COLUMNS, N_COLUMNS)) / np.sqrt(N_COLUMNS)
    x = rng.normal(size=(N_ROWS, N_COLUMNS)) @ mixing + 0.3 * rng.normal(size=(N_ROWS, N_COLUMNS))
    x[:, :4] = np.exp(x[:, :4])
    x[:, 4] = rng.integers(0, 5, N_ROWS)
    odd = rng.choice(N_ROWS, int(N_ROWS * share), replace=False)
    if kind == KINDS[0]:
        x[odd, rng.integers(5, N_COLUMNS, len(odd))] += 8 * rng.choice([-1, 1], len(odd))
    elif kind == KINDS[1]:
        x[odd] *= 0.2
        x[odd, 5:] += 2.0 * rng.normal(size=N_COLUMNS - 5)
    else:
        x[odd, 10:] = rng.permuted(x[odd, 10:], axis=0)
    return x, np.isin(np.arange(N_ROWS), odd)


def compared(kind: str, share: float, draw: int) -> dict[str, Any]:
    """Fit one draw both ways."""
    from aberra import IADC
    from aberra.data.blocks.opening import blocks_of
    from aberra.metrics import auroc

    x, y = table_of(kind, share)
    order = np.random.default_rng([4, draw]).permutation(N_ROWS)
    x, y = x[order], y[order]
    sources: dict[str, Any] = {"all": x, "sample": blocks_of(x, sample_rows=SAMPLE)}
    line: dict[str, Any] = {"kind": kind, "share": share, "draw": draw}
    for name, source in sources.items():
        started = time.process_time()
        model = IADC(random_state=draw).fit(source)
        scores = model.anomaly_score(x[-CHECKED:])
        line[name] = {
            "auroc": auroc(y[-CHECKED:], scores),
            "flagged": model.contamination_,
            "stepping_down": stepping_down(scores, model.fdr),
            "rounds": len(model.history_),
            "cpu_s": round(time.process_time() - started, 1),
        }
    return line


def stepping_down(scores: Array, rate: float) -> float:
    """Return the share that would be flagged down to the first rank that fails."""
    from aberra.ordinary import bulk

    p = np.sort(bulk(scores).p_values(scores))
    fails = np.flatnonzero(p > rate * np.arange(1, len(p) + 1) / len(p))
    return float(fails[0]) / len(p) if len(fails) else 1.0


def run() -> None:
    """Do what is not in the file yet, one share of dirt after the other."""
    known = {(line["kind"], line["share"], line["draw"]) for line in read(LINES)}
    for share in SHARES:
        for draw in range(DRAWS):
            for kind in KINDS:
                if (kind, share, draw) not in known:
                    line = compared(kind, share, draw)
                    append(LINES, {**line, "environment": environment()})
                    print(json.dumps(line), flush=True)


def spread(values: list[float], form: str) -> str:
    """Return the mean and the deviation of some draws."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):{form}} ± {deviation:{form}}"


def table() -> None:
    """Write the page."""
    lines = list(read(LINES))
    made = ", ".join(f"{name} {what}" for name, what in lines[-1]["environment"].items())
    PAGE.write_text("\n".join([*_head(lines), *_body(lines), "", f"Made with {made}."]) + "\n")


def _head(lines: list[dict[str, Any]]) -> list[str]:
    gaps = [line["sample"]["auroc"] - line["all"]["auroc"] for line in lines]
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    return [
        "# A sample against all rows",
        "",
        f"`python -m benchmarks.sample_size run`, then `table`. {N_ROWS:,} rows x {N_COLUMNS} "
        f"columns; the rounds see all rows, or {SAMPLE:,} of them. Mean and deviation over the "
        "draws, each with its own order of rows and seed; the flagged share as its least and "
        "greatest value.",
        "",
        f"Over {len(gaps)} pairs the sample's AUROC minus that of all rows is "
        f"{np.mean(gaps):+.4f}, with a standard error of {error:.4f}.",
        "",
        "| dirt | share | draws | AUROC, all rows | AUROC, sample | flagged, all rows | "
        "flagged, sample | stepping down, all rows | stepping down, sample |",
        "|---|---|---|---|---|---|---|---|---|",
    ]


def _body(lines: list[dict[str, Any]]) -> list[str]:
    found = []
    for kind in KINDS:
        for share in SHARES:
            some = [line for line in lines if (line["kind"], line["share"]) == (kind, share)]
            if not some:
                continue
            cells = [kind, f"{100 * share:g} %", str(len(some))]
            cells += [spread([one[how]["auroc"] for one in some], ".4f") for how in HOW]
            cells += [_range([100 * one[how]["flagged"] for one in some]) for how in HOW]
            cells += [_range([100 * one[how]["stepping_down"] for one in some]) for how in HOW]
            found.append("| " + " | ".join(cells) + " |")
    return found


HOW = ("all", "sample")


def _range(values: list[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f} %"


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["run", "table"])
    (run if parser.parse_args().step == "run" else table)()


if __name__ == "__main__":
    main()
