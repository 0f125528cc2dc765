"""The socket, the server and its address."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from uvicorn import Config, Server

from aberra.errors import DataError
from aberra.impatient import Impatient
from aberra.viewer.app import Shelf, make_app
from aberra.viewer.guard import Guard

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Door:
    """An open port on this machine's own address, and the token that opens it.

    Parameters
    ----------
    port : int, default=0
        0 takes any free one.
    """

    port: int = 0
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(12)}")
    socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, self.port))
            listener.listen()
        except OSError as error:
            listener.close()
            raise DataError(
                f"Port {self.port} cannot be used: {error.strerror}. Choose another one, or leave "
                "--port out to take any free one."
            ) from error
        object.__setattr__(self, "socket", listener)
        object.__setattr__(self, "port", listener.getsockname()[1])

    @property
    def address(self) -> str:
        """What the browser opens."""
        return f"http://{HOST}:{self.port}{self.base}/?token={self.token}"


def serve(shelf: Shelf, door: Door, ready: Callable[[], None] = lambda: None) -> Server:
    """Show a shelf until the process is interrupted.

    Parameters
    ----------
    shelf : Shelf
    door : Door
    ready : callable
        Called once, when pages can be opened.

    Returns
    -------
    server : Server
        After it has ended.
    """
    server = make_server(shelf, door)
    ready()  # the socket listens already: a browser that comes early waits
    server.run(sockets=[door.socket])
    return server


def make_server(shelf: Shelf, door: Door) -> Server:
    """Return a server that has not started yet."""
    guarded = Guard(make_app(shelf, door.base), door.port, door.token, door.base)
    return Server(
        Config(
            guarded,
            http=Impatient,
            log_level="error",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="off",
            timeout_graceful_shutdown=2,
            timeout_keep_alive=30,
        )
    )
