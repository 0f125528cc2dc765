"""Whether an exported model says the same as the model: largest difference of scores, and flags.

    ABERRA_DATA=... python -m benchmarks.onnx_parity [--out results/onnx.md]

On the 23 tables of odds and odds_extra. The default is fitted on the whole table and scores all of
it. The other detectors are fitted on at most 2,000 rows with five epochs: parity does not depend on
how well they are trained. Each finished cell is kept, so an interrupted run goes on. Labels play no
part.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra import (
    DAGPR,
    IADC,
    OCSVM,
    RSRAE,
    AutoEncoder,
    DeepSVDD,
    HybridOCSVM,
    MultiView,
    export_onnx,
)
from benchmarks.records import append, data_folder, environment, read

Rows = NDArray[np.float64]
FOLDERS = ("odds", "odds_extra")
AT_A_TIME, MOST_ROWS = 2048, 2000
RAW = Path("results/onnx.jsonl")
SHORT: dict[str, Any] = {"random_state": 0}
OTHERS: dict[str, Any] = {
    "MultiView": lambda: MultiView(**SHORT),
    "OCSVM": lambda: OCSVM(**SHORT),
    "AutoEncoder": lambda: AutoEncoder(epochs=5, **SHORT),
    "RSRAE": lambda: RSRAE(epochs=5, **SHORT),
    "DeepSVDD": lambda: DeepSVDD(epochs=5, pretrain_epochs=5, **SHORT),
    "DAGPR": lambda: DAGPR(pretrain_epochs=5, **SHORT),
    "HybridOCSVM": lambda: HybridOCSVM(pretrain_epochs=5, **SHORT),
}


@dataclass(frozen=True)
class Cell:
    """One model on one table."""

    table: str
    model: str
    n_rows: int
    n_columns: int
    difference: float
    largest_score: float
    scale: float  # of ordinary scores
    flagged: int
    other_flags: int
    megabytes: float


def cell(table: str, name: str, model: Any, X: Rows) -> Cell:
    """Compare a fitted model with its export on some rows."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        file = export_onnx(model, Path(folder) / "model.onnx")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            file.path, options, providers=["CPUExecutionProvider"]
        )
    starts = range(0, len(X), AT_A_TIME)
    parts = [session.run(None, {"X": X[k : k + AT_A_TIME]}) for k in starts]
    bare = model.anomaly_score(X)
    scores, flags = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Cell(
        table,
        name,
        len(X),
        X.shape[1],
        float(np.abs(scores - bare).max()),
        float(np.abs(bare).max()),
        model.bulk_.scale,
        int((bare > model.threshold_).sum()),
        int((flags != (bare > model.threshold_)).sum()),
        file.n_bytes / 1e6,
    )


def run(done: set[tuple[str, str]]) -> None:
    """Fill in all cells that are missing."""
    for path in sorted(p for f in FOLDERS for p in (data_folder() / f).glob("*.npz")):
        with np.load(path) as held:
            X = np.ascontiguousarray(held["X"], dtype=np.float64)
        some = X[np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]]
        for name in ("default", *OTHERS):
            if (path.stem, name) in done:
                continue
            default = name == "default"
            model = IADC(random_state=0).fit(X) if default else OTHERS[name]().fit(some)
            found = cell(path.stem, name, model, X if default else some)
            append(RAW, asdict(found))
            print(found, flush=True)


def page(cells: list[Cell]) -> str:
    """Return the results as Markdown."""
    where = environment() | {name: version(name) for name in ("onnx", "onnxruntime")}
    lines = [
        "# Exported models say the same",
        "",
        "`ABERRA_DATA=... python -m benchmarks.onnx_parity`; the script says what was fitted and "
        "scored. `difference` is the largest difference between the scores of the graph in "
        "onnxruntime and `anomaly_score`, in the units of the score; `scale` is how far ordinary "
        "scores spread (`bulk_.scale`). `other flags` counts rows that only one of both flags. "
        "What is left comes from the distances to landmarks, which the library computes in "
        "single precision.",
        "",
        "## The default, `IADC()`",
        "",
        "| table | rows | columns | difference | scale | flagged | other flags | file |",
        "|---|---|---|---|---|---|---|---|",
    ]
    own = [c for c in cells if c.model == "default"]
    lines += [
        f"| {c.table} | {c.n_rows:,} | {c.n_columns} | {c.difference:.1e} | {c.scale:.2g} "
        f"| {c.flagged:,} | {c.other_flags} | {c.megabytes:.1f} MB |"
        for c in own
    ]
    lines += [
        "",
        f"## Other detectors, the largest of all {len(own)} tables",
        "",
        "| model | difference | difference / scale | other flags |",
        "|---|---|---|---|",
    ]
    for name in OTHERS:
        some = [c for c in cells if c.model == name]
        lines.append(
            f"| {name} | {max(c.difference for c in some):.1e} "
            f"| {max(c.difference / c.scale for c in some):.1e} "
            f"| {sum(c.other_flags for c in some)} |"
        )
    return "\n".join([*lines, "", f"Made with {where}.", ""])


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/onnx.md"))
    out = parser.parse_args().out
    run({(line["table"], line["model"]) for line in read(RAW)})
    out.write_text(page([Cell(**line) for line in read(RAW)]))


if __name__ == "__main__":
    main()
