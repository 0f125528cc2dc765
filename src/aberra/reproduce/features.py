"""Deep SVDD alone and inside IADC: codes laid out flat, and histograms of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import tiles
from aberra.data.registry import load_table
from aberra.detectors.deep_svdd import Spheres
from aberra.detectors.network import scaled_columns
from aberra.plots import LINE, NORMAL, ODD
from aberra.reproduce.drawing import subplots
from aberra.reproduce.engines import ENGINES
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.odds import DRAWN, drawn_jobs, odds_size, some_rows
from aberra.reproduce.odds_figures import drawn_by_set
from aberra.reproduce.profiles import Profile
from aberra.reproduce.settings import detector_of, ensemble_of, ensemble_settings, settings_of
from aberra.reproduce.store import Setting, Store
from aberra.reproduce.work import Job, finished
from aberra.rng import stream

FEATURES = "features"
FEATURE_SETS = ("satellite", "cardio", "thyroid", "satimage-2")  # those of the paper's figures
N_CODES = 800
SHARES = (0.25, 0.5, 0.75)


def feature_jobs(profile: Profile) -> list[Job]:
    """Return one job per set."""
    size = odds_size(profile)
    shared = {
        "experiment": FEATURES,
        "detector": DRAWN,
        "params": settings_of(DRAWN, size.epochs),
        "rows": size.rows,
        "resample": True,
        "members": size.members,
        "rounds": size.rounds,
        **ensemble_settings(),
        "shown": N_CODES,
        "engine": ENGINES["table"][DRAWN],
        "seed": 0,
    }
    return [
        Job(FEATURES, f"feature space of {name}", ({**shared, "set": name},), compute_features)
        for name in FEATURE_SETS
    ]


def compute_features(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Fit a single model and IADC, and lay out the codes of some rows."""
    for setting in settings:
        X, y = some_rows(*load_table(setting["set"], data_dir), setting["rows"])
        single = detector_of(setting).set_params(random_state=setting["seed"]).fit(X)
        iadc = ensemble_of(setting).set_params(random_state=setting["seed"]).fit(X)
        rows = np.sort(stream(0, 2).permutation(len(X))[: setting["shown"]])
        spheres = {"Single": single.members_, "IADC": iadc.members_.parts[0]}
        maps = {name: laid_out(held, X[rows]) for name, held in spheres.items()}
        store.add(FEATURES, setting, {"anomalous": y[rows].tolist(), "maps": maps})


def laid_out(spheres: Spheres, X: NDArray[np.float64]) -> dict[str, Any]:
    """Return t-SNE places of the codes and of the centre, and radii that hold shares of the rows.

    The first member is shown: codes of different members have different axes.
    """
    from sklearn.manifold import TSNE

    codes = np.concatenate(
        [
            spheres.encoder(scaled_columns(tile, spheres.scaling))[0].T[:n]
            for tile, n in tiles(X, spheres.tile_rows or len(X))
        ]
    )
    centre = spheres.centre[0].T
    both = np.concatenate([codes, centre])
    perplexity = min(30.0, (len(both) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(both)
    far = np.linalg.norm(places[:-1] - places[-1], axis=1)
    return {
        "points": np.round(places[:-1].astype(float), 2).tolist(),
        "centre": np.round(places[-1].astype(float), 2).tolist(),
        "radii": [round(float(np.quantile(far, share)), 3) for share in SHARES],
    }


def feature_space(store: Store, profile: Profile) -> Any:
    """Draw codes of Deep SVDD, alone and in IADC, by t-SNE; circles hold shares of the rows."""
    records = finished(store, feature_jobs(profile))
    figure, axes = subplots(len(records), 2)
    for line, record in zip(axes, records, strict=True):
        odd = np.array(record["anomalous"], dtype=bool)
        for ax, (kind, held) in zip(line, record["maps"].items(), strict=True):
            _codes(ax, held, odd)
            ax.set_title(f"{record['setting']['set']}, {kind}")
    if records:
        axes[0, 0].legend(frameon=False, fontsize=7, loc="upper left")
    return figure


def score_histograms(store: Store, profile: Profile) -> Any:
    """Draw scores of Deep SVDD, alone and in IADC, with a Gaussian for either kind of row."""
    drawn = {k: v for k, v in drawn_by_set(store, profile).items() if k in FEATURE_SETS}
    figure, axes = subplots(len(drawn), 2)
    for line, (name, records) in zip(axes, drawn.items(), strict=True):
        for ax, (kind, held) in zip(line, records[0]["histograms"].items(), strict=True):
            _score_histogram(ax, held)
            ax.set(title=f"{name}, {kind}", xlabel="anomaly score", ylabel="density")
    if drawn:
        axes[0, 0].legend(frameon=False, fontsize=7)
    return figure


def _codes(ax: Any, held: dict[str, Any], odd: NDArray[np.bool_]) -> None:
    from matplotlib.patches import Circle

    points, centre = np.array(held["points"]), held["centre"]
    ax.scatter(*points[~odd].T, s=4, color=NORMAL, label="normal", rasterized=True)
    ax.scatter(*points[odd].T, s=9, color=ODD, marker="^", label="anomalous", rasterized=True)
    ax.plot(*centre, "x", color="black", ms=9, mew=2)
    for radius in held["radii"]:
        ax.add_patch(Circle(centre, radius, fill=False, ls="--", color=LINE, lw=0.9))
    ax.set(xticks=[], yticks=[], aspect="equal")


def _score_histogram(ax: Any, held: dict[str, Any]) -> None:
    edges = np.array(held["edges"])
    x = np.linspace(edges[0], edges[-1], 200)
    for kind, colour, hatch in (("normal", NORMAL, ""), ("anomalous", ODD, "///")):
        part = held[kind]
        counts = np.array(part["counts"], dtype=float)
        total = max(counts.sum(), 1.0) * (edges[1] - edges[0])
        ax.stairs(
            counts / total, edges, fill=True, alpha=0.45, color=colour, hatch=hatch, label=kind
        )
        mean, std = part["mean"], max(part["std"], 1e-12)
        density = np.exp(-(((x - mean) / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi))
        ax.plot(x, density, ls="--", lw=0.9, color=colour)
        if edges[0] <= mean <= edges[-1]:
            ax.axvline(mean, ls="--", lw=1.8, color=colour)


FEATURE_FIGURES = (
    Experiment(
        "feature-space",
        "Figure: codes of Deep SVDD by t-SNE",
        feature_jobs,
        figure=feature_space,
    ),
    Experiment(
        "score-histograms",
        "Figure: histograms of the scores, Deep SVDD",
        drawn_jobs,
        figure=score_histograms,
    ),
)
