"""The demonstration: a real table that is already dirty, and images with something broken."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits

from aberra.detectors.deep_svdd import DeepSVDD
from aberra.errors import RoundsExhaustedWarning
from aberra.metrics import auroc
from aberra.recipe import Recipe
from aberra.robust.adc import ADC
from aberra.robust.ensemble import default_detector
from aberra.robust.iadc import IADC
from aberra.robust.weighting import LOST_TRUST

if TYPE_CHECKING:
    from aberra.localise.diffusion import ADDM

N_MALIGNANT = 63  # with 357 benign rows: 15 % of the table


@dataclass(frozen=True)
class Line:
    """One line of the demo's table."""

    detector: str
    variant: str
    auroc: float
    lost_trust: tuple[int, int] | None  # rows, and malignant rows among them
    seconds: float


def dirty_breast_cancer(seed: int = 0) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Return benign tumours with malignant ones mixed in, and which are which."""
    X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    X, benign = X.set_axis([f"tumour {k}" for k in range(len(X))]), benign.to_numpy()
    generator = np.random.default_rng(seed)
    malignant = generator.choice(np.flatnonzero(benign == 0), N_MALIGNANT, replace=False)
    rows = generator.permutation(np.concatenate([np.flatnonzero(benign == 1), malignant]))
    return X.iloc[rows], benign[rows] == 0


def compare(
    name: str, detector: Any, X: pd.DataFrame, y: NDArray[np.bool_]
) -> tuple[list[Line], IADC]:
    """Fit one detector alone, in ADC and in IADC; labels only evaluate."""
    lines = []
    passes = {k: 1 for k in ("epochs", "pretrain_epochs") if k in detector.get_params()}
    clone(detector).set_params(**passes).fit(X)  # a first fit may compile: not in the times
    for variant, model in (
        ("Single", clone(detector).set_params(random_state=0)),
        ("ADC", ADC(clone(detector), random_state=0)),
        ("IADC", IADC(clone(detector), random_state=0)),
    ):
        started = time.perf_counter()
        scores = model.fit(X).anomaly_score(X)
        seconds = time.perf_counter() - started
        trust = model.training_trust()
        lost = None if trust is None else trust < LOST_TRUST
        counted = None if lost is None else (int(lost.sum()), int((lost & y).sum()))
        lines.append(Line(name, variant, auroc(y, scores), counted, seconds))
    return lines, model


@dataclass(frozen=True)
class CleanedTable:
    """What came of the dirty table: the comparison, a picture and a report."""

    lines: list[Line]
    picture: Path
    report: Path


def clean_a_table(out: Path) -> CleanedTable:
    """Compare trainings on the dirty table; draw how trust moved and report on the default.

    Parameters
    ----------
    out : Path
        Folder for the picture and the report; made if it is not there.
    """
    from aberra.report import html
    from aberra.report.writing import write

    X, y = dirty_breast_cancer()
    default = default_detector()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)
        lines, model = compare(type(default).__name__, default, X, y)
        others, deep = compare("DeepSVDD", DeepSVDD(), X, y)
    found = CleanedTable([*lines, *others], out / "trust.png", out / "table-report.html")
    draw(deep, X, y, found.picture)
    title = "Breast tumours: which rows do not belong?"
    write(found.report, html(model, X, recipe=table_recipe(lines, X), title=title))
    return found


def draw(model: IADC, X: pd.DataFrame, y: NDArray[np.bool_], path: Path) -> None:
    """Save the picture: trust over the rounds, and the scores with the threshold."""
    from matplotlib.figure import Figure

    from aberra.plots import plot_scores, plot_trust

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_trust(model, y, left)
    plot_scores(model.anomaly_score(X), model.threshold_, y, right)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def table_recipe(lines: Sequence[Line], X: pd.DataFrame) -> Recipe:
    """Return what the report is to say about the table and how IADC did."""
    found = next(line for line in lines if line.variant == "IADC")
    return Recipe(
        "table",
        "scikit-learn's breast cancer data",
        len(X),
        columns=list(X.columns),
        choices=[("contamination", f"{N_MALIGNANT} malignant rows among {len(X)}, unmarked")],
        metrics={"AUROC": found.auroc},
    )


@dataclass(frozen=True)
class BrokenDigits:
    """Handwritten zeros: whole ones to learn from, and others with a piece missing."""

    whole: NDArray[np.float32]  # (n, 1, 8, 8)
    broken: NDArray[np.float32]
    missing: NDArray[np.bool_]  # (n, 8, 8): the ink that was taken away


def broken_digits(n_broken: int = 40, seed: int = 0) -> BrokenDigits:
    """Return the zeros among scikit-learn's digits, a square of ink taken out of some."""
    images, digit = load_digits(return_X_y=True)
    zeros = images[digit == 0].reshape(-1, 1, 8, 8)
    rng = np.random.default_rng(seed)
    zeros = zeros[rng.permutation(len(zeros))]
    whole, broken = zeros[n_broken:], zeros[:n_broken].copy()
    missing = np.zeros((n_broken, 8, 8), bool)
    for image, gap in zip(broken[:, 0], missing, strict=True):
        row, column = rng.choice(np.argwhere(image > 8))
        around = (slice(max(0, row - 1), row + 2), slice(max(0, column - 1), column + 2))
        gap[around] = image[around] > 4
        image[around] = 0
    return BrokenDigits(whole, broken, missing)


def localise(digits: BrokenDigits) -> tuple[ADDM, float]:
    """Train ADDM on whole digits; return it and the pixel AUROC of its maps of broken ones."""
    # Missing ink is darker than a whole zero; digits are small, so few steps are enough.
    from aberra.localise.diffusion import ADDM

    model = ADDM(error="darker", train_steps=250, batch_size=16, random_state=0)
    maps = model.fit(digits.whole).anomaly_map(digits.broken)
    return model, auroc(digits.missing, maps)


@dataclass(frozen=True)
class FoundBroken:
    """What came of the broken digits: pixel AUROC of the maps, a picture and a report."""

    auroc: float
    picture: Path
    report: Path


def find_what_is_broken(out: Path) -> FoundBroken:
    """Let a localiser restore broken digits, draw some of them and report on all.

    Parameters
    ----------
    out : Path
        Folder for the picture and the report; made if it is not there.
    """
    from aberra.report import ImagesToReport, html
    from aberra.report.writing import write

    digits = broken_digits()
    model, found = localise(digits)
    names = [f"zero {k}" for k in range(len(digits.broken))]
    data = ImagesToReport(names, lambda some: digits.broken[list(some)], "the broken digits")
    title, recipe = "Handwritten zeros: what is missing?", digits_recipe(model, digits)
    result = FoundBroken(found, out / "localised.png", out / "image-report.html")
    draw_localised(model, digits, result.picture)
    write(result.report, html(model, data, recipe=recipe, title=title))
    return result


def digits_recipe(model: ADDM, digits: BrokenDigits) -> Recipe:
    """Return what the report is to say about the whole digits."""
    scores = np.sort(model.anomaly_score(digits.whole))
    return Recipe(
        "images",
        "scikit-learn's digits: handwritten zeros",
        len(digits.whole),
        quantiles=scores.tolist(),
        map_threshold=model.map_threshold_,
    )


def draw_localised(model: ADDM, digits: BrokenDigits, path: Path, n: int = 8) -> None:
    """Save the picture: broken, restored, the map, and what was really missing."""
    from matplotlib.figure import Figure

    broken = digits.broken[:n]
    rows = {
        "broken": (broken[:, 0], "gray"),
        "restored": (model.reconstruct(broken)[:, 0], "gray"),
        "map": (model.anomaly_map(broken), "magma"),
        "flagged": (model.segment(broken), "gray"),
        "truth": (digits.missing[:n], "gray"),
    }
    figure = Figure(figsize=(n, len(rows) + 0.3), layout="constrained")
    axes = figure.subplots(len(rows), n)
    for line, (name, (images, colours)) in zip(axes, rows.items(), strict=True):
        line[0].set_ylabel(name)
        top = max(float(images.max()), 1e-6)
        for axis, image in zip(line, images, strict=True):
            axis.imshow(image, cmap=colours, vmin=0, vmax=top)
            axis.set(xticks=[], yticks=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
