"""A model behind an address, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aberra.errors import DataError
from aberra.explain.subject import Subject
from aberra.extras import need
from aberra.workflow.choices import CALLED
from aberra.workflow.opened import opened


@dataclass(frozen=True)
class Service:
    """A service that listens already, and answers when it is told to.

    Parameters
    ----------
    address : str
        Where other programs find it.
    token : str
        What they have to send, as `Authorization: Bearer TOKEN`; empty if nothing.
    run : callable
        Answers until the process is told to stop. It takes a function that is called at the start.
    """

    address: str
    token: str
    run: Callable[..., None]


def open_service(
    model: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    max_rows: int = 10_000,
    max_bytes: int = 1 << 24,
) -> Service:
    """Put a model of a table behind an address: what `aberra serve` does.

    Parameters
    ----------
    model : path, Fitted or estimator
        A model file, what `fit` returned, or any fitted model of Aberra.
    host : str, default="127.0.0.1"
        The address to listen on; 0.0.0.0 opens it to other machines.
    port : int, default=0
        The port; 0 takes any free one.
    token : str, optional
        What requests have to carry. By default a new one is drawn; "" lets everybody in.
    max_rows : int, default=10000
        Rows in a request.
    max_bytes : int, default=16777216
        Length of a request.

    Returns
    -------
    service : Service

    Raises
    ------
    MissingExtraError
        If FastAPI or uvicorn is not installed.
    DataError
        If the model is not one of tables, or the port cannot be used.
    """
    need("fastapi", "serve", "The service")
    need("uvicorn", "serve", "The service")
    from aberra.service.answers import Answers
    from aberra.service.limits import Limits
    from aberra.service.running import Place, serve

    known = opened(model)
    if known.kind != "table":
        raise DataError(f"{known.name} is a model of {CALLED[known.kind]}; a service takes rows.")
    answers = Answers(Subject(known.model, known.recipe), Limits(max_rows, max_bytes))
    place = Place(host, port) if token is None else Place(host, port, token)

    def run(ready: Callable[[], None] = lambda: None) -> None:
        serve(answers, place, ready)

    return Service(place.address, place.token, run)
