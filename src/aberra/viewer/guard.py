"""Who may ask for what: checked before any page sees the request."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qs

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

MOST_BODY = 4096  # a mark takes 18 bytes
MOST_TARGET = 2048
NO_TOKEN = "The token is missing or old. Open the whole address that aberra view printed."
READS, WRITES = {"GET", "HEAD"}, {"PUT"}
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# A report brings its scripts and pictures along. The sandbox keeps them from asking this server.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-scripts"
)
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
    b"content-security-policy": PAGE_POLICY.encode(),
}


class RequestRefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


class Guard:
    """Let only the browser in that was given the token, and only by this server's own name.

    Parameters
    ----------
    app : ASGI application
    port : int
        Where the server listens; a request must name 127.0.0.1 or localhost with this port.
    token : str
        Comes once in the address of the first page, then in a cookie that no script can read.
    base : str
        The secret part of the address below which everything lies, such as "/Yq3x". Browsers send
        a cookie to every port of this machine, but only below the path that it was set for.
    """

    def __init__(self, app: App, port: int, token: str, base: str) -> None:
        self.app, self.token, self.base = app, token, base
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"aberra_{port}"  # browsers keep cookies by host, not by port

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Check one request, then pass it on or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        try:
            if scope["type"] != "http":
                raise RequestRefusedError(400, "This server speaks HTTP only.")
            scope = self._below_base(scope)
            fresh = self.check(scope)
        except RequestRefusedError as refusal:
            await _refuse(refusal, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                extra = [(name, value) for name, value in HEADERS.items() if name not in given]
                if fresh:
                    extra.append((b"set-cookie", self._cookie_line()))
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        await self.app(scope, receive, send_safely)

    def _below_base(self, scope: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Return the request as the application knows it; refuse one from elsewhere."""
        host = _headers_once(scope["headers"]).get("host")
        if host not in self.hosts:
            raise RequestRefusedError(421, "This server answers only to 127.0.0.1 and localhost.")
        _check_target(scope)
        if not secrets.compare_digest(
            scope["path"][: len(self.base) + 1].encode(), f"{self.base}/".encode()
        ):
            raise RequestRefusedError(403, NO_TOKEN)
        path = scope["path"].removeprefix(self.base)
        return {**scope, "path": path, "raw_path": path.encode()}

    def check(self, scope: MutableMapping[str, Any]) -> bool:
        """Refuse what must not pass; return whether the cookie is still to be set."""
        headers = _headers_once(scope["headers"])
        fresh = self._check_token(scope, headers)
        if scope["method"] in WRITES:
            _check_write(headers)
        elif scope["method"] not in READS:
            raise RequestRefusedError(405, "This server answers GET, HEAD and PUT only.")
        return fresh

    def _check_token(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> bool:
        if self._same(_cookies(headers.get("cookie", "")).get(self.cookie, "")):
            if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
                raise RequestRefusedError(403, "This request comes from another page.")
            return False
        query = parse_qs(scope["query_string"].decode("latin-1"))
        first_page = scope["method"] in READS and scope["path"] == "/"
        if first_page and self._same(query.get("token", [""])[0]):
            return True
        raise RequestRefusedError(403, NO_TOKEN)

    def _same(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self.token.encode())

    def _cookie_line(self) -> bytes:
        return f"{self.cookie}={self.token}; Path={self.base}/; HttpOnly; SameSite=Strict".encode()


def _headers_once(raw: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers; one that is given twice counts as missing."""
    times = Counter(name.lower() for name, _ in raw)
    return {
        name.lower().decode("latin-1"): value.decode("latin-1")
        for name, value in raw
        if times[name.lower()] == 1
    }


def _cookies(line: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in line.split(";"))
    return {name: value for name, _, value in pairs}


def _check_target(scope: MutableMapping[str, Any]) -> None:
    """Refuse paths in disguise: the page itself never asks for anything but plain letters."""
    raw = scope.get("raw_path") or scope["path"].encode()
    if len(raw) + len(scope["query_string"]) > MOST_TARGET:
        raise RequestRefusedError(414, "The address is too long.")
    if any(piece in raw for piece in (b"%", b"..", b"\\", b"//", b"\0")):
        raise RequestRefusedError(400, "This server has no such address.")


def _check_write(headers: dict[str, str]) -> None:
    if headers.get("origin") != f"http://{headers['host']}":
        raise RequestRefusedError(403, "A change must come from the viewer's own page.")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestRefusedError(415, "A change must be JSON.")
    length = headers.get("content-length", "")
    if not length.isdecimal() or "transfer-encoding" in headers:
        raise RequestRefusedError(411, "A change must say how long it is.")
    if int(length) > MOST_BODY:
        raise RequestRefusedError(413, f"A change may have at most {MOST_BODY} bytes.")


async def _refuse(refusal: RequestRefusedError, send: Send) -> None:
    body = refusal.why.encode()
    headers = [
        *HEADERS.items(),
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
