"""The exchange with a server: ask, take what comes, go on where a connection broke off."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from aberra import __version__
from aberra.files import write_atomically
from aberra.progress import advance

BLOCK = 1 << 20
MB = 1e6
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers worth asking again


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


class BrokenOffError(Exception):
    """An attempt failed in a way that may pass: time-out, dropped connection, busy server."""


class RefusedError(Exception):
    """An address does not have the file that is wanted; asking again would not help."""


def tag_of(part: Path) -> Path:
    """Return where the server's own mark of the version that `part` began with is noted."""
    return part.with_name(f"{part.name}.tag")


def discard(part: Path) -> None:
    """Delete what has arrived, and what was noted about it."""
    part.unlink(missing_ok=True)
    tag_of(part).unlink(missing_ok=True)


def collect(address: str, file: RemoteFile, part: Path, patience: Patience) -> None:
    """Ask until the whole file has arrived, or nothing more comes."""
    idle = 0
    for attempt in range(patience.most):
        before = part.stat().st_size if part.exists() else 0
        try:
            return _attempt(address, file, part, patience)
        except BrokenOffError:
            gained = part.exists() and part.stat().st_size > before
            idle = 0 if gained else idle + 1
            if idle >= patience.tries or attempt + 1 >= patience.most:
                raise
        time.sleep(min(patience.pause * 2.0 ** max(idle - 1, 0), patience.longest_pause))
    raise BrokenOffError("no attempt was allowed")


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
        discard(part)
        return BrokenOffError("the server has no such range")
    kind = BrokenOffError if error.code in PASSING else RefusedError
    return kind(f"the server answers {error.code} {error.reason}")


def _network_error(error: Exception) -> Exception:
    """Tell a name that is unknown (no network, wrong name) from a connection that failed."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, _DiskError):
        return OSError(*reason.args)
    if isinstance(reason, socket.gaierror):
        return RefusedError("the server's name cannot be resolved; is there a network?")
    if isinstance(reason, TimeoutError):
        return BrokenOffError("the server stopped answering")
    words = reason.strerror if isinstance(reason, OSError) and reason.strerror else reason
    return BrokenOffError(f"the connection failed: {words or type(reason).__name__}")


def _resumable(address: str, file: RemoteFile, part: Path) -> int:
    """Return how many of the bytes that are here may be kept."""
    size = part.stat().st_size if part.exists() else 0
    if size == 0:
        return 0
    too_long = file.size is not None and size > file.size
    if too_long or not (file.known or _validator(address, part)):
        discard(part)  # nothing could tell a mixture of two versions
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
        known_address, mark = tag_of(part).read_text(encoding="latin-1").split("\n")
    except (OSError, ValueError):
        return ""
    return mark if known_address == address else ""


def _remember(part: Path, address: str, response: http.client.HTTPResponse) -> None:
    mark = response.headers.get("ETag", "")
    if not mark or mark.startswith("W/"):  # a weak mark does not vouch for the bytes
        mark = response.headers.get("Last-Modified", "")
    with _disk():
        write_atomically(tag_of(part), f"{address}\n{mark}".encode("latin-1", "replace"))


def _extent(
    response: http.client.HTTPResponse, offset: int, file: RemoteFile
) -> tuple[int, int | None]:
    """Return where the answer begins and how long the file is to be, or None if nobody says."""
    if response.headers.get_content_type() == "text/html":
        raise RefusedError("the server sends a web page instead of the file")
    start, total = _announced(response, offset)
    if total is None and response.length is not None:
        total = start + response.length
    if total is not None and file.size is not None and total != file.size:
        raise RefusedError(f"the server announces {total} bytes instead of {file.size}")
    if total is None and file.size is None and not (file.known or response.chunked):
        raise RefusedError("the server does not say how long the file is")
    return start, file.size if total is None else total


def _announced(response: http.client.HTTPResponse, offset: int) -> tuple[int, int | None]:
    if response.status != 206:
        return 0, None  # the whole file, whatever was asked for
    unit, _, extent = response.headers.get("Content-Range", "").partition(" ")
    span, _, length = extent.partition("/")
    start = span.partition("-")[0]
    if unit != "bytes" or start != str(offset):
        raise RefusedError("the server sends another part than the one asked for")
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
            raise RefusedError(f"the server sends more than {done - len(block)} bytes, too many")
        with _disk():
            out.write(block)
            out.flush()
        _report(name, done, total)
    if total is not None and done < total:
        raise BrokenOffError(f"the connection ended after {done} of {total} bytes")
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
            raise RefusedError(f"the server redirects to {newurl}, which is not safe")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(address: str, headers: dict[str, str], timeout: float) -> http.client.HTTPResponse:
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        raise RefusedError("not an address of the web")
    opener = urllib.request.build_opener(_SameOrSafer)
    response = opener.open(urllib.request.Request(address, headers=headers), timeout=timeout)
    assert isinstance(response, http.client.HTTPResponse)
    return response
