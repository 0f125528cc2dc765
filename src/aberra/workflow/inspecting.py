"""What a model file is: from what, by which version, on which columns, with which threshold."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aberra import model_file
from aberra.data.drift.portrait import ColumnPortrait
from aberra.data.drift.sentences import shown
from aberra.explain.subject import Subject
from aberra.explain.training import Fact, changed_settings
from aberra.model_file.card import card_of
from aberra.pretrained import FOLDER, model_path, pretrained_card
from aberra.words import percent
from aberra.workflow.opened import opened
from aberra.workflow.reviewing import reviewed

SHOWN_LABELS = 4


@dataclass(frozen=True)
class ColumnInfo:
    """A column that a model was trained on: its name, what it holds, and what its values were."""

    name: str
    kind: str
    values: str
    gaps: float


@dataclass(frozen=True)
class ModelInfo:
    """What is known about a model file.

    Parameters
    ----------
    path : Path
    n_bytes : int
        Its size.
    written : str
        When the file was last written, as the disk has it.
    versions : dict
        Versions of Aberra, Python and the libraries that wrote it.
    model : str
        The model in a few words.
    kind : {"table", "images", "volumes"}
        What it was trained on.
    data : str or None
        The path of the training data as it was typed; None for a model that was saved from Python.
    threshold : float
        The score above which a sample is flagged.
    threshold_rule : str
        The rule that placed it.
    sentences : list of str
        What the model does.
    facts : list of Fact
        What is known about the training.
    columns : list of ColumnInfo
        Each column of the training table, as far as the model keeps a portrait of it.
    dropped : dict
        Columns that did not train, and why.
    settings : list of [str, str]
        Settings that differ from the defaults.
    card : str
        The card of the model, as Markdown: the one that was saved with it, or that of a model
        that comes with Aberra.
    """

    path: Path
    n_bytes: int
    written: str
    versions: dict[str, str]
    model: str
    kind: str
    data: str | None
    threshold: float
    threshold_rule: str
    sentences: list[str]
    facts: list[Fact]
    columns: list[ColumnInfo]
    dropped: dict[str, str]
    settings: list[tuple[str, str]]
    card: str

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold; a threshold that no score reaches is None."""
        threshold = self.threshold if math.isfinite(self.threshold) else None
        return {**asdict(self), "path": str(self.path), "threshold": threshold}


def info(model: str | Path) -> ModelInfo:
    """Say what a model file is: what `aberra info` does.

    Parameters
    ----------
    model : path
        A file that `fit` or `aberra.save` wrote, or the name of a model that comes with Aberra.

    Returns
    -------
    info : ModelInfo

    Raises
    ------
    ModelFileError
        If the model cannot be loaded.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from aberra.workflow import fit, info
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wine.csv"
    ...     load_wine(as_frame=True).data.to_csv(file, index=False)
    ...     _ = fit(file, Path(folder) / "wine.aberra")
    ...     known = info(Path(folder) / "wine.aberra")
    >>> known.kind, len(known.columns), known.columns[0].values
    ('table', 13, '11.03 to 14.83, median 13.05')
    """
    path = model_path(model)
    known, versions = opened(path), model_file.load_versions(path)
    subject = Subject(known.model, known.recipe)
    held, portrait = path.stat(), known.model.training_portrait()
    return ModelInfo(
        path,
        held.st_size,
        datetime.fromtimestamp(held.st_mtime, UTC).isoformat(timespec="seconds"),
        versions,
        subject.name,
        known.kind,
        None if known.recipe is None else known.recipe.data,
        float(known.model.threshold_),
        known.model.threshold_rule_,
        subject.sentences(),
        [*subject.facts(), *_marks(known.model)],
        [] if portrait is None else [_column(column) for column in portrait.columns],
        {} if known.recipe is None else known.recipe.dropped,
        changed_settings(known.model),
        _card(path, known.model, versions),
    )


def _card(path: Path, model: Any, versions: dict[str, str]) -> str:
    """Return the card that lies beside a model of the package, or that is kept in the file."""
    if path.parent == FOLDER:
        return pretrained_card(path.stem)
    return model_file.load_card(path) or card_of(model, versions)


def _marks(model: Any) -> list[Fact]:
    """Return how many rows reviewers have marked, if any."""
    found = reviewed(model)
    if not (found.n_rejected or found.n_accepted):
        return []
    return [Fact("Marks", f"{found.n_rejected} rejected, {found.n_accepted} accepted")]


def _column(column: ColumnPortrait) -> ColumnInfo:
    return ColumnInfo(column.name, column.kind, _values(column), column.gap_share)


def _values(column: ColumnPortrait) -> str:
    if column.categories is not None:
        held = column.categories
        first = zip(held.labels[:SHOWN_LABELS], held.shares, strict=False)
        listed = [f"{label!r} {percent(share)}" for label, share in first]
        more = len(held.labels) > SHOWN_LABELS or not held.complete
        return ", ".join([*listed, *(["..."] if more else [])])
    numbers = column.numbers
    if numbers is None or not numbers.n:
        return "no value"
    ends = [shown(end, column.kind) for end in (numbers.lowest, numbers.highest)]
    if ends[0] == ends[1]:
        return f"always {ends[0]}"
    return f"{ends[0]} to {ends[1]}, median {shown(numbers.quantile(0.5), column.kind)}"
