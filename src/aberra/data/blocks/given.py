"""What was given to `fit`: rows in memory, or a source that is read block by block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LARGE_ROWS = 1_000_000  # a file or memory map with more rows is not read whole


def is_source(X: Any) -> bool:
    """Say whether something is to be read block by block.

    Paths, datasets and `Blocks` are, and memory maps of more than a million rows. What is in memory
    is not, however long: it is there already, and every row is promised a trust of its own.
    """
    if isinstance(X, np.memmap):
        return X.ndim == 2 and len(X) > LARGE_ROWS
    return isinstance(X, str | Path) or library_of(X) is not None


def library_of(X: Any) -> str | None:
    """Return whose dataset something is: "aberra" for `Blocks`, "pyarrow", "ray", or None."""
    module = type(X).__module__
    if module == "aberra.data.blocks.source":
        return "aberra"
    if module.startswith("pyarrow._dataset"):
        return "pyarrow"
    return "ray" if module.startswith("ray.data") else None
