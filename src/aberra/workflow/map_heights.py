"""The height of a map above which a pixel is flagged: where a model keeps it.

Temporary: when single localisers learn `map_threshold_`, as ensembles of them do, that attribute
takes the place of both functions.
"""

from __future__ import annotations

from typing import Any


def map_height(model: Any) -> float:
    """Return the height that the model has learnt."""
    learnt = vars(model)
    return float(learnt["map_threshold_" if "map_threshold_" in learnt else "threshold_"])


def set_map_height(model: Any, height: float) -> None:
    """Let the model flag what exceeds this height."""
    name = "map_threshold_" if "map_threshold_" in vars(model) else "threshold_"
    setattr(model, name, height)
