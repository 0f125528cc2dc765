"""Fingerprints of the commands: what `aberra fit`, `score` and `reproduce` write."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fingerprint_estimators import CHOICE, LONG, SINGLE, Case, Found, frame, images


def answer(*words: object) -> Any:
    """Run a command in this process; return the JSON object that it prints."""
    from typer.testing import CliRunner

    from aberra.cli import app

    result = CliRunner().invoke(app, ["--json", *map(str, words)])
    if result.exit_code != 0:
        raise RuntimeError(f"aberra {' '.join(map(str, words))}: {result.output}")
    return json.loads(result.stdout)


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in sorted(file.files)}


def numbers(held: list[dict[str, str]], column: str) -> list[float]:
    return [float(line[column]) for line in held]


def of_training(said: Any) -> Found:
    """Return what `aberra fit` says of the training, its sentences left out."""
    doubts = said["doubts"]
    reasons = [[name, repr(share)] for doubt in doubts for name, share in doubt["reasons"]]
    found = {
        "doubted": [doubt["name"] for doubt in doubts],
        "doubted_trust": [doubt["trust"] for doubt in doubts],
        "doubted_score": [doubt["score"] for doubt in doubts],
        "doubted_columns": [name for name, _ in reasons],
        "doubted_shares": [float(share) for _, share in reasons],
        "columns": said["columns"],
    }
    height = said["map_threshold"]
    return found if height is None else found | {"height": height}


def fitted_as_before(data: Path, model: Path, robust: str = "none", **settings: Any) -> Any:
    """Fit intensities with settings that `aberra fit` once had and leaves to the class now."""
    try:
        from aberra.workflow import fit
    except ImportError:  # a checkout whose command still has them
        options = ["--detector", "intensity", "--robust", robust, "--seed", 3]
        return answer("fit", data, "-o", model, *options)
    from dataclasses import asdict

    from aberra import IntensityThreshold

    fitted = fit(data, model, detector=IntensityThreshold(**settings), robust=robust, seed=3)
    return asdict(fitted.recipe)


# Data: the estimators' own, as files.


def csv_file(folder: Path) -> Path:
    """Write a table with text, gaps, an identifier and a column that never changes."""
    held = frame()
    held.insert(
        0, "patient", [f"P{k:03d}" for k in np.random.RandomState(2).permutation(len(held))]
    )
    held["unit"] = "kg"
    held.to_csv(folder / "patients.csv", index=False)
    return folder / "patients.csv"


def picture_folder(folder: Path) -> Path:
    """Write sixteen grey pictures, two of them with a hole."""
    from PIL import Image

    (folder / "pictures").mkdir()
    for k, image in enumerate(images(16)):
        grey = np.clip(255 * image[0], 0, 255).astype(np.uint8)
        Image.fromarray(grey).save(folder / "pictures" / f"p{k:02d}.png")
    return folder / "pictures"


def head_folder(folder: Path) -> Path:
    """Write two phantom heads, one with a dark ball in it."""
    from aberra.data.mri.nifti import write_nifti
    from aberra.data.mri.phantom import head_phantom

    rng = np.random.RandomState(0)
    for name, lesion in (("healthy", None), ("sick", (-30, 20, 30))):
        scan, _ = head_phantom(lesion=lesion)
        noise = rng.normal(0, 2, scan.array.shape)
        noisy = np.where(scan.array > 0, scan.array + noise, 0).astype(np.float32)
        write_nifti(folder / "heads" / f"{name}.nii.gz", noisy, scan)
    return folder / "heads"


def odds_folder(folder: Path) -> Path:
    """Write made-up tables in the place of the data sets, of which the profile takes some rows."""
    from aberra.data.catalogue import DATA_SETS

    rng = np.random.RandomState(0)
    (folder / "odds").mkdir()
    for name in ("satellite", "arrhythmia", "cardio", "shuttle", "thyroid", "satimage-2"):
        (n, d), n_odd = DATA_SETS[name].shape, DATA_SETS[name].anomalies
        X, y = rng.random_sample((n, d)), rng.permutation(n) < n_odd
        X[y] += 0.5
        np.savez(folder / "odds" / f"{name}.npz", X=X, y=y.astype(np.int8))
    return folder


# What is looked at.


def of_table(folder: Path, *options: str) -> Found:
    data, model, out = csv_file(folder), folder / "m.aberra", folder / "scores.csv"
    said = answer("fit", data, "-o", model, "--id-column", "patient", "--seed", 3, *options)
    answer("score", model, data, "-o", out, "--reasons", "all")
    held = lines(out)
    words = [f"reason_{k}" for k in (1, 2, 3)]
    return of_training(said) | {
        "id": [line["id"] for line in held],
        "score": numbers(held, "score"),
        "percentile": numbers(held, "percentile"),
        "flag": [line["flag"].lower() for line in held],
        "reasons": [line[word] for line in held for word in words],
    }


def of_pictures(folder: Path, robust: str) -> Found:
    data, model, out = picture_folder(folder), folder / "m.aberra", folder / "maps"
    said = fitted_as_before(data, model, robust, side="both", smooth=3, false_alarm_rate=0.01)
    answer("score", model, data, "-o", out)
    held = lines(out / "scores.csv")
    maps = [arrays(out / line["map"]) for line in held]
    return of_training(said) | {
        "image": [line["image"] for line in held],
        "score": numbers(held, "score"),
        "percentile": numbers(held, "percentile"),
        "flag": [line["flag"].lower() for line in held],
        "maps": np.stack([file["map"] for file in maps]),
        "segmented": [int(file["segmentation"].sum()) for file in maps],
    }


def of_heads(folder: Path) -> Found:
    import nibabel

    data, model, out = head_folder(folder), folder / "m.aberra", folder / "maps"
    said = fitted_as_before(data, model, side="dark", smooth=5, false_alarm_rate=0.02)
    answer("score", model, data / "sick.nii.gz", "-o", out)
    held = lines(out / "scores.csv")
    found = of_training(said) | {
        "scan": [line["scan"] for line in held],
        "score": numbers(held, "score"),
        "millilitres": numbers(held, "millilitres"),
    }
    for layer in ("map", "segmentation"):
        files = [nibabel.load(out / line[layer]) for line in held]
        found[layer] = np.stack([np.asarray(file.dataobj) for file in files])
    return found | {"affine": files[0].affine}


def of_cells(folder: Path) -> Found:
    """Return the cells of a figure, which are computed for many seeds at once."""
    options = ["--profile", "smoke", "--data-dir", odds_folder(folder), "--out", folder / "out"]
    answer("reproduce", "auc-per-round", *options)
    text = (folder / "out" / "cells" / "odds.jsonl").read_text()
    # By set and seed, so that numbers are compared with their like even if the keys have changed.
    cells = sorted(
        map(json.loads, text.splitlines()),
        key=lambda cell: (cell["setting"]["set"], cell["setting"]["seed"]),
    )
    scores = [arrays(folder / "out/arrays/odds" / f"{cell['key']}.npz") for cell in cells]
    return {
        "auroc": [cell["auroc"][name] for cell in cells for name in ("Single", "ADC", "IADC")],
        "rounds": [value for cell in cells for value in cell["rounds"]],
        "scores": np.concatenate([values for file in scores for values in file.values()]),
    }


def in_folder(look: Callable[..., Found], *options: str) -> Callable[[], Found]:
    """Return the case of a command, which has a folder of its own while it runs."""

    def run() -> Found:
        with tempfile.TemporaryDirectory() as folder:
            return look(Path(folder), *options)

    return run


CASES: dict[str, Case] = {
    "aberra fit, score: table": Case(in_folder(of_table)),
    "aberra fit, score: table, --detector ocsvm --robust none": Case(
        in_folder(of_table, "--detector", "ocsvm", "--robust", "none"), CHOICE
    ),
    "aberra fit, score: table, --robust adc": Case(in_folder(of_table, "--robust", "adc")),
    "aberra fit, score: table, --detector deep-svdd --robust none": Case(
        in_folder(of_table, "--detector", "deep-svdd", "--robust", "none"), LONG
    ),
    "aberra fit, score: pictures": Case(in_folder(of_pictures, "none")),
    "aberra fit, score: pictures, --robust iadc": Case(in_folder(of_pictures, "iadc")),
    "aberra fit, score: heads": Case(in_folder(of_heads), SINGLE, slow=True),
    # Rounds of Deep SVDD enlarge what another processor rounds otherwise.
    "aberra reproduce auc-per-round": Case(in_folder(of_cells), CHOICE, slow=True),
}
