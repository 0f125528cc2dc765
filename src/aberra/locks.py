"""Locks between processes, which the system gives back however a process ends."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from aberra.errors import DataError

FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.1  # seconds between two looks at a lock that is held


def _nothing() -> None:
    pass


@contextmanager
def lock(
    path: Path,
    *,
    wait: bool = True,
    keep: bool = True,
    meanwhile: Callable[[], None] = _nothing,
) -> Iterator[bool]:
    """Hold a file for the length of the block, against other processes and other threads.

    The lock is advisory: it keeps out only those who ask for it too. The file may hold data, which
    can be read and written as usual.

    Parameters
    ----------
    path : Path
        The file to hold. It is made, empty, if it does not exist; its folder must exist.
    wait : bool, default=True
        Wait until the file is free. If False, the block runs at once, and is told whether it has
        the lock.
    keep : bool, default=True
        Leave the file there afterwards. False removes it, for a file that is nothing but a lock;
        a link in its place is then refused.
    meanwhile : callable, default does nothing
        Called now and then while this process waits.

    Yields
    ------
    mine : bool
        False if another process or thread holds the file and `wait` is False, else True.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aberra.locks import lock
    >>> with TemporaryDirectory() as folder, lock(Path(folder) / "job") as mine:
    ...     with lock(Path(folder) / "job", wait=False) as also_mine:
    ...         print(mine, also_mine)
    True False
    """
    while True:
        handle = _opened(path, keep)
        try:
            mine = _taken(handle, wait, meanwhile)
            if mine and not still_there(handle, path):
                continue  # whoever held the lock has taken the file away: begin again
            try:
                yield mine
            finally:
                if mine and not keep:
                    with suppress(OSError):  # some systems keep a name while the file is open
                        path.unlink()
            return
        finally:
            os.close(handle)


def only_one(
    target: Path, meanwhile: Callable[[], None] = _nothing
) -> AbstractContextManager[bool]:
    """Let one process, and one thread in it, at a time make or change `target`; the others wait.

    The lock is a file beside the target, `.lock-NAME`, which is gone afterwards; for a link it lies
    where the link leads. Use this where the target itself cannot be locked, because it is a folder
    or is replaced by a new file.

    Parameters
    ----------
    target : Path
        What is made or changed; it need not exist, but its folder must.
    meanwhile : callable, default does nothing
        Called now and then while this process waits.

    Returns
    -------
    held : context manager
    """
    return lock(_beside(target), keep=False, meanwhile=meanwhile)


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Make or change `target` alone; who comes second is refused at once.

    Use this where a second run would not add to the first but replace it, so that waiting for it
    helps nobody. The lock is the one of `only_one`.

    Parameters
    ----------
    target : Path
        What is made or changed; it need not exist, but its folder must.

    Raises
    ------
    DataError
        If another process, or another thread of this one, is at work on it.
    """
    with lock(_beside(target), wait=False, keep=False) as mine:
        if not mine:
            raise DataError(
                f"Another run is writing {target} at this moment. Wait until it has ended, or "
                "choose another name for the result."
            )
        yield


def _opened(path: Path, keep: bool) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | (0 if keep else NO_LINK), 0o644)
    except OSError as error:
        if keep or not (path.is_symlink() or path.is_dir()):
            raise
        raise DataError(
            f"{path} is in the way: a file of this name says that a run is at work, and is gone "
            "afterwards. Remove what is there."
        ) from error


def real(path: Path) -> Path:
    """Return where a path leads, so that all names of one result share its lock and its pieces."""
    return Path(os.path.realpath(path))


def _beside(target: Path) -> Path:
    target = real(target)
    return target.with_name(f".lock-{target.name}")


def _taken(handle: int, wait: bool, meanwhile: Callable[[], None]) -> bool:
    pause = FIRST_PAUSE
    while not take(handle):
        if not wait:
            return False
        meanwhile()
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
    return True


def still_there(handle: int, path: Path) -> bool:
    """Say whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    NO_LINK = 0
    FAR = (1 << 31) - 2  # Windows holds a byte, not a file: one behind all data

    def take(handle: int) -> bool:
        """Lock an open file, or say that somebody else has."""
        os.lseek(handle, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    NO_LINK = os.O_NOFOLLOW

    def take(handle: int) -> bool:
        """Lock an open file, or say that somebody else has."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
