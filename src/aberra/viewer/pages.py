"""The pages of the viewer: one frame around what is different in each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template

STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class PageFrame:
    """What the frame has to know about a page.

    Parameters
    ----------
    title : str
        Until the page itself knows better.
    skip_to : str
        Identifier of the element that keyboards may jump to.
    skip_words : str
        What the jump is called.
    by_keys : bool
        Whether the page is worked with keys: it then fills the window and lists its keys.
    """

    title: str
    skip_to: str
    skip_words: str
    by_keys: bool


FRAMES = {
    "scans": PageFrame("Scans", "list", "Skip to the list of scans", True),
    "table": PageFrame("Scores", "rows", "Skip to the rows", True),
    "model": PageFrame("Model", "facts-title", "Skip to what was trained", False),
}


def framed_page(kind: str, base: str = "") -> str:
    """Return the whole page of scans, a table or a model; the pages lie below `base`."""
    frame = FRAMES[kind]
    page = Template(_html("frame")).substitute(
        kind=kind,
        title=frame.title,
        skip_to=frame.skip_to,
        skip_words=frame.skip_words,
        layout="fills" if frame.by_keys else "flows",
        tools=_html("keys") if frame.by_keys else "",
        main=_html(kind),
    )
    return page.replace('"/static/', f'"{base}/static/')


def _html(name: str) -> str:
    return (STATIC / f"{name}.html").read_text("utf-8")
