"""How a file became training data: kept as notes in the model file, read when it is used again."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from aberra.errors import ModelFileError
from aberra.explain.doubts import Doubt
from aberra.explain.reasons import Reason
from aberra.words import listed

if TYPE_CHECKING:
    from aberra.data.mri.prepare import Preparation
    from aberra.localise.healthy import HealthyScans
    from aberra.localise.likeness import Looks

Source = Literal["table", "images", "volumes"]
SOURCES = ("table", "images", "volumes")
N_QUANTILES = 1001
MOST_SHOWN = 20  # names of columns in a line of the summary
# Fields that the first recipes lacked.
LATER = {"quantiles", "map_threshold", "pattern", "axes", "looks", "healthy"}
FORMER = {"seconds"}  # fields of earlier recipes: wall times made every file another one

Choices = list[tuple[str, str]]  # what was chosen, and why: one pair a line of the summary


@dataclass(frozen=True)
class Recipe:
    """What `aberra fit` did, enough to do the same to other files and to report on it.

    Parameters
    ----------
    kind : {"table", "images", "volumes"}
    data : str
        The path as it was typed.
    n_samples : int
        Rows, images or slices that trained.
    columns : list of str
        Columns that trained, in their order; empty for images and volumes.
    dropped : dict
        Columns that did not train, and why.
    id_column, label_column : str, optional
    preparation : dict
        Keywords of `Preparation`, for volumes; those of `ImageShape`, for images.
    choices : list of [str, str]
        What was chosen, and why: each pair is a line of the summary.
    doubts : list of Doubt
        The least trusted samples, least trusted first.
    metrics : dict
        What labels measured, where there were any; never used to train.
    quantiles : list of float
        Training scores at 1001 even quantiles, which percentiles refer to where the model itself
        keeps no training scores; empty for volumes.
    map_threshold : float, optional
        Height of a localiser's map above which a pixel or voxel is flagged.
    pattern : str
        What the names of scans looked like, for volumes.
    axes : str, optional
        Where the array axes of the scans really point, if their headers are wrong.
    looks : dict
        Keywords of `aberra.localise.likeness.Looks`, for volumes: how the training scans looked.
    healthy : dict
        Keywords of `aberra.localise.healthy.HealthyScans`, for volumes: how scans that did not
        train were scored.
    """

    kind: Source
    data: str
    n_samples: int
    columns: list[str] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    id_column: str | None = None
    label_column: str | None = None
    preparation: dict[str, Any] = field(default_factory=dict)
    choices: Choices = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    quantiles: list[float] = field(default_factory=list)
    map_threshold: float | None = None
    pattern: str = "*"
    axes: str | None = None
    looks: dict[str, Any] = field(default_factory=dict)
    healthy: dict[str, Any] = field(default_factory=dict)

    def shown_choices(self) -> Choices:
        """Return the choices with the first of many columns, and how many more there are."""
        alike: dict[str, list[str]] = {"": self.columns}
        for name, why in self.dropped.items():
            alike.setdefault(why, []).append(name)
        lists = [names for names in alike.values() if len(names) > MOST_SHOWN]
        found = []
        for name, why in self.choices:
            for names in lists:
                why = why.replace(", ".join(names), listed(names, MOST_SHOWN))
            found.append((name, why))
        return found

    def notes(self) -> dict[str, Any]:
        """Return what `aberra.save` keeps beside the model."""
        return {"recipe": asdict(self)}

    def scan_preparation(self) -> Preparation:
        """Return how scans are cut into slices; the usual way where nothing was noted."""
        from aberra.data.mri.prepare import Preparation

        settings = {"across": 0.0, **self.preparation}  # the first models had slices stand alone
        try:
            if "below_top" in settings:
                settings["below_top"] = tuple(settings["below_top"])  # a list in JSON
            return Preparation(**settings)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"The recipe's preparation of scans is wrong: {error}.") from error

    def training_looks(self) -> Looks | None:
        """Return how the training scans looked, where that was noted."""
        from aberra.localise.likeness import Looks

        return Looks(**self.looks) if self.looks else None

    def healthy_scans(self) -> HealthyScans | None:
        """Return how healthy scans were scored, where that was noted."""
        from aberra.localise.healthy import HealthyScans
        from aberra.localise.relative import HealthyHeights

        if not self.healthy:
            return None
        heights = self.healthy.get("heights")
        usual = HealthyHeights(**heights) if heights else None
        return HealthyScans(**{**self.healthy, "heights": usual})

    @classmethod
    def of(cls, notes: Mapping[str, Any]) -> Recipe | None:
        """Return the recipe in a model file's notes, or None for a model saved from Python."""
        held = notes.get("recipe")
        if held is None:
            return None
        known = {f.name for f in fields(cls)}
        whole = isinstance(held, dict) and known - LATER <= set(held) <= known | FORMER
        if not whole or held["kind"] not in SOURCES:
            raise ModelFileError("The recipe in the model file is not one that Aberra wrote.")
        try:
            doubts = [_doubt(d) for d in held["doubts"]]
            choices = [(str(name), str(why)) for name, why in held["choices"]]
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise ModelFileError(f"The recipe in the model file is damaged: {error}.") from error
        kept = {name: value for name, value in held.items() if name in known}
        if odd := [name for name, value in kept.items() if not _fits(name, value)]:
            raise ModelFileError(f"The recipe in the model file is damaged: {odd[0]!r} is no such.")
        return cls(**{**kept, "doubts": doubts, "choices": choices})


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    """Say whether it is finite; JSON also knows whole numbers that no float holds."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _listed(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(of, value))


def _named(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(of, value.values()))


def _perhaps(of: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or of(value)


def _looks(value: Any) -> bool:
    """Say whether there are the levels of a look, and how far the training scans lie from them."""
    from aberra.localise.likeness import LEVELS

    if not isinstance(value, dict) or set(value) != {"middle", "largest"}:
        return False
    middle, whole = value["middle"], len(LEVELS) + 1
    return _listed(_number)(middle) and len(middle) == whole and _number(value["largest"])


def _healthy(value: Any) -> bool:
    """Say whether there are two lists of numbers, one number for each healthy scan; and heights."""
    if not isinstance(value, dict) or set(value) - {"heights"} != {"scores", "largest"}:
        return False
    scores, largest = value["scores"], value["largest"]
    numbers = _listed(_number)
    if not (numbers(scores) and numbers(largest) and len(scores) == len(largest) > 0):
        return False
    return _perhaps(_heights)(value.get("heights"))


def _heights(value: Any) -> bool:
    """Say whether there are deviations above 0 and rising heights for each place on some planes."""
    from aberra.localise.relative import SHARES, SIDE

    if not isinstance(value, dict) or set(value) != {"first", "table"}:
        return False
    try:
        table = np.array(value["table"], np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    shape = (SIDE, SIDE, 2 + len(SHARES))
    if table.ndim != 4 or not len(table) or table.shape[1:] != shape:
        return False
    sound = np.isfinite(table).all() and (table[..., 1] > 0).all()
    return _number(value["first"]) and bool(sound and (np.diff(table[..., 2:]) >= 0).all())


# What each field holds; doubts and choices are looked at where they are made.
HOLDS: dict[str, Callable[[Any], bool]] = {
    "data": _text,
    "n_samples": _count,
    "columns": _listed(_text),
    "dropped": _named(_text),
    "id_column": _perhaps(_text),
    "label_column": _perhaps(_text),
    "preparation": lambda value: isinstance(value, dict),
    "metrics": _named(_number),
    "quantiles": lambda value: _listed(_number)(value) and value == sorted(value),
    "map_threshold": _perhaps(_number),
    "pattern": _text,
    "axes": _perhaps(_text),
    "looks": lambda value: value == {} or _looks(value),
    "healthy": lambda value: value == {} or _healthy(value),
}


def _fits(name: str, value: Any) -> bool:
    return name not in HOLDS or HOLDS[name](value)


def _doubt(held: Mapping[str, Any]) -> Doubt:
    reasons = [Reason(str(name), float(share)) for name, share in held["reasons"]]
    if not all(map(math.isfinite, [float(held["trust"]), *(share for _, share in reasons)])):
        raise ValueError("a trust or a share is not finite")
    return Doubt(
        int(held["row"]), str(held["name"]), float(held["trust"]), float(held["score"]), reasons
    )


def score_quantiles(scores: NDArray[np.float64]) -> list[float]:
    """Return training scores at even quantiles, which stand for all of them in a recipe."""
    return [float(q) for q in np.quantile(scores, np.linspace(0, 1, N_QUANTILES))]
