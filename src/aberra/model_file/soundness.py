"""What holds for every model that comes from a file: its parts fit, and it gives finite scores.

Types and sizes of single parts were checked while they were read. Here the parts are held against
each other, and at last the model is tried out on rows that it must know what to do with.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from aberra.contract.feedback import Feedback
from aberra.contract.members import Members
from aberra.contract.rows import RowScorer
from aberra.data.tables import KINDS, LARGEST, TableReader
from aberra.data.written import means
from aberra.declare import Within
from aberra.explain.rounds import STOPPED
from aberra.model_file.kinds import damaged
from aberra.model_file.portraits import check_portrait
from aberra.robust.committee import Committee

MOST_CALLS = 2000  # of networks for one tile of images
BECOMES = {  # what a column of each kind may become
    "number": {"value"},
    "duration": {"value"},
    "text": {"rarity"},
    "time": {"day", "week", "year", "elapsed"},
}
THRESHOLDS = ("threshold_", "map_threshold_")


def check_sound(model: Any, limits: bool) -> None:
    """Raise an error unless a model that was put together from a file can be used.

    Parameters
    ----------
    model : estimator
    limits : bool
        Whether to refuse settings that cost very much time or memory.
    """
    held = vars(model)
    for name in THRESHOLDS:
        if name in held and math.isnan(held[name]):
            damaged(f"learnt.{name}", "nothing is above NaN")
    model._validate_params()
    if model.localises:
        _check_maps(model)
    rounds = model.training_rounds()
    if rounds is not None and not 0 <= rounds.kept < len(rounds):
        damaged("learnt.history_", "there are no rounds, or the one that was kept is missing")
    if rounds is not None and rounds.reason not in STOPPED:
        damaged("learnt.history_.reason", f"{rounds.reason!r} is no reason for training to stop")
    _check_training(model)
    if not model.members_.n_members:
        damaged("learnt.members_", "there is no member, so nothing can be scored")
    if isinstance(model, RowScorer):
        _check_rows(model)
    else:
        _check_localiser(model, limits)


def _check_maps(model: Any) -> None:
    """Refuse a model that should draw maps and cannot: an ensemble's detector may say so alone."""
    if "map_threshold_" not in vars(model):
        damaged("learnt.map_threshold_", "it is missing, so no pixel could be flagged")
    parts = model.members_.parts if isinstance(model.members_, Committee) else [model.members_]
    if any(type(part).maps is Members.maps for part in parts):
        damaged("learnt.members_", "they draw no maps, unlike the detector of this model")


def _check_training(model: Any) -> None:
    """Refuse what is known about the training samples if it is not finite."""
    part = model.training_sample()
    for scores in (model.training_scores(), None if part is None else part.scores):
        if scores is not None and not np.isfinite(scores).all():
            damaged("learnt", "the scores of the training samples are not finite")


def _check_rows(model: Any) -> None:
    n, image, reader = model.n_features_in_, model.image_shape_, model.reader_
    if image is not None and math.prod(image) != n:
        damaged("learnt.image_shape_", f"images {image} do not have {n} numbers")
    if image is not None and (model.missing, model.encode) != ("error", "error"):
        damaged("params", "`missing` and `encode` are for tables, and this is a model of images")
    names = model.column_names()
    if names is not None and (len(names) != n or len(set(names)) != n):
        damaged("learnt.feature_names_in_", f"{len(names)} names, not {n} different ones")
    if reader is not None:
        check_reader(reader, n)
    if (marks := model.review_marks()) is not None:
        check_marks(marks)
    if (portrait := model.training_portrait()) is not None:
        check_portrait(portrait, n)
    n_numbers = n if reader is None else len(reader.owners())
    if model.references_.shape[1] != n_numbers:
        damaged("learnt.references_", f"{model.references_.shape[1]} columns, not {n_numbers}")
    model.members_.probe(n_numbers, image)
    with np.errstate(all="ignore"):
        model.members_.probe_finite(model.references_)


def check_marks(marks: Feedback) -> None:
    """Raise an error unless what reviewers said about rows can move the scores of others."""
    numbers = (marks.rows, marks.scores, marks.middle, marks.spread, marks.usual)
    # Rows may have gaps, and then count as the median.
    large = [part for part in numbers if (np.abs(part) > LARGEST).any()]
    if large or not all(np.isfinite(part).all() for part in numbers[1:]):
        damaged("learnt.feedback_", "some numbers are not finite, or too large to be squared")
    if not np.isin(marks.labels, (0, 1)).all() or not (marks.spread > 0).all():
        damaged("learnt.feedback_", "a mark is neither 0 nor 1, or a column has no spread")


def check_reader(reader: TableReader, n: int) -> None:
    """Raise an error unless what turns columns into numbers knows each of n columns."""
    kinds, parts, forms = reader.kinds, reader.parts, reader.forms or {}
    if len(kinds) != n or not set(kinds) <= set(KINDS):
        damaged("learnt.reader_.kinds", f"not one of {', '.join(KINDS)} for each of {n} columns")
    if any(j >= n or kinds[j] != "text" or means(form) is None for j, form in forms.items()):
        damaged("learnt.reader_.forms", "no form of numbers or dates, or not in a column of text")
    said = reader.meanings()
    if len(parts) != n or not all(set(p) <= BECOMES[k] for k, p in zip(said, parts, strict=True)):
        damaged("learnt.reader_.parts", f"no such numbers come from these {n} columns")
    if any(len(p) != len(set(p)) for p in parts) or not len(reader.owners()):
        damaged("learnt.reader_.parts", "a number comes twice, or none at all")
    n_medians = len(reader.owners()) if reader.missing == "impute" else 0
    if len(reader.medians) != n_medians:
        damaged("learnt.reader_.medians", f"{len(reader.medians)} numbers instead of {n_medians}")
    _check_learnt(reader, said)


def _check_learnt(reader: TableReader, said: list[str]) -> None:
    """Refuse what a reader knows about text and dates if it is not there, or no number."""
    if set(reader.rarity) != {j for j, kind in enumerate(said) if kind == "text"}:
        damaged("learnt.reader_.rarity", "other columns than those of text")
    dates = {j for j, kind in enumerate(said) if kind == "time" and reader.parts[j]}
    if not dates <= set(reader.latest) or any(len(v) != 2 for v in reader.latest.values()):
        damaged("learnt.reader_.latest", "not two numbers for every column of dates")
    rare = [value for column in reader.rarity.values() for value in column.values()]
    late = [value for column in reader.latest.values() for value in column]
    if not all(abs(x) <= LARGEST for x in [reader.unseen, *reader.medians, *rare, *late]):
        damaged("learnt.reader_", "some numbers are not finite, or too large to be squared")


def _check_localiser(model: Any, limits: bool) -> None:
    trained, image = model.members_, model.image_shape_
    if trained.frame.image_shape != image:
        damaged("learnt.image_shape_", f"{image}, but the frame has {trained.frame.image_shape}")
    if any(side > whole for side, whole in zip(trained.frame.grid, image[1:], strict=True)):
        damaged("learnt.members_.frame.grid", f"{trained.frame.grid} is larger than the images")
    if limits:
        for members in (trained, model._current()):  # as trained, and as the parameters have it
            check_ranges(members, "learnt.members_")
            if members.n_calls > MOST_CALLS:
                damaged(
                    "learnt.members_",
                    f"networks would be called {members.n_calls:,} times for a tile of images, "
                    f"more than {MOST_CALLS:,} (load(path, limits=False) lifts the limit)",
                )
    _check_device(getattr(model, "detector", model))
    trained.probe(math.prod(image), image)


def _check_device(localiser: Any) -> None:
    if (name := vars(localiser).get("device")) is not None:
        from aberra.nets.place import device_named  # tables do without torch

        device_named(name)


def check_ranges(part: Any, where: str) -> None:
    """Raise an error if a number in a part, or in a part of it, is out of its range."""
    hints = get_type_hints(type(part), include_extras=True)
    for field in dataclasses.fields(part):
        value, hint = vars(part)[field.name], hints[field.name]
        if dataclasses.is_dataclass(value):
            check_ranges(value, f"{where}.{field.name}")
        for mark in _marks(hint):
            if isinstance(value, int) and not mark.low <= value <= mark.high:
                damaged(f"{where}.{field.name}", f"{value} is not in {mark.low} to {mark.high}")


def _marks(hint: Any) -> list[Within]:
    if get_origin(hint) is Annotated:
        return [mark for mark in get_args(hint) if isinstance(mark, Within)]
    return [mark for inner in get_args(hint) for mark in _marks(inner)]
