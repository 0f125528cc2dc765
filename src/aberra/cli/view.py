"""`aberra view`: a local page for scans, tables, models and reports."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from aberra.cli.shell import command, shell


@command
def view(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of results or scans, table of scores, model or report."
        ),
    ],
    scans: Annotated[
        Path | None, typer.Option(help="Folder of the scans, if DIR holds only the results.")
    ] = None,
    pattern: Annotated[
        str, typer.Option(help="What names of scans look like, where DIR has no scores.csv.")
    ] = "*",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page at once.")] = True,
) -> None:
    """Look at results in the browser, and accept or reject them; nothing leaves this machine.

    Marks are kept in aberra-marks.json beside the data.

    Example: aberra view maps --scans patients
    """
    from aberra.extras import need

    for name in ("fastapi", "uvicorn"):
        need(name, "view", "The viewer")
    from aberra.viewer.app import BUNDLE, Shelf
    from aberra.viewer.catalogue import catalogue
    from aberra.viewer.serve import Door, serve

    speaker = shell()
    shelf = Shelf(catalogue(target, scans, pattern))
    if shelf.found.items[0].kind in ("table", "model"):
        speaker.say(f"Reading {shelf.found.items[0].title}")
    shelf.load()
    door = Door(port)
    for remark in shelf.found.remarks[:5]:
        speaker.say(f"Note: {remark}")
    if shelf.found.scans and not BUNDLE.is_file():
        speaker.say(
            "Note: NiiVue is not installed, so volumes are not drawn; lists and marks work. "
            "Install npm, then run make install."
        )
    speaker.say(f"Open {door.address}\nCtrl-C ends.")
    speaker.result({"url": door.address, "port": door.port, "pages": len(shelf.found.items)})
    sys.stdout.flush()

    def opened() -> None:
        if browser and _has_screen():
            webbrowser.open(door.address)

    try:
        serve(shelf, door, opened)
    except KeyboardInterrupt:  # the usual way to end it
        speaker.say("Ended.")


def _has_screen() -> bool:
    """Say whether a window can open; a browser inside the terminal would be in the way."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
