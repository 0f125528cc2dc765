"""Fetch one public file: whole, the right one, or not at all.

What has arrived is kept in a hidden file beside the target, so a connection that breaks, a process
that is killed or a full disk costs only the rest. The final name appears when size and checksum
are right. Several processes may ask for the same file: one fetches it, the others wait.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from aberra import __version__
from aberra.errors import DataError
from aberra.files import put_in_place, write_atomically
from aberra.locks import only_one
from aberra.progress import advance

BLOCK = 1 << 20
MB = 1e6
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers worth asking again
REJECTED = "the file is not the right one"


@dataclass(frozen=True)
class RemoteFile:
    """A public file, and how to know it.

    Parameters
    ----------
    path : str
        Where it belongs, below the data folder.
    addresses : tuple of str
        Where it is to be had, the same bytes each; tried in order.
    size : int, optional
        In bytes.
    sha256, md5 : str, optional
        As published. Without a sha256 the first download is trusted, if `md5` does not object: its
        sha256 is kept beside the file, and later downloads must match it.
    limit : int, default=2**30
        Bytes at which a download of unknown size is given up.
    """

    path: str
    addresses: tuple[str, ...]
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None
    limit: int = 1 << 30

    @property
    def known(self) -> bool:
        """Whether a published checksum tells the right bytes from others."""
        return self.sha256 is not None or self.md5 is not None


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, and how often to ask again.

    Parameters
    ----------
    timeout : float, default=30.0
        Seconds without a byte before a connection counts as broken.
    tries : int, default=5
        Attempts in a row that bring nothing, for each address.
    most : int, default=200
        Attempts in all, for each address.
    pause, longest_pause : float, default=1.0, 30.0
        Seconds before the second attempt, doubled with each that follows.
    """

    timeout: float = 30.0
    tries: int = 5
    most: int = 200
    pause: float = 1.0
    longest_pause: float = 30.0


class _BrokenOffError(Exception):
    """An attempt failed in a way that may pass: time-out, dropped connection, busy server."""


class _RefusedError(Exception):
    """An address does not have the file that is wanted; asking again would not help."""


def fetch(
    file: RemoteFile,
    folder: Path,
    patience: Patience | None = None,
    accept: Callable[[Path], object] | None = None,
) -> Path:
    """Return the path of `file` below `folder`, downloading it unless it is there.

    Parameters
    ----------
    file : RemoteFile
    folder : Path
        The data folder; made if need be.
    patience : Patience, optional
    accept : callable, optional
        Called with the path of a complete download, whose suffix is that of `file`, before it gets
        its name. Raises `DataError` if the content is wrong.

    Returns
    -------
    path : Path

    Raises
    ------
    DataError
        The file cannot be had, or one is there that is not the right one; nothing that is
        incomplete or wrong ever has the final name. The message holds the addresses and the place.
    """
    target = folder / file.path
    if target.exists():
        check_file(target, file)
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        tell = partial(advance, target.name, 0.0, "waiting for another process")
        with only_one(target, meanwhile=tell):
            if target.exists():
                check_file(target, file)
            else:
                _download(file, target, patience or Patience(), accept)
    except OSError as error:
        raise DataError(
            f"{target.parent} cannot take {target.name}: {error.strerror or error}. Make room or "
            "choose another folder (--data-dir or $ABERRA_DATA); what has arrived is kept."
        ) from error
    return target


def check_file(path: Path, file: RemoteFile) -> None:
    """Refuse a file whose size or checksum is not the published one, or the one noted at first."""
    try:
        problem = _difference(path, file, kept_sha256(path))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    if problem:
        raise DataError(
            f"{path} is not the public file of that name: {problem}. Move it away and get it again."
        )


def kept_sha256(path: Path) -> str | None:
    """Return the sha256 noted beside a file that was downloaded without a published one."""
    note = _note_of(path)
    try:
        words = note.read_text(encoding="ascii").split()
    except FileNotFoundError:
        return None
    except ValueError:
        words = []
    if len(words) != 2 or len(words[0]) != 64:
        raise DataError(f"{note} holds no sha256. Delete it to trust the next download.")
    return words[0]


def _note_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _part_of(target: Path) -> Path:
    return target.with_name(f".part-{target.name}")


def _tag_of(part: Path) -> Path:
    """Return where the server's own mark of the version that `part` began with is noted."""
    return part.with_name(f"{part.name}.tag")


def _download(
    file: RemoteFile,
    target: Path,
    patience: Patience,
    accept: Callable[[Path], object] | None,
) -> None:
    part, expected = _part_of(target), kept_sha256(target)
    reasons = []
    for address in file.addresses:
        try:
            _collect(address, file, part, patience)
            if problem := _problem(part, file, expected, accept):
                _discard(part)  # perhaps an old part was damaged: once more from the start
                _collect(address, file, part, patience)
                problem = _problem(part, file, expected, accept)
            if not problem:
                break
            _discard(part)
            reasons.append(f"{address}: {REJECTED} ({problem})")
        except (_RefusedError, _BrokenOffError) as error:
            reasons.append(f"{address}: {error}")
    else:
        raise DataError(_by_hand(target, reasons))
    if file.sha256 is None and expected is None:
        line = f"{_digest(part, 'sha256')}  {target.name}\n"
        write_atomically(_note_of(target), line.encode("ascii"))
    put_in_place(part, target)
    _tag_of(part).unlink(missing_ok=True)


def _by_hand(target: Path, reasons: list[str]) -> str:
    return (
        f"{target.name} could not be downloaded ({'; '.join(reasons)}). Run again later, or get "
        f"the file elsewhere and put it at {target}."
    )


def _problem(
    part: Path, file: RemoteFile, expected: str | None, accept: Callable[[Path], object] | None
) -> str:
    """Say what is wrong with a complete download, or nothing."""
    problem = _difference(part, file, expected)
    if not problem and accept is not None:
        try:
            accept(part)
        except DataError as error:
            return str(error)
    return problem


def _difference(path: Path, file: RemoteFile, expected: str | None) -> str:
    """Say how a file differs from what was published, or from the first download."""
    size = path.stat().st_size
    if file.size is not None and size != file.size:
        return f"{size} bytes instead of {file.size}"
    for kind, wanted in (("sha256", file.sha256 or expected), ("md5", file.md5)):
        if wanted is not None and (found := _digest(path, kind)) != wanted.lower():
            return f"its {kind} is {found}, not {wanted}"
    return ""


def _digest(path: Path, kind: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.new(kind, usedforsecurity=kind != "md5")
        ).hexdigest()


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag_of(part).unlink(missing_ok=True)


def _collect(address: str, file: RemoteFile, part: Path, patience: Patience) -> None:
    """Ask until the whole file has arrived, or nothing more comes."""
    idle = 0
    for attempt in range(patience.most):
        before = part.stat().st_size if part.exists() else 0
        try:
            return _attempt(address, file, part, patience)
        except _BrokenOffError:
            gained = part.exists() and part.stat().st_size > before
            idle = 0 if gained else idle + 1
            if idle >= patience.tries or attempt + 1 >= patience.most:
                raise
        time.sleep(min(patience.pause * 2.0 ** max(idle - 1, 0), patience.longest_pause))
    raise _BrokenOffError("no attempt was allowed")


def _attempt(address: str, file: RemoteFile, part: Path, patience: Patience) -> None:
    """Ask once for what is missing and append what comes."""
    offset = _resumable(address, file, part)
    if offset == file.size:
        return
    try:
        with _open(address, _headers(offset, address, part), patience.timeout) as response:
            start, total = _extent(response, offset, file)
            if start == 0:
                _remember(part, address, response)
            with _disk():
                out = open(part, "r+b" if start else "wb")  # noqa: SIM115
            with out:
                out.seek(start)
                _receive(response, out, start, total, file)
    except urllib.error.HTTPError as error:
        error.close()
        if not _complete(error, offset):
            raise _answer(error, part) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _network_error(error) from None


def _complete(error: urllib.error.HTTPError, offset: int) -> bool:
    """Tell whether nothing was sent because all of it is here."""
    return error.code == 416 and error.headers.get("Content-Range", "") == f"bytes */{offset}"


def _answer(error: urllib.error.HTTPError, part: Path) -> Exception:
    if error.code == 416:  # what is here does not fit what is there
        _discard(part)
        return _BrokenOffError("the server has no such range")
    kind = _BrokenOffError if error.code in PASSING else _RefusedError
    return kind(f"the server answers {error.code} {error.reason}")


def _network_error(error: Exception) -> Exception:
    """Tell a name that is unknown (no network, wrong name) from a connection that failed."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, _DiskError):
        return OSError(*reason.args)
    if isinstance(reason, socket.gaierror):
        return _RefusedError("the server's name cannot be resolved; is there a network?")
    if isinstance(reason, TimeoutError):
        return _BrokenOffError("the server stopped answering")
    words = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
    return _BrokenOffError(f"the connection failed: {words or type(reason).__name__}")


def _resumable(address: str, file: RemoteFile, part: Path) -> int:
    """Return how many of the bytes that are here may be kept."""
    size = part.stat().st_size if part.exists() else 0
    if size == 0:
        return 0
    too_long = file.size is not None and size > file.size
    if too_long or not (file.known or _validator(address, part)):
        _discard(part)  # nothing could tell a mixture of two versions
        return 0
    return size


def _headers(offset: int, address: str, part: Path) -> dict[str, str]:
    headers = {"User-Agent": f"aberra/{__version__}", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
        if mark := _validator(address, part):
            headers["If-Range"] = mark
    return headers


def _validator(address: str, part: Path) -> str:
    """Return the server's mark of the version that the part belongs to, if it gave one."""
    try:
        known_address, mark = _tag_of(part).read_text(encoding="latin-1").split("\n")
    except (OSError, ValueError):
        return ""
    return mark if known_address == address else ""


def _remember(part: Path, address: str, response: http.client.HTTPResponse) -> None:
    mark = response.headers.get("ETag", "")
    if not mark or mark.startswith("W/"):  # a weak mark does not vouch for the bytes
        mark = response.headers.get("Last-Modified", "")
    with _disk():
        write_atomically(_tag_of(part), f"{address}\n{mark}".encode("latin-1", "replace"))


def _extent(
    response: http.client.HTTPResponse, offset: int, file: RemoteFile
) -> tuple[int, int | None]:
    """Return where the answer begins and how long the file is to be, or None if nobody says."""
    if response.headers.get_content_type() == "text/html":
        raise _RefusedError("the server sends a web page instead of the file")
    start, total = _announced(response, offset)
    if total is None and response.length is not None:
        total = start + response.length
    if total is not None and file.size is not None and total != file.size:
        raise _RefusedError(f"the server announces {total} bytes instead of {file.size}")
    if total is None and file.size is None and not (file.known or response.chunked):
        raise _RefusedError("the server does not say how long the file is")
    return start, file.size if total is None else total


def _announced(response: http.client.HTTPResponse, offset: int) -> tuple[int, int | None]:
    if response.status != 206:
        return 0, None  # the whole file, whatever was asked for
    unit, _, extent = response.headers.get("Content-Range", "").partition(" ")
    span, _, length = extent.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or start != str(offset):
        raise _RefusedError("the server sends another part than the one asked for")
    return offset, int(length) if length.isdigit() else None


def _receive(
    response: http.client.HTTPResponse,
    out: IO[bytes],
    start: int,
    total: int | None,
    file: RemoteFile,
) -> None:
    name, done = Path(file.path).name, start
    _make_sure_of_room(out, start, total)
    while block := response.read1(BLOCK):
        done += len(block)
        if done > (file.limit if total is None else total):
            raise _RefusedError(f"the server sends more than {done - len(block)} bytes, too many")
        with _disk():
            out.write(block)
            out.flush()
        _report(name, done, total)
    if total is not None and done < total:
        raise _BrokenOffError(f"the connection ended after {done} of {total} bytes")
    with _disk():
        os.fsync(out.fileno())
    advance(name, 1.0)


def _make_sure_of_room(out: IO[bytes], start: int, total: int | None) -> None:
    free = shutil.disk_usage(os.path.dirname(out.name)).free
    if total is not None and total - start > free:
        raise _DiskError(
            None, f"{(total - start) / MB:.0f} MB are needed, {free / MB:.0f} MB are free"
        )


def _report(name: str, done: int, total: int | None) -> None:
    if total is None:
        advance(name, 0.0, f"{done / MB:.1f} MB")
    else:
        # not quite 1.0: that ends the bar, and the checks are still to come
        advance(name, min(done / max(total, 1), 0.999), f"{done / MB:.1f} of {total / MB:.1f} MB")


class _DiskError(OSError):
    """The disk, not the network, failed: asking the server again would not help."""


@contextmanager
def _disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _DiskError(*error.args) from error


class _SameOrSafer(urllib.request.HTTPRedirectHandler):
    """Follow redirections to http and https alone, and never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        schemes = ("https",) if req.type == "https" else ("https", "http")
        if urllib.parse.urlsplit(newurl).scheme not in schemes:
            raise _RefusedError(f"the server redirects to {newurl}, which is not safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(address: str, headers: dict[str, str], timeout: float) -> http.client.HTTPResponse:
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise _RefusedError("not an address of the web")
    opener = urllib.request.build_opener(_SameOrSafer)
    response = opener.open(urllib.request.Request(address, headers=headers), timeout=timeout)
    assert isinstance(response, http.client.HTTPResponse)
    return response
