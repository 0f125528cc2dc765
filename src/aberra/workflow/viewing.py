"""The viewer: a local page for scans, tables, models and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aberra.data.sources.staged import table_at
from aberra.errors import DataError
from aberra.extras import need
from aberra.workflow.opened import opened

if TYPE_CHECKING:
    from aberra.viewer.app import Shelf
    from aberra.viewer.rows import ScoredRows
    from aberra.viewer.serve import Door

NO_BUNDLE = (
    "NiiVue is not installed, so volumes are not drawn; lists and marks work. Install npm, then "
    "run make install."
)


@dataclass(frozen=True)
class Viewer:
    """Pages that are ready to be shown; `serve` shows them.

    Parameters
    ----------
    shelf : Shelf
        What there is to show.
    door : Door
        The open port, and the token that opens it.
    remarks : list of str
        What may be worth knowing, in sentences.
    """

    shelf: Shelf
    door: Door
    remarks: list[str]

    @property
    def address(self) -> str:
        """What a browser has to open; it holds a secret token."""
        return self.door.address

    @property
    def port(self) -> int:
        """The port on this machine."""
        return self.door.port

    @property
    def n_pages(self) -> int:
        """How many pages there are."""
        return len(self.shelf.found.items)

    def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Show the pages until the process is interrupted.

        Parameters
        ----------
        ready : callable, optional
            Called once, when pages can be opened. By default nothing is.
        """
        from aberra.viewer.serve import serve

        serve(self.shelf, self.door, ready)


def open_viewer(
    target: str | Path,
    *,
    scans: str | Path | None = None,
    pattern: str = "*",
    port: int = 0,
    model: Any = None,
    data: str | Path | None = None,
) -> Viewer:
    r"""Prepare the pages that `aberra view` shows: results, scans, a table, a model or a report.

    Nothing leaves this machine. Marks are kept in `aberra-marks.json` beside the data.

    Parameters
    ----------
    target : path
        A folder of results or scans, a table of scores, a model file, or a report.
    scans : path, optional
        The folder of the scans, if `target` holds only the results. By default scans are looked
        for in `target`.
    pattern : str, default="*"
        Which names are scans, in a folder that has no `scores.csv`.
    port : int, default=0
        The port to use; 0 takes any free one.
    model : path, Fitted or estimator, optional
        The model that scored the table. By default the page shows scores and reasons alone.
    data : path, optional
        The table that was scored, with `model`. The page then shows the values of each row beside
        what is usual, and ordinary rows like it. The table is held in memory.

    Returns
    -------
    viewer : Viewer
        Its `address` is what a browser opens, and its `serve` shows the pages.

    Raises
    ------
    DataError
        If there is nothing to show, or the port is taken.
    MissingExtraError
        If FastAPI or uvicorn are not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aberra.workflow import open_viewer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "scores.csv").write_text("row,score\n0,1.5\n1,0.5\n")
    ...     viewer = open_viewer(Path(folder) / "scores.csv")
    >>> viewer.address.startswith("http://127.0.0.1"), viewer.n_pages
    (True, 1)
    >>> viewer.door.socket.close()  # or viewer.serve(), which does not return
    """
    for name in ("fastapi", "uvicorn"):
        need(name, "view", "The viewer")
    from aberra.viewer.app import BUNDLE, Shelf
    from aberra.viewer.catalogue import catalogue
    from aberra.viewer.serve import Door

    found = catalogue(Path(target), None if scans is None else Path(scans), pattern)
    shelf = Shelf(found, _behind(model, data))
    shelf.load()
    lacks = [NO_BUNDLE] if shelf.found.scans and not BUNDLE.is_file() else []
    return Viewer(shelf, Door(port), [*lacks, *shelf.found.remarks])


def _behind(model: Any, data: str | Path | None) -> ScoredRows | None:
    """Return the table that was scored with its model, if both were given."""
    if (model is None) != (data is None):
        raise DataError(
            "The values of rows need both: the model that scored them and the table that was "
            "scored. Give --model and --data, or neither."
        )
    if model is None or data is None:
        return None
    from aberra.viewer.rows import ScoredRows

    known = opened(model)
    known.check("table", Path(data))
    return ScoredRows(known.model, known.recipe, table_at(data))
