"""How loops are compiled, in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import config, njit

Function = TypeVar("Function", bound=Callable[..., Any])

SLP = "SLP_VECTORIZE"  # made when numba is imported, so type checkers do not know it


def compiled(function: Function) -> Function:
    """Compile at first use and keep the result on disk; fused multiply-adds, no other liberty."""
    compile_it = njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")
    return cast(Function, compile_it(function))


def compiled_for(signature: str) -> Callable[[Function], Function]:
    """Compile now, for one signature, and turn equal statements in a row into vector instructions.

    The compiler can do that (SLP), but numba has it off by default, for all functions or none.
    """

    def compile_it(function: Function) -> Function:
        before = getattr(config, SLP)
        setattr(config, SLP, 1)
        try:
            made = njit(
                signature, nogil=True, cache=True, fastmath={"contract"}, error_model="numpy"
            )(function)
        finally:
            setattr(config, SLP, before)
        return cast(Function, made)

    return compile_it
