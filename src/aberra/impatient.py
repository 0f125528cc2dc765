"""A connection that waits for a request only so long."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0  # from the first byte of a request to its last


class Impatient(H11Protocol):
    """HTTP as uvicorn speaks it, but half a request does not keep the connection for ever."""

    deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take some bytes, and see whether the request is complete with them."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._rest()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if not self._is_waiting():
            self._rest()
        elif self.deadline is None:
            self.deadline = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _is_waiting(self) -> bool:
        """Say whether a part of a request, its head or its body, has yet to come."""
        cycle = self.cycle
        return cycle is None or cycle.more_body or cycle.response_complete

    def _give_up(self) -> None:
        self.deadline = None
        if self._is_waiting() and not self.transport.is_closing():
            self.transport.close()

    def _rest(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
