"""Real data for benchmarks, and results that survive an interruption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aberra.data.registry import data_dir, load_table
from aberra.reproduce.store import append_line as append
from aberra.reproduce.store import environment
from aberra.reproduce.store import read_lines as read

__all__ = ["append", "data_folder", "environment", "load_set", "read"]


def data_folder() -> Path:
    """Return the folder of real data sets."""
    return data_dir()


def load_set(name: str) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return rows and labels of an ODDS set; labels are for evaluation only."""
    return load_table(name)
