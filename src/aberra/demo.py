"""The demonstration: real tables that are already dirty, and images with something broken."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aberra.data.scenarios import everyday_dirt
from aberra.detectors.deep_svdd import DeepSVDD
from aberra.detectors.multiview import MultiView
from aberra.errors import RoundsExhaustedWarning
from aberra.metrics import auroc
from aberra.recipe import Recipe
from aberra.robust.adc import ADC
from aberra.robust.iadc import IADC

if TYPE_CHECKING:
    from aberra.localise.diffusion import ADDM

N_MALIGNANT = 63  # with 357 benign rows: 15 % of the table
DAMAGED = 0.1  # share of the rows that everyday dirt has damaged
OURS = "IADC()"


@dataclass(frozen=True)
class Line:
    """One line of a comparison: who, how well, what is flagged, and how many of that rightly."""

    detector: str
    auroc: float
    flagged: int
    rightly: int
    seconds: float


def damaged_breast_cancer(seed: int = 0) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Return benign tumours, a tenth of the rows damaged as happens every day, and which."""
    X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.set_axis([f"tumour {k}" for k in range(len(X))])[benign.to_numpy() == 1]
    damaged, what = everyday_dirt(X, DAMAGED, np.random.default_rng(seed))
    return damaged, what != ""


def dirty_breast_cancer(seed: int = 0) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Return benign tumours with malignant ones mixed in, and which are which."""
    X, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    X, benign = X.set_axis([f"tumour {k}" for k in range(len(X))]), benign.to_numpy()
    generator = np.random.default_rng(seed)
    malignant = generator.choice(np.flatnonzero(benign == 0), N_MALIGNANT, replace=False)
    rows = generator.permutation(np.concatenate([np.flatnonzero(benign == 1), malignant]))
    return X.iloc[rows], benign[rows] == 0


class Standardised:
    """A plain detector of scikit-learn, with its defaults, on standardised columns."""

    def __init__(self, detector: Any) -> None:
        self.detector = make_pipeline(StandardScaler(), detector)

    def fit(self, X: pd.DataFrame) -> Standardised:
        """Learn what is normal in the rows."""
        self.labels = self.detector.fit_predict(X)
        return self

    def anomaly_score(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """Return one score for each training row; the higher, the odder."""
        last = self.detector[-1]
        if isinstance(last, LocalOutlierFactor):
            return np.asarray(-last.negative_outlier_factor_)
        return np.asarray(-self.detector.score_samples(X))

    def predict(self, X: pd.DataFrame) -> NDArray[np.int64]:
        """Return -1 for the training rows that it flags."""
        return np.asarray(self.labels)


def plain_detectors() -> dict[str, Standardised]:
    """Return what most people would try first."""
    return {
        "IsolationForest": Standardised(IsolationForest(random_state=0)),
        "EllipticEnvelope": Standardised(EllipticEnvelope(random_state=0)),
        "LocalOutlierFactor": Standardised(LocalOutlierFactor()),
    }


def around_deep_svdd() -> dict[str, Any]:
    """Return a network alone and in robust training."""
    detector = DeepSVDD(random_state=0)
    return {
        "DeepSVDD()": detector,
        "ADC(DeepSVDD())": ADC(clone(detector), random_state=0),
        "IADC(DeepSVDD())": IADC(clone(detector), random_state=0),
    }


def compared(models: Mapping[str, Any], X: pd.DataFrame, y: NDArray[np.bool_]) -> list[Line]:
    """Fit each model on the table as it is; the labels only measure."""
    lines = []
    for name, model in models.items():
        started = time.perf_counter()
        scores = model.fit(X).anomaly_score(X)
        flags = model.predict(X) == -1
        seconds = time.perf_counter() - started
        found = int(flags.sum()), int((flags & y).sum())
        lines.append(Line(name, auroc(y, scores), *found, seconds))
    return lines


def best(lines: Sequence[Line]) -> Line:
    """Return the line with the highest AUROC."""
    return max(lines, key=lambda line: line.auroc)


@dataclass(frozen=True)
class CleanedTable:
    """What came of two dirty tables: the comparisons, a picture and a report."""

    damaged: list[Line]
    malignant: list[Line]
    picture: Path
    report: Path


def clean_a_table(out: Path) -> CleanedTable:
    """Compare detectors on two dirty tables; report on the first, draw trust on the second.

    Parameters
    ----------
    out : Path
        Folder for the picture and the report; made if it is not there.
    """
    from aberra.report import html
    from aberra.report.writing import write

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoundsExhaustedWarning)
        _compile()  # not in the times
        X, y = damaged_breast_cancer()
        model = IADC(random_state=0)
        damaged = compared({OURS: model, **plain_detectors()}, X, y)
        X2, y2 = dirty_breast_cancer()
        networks = around_deep_svdd()
        every = {OURS: IADC(random_state=0), **plain_detectors(), **networks}
        malignant = compared(every, X2, y2)
    found = CleanedTable(damaged, malignant, out / "trust.png", out / "table-report.html")
    draw(networks["IADC(DeepSVDD())"], X2, y2, found.picture)
    title = "Breast tumours: which rows are damaged?"
    write(found.report, html(model, X, recipe=table_recipe(damaged, X), title=title))
    return found


def _compile() -> None:
    """Fit what a first fit compiles, on a few rows."""
    few = np.random.default_rng(0).normal(size=(40, 3))
    MultiView(random_state=0).fit(few)
    DeepSVDD(epochs=1, pretrain_epochs=1, random_state=0).fit(few)


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
    found = next(line for line in lines if line.detector == OURS)
    n_damaged = round(DAMAGED * len(X))
    return Recipe(
        "table",
        "scikit-learn's breast cancer data",
        len(X),
        columns=list(X.columns),
        choices=[("contamination", f"{n_damaged} damaged rows among {len(X)}, unmarked")],
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
