"""The server: a socket that listens, and an end that lets running requests finish."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from uvicorn import Config, Server

from aberra.errors import DataError
from aberra.impatient import Impatient
from aberra.service.answers import Answers
from aberra.service.app import make_app
from aberra.service.limits import Gate

PATIENCE = 30  # seconds that running requests have after the signal to stop


@dataclass(frozen=True)
class Place:
    """Where the service listens, and the token that opens it.

    Parameters
    ----------
    host : str, default="127.0.0.1"
        The address to listen on; 0.0.0.0 opens it to other machines.
    port : int, default=0
        0 takes any free one.
    token : str, optional
        By default a new one is drawn; an empty one lets everybody in.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    socket: socket.socket = field(init=False, repr=False)

    def __post_init__(self) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self.host, self.port))
            listener.listen()
        except OSError as error:
            listener.close()
            raise DataError(
                f"{self.host}:{self.port} cannot be used: {error.strerror}. Choose another port."
            ) from error
        object.__setattr__(self, "socket", listener)
        object.__setattr__(self, "port", listener.getsockname()[1])

    @property
    def address(self) -> str:
        """Where other programs find it."""
        return f"http://{self.host}:{self.port}"


def make_server(answers: Answers, place: Place) -> Server:
    """Return a server that has not started yet."""
    return Server(
        Config(
            Gate(make_app(answers), place.token, answers.limits),
            http=Impatient,
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=PATIENCE,
        )
    )


def serve(answers: Answers, place: Place, ready: Callable[[], None] = lambda: None) -> None:
    """Answer until the process is told to stop; requests that are running are finished."""
    server = make_server(answers, place)
    ready()  # the socket listens already: who comes early waits
    server.run(sockets=[place.socket])
