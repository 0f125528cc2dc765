"""Forged model files: sound frame and checksum, contents that lie."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from aberra import load
from aberra.data.mri.phantom import head_phantom
from aberra.errors import AberraError
from aberra.export import export_onnx
from aberra.localise.volumes import score_volume
from aberra.model_file.container import Arrays, pack, unpack
from aberra.viewer.models import model_page
from aberra.workflow import info
from aberra.workflow.opened import opened
from benchmarks.borders_kinds import IMAGES, NUMBERS, centred, numbers, rows, save_all

VALUES: list[Any] = [None, True, -1, 0, 1, 7, 10**6, 10**12, 2**63, 10**40, 1.5, -1e308, 1e308,
          "nan", "inf", "x", "", "C", "F", [], [1], [1, 2, 3], [10**6, 10**6], {}, {"x": 1},
          {"array": "C"}, {"tuple": []}]  # fmt: skip
SELDOM = 10  # what costs most is done with every tenth file that can be used

Manifest = dict[str, Any]


class ForgedModels:
    """Files whose manifest, arrays or inner archives were changed, the checksum made to fit."""

    n = 10_000

    def prepare(self, sound: Path) -> None:
        """Fit a small model of every kind, once; all that is done with them later must work."""
        folder = sound / "models"
        if not folder.exists():
            folder.mkdir()
            save_all(folder, sound)
        self.files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        for name in self.files:
            verdict = used(folder / name, name, True, sound)
            if verdict != "fine":
                raise RuntimeError(f"The sound model {name}: {verdict}")

    def try_one(self, k: int, folder: Path) -> str:
        """Forge, load, and use what loads in every way that a person can."""
        rng = random.Random(k)
        # Networks of images cost twenty times as much as all else: each comes a fourth as often.
        names = [name for name in sorted(self.files) for _ in range(1 if name in IMAGES else 4)]
        name = rng.choice(names)
        manifest, arrays = unpack(self.files[name])
        for _ in range(rng.choice([1, 1, 1, 2])):
            rng.choice(FORGERIES)(manifest, arrays, rng)
        path = folder / "m.aberra"
        path.write_bytes(pack(manifest, arrays))
        return used(path, name, k % SELDOM == 0, folder)


def used(path: Path, name: str, everything: bool, folder: Path) -> str:
    """Score, explain and show; return what is not as it should be."""
    model = load(path)
    if model.image_shape_ is not None:
        X: Any = np.zeros((2, *model.image_shape_), np.float32)
    else:
        X = numbers() if name in NUMBERS else rows().assign(year=2023)
        names = model.column_names()
        X = X if name in NUMBERS or names is None else X.reindex(columns=names)
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
    json.dumps(info(path).as_dict(), allow_nan=False)
    return _in_depth(path, X, everything, folder)


def _in_depth(path: Path, X: Any, everything: bool, folder: Path) -> str:
    """Compare, export, and look at scans: what fewer people do, or what takes longer."""
    known = opened(path)
    if known.recipe is not None and known.recipe.kind == "volumes":
        return _on_a_scan(known)
    if known.kind == "table":
        json.dumps(known.model.compare(X).as_dict(), allow_nan=False)
    if everything:
        with suppress(AberraError):  # some models cannot be expressed, and say so
            export_onnx(known.model, folder / "m.onnx")
    return "fine"


def _on_a_scan(known: Any) -> str:
    """Do with a scan what `aberra score --relative` does, as far as the notes go into it."""
    recipe = known.recipe
    preparation, healthy = recipe.scan_preparation(), recipe.healthy_scans()
    recipe.training_looks()
    if healthy is None:
        return "fine"
    said = [healthy.percentile(1.0), healthy.p_value(1.0)]
    if healthy.heights is not None:
        maps = np.zeros((3, 16, 16), np.float32)
        said += [float(np.abs(m).max()) for m in healthy.heights.relative(maps, np.arange(3.0))]
    scan, brain = head_phantom(shape=(24, 24, 24), affine=centred(24, 9.0))
    said.append(score_volume(known.model, scan, preparation, mask=brain).score)
    return "fine" if np.isfinite(said).all() else "what is said about a scan is not finite"


# Forgeries


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in a JSON tree with each of its keys."""
    for key in node if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], dict | list):
            yield from places(node[key])


def some_places(tree: Any, rng: random.Random) -> list[tuple[Any, Any]]:
    """Return the places of one branch: else long lists, and not members, would be changed most."""
    node = tree
    for _ in range(rng.choice([0, 2, 2, 2, 3])):
        inside = node.values() if isinstance(node, dict) else node
        branches = [value for value in inside if isinstance(value, dict | list) and value]
        node = rng.choice(branches) if branches else node
    return list(places(node))


def some_array(arrays: Arrays, rng: random.Random) -> str:
    """Return the name of an array: of members as often as of the portrait, which has more."""
    branch = rng.choice(sorted({name.split(".")[1] for name in arrays if "." in name} or {""}))
    found = [name for name in sorted(arrays) if name.split(".")[1:2] == [branch]]
    return rng.choice(found or sorted(arrays))


def other_value(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Put something else in one place of the manifest."""
    node, key = rng.choice(some_places(manifest, rng))
    node[key] = rng.choice(VALUES)


def other_number(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Change one number to another of its kind."""
    found = [(n, k) for n, k in some_places(manifest, rng) if type(n[k]) in (int, float)]
    node, key = rng.choice(found or some_places(manifest, rng))
    large = 10 ** rng.randrange(1, 19)
    options: list[Any] = [0, -1, 1, 2, large, -large]
    node[key] = float(rng.choice(options)) if type(node[key]) is float else rng.choice(options)


def other_length(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Make one list or object longer or shorter."""
    near, everywhere = some_places(manifest, rng), list(places(manifest))
    full = [[n[k] for n, k in some if isinstance(n[k], dict | list) and n[k]]
            for some in (near, everywhere)]  # fmt: skip
    node = rng.choice(full[0] or full[1])
    if isinstance(node, dict):
        node.pop(rng.choice(sorted(node)))
    elif rng.random() < 0.5:
        node.pop(rng.randrange(len(node)))
    else:
        node.extend([node[-1]] * rng.choice([1, 400]))


def other_array(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Give one array other numbers, another shape or another type."""
    name = some_array(arrays, rng)
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


def _entries(array: Any) -> dict[str, bytes]:
    """Return the files in an archive; nothing if the array is none, or a damaged one."""
    if bytes(array.ravel()[:2]) != b"PK":
        return {}
    try:
        with zipfile.ZipFile(io.BytesIO(array.tobytes())) as archive:
            return {entry: archive.read(entry) for entry in archive.namelist()}
    except Exception:  # changed before, by another forgery
        return {}


def other_archive(manifest: Manifest, arrays: Arrays, rng: random.Random) -> None:
    """Change an array or a word inside a detector of scikit-learn; else any array."""
    archives = {name: _entries(array) for name, array in sorted(arrays.items())}
    found = [name for name, entries in archives.items() if entries]
    if not found:
        other_array(manifest, arrays, rng)
        return
    name = rng.choice(found)
    files = archives[name]
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
