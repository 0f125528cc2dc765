"""Who may ask, and for how much: checked before a request reaches the model."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/health", "/docs", "/openapi.json")  # tell nothing about the data


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status, self.why = status, why


@dataclass(frozen=True)
class Limits:
    """What a request may ask for.

    Parameters
    ----------
    max_rows : int, default=10000
        Rows in a request.
    max_bytes : int, default=16777216
        Length of its body.
    max_waiting : int, default=32
        Requests that may wait while another one is answered; more are sent away with 503.
    """

    max_rows: int = 10_000
    max_bytes: int = 1 << 24
    max_waiting: int = 32


class Gate:
    """Let only requests in that carry the token, and cut off those that are too long.

    Parameters
    ----------
    app : ASGI application
    token : str
        Comes as `Authorization: Bearer TOKEN`; an empty one lets everybody in.
    limits : Limits
    """

    def __init__(self, app: App, token: str, limits: Limits) -> None:
        self.app, self.token, self.limits = app, token, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request, then pass it on or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check(scope)
            body = await self._body(receive)
        except RefusedError as refusal:
            await _refuse(refusal, send)
            return
        held: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Message:
            return held.pop() if held else await receive()

        await self.app(scope, received, send)

    def _check(self, scope: Scope) -> None:
        headers = {name.lower(): value for name, value in scope["headers"]}
        if scope["path"] not in OPEN and not self._knows(headers.get(b"authorization", b"")):
            raise RefusedError(
                401, "The token is missing or wrong. Send Authorization: Bearer TOKEN."
            )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.limits.max_bytes:
            raise self._too_long()

    def _knows(self, given: bytes) -> bool:
        wanted = f"Bearer {self.token}".encode()
        return not self.token or secrets.compare_digest(given, wanted)

    async def _body(self, receive: Receive) -> bytes:
        """Read the whole request, which need not say how long it is."""
        body, more = bytearray(), True
        while more:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.limits.max_bytes:
                raise self._too_long()
            more = message.get("more_body", False)
        return bytes(body)

    def _too_long(self) -> RefusedError:
        most = self.limits.max_bytes
        return RefusedError(413, f"A request may have at most {most:,} bytes. Send fewer rows.")


async def _refuse(refusal: RefusedError, send: Send) -> None:
    body = json.dumps({"error": refusal.why}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
