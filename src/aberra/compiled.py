"""How loops are compiled, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import config, njit

Function = TypeVar("Function", bound=Callable[..., Any])

SLP = "SLP_VECTORIZE"  # made when numba is imported, so type checkers do not know it


def compiled(function: Function) -> Function:
    """Compile at first use and keep the result on disk; fused multiply-adds, no other liberty."""
    return _compile(function)


def compiled_for(signature: str) -> Callable[[Function], Function]:
    """Compile now, for one signature, and turn equal statements in a row into vector instructions.

    The compiler can do that (SLP), but numba has it off by default, for all functions or none.
    """

    def compile_it(function: Function) -> Function:
        before = getattr(config, SLP)
        setattr(config, SLP, 1)
        try:
            return _compile(function, signature)
        finally:
            setattr(config, SLP, before)

    return compile_it


def _compile(function: Function, signature: str | None = None) -> Function:
    keywords: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
    try:
        return cast(Function, njit(signature, cache=True, **keywords)(function))
    except RuntimeError:  # nowhere to keep the result: neither beside the source nor at home
        return cast(Function, njit(signature, **keywords)(function))
