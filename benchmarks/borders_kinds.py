"""A small fitted model of every kind that can be saved, and the data that each is asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image
from sklearn.covariance import EllipticEnvelope
from sklearn.linear_model import SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

import aberra
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.localise.diffusion_settings import DIFFUSION_PRESETS
from aberra.workflow import fit

SHORT = {"n_members": 2, "random_state": 0}
ROUNDS = {**SHORT, "max_rounds": 2}
SMALL = {"hidden": (4, 2), "random_state": 0}
BRIEF = {"train_steps": 1, "batch_size": 4, "device": "cpu", "random_state": 0}
NETWORK = {**BRIEF, "image_size": 16}
N_LONG = 10_500  # rows beyond which a file keeps a sample of them


def rows(n: int = 60) -> pd.DataFrame:
    """Return a small table with a gap and a column of text."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    frame["ward"] = rng.choice(["north", "south", "east"], n)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) % 400, "D")
    frame.loc[3, "a"] = np.nan
    return frame


def numbers(n: int = 40) -> NDArray[np.float64]:
    """Return the rows of detectors that take numbers only."""
    return np.random.default_rng(1).normal(size=(n, 3))


def images() -> NDArray[np.float32]:
    """Return small pictures."""
    return np.random.default_rng(2).random((12, 1, 16, 16)).astype(np.float32)


def _made(name: str, *args: Any, **keywords: Any) -> Any:
    return getattr(aberra, name)(*args, **keywords)


def _iadc(name: str, **keywords: Any) -> Any:
    return _made("IADC", _made(name, **keywords), **ROUNDS)


def _marked(model: Any) -> Any:
    return model.fit(numbers()).feedback(numbers()[:4], [1, 0, 0, 1])


def _streamed() -> Any:
    """Return the model inside a stream that has jumped once: it is what `aberra.save` takes."""
    stream = _made("Stream", _iadc("MultiView"), n_rows=40, refit_every=20, random_state=0)
    for level in (0.0, 0.0, 5.0):
        stream.partial_fit(numbers(20) + level)
    return stream.model_


# Tables: each is fitted on numbers, unless it takes none.
NUMBERS: dict[str, Callable[[], Any]] = {
    "multiview": lambda: _made("MultiView", random_state=0).fit(numbers()),
    "iadc views": lambda: _made("IADC", **ROUNDS).fit(numbers()),
    "iadc svm": lambda: _iadc("OCSVM").fit(numbers()),
    "iadc svdd": lambda: _iadc("DeepSVDD", **SMALL, epochs=1, pretrain_epochs=1).fit(numbers()),
    "iadc dagpr": lambda: _iadc("DAGPR", **SMALL, pretrain_epochs=1).fit(numbers()),
    "iadc hybrid": lambda: _iadc("HybridOCSVM", **SMALL, pretrain_epochs=1).fit(numbers()),
    "iadc rsrae": lambda: _iadc("RSRAE", **SMALL, epochs=1).fit(numbers()),
    "adc autoencoder": lambda: _made("ADC", _made("AutoEncoder", **SMALL, epochs=1), **SHORT).fit(
        numbers()
    ),
    "svm": lambda: _made("OCSVM", random_state=0).fit(numbers()),
    "dagpr": lambda: _made("DAGPR", **SMALL, pretrain_epochs=1).fit(numbers()),
    "svdd": lambda: _made("DeepSVDD", **SMALL, epochs=1, pretrain_epochs=1).fit(numbers()),
    "rsrae": lambda: _made("RSRAE", **SMALL, epochs=1).fit(numbers()),
    "hybrid": lambda: _made("HybridOCSVM", **SMALL, pretrain_epochs=1).fit(numbers()),
    "their svm": lambda: _made("ADC", OneClassSVM(), **SHORT).fit(numbers()),
    "their envelope": lambda: _made("ADC", EllipticEnvelope(), **SHORT).fit(numbers()),
    "their lof": lambda: _made(
        "ADC", LocalOutlierFactor(novelty=True, algorithm="brute"), **SHORT
    ).fit(numbers()),
    "their gradient": lambda: _made("ADC", SGDOneClassSVM(), **SHORT).fit(numbers()),
    "their pipeline": lambda: _made(
        "IADC", make_pipeline(StandardScaler(), OneClassSVM()), **ROUNDS
    ).fit(numbers()),
    "marked": lambda: _marked(_made("MultiView", random_state=0)),
    "iadc marked": lambda: _marked(_iadc("OCSVM")),
    "stream": _streamed,
    "long": lambda: _made("IADC", **ROUNDS).fit(numbers(N_LONG)),
}
FRAMES: dict[str, Callable[[], Any]] = {
    "text": lambda: _made("IADC", missing="impute", encode="auto", **ROUNDS).fit(rows()),
    "views text": lambda: _made("MultiView", missing="impute", encode="auto", random_state=0).fit(
        rows()
    ),
}
IMAGES: dict[str, Callable[[], Any]] = {
    "ae images": lambda: _made("AutoEncoder", epochs=1, random_state=0),
    "iadc images": lambda: _made("IADC", _made("DeepSVDD", epochs=1, pretrain_epochs=1), **ROUNDS),
    "addm": lambda: _made("ADDM", **NETWORK),
    "anoddpm": lambda: _made("AnoDDPM", **NETWORK),
    "spatial": lambda: _made("SpatialAE", **NETWORK),
    "vae": lambda: _made("DenseVAE", **NETWORK),
    "fanogan": lambda: _made("FAnoGAN", encoder_steps=1, **NETWORK),
    "vq": lambda: _made("VQTransformer", transformer_steps=1, **NETWORK),
    "finder": lambda: _made("PatchFinder", **NETWORK),
    "intensity": lambda: _made("IntensityThreshold"),
    "nearest": lambda: _made("NearestHealthy", random_state=0),
    "iadc intensity": lambda: _made("IADC", _made("IntensityThreshold"), **ROUNDS),
    "adc finder": lambda: _made("ADC", _made("PatchFinder", **NETWORK), n_members=1),
}


def save_all(folder: Path, sources: Path) -> None:
    """Fit and save a model of every kind; `sources` gets the files that some are fitted from."""
    for name, make in {**NUMBERS, **FRAMES}.items():
        aberra.save(make(), folder / name)
    with _narrow_networks():
        for name, make in IMAGES.items():
            aberra.save(make().fit(images()), folder / name)
    for name, (path, options) in _files(sources).items():
        fit(path, folder / name, **options)


@contextmanager
def _narrow_networks() -> Iterator[None]:
    """Make U-Nets of a hundredth of the usual size: their structure is what a forgery changes."""
    usual = DIFFUSION_PRESETS["small"]
    narrow = replace(usual, widths=(8, 32), attention=(False, True))
    DIFFUSION_PRESETS["small"] = narrow
    try:
        yield
    finally:
        DIFFUSION_PRESETS["small"] = usual


def _files(sources: Path) -> dict[str, tuple[Path, Mapping[str, Any]]]:
    """Write data of every sort that `aberra fit` takes; return where, and how to fit on it."""
    parts, pictures, heads = (sources / name for name in ("parts", "pictures", "heads"))
    rows().to_csv(sources / "rows.csv", index=False)
    for year in (2023, 2024):
        (parts / f"year={year}").mkdir(parents=True)
        rows(N_LONG // 2).to_parquet(parts / f"year={year}" / "rows.parquet")
    pictures.mkdir()
    for k, image in enumerate(images()):
        Image.fromarray((255 * image[0]).astype(np.uint8)).save(pictures / f"{k}.png")
    for k in range(4):
        scan, _ = head_phantom(shape=(24, 24, 24), affine=centred(24, 8.5 + k / 4))
        write_nifti(heads / f"{k}.nii.gz", scan.array, scan)
    return {
        "recipe": (sources / "rows.csv", {}),
        "recipe parts": (parts, {"robust": "none"}),
        "recipe pictures": (pictures, {"detector": "intensity"}),
        "recipe scans": (heads, {"detector": "intensity"}),
    }


def centred(n: int, spacing: float) -> NDArray[np.float64]:
    """Return the affine of a cube whose middle is the world's."""
    affine = np.diag([spacing, spacing, spacing, 1.0])
    affine[:3, 3] = -spacing * (n - 1) / 2
    return affine
