"""One table or figure of the papers: where its cells come from, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Store
from aberra.reproduce.tables import HEADS, Row, as_csv
from aberra.reproduce.work import Job


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the papers.

    Parameters
    ----------
    name : str
        Its name in the shell.
    title : str
        What it shows.
    jobs : callable
        From a profile to the work.
    rows : callable or None, default=None
        From finished cells to the rows of a table; None for a figure.
    figure : callable or None, default=None
        From finished cells to a figure; None for a table.
    reduced : callable or None, default=None
        From a profile to the sentence above a table that says how much of the protocol was run.
    claims : callable or None, default=None
        From finished cells to what holds of the paper's claims, in Markdown.
    chapter : str, default=""
        The heading under which the claims stand.
    digits : int, default=1
        Decimals shown.
    csv : callable, default=as_csv
        From rows to CSV, where it is not the usual one.
    heads : tuple of str, default=("detector", "training")
        Names of the first two columns.
    """

    name: str
    title: str
    jobs: Callable[[Profile], list[Job]]
    rows: Callable[[Store, Profile], list[Row]] | None = None
    figure: Callable[[Store, Profile], Any] | None = None
    reduced: Callable[[Profile], str] | None = None
    claims: Callable[[Store, Profile], list[str]] | None = None
    chapter: str = ""
    digits: int = 1
    csv: Callable[[Sequence[Row]], str] = as_csv
    heads: tuple[str, str] = HEADS

    def head(self, profile: Profile) -> str:
        """Return what stands above the table."""
        return self.title + "." + (f" {self.reduced(profile)}" if self.reduced else "")
