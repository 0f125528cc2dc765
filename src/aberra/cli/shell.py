"""How every command prints: for people, for scripts, and when something goes wrong."""

from __future__ import annotations

import functools
import gc
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ParamSpec

import typer
from rich.console import RenderableType

from aberra.errors import AberraError, ArgumentError, MissingExtraError
from aberra.terminal import console

P = ParamSpec("P")


class Exit(IntEnum):
    """Exit codes; 2 is the command line's own, for options that make no sense."""

    DONE = 0
    BUG = 1
    USAGE = 2
    DATA = 3  # data, a model or a result cannot be used as it is
    MISSING = 4  # an optional part of the installation is not there
    MOVED = 5  # all went well, but the data are no longer like the training data
    INTERRUPTED = 130


@dataclass(frozen=True)
class Shell:
    """What a command prints, and where.

    Parameters
    ----------
    json : bool, default=False
        Whether to print one JSON object instead of tables and sentences.
    quiet : bool, default=False
        Whether to print neither progress nor results.
    debug : bool, default=False
        Whether to show tracebacks.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False

    def say(self, what: RenderableType) -> None:
        """Show a result or a remark to a person."""
        if not (self.quiet or self.json):
            console().print(what, soft_wrap=isinstance(what, str), markup=False, highlight=False)

    def result(self, values: Mapping[str, Any]) -> None:
        """Give the result to a script that asked for it."""
        if self.json:
            sys.stdout.write(json.dumps(values, allow_nan=False, default=str) + "\n")
            sys.stdout.flush()

    @contextmanager
    def progress(self) -> Iterator[None]:
        """Draw progress on standard error, for people only."""
        from aberra.progress import hearing, progress_bar

        if self.quiet or self.json:
            with hearing(lambda text: None):
                yield
        else:
            with progress_bar():
                yield

    def fail(self, error: BaseException, code: Exit) -> typer.Exit:
        """Report an error in one place; return what ends the command."""
        told = self.debug
        if self.debug:
            console(stderr=True).print_exception()
        elif self.json:
            with suppress(OSError):  # standard output may be what failed
                self.result({"error": str(error), "kind": type(error).__name__, "exit": int(code)})
                told = True
        if not told:
            console(stderr=True).print(f"Error: {error}", soft_wrap=True, markup=False)
        return typer.Exit(int(code))


_current: ContextVar[Shell | None] = ContextVar("aberra_shell", default=None)


def begin(speaker: Shell) -> None:
    """Make this the shell of the command that runs now."""
    _current.set(speaker)


def shell() -> Shell:
    """Return the shell of the running command, or a plain one."""
    return _current.get() or Shell()


_loaded = False  # whether a command of this process has loaded its libraries


@contextmanager
def loading() -> Iterator[None]:
    """Import libraries without a search for garbage, which takes a seventh of a short command.

    They stay to the end, so later searches leave them out too. Once in a process: a second time,
    garbage that a program made in between would stay as well.
    """
    global _loaded
    first, _loaded = gc.isenabled() and not _loaded, True
    if first:
        gc.disable()
    try:
        yield
    finally:
        if first:
            gc.freeze()
            gc.enable()


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Give a command its ending: errors become a sentence and an exit code, never a traceback."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        speaker = shell()
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _one_line(speaker)
                function(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
            raise
        except ArgumentError as error:
            option = f"--{error.argument.replace('_', '-')}"
            raise typer.BadParameter(str(error), param_hint=option) from None
        except (Exception, KeyboardInterrupt) as error:
            told, code = _verdict(error)
            if code is Exit.BUG and speaker.debug:
                raise
            raise speaker.fail(told, code) from None

    return run


def choice(names: Iterable[str], help: str, metavar: str = "") -> Any:
    """Return an option that takes one of a few words; the function called checks which."""
    known = list(names)

    def completed(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    shown = metavar or f"<{'|'.join(known)}>"
    return typer.Option(metavar=shown, help=help, autocompletion=completed)


def _verdict(error: BaseException) -> tuple[BaseException, Exit]:
    """Return what to tell people about an error, and the exit code."""
    if isinstance(error, MissingExtraError):
        return error, Exit.MISSING
    if isinstance(error, AberraError):
        return error, Exit.DATA
    if isinstance(error, KeyboardInterrupt):
        said = str(error) or "Interrupted."
        return KeyboardInterrupt(said), Exit.INTERRUPTED
    if isinstance(error, OSError):  # a full disk, a folder that may not be written to
        what = error.strerror or str(error)
        where = "" if error.filename is None else f" ({error.filename})"
        said = f"{what}{where}. Fix this, then give the same command again."
        return AberraError(said), Exit.DATA
    if isinstance(error, MemoryError):
        why = f" ({error})" if str(error) else ""
        said = (
            f"There is not enough memory{why}. Give fewer rows or columns, or use a larger machine."
        )
        return AberraError(said), Exit.DATA
    said = (
        f"{type(error).__name__}: {error}. This is a bug in Aberra. Please run the command again "
        "with --debug after the word aberra, and report what it prints."
    )
    return AberraError(said), Exit.BUG


def _one_line(speaker: Shell) -> Callable[..., None]:
    def show(message: Warning | str, *_: object, **__: object) -> None:
        if not (speaker.quiet or speaker.json):
            console(stderr=True).print(f"Note: {message}", soft_wrap=True, markup=False)

    return show
