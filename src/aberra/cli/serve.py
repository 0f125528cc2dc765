"""`aberra serve`: a model behind an address, for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, shell


@command
def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A file that aberra fit wrote.")],
    *,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 opens it to other machines.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to use; 0 takes any free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="ABERRA_TOKEN",
            help="What every request has to carry, as Authorization: Bearer TOKEN. Default: a new "
            'one is drawn and printed. "" lets everybody in.',
        ),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Rows in a request.")] = 10_000,
    max_bytes: Annotated[int, typer.Option(min=1024, help="Length of a request.")] = 1 << 24,
) -> None:
    """Answer requests with a model of a table.

    POST /score and /explain take {"rows": [{"column": value, ...}, ...]}. GET /health, /metrics
    (Prometheus) and /docs say more. Ctrl-C or SIGTERM ends it after the requests that are running.

    Example: ABERRA_TOKEN=secret aberra serve patients.aberra --port 8000
    """
    from aberra.workflow import open_service

    service = open_service(
        model, host=host, port=port, token=token, max_rows=max_rows, max_bytes=max_bytes
    )
    speaker = shell()
    shown = f"Token: {service.token}\n" if token is None else ""
    speaker.say(f"Listening on {service.address}\n{shown}Press Ctrl-C to stop.")
    speaker.result({"url": service.address, "token": service.token if token is None else None})
    sys.stdout.flush()
    try:
        service.run()
    except KeyboardInterrupt:  # the usual way to end it
        speaker.say("Stopped.")
