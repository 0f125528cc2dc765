"""What was trained, in words: what the method does, where the thresholds lie, what was set."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np

from aberra.contract.scorer import Scorer
from aberra.methods import find
from aberra.robust.ensemble import Ensemble, default_detector
from aberra.thresholds import WHERE
from aberra.words import count, number


@dataclass(frozen=True)
class Fact:
    """A name, its value, and what the value means."""

    name: str
    value: str
    note: str = ""


def detector_in(model: Scorer) -> Any:
    """Return the detector that an ensemble consists of, or the model itself."""
    if not isinstance(model, Ensemble):
        return model
    return default_detector(model.image_shape_) if model.detector is None else model.detector


def name_of(model: Scorer) -> str:
    """Return the model in a few words, such as "IADC around DeepSVDD"."""
    name = type(model).__name__
    if not isinstance(model, Ensemble):
        return name
    return f"{name} around {type(detector_in(model)).__name__}"


def what_it_does(model: Scorer) -> list[str]:
    """Say what the model does, and what its detector does if it is an ensemble."""
    parts = [model] if detector_in(model) is model else [model, detector_in(model)]
    return [f"{type(part).__name__}: {_sentence(part)}" for part in parts]


def _sentence(part: Any) -> str:
    """Return the sentence of the register; what is not from Aberra describes itself."""
    method = find(part)
    if method is not None:
        return method.sentence
    return (inspect.getdoc(type(part)) or "").split("\n", maxsplit=1)[0]


def about_threshold(threshold: float, rule: str) -> str:
    """Say where the threshold of the scores lies, and how it came to lie there."""
    where = WHERE.get(rule, f"by the rule {rule}")
    return f"The threshold {number(threshold)} was placed {where}. No labels were used."


def about_map_threshold(threshold: float) -> str:
    """Say which pixels are flagged."""
    return f"In a map, every pixel above {number(threshold)} is flagged."


def input_size(model: Any) -> Fact:
    """Say how large an image is, or which columns a row has."""
    if model.image_shape_ is not None:
        channels, height, width = model.image_shape_
        return Fact("Image", f"{height} by {width} pixels, {count(channels, 'channel')}")
    return Fact("Columns", str(model.n_features_in_), ", ".join(model.column_names() or []))


def changed_settings(model: Scorer) -> list[tuple[str, str]]:
    """Return the settings that differ from the defaults, of the model and of its detector."""
    parts: list[tuple[str, Any]] = [("", model)]
    if isinstance(model, Ensemble) and model.detector is not None:
        parts.append((f"{type(model.detector).__name__}: ", model.detector))
    lines = []
    for owner, part in parts:
        defaults = inspect.signature(type(part).__init__).parameters
        for name, value in part.get_params(deep=False).items():
            if name != "detector" and _setting(value) != _setting(defaults[name].default):
                lines.append((f"{owner}{name}", _setting(value)))
    return lines


def _setting(value: Any) -> str:
    """Return a setting as it would be typed: the same text for the same value, on any machine."""
    if isinstance(value, np.random.RandomState):
        return "RandomState"  # its own text holds an address
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, tuple):
        return f"({', '.join(map(_setting, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
