"""The landmark solver of the one-class SVM beside the exact one, on the ODDS sets.

    ABERRA_DATA=... python -m benchmarks.ocsvm_solvers

Writes results/ocsvm_solvers.md. On Shuttle (49,097 rows) the exact solver takes minutes; its row
is there to show it.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from aberra import OCSVM
from aberra.detectors.ocsvm import Solver
from aberra.metrics import auroc
from aberra.reproduce.odds import ODDS_SETS as SETS
from benchmarks.records import environment, load_set

RESULTS = Path("results/ocsvm_solvers.md")
HEAD = """# One-class SVM: landmarks against the exact solution

`python -m benchmarks.ocsvm_solvers`, nu 0.5, gamma "scale", 256 landmarks, three seeds.

| set | rows | exact AUROC | landmarks AUROC | largest gap | rank corr. | exact s | landmarks s |
|---|---|---|---|---|---|---|---|
"""


def main() -> None:
    """Fit both solvers on every set."""
    lines = []
    for name in SETS:
        X, y = load_set(name)

        def fitted(solver: Solver, seed: int, X: np.ndarray = X) -> tuple[np.ndarray, float]:
            started = time.perf_counter()
            scores = OCSVM(solver=solver, random_state=seed).fit(X).anomaly_score(X)
            return scores, time.perf_counter() - started

        exact, exact_seconds = fitted("exact", 0)
        runs = [fitted("nystroem", seed) for seed in (0, 1, 2)]
        values = [100 * auroc(y, s) for s, _ in runs]
        gap = max(abs(v - 100 * auroc(y, exact)) for v in values)
        rank = min(spearmanr(exact, s).statistic for s, _ in runs)
        lines.append(
            f"| {name} | {len(X)} | {100 * auroc(y, exact):.2f} | {np.mean(values):.2f} | "
            f"{gap:.2f} | {rank:.4f} | {exact_seconds:.1f} | {np.mean([t for _, t in runs]):.1f} |"
        )
        print(lines[-1], flush=True)
    RESULTS.write_text(HEAD + "\n".join(lines) + f"\n\nMade with {environment()}.\n")


if __name__ == "__main__":
    main()
