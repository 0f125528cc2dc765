"""Progress of long work, shown only to those who ask for it.

A loop calls `advance` as it goes; nothing happens unless a `progress_bar` block is open around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, float, str], None]

_listener: ContextVar[Listener | None] = ContextVar("aberra_progress", default=None)


def advance(task: str, fraction: float, note: str = "") -> None:
    """Tell an open progress bar that `task` has reached `fraction` of its length."""
    listener = _listener.get()
    if listener is not None:
        listener(task, fraction, note)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Send every `advance` inside the block to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


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
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        ids = {}

        def show(task: str, fraction: float, note: str) -> None:
            if task not in ids:
                ids[task] = bar.add_task(task, total=1.0, note="")
            bar.update(ids[task], completed=fraction, note=note)
            if fraction >= 1.0:
                bar.remove_task(ids.pop(task))

        with listening(show):
            yield
