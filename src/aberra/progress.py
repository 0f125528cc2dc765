"""Progress of long work, shown only to those who ask for it, and an end to it that they may set.

A loop calls `advance` as it goes; nothing happens unless a `progress_bar` block is open around it.
What a person should know before a long wait goes through `remark`.
A training that may stop early asks `time_is_up`; it never is unless a `deadline` block is open.
One that can keep its state asks `stop_requested` after each step, so that Ctrl-C costs nothing.
When it is over, it leaves its file to an open `keeping_trainings` block, so that no later failure
costs it either.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import ParamSpec, TypeVar

from aberra.terminal import console, visible

P = ParamSpec("P")
Result = TypeVar("Result")
Listener = Callable[[str, float, str], None]
Hearer = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("aberra_progress", default=None)
_hearer: ContextVar[Hearer | None] = ContextVar("aberra_remarks", default=None)


def advance(task: str, fraction: float, note: str = "") -> None:
    """Tell an open progress bar that `task` has reached `fraction` of its length."""
    listener = _listener.get()
    if listener is not None:
        listener(task, fraction, note)


@dataclass
class Pace:
    """How far a pass over many rows is, and how fast.

    Parameters
    ----------
    task : str
        What is being done.
    n_rows : int
        Rows in all.
    done : int, default 0
        Rows that were done before; they say nothing about how fast this run is.
    """

    task: str
    n_rows: int
    done: int = 0

    def __post_init__(self) -> None:
        self.before, self.started = self.done, time.monotonic()

    def step(self, rows: int) -> None:
        """Say that some more rows are done."""
        self.done += rows
        seconds = max(time.monotonic() - self.started, 1e-9)
        note = f"{self.done:,} of {self.n_rows:,} rows, {self.rate(seconds):,.0f} rows/s"
        advance(self.task, min(self.done / max(self.n_rows, 1), 0.999), note)

    def rate(self, seconds: float) -> float:
        """Return the rows a second of this run."""
        return (self.done - self.before) / seconds

    def end(self) -> None:
        """Say that all is done."""
        advance(self.task, 1.0)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every `advance` inside the block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def remark(text: str) -> None:
    """Say one sentence: to an open progress bar or a `hearing` block, else on standard error."""
    hearer = _hearer.get()
    if hearer is not None:
        hearer(text)
    elif sys.stderr is not None:  # a program without a console has none
        sys.stderr.write(f"{text}\n")


@contextmanager
def hearing(hearer: Hearer) -> Iterator[None]:
    """Send every `remark` inside the block to `hearer`."""
    token = _hearer.set(hearer)
    try:
        yield
    finally:
        _hearer.reset(token)


def in_threads(work: Callable[P, Result]) -> Callable[P, Result]:
    """Return the work so that other threads report to whoever listens to this one."""
    here = copy_context()

    def run(*args: P.args, **kwargs: P.kwargs) -> Result:
        return here.copy().run(work, *args, **kwargs)

    return run


@dataclass
class Deadline:
    """When a training is to stop, and what share of it was done if it had to."""

    ends: float  # by the monotonic clock
    stopped_at: float | None = None


_deadline: ContextVar[Deadline | None] = ContextVar("aberra_deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Iterator[Deadline]:
    """Let a training inside the block stop after so many seconds, with what it has learnt."""
    limit = Deadline(time.monotonic() + seconds)
    token = _deadline.set(limit)
    try:
        yield limit
    finally:
        _deadline.reset(token)


def time_is_up(done: float) -> bool:
    """Say whether to stop now, at this share of the training."""
    limit = _deadline.get()
    if limit is None or time.monotonic() < limit.ends or done >= 1.0:
        return False
    limit.stopped_at = done
    return True


@dataclass
class Request:
    """Whether somebody pressed Ctrl-C and nobody has answered yet."""

    pending: bool = False


_request: ContextVar[Request | None] = ContextVar("aberra_stop", default=None)


@contextmanager
def stopping_between_steps() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a training step; pressed again, it does not wait.

    Only the main thread of a program gets Ctrl-C; elsewhere, or where it is ignored, the block
    changes nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not callable(before):
        yield
        return
    request = Request()

    def ask(number: int, frame: FrameType | None) -> None:
        if request.pending:
            raise KeyboardInterrupt
        request.pending = True

    signal.signal(signal.SIGINT, ask)
    token = _request.set(request)
    try:
        yield
        if request.pending:
            raise KeyboardInterrupt
    finally:
        _request.reset(token)
        signal.signal(signal.SIGINT, before)


def stop_requested() -> bool:
    """Say whether to keep what there is and stop; asked once, since the caller then does so."""
    request = _request.get()
    if request is None or not request.pending:
        return False
    request.pending = False
    return True


_finished: ContextVar[list[Path] | None] = ContextVar("aberra_finished", default=None)


@contextmanager
def keeping_trainings() -> Iterator[None]:
    """Keep the files of trainings that are over until the outermost such block has ended well.

    What comes after a training may fail or be interrupted; the next try then finds it done.
    """
    if _finished.get() is not None:
        yield
        return
    files: list[Path] = []
    token = _finished.set(files)
    try:
        yield
        for file in files:
            file.unlink(missing_ok=True)
    finally:
        _finished.reset(token)


def kept_for_later(file: Path) -> bool:
    """Say whether a block is open that will delete the file of a training that is over."""
    files = _finished.get()
    if files is None:
        return False
    files.append(file)
    return True


@contextmanager
def progress_bar() -> Iterator[None]:
    """Draw a bar per task on standard error, with a note and the time left.

    Examples
    --------
    >>> from aberra import AutoEncoder
    >>> from aberra.progress import progress_bar
    >>> with progress_bar():
    ...     _ = AutoEncoder(epochs=2, random_state=0).fit([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        ids = {}

        def show(task: str, fraction: float, note: str) -> None:
            if task not in ids:
                ids[task] = bar.add_task(task, total=1.0, note="")
            bar.update(ids[task], completed=fraction, note=visible(note))
            if fraction >= 1.0:
                bar.remove_task(ids.pop(task))

        with listening(show), hearing(lambda text: bar.console.print(text, soft_wrap=True)):
            yield
