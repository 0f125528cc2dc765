"""Cells of the feature-space figure: codes of Deep SVDD, alone and inside IADC, laid out flat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import tiles
from aberra.data.registry import load_table
from aberra.detectors.deep_svdd import Spheres
from aberra.detectors.network import tile_to_tensor
from aberra.reproduce.detectors import detector_of, settings_of
from aberra.reproduce.odds import DRAWN, ensemble_of, some_rows
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Setting, Store
from aberra.reproduce.work import Job
from aberra.rng import stream
from aberra.robust.iadc import IADC

FAMILY = "features"
SETS = ("satellite", "cardio", "thyroid", "satimage-2")  # those of the paper's figure
SHOWN = 800
SHARES = (0.25, 0.5, 0.75)


def jobs(profile: Profile) -> list[Job]:
    """Return one job a set."""
    ensemble = IADC()
    shared = {
        "experiment": FAMILY,
        "detector": DRAWN,
        "params": settings_of(DRAWN, profile.epochs),
        "rows": profile.rows,
        "resample": True,
        "members": profile.members,
        "rounds": profile.rounds,
        "temperature": ensemble.temperature,
        "patience": ensemble.patience,
        "shown": SHOWN,
        "seed": 0,
    }
    return [Job(FAMILY, f"feature space of {name}", ({**shared, "set": name},)) for name in SETS]


def compute(settings: Sequence[Setting], store: Store, data_dir: Path | None) -> None:
    """Fit a single model and IADC, and lay out the codes of some rows."""
    for setting in settings:
        X, y = some_rows(*load_table(setting["set"], data_dir), setting["rows"])
        single = detector_of(setting["detector"], setting["params"])
        single.set_params(random_state=setting["seed"]).fit(X)
        iadc = ensemble_of(setting).set_params(random_state=setting["seed"]).fit(X)
        rows = np.sort(stream(0, 2).permutation(len(X))[: setting["shown"]])
        spheres = {"Single": single.members_, "IADC": iadc.members_.parts[0]}
        maps = {name: laid_out(held, X[rows]) for name, held in spheres.items()}
        store.add(FAMILY, setting, {"anomalous": y[rows].tolist(), "maps": maps})


def laid_out(spheres: Spheres, X: NDArray[np.float64]) -> dict[str, Any]:
    """Return t-SNE places of the codes and of the centre, and radii that hold shares of the rows.

    The first member is shown: codes of different members have different axes.
    """
    from sklearn.manifold import TSNE

    codes = np.concatenate(
        [
            spheres.encoder(tile_to_tensor(tile, spheres.scaling))[0].numpy().T[:n]
            for tile, n in tiles(X, spheres.tile_rows or len(X))
        ]
    )
    centre = spheres.centre[0].numpy().T
    both = np.concatenate([codes, centre])
    perplexity = min(30.0, (len(both) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(both)
    far = np.linalg.norm(places[:-1] - places[-1], axis=1)
    return {
        "points": np.round(places[:-1].astype(float), 2).tolist(),
        "centre": np.round(places[-1].astype(float), 2).tolist(),
        "radii": [round(float(np.quantile(far, share)), 3) for share in SHARES],
    }
