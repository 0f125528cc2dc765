"""Tables from 10^5 to 10^8 rows through `aberra fit` and `aberra score`, against a plain loop.

python -m benchmarks.any_size run 100000 1000000 10000000      results/any_size.jsonl
python -m benchmarks.any_size table                            results/any_size.md

For each length a folder of Parquet files is made (20 columns of doubles, 1 % of the rows dirty in
one of three ways) and removed at the end. `aberra fit` and `aberra score` run with all defaults,
except that `aberra score` gives no reasons (and at 10^6 rows once more with reasons for flagged
rows). The rival is what people write themselves: a loop over Arrow batches with scikit-learn's
IsolationForest, fitted on 262,144 rows drawn at random. Every step is a process of its own: seconds
of processor time and peak memory are the whole process, with starting Python.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.records import append, environment, read
from benchmarks.score_parquet import measured

LINES, PAGE = Path("results/any_size.jsonl"), Path("results/any_size.md")
N_COLUMNS, FILE_ROWS, BATCH, DIRT = 20, 500_000, 1 << 16, 0.01
CHECKED = 1_000_000  # rows on which the fit in memory is compared
NAMES = [f"x{j:02d}" for j in range(N_COLUMNS)]
ABERRA = [sys.executable, "-c", "from aberra.cli import main; main()", "--json"]


# Data


def rows_of_file(k: int, n: int) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return the rows of one file, and which are dirty: far, in a group, or torn apart."""
    loadings = np.random.default_rng(0).normal(size=(6, N_COLUMNS))
    rng = np.random.default_rng([1, k])
    x = rng.normal(size=(n, 6)) @ loadings + rng.normal(size=(n, N_COLUMNS))
    kind = np.where(rng.random(n) < DIRT, rng.integers(1, 4, n), 0)
    far, group, torn = (np.flatnonzero(kind == one) for one in (1, 2, 3))
    x[far, rng.integers(0, N_COLUMNS, len(far))] += 15 * rng.choice([-1, 1], len(far))
    x[group] = 0.3 * x[group] + 4.0 * np.sign(loadings[0])
    x[torn] = rng.permuted(x[torn], axis=0)
    x[:, :3] = np.exp(x[:, :3] / 3)  # skewed, as many columns are
    return x, (kind > 0).astype(np.int8)


def make(folder: Path, n_rows: int) -> None:
    """Write the files of a table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for k, start in enumerate(range(0, n_rows, FILE_ROWS)):
        x, y = rows_of_file(k, min(FILE_ROWS, n_rows - start))
        table = pa.table([*x.T, y], names=[*NAMES, "dirty"])
        pq.write_table(table, folder / f"{k:05d}.parquet", row_group_size=BATCH)


def batches(folder: Path) -> Iterator[NDArray[np.float64]]:
    """Yield the rows as anybody would read them."""
    import pyarrow.dataset as ds

    for batch in ds.dataset(folder).to_batches(columns=NAMES, batch_size=BATCH):
        yield np.column_stack([column.to_numpy() for column in batch.columns])


# Steps, each of which runs in a process of its own


def forest(folder: Path, out: Path) -> None:
    """Fit an isolation forest on a sample, and score all rows in a loop."""
    from sklearn.ensemble import IsolationForest

    rng = np.random.default_rng(0)
    n = sum(len(batch) for batch in batches(folder))
    share = min(1.0, 262_144 / n)
    sample = np.concatenate([some[rng.random(len(some)) < share] for some in batches(folder)])
    model = IsolationForest(random_state=0).fit(sample)
    np.save(out, np.concatenate([-model.score_samples(some) for some in batches(folder)]))


def in_memory(folder: Path, out: Path) -> None:
    """Fit IADC on rows that fit into memory, and score the same rows."""
    from aberra import IADC

    rows: list[NDArray[np.float64]] = []
    for some in batches(folder):
        rows.append(some)
        if sum(map(len, rows)) >= CHECKED:
            break
    x = np.concatenate(rows)[:CHECKED]
    np.save(out, IADC(random_state=0).fit(x).anomaly_score(x))


def passes(folder: Path, out: Path) -> None:
    """Time the two passes and the rounds one by one."""
    import time

    from aberra import IADC
    from aberra.data.blocks.opening import blocks_of
    from aberra.robust.by_blocks import conclude, first_look, survey

    clock, found = time.process_time, {}
    IADC(random_state=0).fit(np.random.default_rng(0).normal(size=(300, 3)))  # compile
    blocks, started = blocks_of(folder), clock()
    positions, rows = first_look(blocks, NAMES).sample.drawn()
    found["look"], started = clock() - started, clock()
    model = IADC(random_state=0).fit(rows)
    found["rounds"], started = clock() - started, clock()
    found["n_rounds"] = len(model.history_)
    found["sample"] = len(positions)
    conclude(model, survey(model, blocks, NAMES))
    found["survey"] = clock() - started
    out.write_text(json.dumps(found))


STEPS: dict[str, Callable[[Path, Path], None]] = {
    "forest": forest, "in-memory": in_memory, "passes": passes
}  # fmt: skip


def own(step: str, *words: Any) -> Any:
    """Run a step of this file in a process of its own."""
    return measured([sys.executable, "-m", "benchmarks.any_size", step, *map(str, words)])


# One length


def dirty(folder: Path) -> NDArray[np.int8]:
    """Return the labels, for evaluation alone."""
    import pyarrow.dataset as ds

    return np.asarray(ds.dataset(folder).to_table(columns=["dirty"]).column("dirty").to_numpy())


def scores_in(folder: Path) -> NDArray[np.float64]:
    """Return the scores of all files in their order."""
    import pyarrow.parquet as pq

    files = sorted(folder.rglob("*.parquet"))
    parts = [pq.read_table(file, columns=["score"]).column(0).to_numpy() for file in files]
    return np.concatenate(parts)


def about(run: Any, n_rows: int) -> dict[str, float]:
    """Return what a step took."""
    return {
        "cpu_s": round(run.processor, 1),
        "wall_s": round(run.seconds, 1),
        "peak_mb": round(run.peak),
        "rows_per_cpu_s": round(n_rows / run.processor),
    }


def race(place: Path, n_rows: int) -> dict[str, Any]:
    """Measure one length."""
    from aberra.metrics import auroc

    data, model, out = place / "data", place / "m.aberra", place / "scores"
    own("make", data, n_rows)
    size = sum(file.stat().st_size for file in data.iterdir())
    line: dict[str, Any] = {"rows": n_rows, "columns": N_COLUMNS, "data_mb": round(size / 1e6)}
    fit = [*ABERRA, "fit", str(data), "-o", str(model), "--drop", "dirty", "--on-error", "stop"]
    line["fit"] = about(measured(fit), n_rows)
    score = [*ABERRA, "score", str(model), str(data), "-o"]
    line["score"] = about(measured([*score, str(out), "--reasons", "none"]), n_rows)
    line["forest"] = about(own("forest", data, place / "forest.npy"), n_rows)
    if n_rows == CHECKED:
        line["score_reasons"] = about(measured([*score, str(place / "with-reasons")]), n_rows)
    own("passes", data, place / "passes.json")
    line["passes_cpu_s"] = json.loads((place / "passes.json").read_text())
    y, found = dirty(data), scores_in(out)
    line["auroc"] = {
        "aberra": auroc(y, found),
        "forest": auroc(y, np.load(place / "forest.npy")),
    }
    line["memory_fit"] = about(own("in-memory", data, place / "memory.npy"), min(n_rows, CHECKED))
    kept = np.load(place / "memory.npy")
    line["auroc"] |= {
        "aberra, first million": auroc(y[: len(kept)], found[: len(kept)]),
        "in memory, first million": auroc(y[: len(kept)], kept),
    }
    return line


def run(lengths: list[int]) -> None:
    """Measure some lengths, and add a line for each."""
    for n_rows in lengths:
        place = Path(tempfile.mkdtemp(prefix="any-size-"))
        try:
            line = race(place, n_rows)
        finally:
            shutil.rmtree(place)
        append(LINES, {**line, "environment": environment()})
        print(json.dumps(line, indent=1))


# The page


def table() -> None:
    """Write the page of the lines that are there."""
    lines = sorted(read(LINES), key=lambda line: line["rows"])
    text = [
        "# Tables of any size",
        "",
        "`python -m benchmarks.any_size run 100000 1000000 10000000`, then `table`. Two cores,",
        "shared with other work: rely on processor seconds, not on wall time. 20 columns of",
        "doubles, 1 % of the rows dirty (far in one cell, in a tight group, or torn apart).",
        "Processor seconds and memory are those of whole processes, with 3 to 5 s to start Python.",
        "",
        "| rows | MB | step | CPU s | rows per CPU s | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for line in lines:
        for step in ("fit", "score", "score_reasons", "memory_fit", "forest"):
            if step in line:
                t = line[step]
                text.append(
                    f"| {line['rows']:,} | {line['data_mb']:,} | {step} | {t['cpu_s']:,} | "
                    f"{t['rows_per_cpu_s']:,} | {t['peak_mb']:,} |"
                )
    text += [
        "",
        "| rows | first pass | rounds | second pass | CPU s in all |",
        "|---|---|---|---|---|",
    ]
    for line in lines:
        p = line["passes_cpu_s"]
        total = p["look"] + p["rounds"] + p["survey"]
        text.append(
            f"| {line['rows']:,} | {p['look']:.1f} | {p['rounds']:.1f} ({p['n_rounds']} rounds, "
            f"{p['sample']:,} rows) | {p['survey']:.1f} | {total:.1f} |"
        )
    names = ["aberra", "forest", "aberra, first million", "in memory, first million"]
    text += ["", f"| AUROC at rows | {' | '.join(names)} |", "|---|---|---|---|---|"]
    for line in lines:
        found = " | ".join(f"{line['auroc'][name]:.4f}" for name in names)
        text.append(f"| {line['rows']:,} | {found} |")
    PAGE.write_text("\n".join(text) + "\n")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step")
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    if given.step == "run":
        run([int(word) for word in given.words])
    elif given.step == "table":
        table()
    elif given.step == "make":
        make(Path(given.words[0]), int(given.words[1]))
    else:
        STEPS[given.step](Path(given.words[0]), Path(given.words[1]))


if __name__ == "__main__":
    main()
