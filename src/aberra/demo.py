"""The demonstration: a real table that is already dirty, and what robust training makes of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from aberra.metrics import auroc
from aberra.robust.adc import ADC
from aberra.robust.iadc import IADC

N_MALIGNANT = 63  # with 357 benign rows: 15 % of the table
LOST_TRUST = 0.25  # half the trust of a row in the middle of the ranking


@dataclass(frozen=True)
class Line:
    """One line of the demo's table."""

    detector: str
    variant: str
    auroc: float
    lost_trust: tuple[int, int] | None  # rows, and malignant rows among them
    seconds: float


def dirty_breast_cancer(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return benign tumours with malignant ones mixed in, and which are which."""
    X, benign = load_breast_cancer(return_X_y=True)
    generator = np.random.default_rng(seed)
    malignant = generator.choice(np.flatnonzero(benign == 0), N_MALIGNANT, replace=False)
    rows = generator.permutation(np.concatenate([np.flatnonzero(benign == 1), malignant]))
    return X[rows], benign[rows] == 0


def compare(
    name: str, detector: Any, X: NDArray[np.float64], y: NDArray[np.bool_]
) -> tuple[list[Line], IADC]:
    """Fit one detector alone, in ADC and in IADC; labels only evaluate."""
    lines = []
    for variant, model in (
        ("Single", clone(detector).set_params(random_state=0)),
        ("ADC", ADC(clone(detector), random_state=0)),
        ("IADC", IADC(clone(detector), random_state=0)),
    ):
        started = time.perf_counter()
        scores = model.fit(X).anomaly_score(X)
        seconds = time.perf_counter() - started
        lost = getattr(model, "weights_", np.ones(len(X))) < LOST_TRUST
        counted = (int(lost.sum()), int((lost & y).sum())) if variant == "IADC" else None
        lines.append(Line(name, variant, auroc(y, scores), counted, seconds))
    return lines, model


def draw(model: IADC, X: NDArray[np.float64], y: NDArray[np.bool_], path: Path) -> None:
    """Save the picture: trust over the rounds, and the scores with the threshold."""
    from matplotlib.figure import Figure

    from aberra.plots import plot_scores, plot_trust

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_trust(model, y, left)
    plot_scores(model.anomaly_score(X), model.threshold_, y, right)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
