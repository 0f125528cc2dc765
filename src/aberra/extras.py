"""Libraries of the optional extras, loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from aberra.errors import MissingExtraError


def need(name: str, extra: str, what_for: str) -> Any:
    """Return a module of an extra, or say what it is for and how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.split(".", maxsplit=1)[0]
        raise MissingExtraError(
            f'{what_for} needs {package}, which is not installed: pip install "aberra[{extra}]"'
        ) from error
