"""Aberra finds what does not belong, and learns from data that is already dirty.

Everything public can be imported from here: the methods in the register (`aberra.methods`), `save`,
`load`, `export_onnx`, `as_pyod` and `Stream`. Heavy libraries are loaded when a name is first used.
Type checkers read `__init__.pyi`, which `python docs/names.py` writes from the same register.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from aberra.methods import methods as _registered

__version__ = "0.2.0"

FUNCTIONS = {
    "Stream": "aberra.robust.stream",
    "as_pyod": "aberra.adapters",
    "export_onnx": "aberra.export",
    "load": "aberra.model_file",
    "load_pretrained": "aberra.pretrained",
    "save": "aberra.model_file",
}

__all__ = sorted([method.name for method in _registered()] + list(FUNCTIONS))


def __getattr__(name: str) -> Any:
    homes = {method.name: method.module for method in _registered()} | FUNCTIONS
    if name not in homes:
        raise AttributeError(f"module 'aberra' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
