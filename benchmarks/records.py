"""Results that survive an interruption: one JSON line per finished cell."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKAGES = ("aberra", "numpy", "scipy", "scikit-learn", "torch")


def data_folder() -> Path:
    """Return the folder of real data sets, from $ABERRA_DATA."""
    folder = os.environ.get("ABERRA_DATA")
    if not folder:
        raise SystemExit("Set ABERRA_DATA to the folder that holds odds/ and odds_extra/.")
    return Path(folder)


def load_set(name: str) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return rows and labels of an ODDS set; labels are for evaluation only."""
    for group in ("odds", "odds_extra"):
        path = data_folder() / group / f"{name}.npz"
        if path.exists():
            with np.load(path) as file:
                return file["X"], file["y"]
    raise SystemExit(f"No {name}.npz below {data_folder()}.")


def environment() -> dict[str, Any]:
    """Describe what made a result: versions, commit, processor."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "commit": commit,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the finished cells; a line cut short by an interruption is left out."""
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def append(path: Path, cell: dict[str, Any]) -> None:
    """Add one finished cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(cell) + "\n")
