"""Forged model files: sound frame and checksum, contents that lie."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.covariance import EllipticEnvelope
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

import aberra
from aberra import load
from aberra.model_file.container import Arrays, pack, unpack
from aberra.viewer.models import model_page
from aberra.workflow import fit

SHORT = {"n_members": 2, "random_state": 0}
BRIEF = {"train_steps": 1, "batch_size": 4, "device": "cpu", "random_state": 0}
VALUES: list[Any] = [None, True, -1, 0, 1, 7, 10**6, 10**12, 2**63, 10**40, 1.5, -1e308, 1e308,
          "nan", "inf", "x", "", "C", "F", [], [1], [1, 2, 3], [10**6, 10**6], {}, {"x": 1},
          {"array": "C"}, {"tuple": []}]  # fmt: skip

Manifest = dict[str, Any]


def rows() -> pd.DataFrame:
    """Return a small table with a gap and a column of text."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    frame["ward"] = rng.choice(["north", "south", "east"], 60)
    frame.loc[3, "a"] = np.nan
    return frame


def numbers() -> NDArray[np.float64]:
    """Return the rows of detectors that take numbers only."""
    return np.random.default_rng(1).normal(size=(40, 3))


def images() -> NDArray[np.float32]:
    """Return small pictures."""
    return np.random.default_rng(2).random((12, 1, 16, 16)).astype(np.float32)


def _made(name: str, *args: Any, **keywords: Any) -> Any:
    return getattr(aberra, name)(*args, **keywords)


TABLES: dict[str, Callable[[], Any]] = {
    "multiview": lambda: _made("MultiView", random_state=0),
    "iadc": lambda: _made("IADC", _made("OCSVM"), max_rounds=2, **SHORT),
    "text": lambda: _made("IADC", missing="impute", encode="auto", max_rounds=2, **SHORT),
    "dagpr": lambda: _made("DAGPR", hidden=(4, 2), pretrain_epochs=1, random_state=0),
    "svdd": lambda: _made("DeepSVDD", hidden=(4, 2), epochs=1, pretrain_epochs=1, random_state=0),
    "rsrae": lambda: _made("RSRAE", hidden=(4, 2), epochs=1, random_state=0),
    "hybrid": lambda: _made("HybridOCSVM", hidden=(4, 2), pretrain_epochs=1, random_state=0),
    "svm": lambda: _made("ADC", OneClassSVM(), **SHORT),
    "envelope": lambda: _made("ADC", EllipticEnvelope(), **SHORT),
    "lof": lambda: _made("ADC", LocalOutlierFactor(novelty=True, algorithm="brute"), **SHORT),
}
IMAGES: dict[str, Callable[[], Any]] = {
    "ae images": lambda: _made("AutoEncoder", epochs=1, random_state=0),
    "addm": lambda: _made("ADDM", image_size=16, **BRIEF),
    "spatial": lambda: _made("SpatialAE", image_size=16, **BRIEF),
    "vae": lambda: _made("DenseVAE", image_size=16, **BRIEF),
    "fanogan": lambda: _made("FAnoGAN", image_size=16, encoder_steps=1, **BRIEF),
    "vq": lambda: _made("VQTransformer", image_size=16, transformer_steps=1, **BRIEF),
    "intensity": lambda: _made("IntensityThreshold"),
}


class ForgedModels:
    """Files whose manifest, arrays or inner archives were changed, the checksum made to fit."""

    n = 10_000

    def prepare(self, sound: Path) -> None:
        """Fit a small model of every kind, once."""
        folder = sound / "models"
        if not folder.exists():
            folder.mkdir()
            for name, make in TABLES.items():
                aberra.save(make().fit(rows() if name == "text" else numbers()), folder / name)
            for name, make in IMAGES.items():
                aberra.save(make().fit(images()), folder / name)
            rows().to_csv(sound / "rows.csv", index=False)
            fit(sound / "rows.csv", folder / "recipe")
        self.files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}

    def try_one(self, k: int, folder: Path) -> str:
        """Forge, load, and use what loads in every way that a person can."""
        rng = random.Random(k)
        name = rng.choice(sorted(self.files))
        manifest, arrays = unpack(self.files[name])
        for _ in range(rng.choice([1, 1, 1, 2])):
            rng.choice(FORGERIES)(manifest, arrays, rng)
        path = folder / "m.aberra"
        path.write_bytes(pack(manifest, arrays))
        return used(load(path), path, name)


def used(model: Any, path: Path, name: str) -> str:
    """Score, explain and show; return what is not as it should be."""
    if model.image_shape_ is not None:
        X: Any = np.zeros((2, *model.image_shape_), np.float32)
    elif name in ("text", "recipe"):
        X = rows()
    else:
        X = numbers()
    scores = model.anomaly_score(X)
    if not np.isfinite(scores).all():
        return "scores are not finite"
    if scores.shape != (len(X),):
        return "scores have another shape"
    if model.localises:
        if not np.isfinite(model.anomaly_map(X)).all():
            return "maps are not finite"
    elif not np.isfinite(np.asarray(model.explain(X[:3]), float)).all():
        return "explanations are not finite"
    model.predict(X)
    json.dumps(model_page(path), allow_nan=False)
    return "fine"


# Forgeries


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a JSON tree with each of its keys."""
    for key in node if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from places(node[key])


def other_value(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Put something else in one place of the manifest."""
    node, key = rng.choice(list(places(manifest)))
    node[key] = rng.choice(VALUES)


def other_number(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Change one number to another of its kind."""
    found = [(n, k) for n, k in places(manifest) if type(n[k]) in (int, float)]
    node, key = rng.choice(found or list(places(manifest)))
    large = 10 ** rng.randrange(1, 19)
    options: list[Any] = [0, -1, 1, 2, large, -large]
    node[key] = float(rng.choice(options)) if type(node[key]) is float else rng.choice(options)


def other_length(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Make one list or object longer or shorter."""
    found = [n[k] for n, k in places(manifest) if isinstance(n[k], dict | list) and n[k]]
    node = rng.choice(found)
    if isinstance(node, dict):
        node.pop(rng.choice(sorted(node)))
    elif rng.random() < 0.5:
        node.pop(rng.randrange(len(node)))
    else:
        node.extend([node[-1]] * rng.choice([1, 400]))


def other_array(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Give one array other numbers, another shape or another type."""
    name = rng.choice(sorted(arrays))
    held = arrays[name].copy()
    how = rng.randrange(6)
    if how == 0 and held.size:
        held.flat[rng.randrange(held.size)] = rng.choice(_extremes(held.dtype))
    elif how == 1:
        held = np.full_like(held, rng.choice(_extremes(held.dtype)))
    elif how == 2 and held.ndim:
        held = held[: rng.randrange(len(held) + 1)].copy()
    elif how == 3:
        held = np.concatenate([held.ravel()] * 2)
    elif how == 4:
        held = held.astype(rng.choice(["float32", "float64", "int64", "uint8"]))
    else:
        held = held[None]
    arrays[name] = held


def _extremes(dtype: np.dtype[Any]) -> list[Any]:
    if dtype.kind == "f":
        return [0.0, -1.0, np.nan, np.inf, float(np.finfo(dtype).max), float(np.finfo(dtype).tiny)]
    info = np.iinfo(dtype) if dtype.kind in "iu" else None
    return [0, 1] if info is None else [0, 1, int(info.max), int(info.min)]


def other_archive(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Change an array or a word inside a detector of scikit-learn; else any array."""
    found = [name for name, array in arrays.items() if bytes(array.ravel()[:2]) == b"PK"]
    if not found:
        other_array(manifest, arrays, rng)
        return
    name = rng.choice(sorted(found))
    with zipfile.ZipFile(io.BytesIO(arrays[name].tobytes())) as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist()}
    entry = rng.choice(sorted(files))
    if entry.endswith(".npy"):
        inner = {"a": np.load(io.BytesIO(files[entry]))}
        other_array({}, inner, rng)
        buffer = io.BytesIO()
        np.save(buffer, inner["a"])
        files[entry] = buffer.getvalue()
    elif entry == "schema.json":
        schema = json.loads(files[entry])
        other_value(schema, {}, rng)
        files[entry] = json.dumps(schema).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry, content in files.items():
            archive.writestr(entry, content)
    arrays[name] = np.frombuffer(buffer.getvalue(), np.uint8)


FORGERIES = [other_value, other_number, other_number, other_length, other_array, other_archive]
