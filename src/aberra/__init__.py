"""Aberra finds what does not belong, and learns from data that is already dirty."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aberra.detectors.autoencoder import AutoEncoder
    from aberra.detectors.dagpr import DAGPR
    from aberra.detectors.deep_svdd import DeepSVDD
    from aberra.detectors.hybrid import HybridOCSVM
    from aberra.detectors.multiview import MultiView
    from aberra.detectors.ocsvm import OCSVM
    from aberra.detectors.rsrae import RSRAE
    from aberra.localise.diffusion import ADDM, DDPM, AnoDDPM
    from aberra.localise.fanogan import FAnoGAN
    from aberra.localise.intensity import IntensityThreshold
    from aberra.localise.reconstruction import DenseVAE, SpatialAE
    from aberra.localise.vqvae_transformer import VQTransformer
    from aberra.model_file import load, save
    from aberra.robust.adc import ADC
    from aberra.robust.iadc import IADC

__version__ = "0.1.0"

# Heavy parts (torch, scikit-learn) load when a name is first used.
_HOMES = {
    "ADC": "aberra.robust.adc",
    "ADDM": "aberra.localise.diffusion",
    "DAGPR": "aberra.detectors.dagpr",
    "DDPM": "aberra.localise.diffusion",
    "IADC": "aberra.robust.iadc",
    "OCSVM": "aberra.detectors.ocsvm",
    "RSRAE": "aberra.detectors.rsrae",
    "AnoDDPM": "aberra.localise.diffusion",
    "AutoEncoder": "aberra.detectors.autoencoder",
    "DeepSVDD": "aberra.detectors.deep_svdd",
    "HybridOCSVM": "aberra.detectors.hybrid",
    "MultiView": "aberra.detectors.multiview",
    "DenseVAE": "aberra.localise.reconstruction",
    "FAnoGAN": "aberra.localise.fanogan",
    "IntensityThreshold": "aberra.localise.intensity",
    "SpatialAE": "aberra.localise.reconstruction",
    "VQTransformer": "aberra.localise.vqvae_transformer",
    "load": "aberra.model_file",
    "save": "aberra.model_file",
}

__all__ = [
    "ADC",
    "ADDM",
    "DAGPR",
    "DDPM",
    "IADC",
    "OCSVM",
    "RSRAE",
    "AnoDDPM",
    "AutoEncoder",
    "DeepSVDD",
    "DenseVAE",
    "FAnoGAN",
    "HybridOCSVM",
    "IntensityThreshold",
    "MultiView",
    "SpatialAE",
    "VQTransformer",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'aberra' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
