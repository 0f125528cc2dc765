"""The default `IADC()` beside plain detectors on 23 real tables, all measured in one run.

    ABERRA_DATA=... python -m benchmarks.default_race run [--sets ...]
    python -m benchmarks.default_race table

Transductive: all rows train, contaminated as they are, and all are scored. Peers are PyOD's, with
its defaults on standardised columns. Sets over 50,000 rows are cut to a fixed random 50,000 for
everybody; kNN looks for neighbours among 10,000 of them. MCD is left out from 500 columns on.
One `MultiView` and one round of it, `ADC()`, stand beside the default, to show where rounds pay.
Lines of ours name the version of `MultiView` (`aberra.reproduce.engines`); older ones do not count.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from aberra import ADC, IADC, MultiView
from aberra.metrics import auroc
from aberra.reproduce.engines import ENGINES
from benchmarks.records import append, environment, load_set, read

SIX = ("satellite", "arrhythmia", "cardio", "shuttle", "thyroid", "satimage-2")
EXTRA = (
    "annthyroid", "cover", "http", "InternetAds", "ionosphere", "letter", "lympho", "magic.gamma",
    "mammography", "mnist_odds", "musk", "pendigits", "pima", "SpamBase", "vertebral", "vowels",
    "wbc",
)  # fmt: skip
MOST_ROWS, KNN_ROWS, MCD_COLUMNS = 50_000, 10_000, 500
RESULTS = Path("results/default_race.jsonl")
OURS = {"IADC()": IADC, "ADC()": ADC, "MultiView": MultiView}
METHODS = (*OURS, "IForest", "ECOD", "kNN", "PCA", "CBLOF", "MCD")
THREE = (0, 1, 2)
SEEDS = {**dict.fromkeys(OURS, THREE), "IForest": THREE, "CBLOF": THREE, "MCD": (0,)}
VERSION = ENGINES["table"]["MultiView"]


def scores(method: str, X: NDArray[np.float64], seed: int) -> NDArray[np.float64] | None:
    """Return the scores of all rows by one method, or None where it is left out."""
    if method in OURS:
        return OURS[method](random_state=seed).fit(X).anomaly_score(X)
    X = StandardScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0])
    detector = peer(method, seed)
    if method == "MCD" and X.shape[1] >= MCD_COLUMNS:
        return None
    if method == "kNN" and len(X) > KNN_ROWS:
        chosen = np.random.default_rng(0).choice(len(X), KNN_ROWS, replace=False)
        return np.asarray(detector.fit(X[chosen]).decision_function(X))
    return np.asarray(detector.fit(X).decision_scores_)


def peer(method: str, seed: int) -> Any:
    """Return PyOD's detector of that name with its defaults."""
    from pyod.models.cblof import CBLOF
    from pyod.models.ecod import ECOD
    from pyod.models.iforest import IForest
    from pyod.models.knn import KNN
    from pyod.models.mcd import MCD
    from pyod.models.pca import PCA

    made = {
        "IForest": lambda: IForest(random_state=seed),
        "ECOD": ECOD,
        "kNN": KNN,
        "PCA": PCA,
        "CBLOF": lambda: CBLOF(random_state=seed),
        "MCD": lambda: MCD(random_state=seed),
    }
    return made[method]()


def run(args: argparse.Namespace) -> None:
    """Fill the cells that are missing."""
    warnings.simplefilter("ignore")
    done = {(c["method"], c["set"], c["seed"]) for c in current(args.out)}
    for name in args.sets:
        X, y = load_set(name)
        if len(X) > MOST_ROWS:
            chosen = np.random.default_rng(0).permutation(len(X))[:MOST_ROWS]
            X, y = X[chosen], y[chosen]
        for method in METHODS:
            for seed in SEEDS.get(method, (0,)):
                if (method, name, seed) not in done:
                    append(args.out, cell(method, name, seed, X, y))


def current(path: Path) -> list[dict[str, Any]]:
    """Return the lines of peers, and those of ours that the present version has computed."""
    return [c for c in read(path) if c["method"] not in OURS or c.get("engine") == VERSION]


def cell(
    method: str, name: str, seed: int, X: NDArray[np.float64], y: NDArray[np.int8]
) -> dict[str, Any]:
    """Measure one method on one set."""
    started = time.perf_counter()
    found: dict[str, Any] = {"method": method, "set": name, "seed": seed}
    try:
        s = scores(method, X, seed)
        found["auroc"] = None if s is None else auroc(y, s)
    except Exception as error:  # a peer that fails is a result, not the end of the race
        found |= {"auroc": None, "error": repr(error)[:200]}
    found["seconds"] = time.perf_counter() - started
    if method in OURS:
        found["engine"] = VERSION
    print(method, name, seed, found["auroc"], f"{found['seconds']:.1f}s", flush=True)
    return found | environment()


def table(args: argparse.Namespace) -> None:
    """Write AUROC by set and the means over the six and the seventeen, beside the lines."""
    means: dict[tuple[str, str], float] = {}
    cells = current(args.out)
    for method in METHODS:
        for name in SIX + EXTRA:
            found = [c["auroc"] for c in cells if (c["method"], c["set"]) == (method, name)]
            values = [v for v in found if v is not None]
            means[method, name] = 100 * float(np.mean(values)) if values else float("nan")
    text = [
        f"# The default beside plain detectors\n\n{__doc__}\nAUROC x 100, mean over the seeds.\n"
    ]
    text += [f"| set | {' | '.join(METHODS)} |", "|---|" + "---|" * len(METHODS)]
    for name in SIX + EXTRA:
        row = (f"{means[m, name]:.1f}".replace("nan", "") for m in METHODS)
        text.append(f"| {name} | {' | '.join(row)} |")
    for title, names in (("mean of the six", SIX), ("mean of the 17", EXTRA)):
        row = (f"{np.nanmean([means[m, n] for n in names]):.2f}" for m in METHODS)
        text.append(f"| **{title}** | {' | '.join(row)} |")
    args.out.with_suffix(".md").write_text("\n".join(text) + "\n", "utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "table"))
    parser.add_argument("--sets", nargs="+", default=SIX + EXTRA)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run, "table": table}[args.command](args)


if __name__ == "__main__":
    main()
