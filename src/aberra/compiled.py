"""How loops are compiled, where the result is kept, and what is said about it, in one place."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from stat import S_IWGRP, S_IWOTH
from typing import Any, TypeVar, cast

from numba import config, njit
from numba.core import event

from aberra.progress import remark

Function = TypeVar("Function", bound=Callable[..., Any])

SLP = "SLP_VECTORIZE"  # made when numba is imported, so type checkers do not know it
FOLDER = "CACHE_DIR"


def compiled(function: Function) -> Function:
    """Compile at first use and keep the result on disk; fused multiply-adds, no other liberty."""
    return _compile(function)


def compiled_sums(function: Function) -> Function:
    """Compile as `compiled` does, but let sums be taken in another order, with vector instructions.

    The order is the compiler's, and always the same for a kind of processor.
    """
    return _compile(function, fastmath=("contract", "reassoc"))


def compiled_for(signature: str) -> Callable[[Function], Function]:
    """Compile now, for one signature, and turn equal statements in a row into vector instructions.

    The compiler can do that (SLP), but numba has it off by default, for all functions or none.
    """

    def compile_it(function: Function) -> Function:
        with _setting(SLP, 1):
            return _compile(function, signature)

    return compile_it


def _compile(
    function: Function, signature: str | None = None, fastmath: Collection[str] = ("contract",)
) -> Function:
    keywords: dict[str, Any] = {"nogil": True, "fastmath": set(fastmath), "error_model": "numpy"}
    folder = kept_in(Path(function.__code__.co_filename).parent)
    try:
        with _setting(FOLDER, getattr(config, FOLDER) if folder is None else str(folder)):
            return cast(Function, njit(signature, cache=True, **keywords)(function))
    except RuntimeError:  # nowhere to keep the result, so every process compiles for itself
        _tell_not_kept(getattr(config, FOLDER))
        return cast(Function, njit(signature, **keywords)(function))


@contextmanager
def _setting(name: str, value: object) -> Iterator[None]:
    """Change one of numba's settings, which hold for everybody, for the length of the block."""
    before = getattr(config, name)
    setattr(config, name, value)
    try:
        yield
    finally:
        setattr(config, name, before)


# Where compiled code is kept


@cache
def kept_in(source: Path) -> Path | None:
    """Return the folder for what is compiled from sources in a folder, if it is not beside them.

    Beside them is best: one copy for all users, and it goes with the package. Where that cannot
    be written, it is the user's folder of such things, and where there is none, one in the folder
    of temporary files that nobody else can write: what lies there is code. None leaves it to
    numba, which looks beside the sources, or where NUMBA_CACHE_DIR says.
    """
    if getattr(config, FOLDER) or _writable(source / "__pycache__", 0o777):
        return None
    for folder in (_of_the_user(), _temporary()):
        if folder is not None and _writable(folder) and _ours_alone(folder):
            return folder
    return None


def _of_the_user() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    folder = Path(base or os.path.expanduser("~/.cache"))  # stays as it is without a home
    return folder / "aberra" / "compiled" if folder.is_absolute() else None


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"aberra-compiled-{_user()}"


def _user() -> str:
    return str(os.getuid()) if os.name == "posix" else os.environ.get("USERNAME", "user")


def _writable(folder: Path, mode: int = 0o700) -> bool:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _ours_alone(folder: Path) -> bool:
    """Say whether the folder is this user's, and nobody else may put code into it."""
    if os.name != "posix":  # elsewhere these folders lie in the user's own
        return True
    about = folder.lstat()
    return about.st_uid == os.getuid() and not about.st_mode & (S_IWGRP | S_IWOTH)


# What is said before a long wait


@cache
def _tell_not_kept(wanted: str) -> None:
    """Say once in a process that it will take long again in the next one, and what to do."""
    where = f"NUMBA_CACHE_DIR={wanted}" if wanted else "the sources, your home, temporary files"
    remark(
        f"What is compiled cannot be kept ({where}: cannot be written), so every process compiles "
        "anew, for some seconds. Set NUMBA_CACHE_DIR to a folder of yours."
    )


_announced: dict[object, str] = {}


def announce(function: Function, text: str) -> Function:
    """Say `text` when a compiled function is about to be compiled; not when it is kept on disk."""
    _announced[inspect.unwrap(function)] = text
    return function


class _Announcer(event.Listener):
    """Hears from numba what it compiles."""

    def on_start(self, event: Any) -> None:
        text = _announced.pop(event.data["dispatcher"].py_func, None)
        if text is not None:
            remark(text)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcer())
