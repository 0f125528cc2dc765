"""What comes out of scoring a table, images or scans."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aberra.data.drift.verdict import Drift
from aberra.scoring.folder import SCORES, Line
from aberra.scoring.odd_cells import OddColumn


@dataclass(frozen=True)
class ScoredTable:
    """What came out of scoring a table.

    Parameters
    ----------
    path : Path
        The table of scores.
    n_rows, n_flagged : int
        Rows that have a score, and how many of them lie above the threshold.
    n_resumed : int
        Rows that an earlier, interrupted run had finished.
    oddest : list of dict
        The lines of the ten rows with the highest scores, highest first.
    id_column : str or None
        The column that names the rows; None if they are numbered from 0.
    ignored_columns : list of str
        Columns of the file that the model does not know.
    seconds : float
        How long it took.
    remarks : list of str
        What may be worth knowing, in sentences.
    drift : Drift, optional
        Whether the rows are still like the training rows. None by default, and for a model that
        keeps no portrait of its training rows.
    errors : dict, default={}
        Files of the table that could not be read and were left out, and why.
    odd_cells : list of OddColumn, default=[]
        Cells that are no numbers or dates in columns of them, and counted as gaps: the column,
        how many, and the first one.
    """

    path: Path
    n_rows: int
    n_flagged: int
    n_resumed: int
    oddest: list[dict[str, Any]]
    id_column: str | None
    ignored_columns: list[str]
    seconds: float
    remarks: list[str] = field(default_factory=list)
    drift: Drift | None = None
    errors: dict[str, str] = field(default_factory=dict)
    odd_cells: list[OddColumn] = field(default_factory=list)


@dataclass(frozen=True)
class ScoredImages:
    """What came out of drawing maps of images.

    Parameters
    ----------
    folder : Path
        Where the maps are, with `scores.csv`, which has a line for each image.
    n_images, n_flagged : int
        Images that were found, and how many of them lie above the threshold.
    n_scored, n_resumed : int
        Images that were scored now, and that had a result from before.
    oddest : list of dict
        The lines of the ten images with the highest scores, highest first.
    errors : dict
        Images that could not be scored, and why.
    seconds : float
        How long it took.
    """

    folder: Path
    n_images: int
    n_flagged: int
    n_scored: int
    n_resumed: int
    oddest: list[Line]
    errors: dict[str, str]
    seconds: float

    @property
    def path(self) -> Path:
        """The table of scores."""
        return self.folder / SCORES


@dataclass(frozen=True)
class ScoredScans:
    """What came out of writing maps of scans.

    Parameters
    ----------
    folder : Path
        Where the maps and segmentations are, with `scores.csv`, which has a line for each scan.
    scans : Path
        Where the scans are that were scored.
    n_scans : int
        Scans that were found.
    n_scored, n_resumed : int
        Scans that were scored now, and that had a result from before.
    oddest : list of dict
        The lines of the ten scans with the highest scores, highest first.
    errors : dict
        Scans that could not be scored, and why.
    seconds : float
        How long it took.
    """

    folder: Path
    scans: Path
    n_scans: int
    n_scored: int
    n_resumed: int
    oddest: list[Line]
    errors: dict[str, str]
    seconds: float

    @property
    def path(self) -> Path:
        """The table of scores."""
        return self.folder / SCORES


Scored = ScoredTable | ScoredImages | ScoredScans
