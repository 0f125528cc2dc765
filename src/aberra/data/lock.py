"""One at a time: a lock between processes that share a folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aberra.progress import advance


@contextmanager
def only_one(target: Path) -> Iterator[None]:
    """Let one process, and one thread in it, at a time make `target`; the others wait.

    The lock lies beside the target and is gone afterwards. The system gives it back even when the
    process that holds it is killed.
    """
    path = target.with_name(f".lock-{target.name}")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            while not _locked(handle):
                advance(target.name, 0.0, "another process is at it")
                time.sleep(0.1)
            if not _still_there(handle, path):
                continue  # whoever held the lock has taken the file away: begin again
            try:
                yield
            finally:
                with suppress(OSError):  # some systems keep a name while the file is open
                    path.unlink()
            return
        finally:
            os.close(handle)


def _still_there(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _locked(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _locked(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
