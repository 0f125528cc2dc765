"""`aberra view`: a local page for scans, tables, models and reports."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, shell

SHOWN_REMARKS = 5


@command
def view(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A folder of results or scans, a table of scores, a model, or a report.",
        ),
    ],
    scans: Annotated[
        Path | None,
        typer.Option(help="The folder of the scans, if DIR holds only the results."),
    ] = None,
    pattern: Annotated[
        str, typer.Option(help="Which names are scans, in a folder that has no scores.csv.")
    ] = "*",
    model: Annotated[
        Path | None, typer.Option(help="Tables: the model that scored the rows.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Tables, with --model: the table that was scored. Each row is then shown with "
            "its values, what is usual, and ordinary rows like it."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to use; 0 takes any free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser at once.")] = True,
) -> None:
    """Look at results in the browser.

    You can accept or reject each of them. Nothing leaves this machine; your marks are kept in
    aberra-marks.json beside the data.

    Examples: aberra view maps --scans patients, aberra view scores.csv --model m.aberra --data
    new.csv
    """
    from aberra.workflow import open_viewer

    speaker = shell()
    if target.is_file():
        speaker.say(f"Reading {target}")
    viewer = open_viewer(target, scans=scans, pattern=pattern, port=port, model=model, data=data)
    for remark in viewer.remarks[:SHOWN_REMARKS]:
        speaker.say(f"Note: {remark}")
    speaker.say(f"Open {viewer.address}\nPress Ctrl-C to stop.")
    speaker.result({"url": viewer.address, "port": viewer.port, "pages": viewer.n_pages})
    sys.stdout.flush()

    def opened() -> None:
        if browser and _has_screen():
            webbrowser.open(viewer.address)

    try:
        viewer.serve(opened)
    except KeyboardInterrupt:  # the usual way to end it
        speaker.say("Stopped.")


def _has_screen() -> bool:
    """Say whether a window can open; a browser inside the terminal would be in the way."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
