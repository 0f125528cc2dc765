"""The papers' detectors under the papers' names, with a profile's share of their epochs."""

from __future__ import annotations

from typing import Any

from aberra.detectors.autoencoder import AutoEncoder
from aberra.detectors.dagpr import DAGPR
from aberra.detectors.deep_svdd import DeepSVDD
from aberra.detectors.hybrid import HybridOCSVM
from aberra.detectors.ocsvm import OCSVM
from aberra.detectors.rsrae import RSRAE

DETECTORS = {
    "OCSVM": OCSVM,
    "OCSVM-H": HybridOCSVM,
    "AE": AutoEncoder,
    "Deep SVDD": DeepSVDD,
    "RSRAE": RSRAE,
    "DAGPR": DAGPR,
}
PASSES = ("epochs", "pretrain_epochs")


def settings_of(name: str, epochs: float = 1.0, **params: Any) -> dict[str, Any]:
    """Return all keywords of a detector, defaults included, so that a result names its setting."""
    found = {**DETECTORS[name]().get_params(deep=False), **params}
    found.pop("random_state", None)
    for part in PASSES:
        if part in found:
            found[part] = max(1, round(epochs * found[part]))
    return found


def detector_of(name: str, params: dict[str, Any]) -> Any:
    """Return the detector with these keywords."""
    return DETECTORS[name](**params)


def epochs_of(params: dict[str, Any]) -> int:
    """Return the passes over the data that one member takes."""
    return sum(int(params.get(part, 0)) for part in PASSES)
