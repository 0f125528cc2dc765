"""Libraries that only scans need, loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(name: str) -> Any:
    """Return a module of the `mri` extra, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f'Reading scans needs {name.split(".")[0]}: pip install "aberra[mri]"'
        ) from error
