"""Time and memory, as ratios against peers measured in the same run.

    python -m benchmarks.speed [epochs whole scoring growth default explain]

Writes results/speed.json. Satellite-sized data (6,435 x 36) are drawn at random: the times do not
depend on the values.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.records import environment

N, D, HIDDEN, BATCH = 6435, 36, (32, 16, 8), 128
RESULTS = Path("results/speed.json")


def rows(n: int, d: int = D, seed: int = 0) -> NDArray[np.float64]:
    """Draw n rows."""
    return np.random.default_rng(seed).normal(size=(n, d))


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    """Return the median time of some runs."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def per_epoch(fit: Callable[[int], object], few: int, many: int) -> float:
    """Return the time of one epoch: what more epochs cost, without the parts around them."""
    return (seconds(lambda: fit(many)) - seconds(lambda: fit(few))) / (many - few)


def epochs_race() -> dict[str, float]:
    """Compare one member-epoch with PyOD's, at equal network, batch and epochs."""
    from pyod.models.auto_encoder import AutoEncoder as PyodAutoEncoder
    from pyod.models.deep_svdd import DeepSVDD as PyodDeepSVDD

    from aberra import ADC, AutoEncoder, DeepSVDD

    X = rows(N)
    networks: dict[str, Any] = {"hidden": HIDDEN, "batch_size": BATCH, "random_state": 0}
    peer: dict[str, Any] = {"batch_size": BATCH, "preprocessing": True}
    ours = {
        "autoencoder": lambda e: ADC(AutoEncoder(epochs=e, **networks), random_state=0).fit(X),
        "deep_svdd": lambda e: ADC(
            DeepSVDD(epochs=e, pretrain_epochs=1, **networks), random_state=0
        ).fit(X),
    }
    theirs = {
        "autoencoder": lambda e: PyodAutoEncoder(
            hidden_neuron_list=list(HIDDEN), epoch_num=e, verbose=0, **peer
        ).fit(X),
        "deep_svdd": lambda e: PyodDeepSVDD(
            n_features=D, hidden_neurons=list(HIDDEN), epochs=e, verbose=0, **peer
        ).fit(X),
    }
    found = {}
    for name in ours:
        mine = per_epoch(ours[name], 5, 25) / 5  # five members in the stack
        pyod = per_epoch(theirs[name], 1, 3)
        found[f"{name}: aberra ms per member-epoch"] = 1e3 * mine
        found[f"{name}: PyOD ms per epoch"] = 1e3 * pyod
        found[f"{name}: times faster"] = pyod / mine
    return found


def whole_fit_race() -> dict[str, float]:
    """Compare a whole default IADC(DeepSVDD()), all rounds, with one default PyOD DeepSVDD."""
    from pyod.models.deep_svdd import DeepSVDD as PyodDeepSVDD

    from aberra import IADC, DeepSVDD

    X = rows(N)
    X[: N // 10] += 4
    model = IADC(DeepSVDD(), random_state=0)
    mine = seconds(lambda: model.fit(X), repeat=1)
    pyod = seconds(lambda: PyodDeepSVDD(n_features=D, verbose=0).fit(X), repeat=1)
    return {
        "IADC(DeepSVDD()) seconds": mine,
        "IADC(DeepSVDD()) rounds": float(len(model.history_)),
        "PyOD DeepSVDD seconds": pyod,
        "IADC over one PyOD model": mine / pyod,
    }


def scoring_race() -> dict[str, float]:
    """Score a million rows with five members, beside IsolationForest; memory in a fresh process."""
    from sklearn.ensemble import IsolationForest

    from aberra import ADC, DeepSVDD

    X = rows(1_000_000)
    short = DeepSVDD(epochs=1, pretrain_epochs=1)
    model = ADC(short, random_state=0).fit(X[:N])
    forest = IsolationForest(random_state=0).fit(X[:N])
    mine = seconds(lambda: model.anomaly_score(X))
    forests = seconds(lambda: forest.score_samples(X))
    code = "from benchmarks.speed import scoring_memory; print(scoring_memory())"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {
        "a million rows: aberra seconds": mine,
        "a million rows: IsolationForest seconds": forests,
        "scoring over IsolationForest": mine / forests,
        "peak memory over the data": float(out.stdout),
    }


def scoring_memory() -> float:
    """Return (data + what scoring adds to the peak) / data, in this process (Linux)."""
    from aberra import ADC, DeepSVDD

    X = rows(1_000_000)
    model = ADC(DeepSVDD(epochs=1, pretrain_epochs=1), random_state=0).fit(X[:N])
    model.anomaly_score(X[:N])
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    before = peak_bytes()
    model.anomaly_score(X)
    return 1 + (peak_bytes() - before) / X.nbytes


def peak_bytes() -> int:
    """Return the peak resident memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def growth() -> dict[str, float]:
    """Fit one epoch on 10^4 and 10^6 rows; linear growth is a factor of 100."""
    from aberra import RSRAE, AutoEncoder, DeepSVDD

    X = rows(1_000_000)
    found = {}
    for name, detector in (
        ("AutoEncoder", AutoEncoder(epochs=2, random_state=0)),
        ("DeepSVDD", DeepSVDD(epochs=1, pretrain_epochs=1, random_state=0)),
        ("RSRAE", RSRAE(epochs=2, random_state=0)),
    ):
        small = seconds(lambda d=detector: d.fit(X[:10_000]), repeat=15)  # type: ignore[misc]
        large = seconds(lambda d=detector: d.fit(X))  # type: ignore[misc]
        found[f"{name}: 100 times the rows, times the time"] = large / small
    return found


def default_race() -> dict[str, float]:
    """Fit and score with the default beside IsolationForest; a table far wider than long."""
    from sklearn.ensemble import IsolationForest

    from aberra import IADC

    X = rows(1_000_000)
    model, forest = IADC(random_state=0).fit(X[:N]), IsolationForest(random_state=0).fit(X[:N])
    mine, forests = (
        seconds(lambda: model.anomaly_score(X)),
        seconds(lambda: forest.score_samples(X)),
    )
    wide, long = rows(150, 20_000), rows(500_000, 12)
    long[:5000] += 5
    fit = seconds(lambda: IADC(random_state=0).fit(long), 1)
    both = seconds(lambda: IsolationForest(random_state=0).fit(long).score_samples(long), 1)
    return {
        "500,000 x 12: fit of IADC() seconds": fit,
        "500,000 x 12: fit and score of IsolationForest seconds": both,
        "fit of IADC() over IsolationForest's fit and score": fit / both,
        "a million rows: IADC() seconds": mine,
        "a million rows: IsolationForest seconds": forests,
        "scoring with IADC() over IsolationForest": mine / forests,
        "150 x 20,000: fit of IADC() seconds": seconds(lambda: IADC(random_state=0).fit(wide), 1),
    }


def explain_times() -> dict[str, float]:
    """Explain 200 rows with the default, at two numbers of columns."""
    from aberra import IADC

    found = {}
    for d in (12, D):
        X = rows(2000, d)
        model = IADC(max_rounds=2, random_state=0).fit(X)
        model.explain(X[:20])  # compiles
        found[f"{d} columns: ms to explain a row"] = 5 * seconds(lambda: model.explain(X[:200]))  # noqa: B023
    return found


def default_memory() -> dict[str, float]:
    """Fit and score with the default; peak memory, the data included, over the data (Linux)."""
    from aberra import IADC

    found = {}
    for d in (12, D):
        X = rows(500_000, d)
        X[:5000] += 5
        model = IADC(random_state=0).fit(X[:N])
        model.anomaly_score(X[:N])
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
        before = peak_bytes()
        IADC(random_state=0).fit(X)
        found[f"500,000 x {d}: fit"] = 1 + (peak_bytes() - before) / X.nbytes
        Path("/proc/self/clear_refs").write_text("5")
        before = peak_bytes()
        model.anomaly_score(X)
        found[f"500,000 x {d}: score"] = 1 + (peak_bytes() - before) / X.nbytes
    return found


RACES = {
    "epochs": epochs_race,
    "whole": whole_fit_race,
    "scoring": scoring_race,
    "growth": growth,
    "default": default_race,
    "explain": explain_times,
    "memory": default_memory,
}


def main() -> None:
    """Run the races named on the command line, or all, and write what was found."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for race in sys.argv[1:] or RACES:
        measured = {name: round(value, 3) for name, value in RACES[race]().items()}
        for name, value in measured.items():
            print(f"{name:55} {value:10.3f}", flush=True)
        found[race] = measured | environment()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
