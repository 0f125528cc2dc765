"""Text for a terminal, in which nothing moves the cursor or changes the window.

Names and identifiers come from other people's files. Written to a terminal as they are, escape
sequences in them could hide lines or pretend others.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

KEPT = "\n\t"
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")  # controls, marks of direction, line ends


def visible(text: str) -> str:
    r"""Return text with everything that cannot be seen written out.

    Half characters, from file names that are not UTF-8, are written out too, because no file can
    take them.

    Examples
    --------
    >>> print(visible("\x1b[31mred \u202eback, caf\u00e9"))
    \x1b[31mred \u202eback, café
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if _is_seen(c) else c.encode("unicode_escape").decode() for c in text)


def _is_seen(character: str) -> bool:
    return character in KEPT or unicodedata.category(character) not in UNSEEN


def console(*, stderr: bool = False) -> Console:
    """Return a rich console that writes visible text only.

    Parameters
    ----------
    stderr : bool, default=False
        Whether it writes to standard error.
    """
    from rich.console import Console
    from rich.text import Text

    class VisibleConsole(Console):
        """Makes every string visible before it becomes a part of the page."""

        def render_str(self, text: str, **keywords: Any) -> Text:
            return super().render_str(visible(text), **keywords)

    return VisibleConsole(stderr=stderr)
