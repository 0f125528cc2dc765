"""A Parquet file of five million rows through `aberra score`: peak memory and rows a second.

python -m benchmarks.score_parquet [--rows 5000000]          results/score_parquet.json

The file (36 columns, float32, 1 % of the rows odd in three columns each) is made in a temporary
folder and removed. The model is made by `aberra fit` on 20,000 other rows of the same kind, with
all defaults; `aberra score` runs with all defaults too, reasons for flagged rows included. Memory
is the peak of the scoring process minus that of a process that only loads the model.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.records import environment

OUT = Path("results/score_parquet.json")
N_COLUMNS, N_FACTORS = 36, 6
CHUNK, ROW_GROUP = 100_000, 500_000
LOAD = "import sys; from aberra.cli import score; from aberra import load; load(sys.argv[1])"


def make(path: Path, n_rows: int, seed: int) -> None:
    """Write rows that follow a few factors; 1 % of them break the pattern in three columns."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    loadings = np.random.default_rng(0).normal(size=(N_FACTORS, N_COLUMNS))
    rng = np.random.default_rng(seed)
    names = [f"sensor_{j:02d}" for j in range(N_COLUMNS)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n_rows, CHUNK):
            n = min(CHUNK, n_rows - start)
            x = rng.normal(size=(n, N_FACTORS)) @ loadings + rng.normal(size=(n, N_COLUMNS))
            odd = np.flatnonzero(rng.random(n) < 0.01)
            for _ in range(3):
                x[odd, rng.integers(0, N_COLUMNS, len(odd))] += 25 * rng.choice([-1, 1], len(odd))
            columns = [pa.array(column) for column in x.T.astype(np.float32)]
            file.write_table(pa.table(columns, schema=schema), row_group_size=ROW_GROUP)


class Measured(NamedTuple):
    """What a process printed and took."""

    printed: str
    peak: float  # MB
    seconds: float
    processor: float  # seconds that it really ran


def measured(words: list[str]) -> Measured:
    """Run a command and watch it."""
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}: {printed}")
    ran = usage.ru_utime + usage.ru_stime
    return Measured(printed, usage.ru_maxrss / 1024, time.perf_counter() - started, ran)


def race(folder: Path, n_rows: int) -> dict[str, Any]:
    """Make the files and score; every step in a process of its own, this one stays small."""
    own = [sys.executable, "-m", "benchmarks.score_parquet", "--make"]
    aberra = [sys.executable, "-c", "from aberra.cli import main; main()", "--json"]
    train, data, model = folder / "train.parquet", folder / "data.parquet", folder / "m.aberra"
    scores = folder / "scores.parquet"
    measured([*own, str(train), "--rows", "20000", "--seed", "1"])
    measured([*own, str(data), "--rows", str(n_rows), "--seed", "2"])
    fitted = json.loads(measured([*aberra, "fit", str(train), "-o", str(model)]).printed)
    loaded = measured([sys.executable, "-c", LOAD, str(model)]).peak
    run = measured([*aberra, "score", str(model), str(data), "-o", str(scores)])
    said = json.loads(run.printed)
    return {
        "rows": said["rows"],
        "columns": N_COLUMNS,
        "data_mb": round(data.stat().st_size / 1e6),
        "flagged": said["flagged"],
        "chosen": dict(fitted["choices"]),
        "peak_mb": round(run.peak),
        "loaded_model_mb": round(loaded),
        "beyond_model_mb": round(run.peak - loaded),
        "seconds": round(run.seconds, 1),
        "rows_per_second": round(said["rows_per_second"]),
        "rows_per_processor_second": round(said["rows"] / run.processor),
        "load_average": os.getloadavg()[0],
        **environment(),
    }


def main() -> None:
    """Run the race, or make one of its files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--make", type=Path)
    options = parser.parse_args()
    if options.make is not None:
        make(options.make, options.rows, options.seed)
        return
    with tempfile.TemporaryDirectory() as folder:
        found = race(Path(folder), options.rows)
    OUT.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
