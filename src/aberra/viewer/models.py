"""What a model's page shows: how trust moved from round to round, and who lost it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from aberra.model_file import load, load_notes
from aberra.recipe import Doubt, Recipe

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SHOWN = 10
REASONS = {
    "settled": "the ranking came to rest",
    "max_rounds": "it had used all its rounds",
    "interrupted": "it was interrupted",
}


def model_page(path: Path) -> dict[str, Any]:
    """Return what there is to say about a model file, ready for JSON.

    Parameters
    ----------
    path : Path

    Returns
    -------
    page : dict
        `title`, `facts` (pairs of texts), `rounds` (None for a model without rounds), `doubts`.
    """
    model, recipe = load(path), Recipe.of(load_notes(path))
    doubts = _doubts(model, recipe)[:SHOWN]
    return {
        "title": _title(model),
        "facts": _facts(model, recipe),
        "rounds": _rounds(model, doubts),
        "doubts": [
            {"name": d.name, "trust": d.trust, "score": _number(d.score), "reasons": d.reasons}
            for d in doubts
        ],
    }


def _title(model: Any) -> str:
    inner = getattr(model, "detector_", None) or getattr(model, "detector", None)
    name = type(model).__name__
    return name if inner is None else f"{name}({type(inner).__name__})"


def _facts(model: Any, recipe: Recipe | None) -> list[tuple[str, str]]:
    facts: list[tuple[str, str]] = []
    if recipe is not None:
        facts.append(("trained on", f"{recipe.data}, {recipe.n_samples:,} samples"))
        facts += recipe.choices  # they name rounds, threshold and what was left out as well
        facts += [(f"{name} (labels)", f"{value:.3f}") for name, value in recipe.metrics.items()]
    if recipe is None or not recipe.choices:
        facts += _learnt_facts(model)
    return [(name[:1].upper() + name[1:], value) for name, value in facts]


def _learnt_facts(model: Any) -> list[tuple[str, str]]:
    facts = [("threshold", f"{model.threshold_:.4g}{_rule(model)}")]
    history = getattr(model, "history_", None)
    if history is not None and len(history):
        why = REASONS.get(history.reason, history.reason)
        kept = history.kept + 1
        facts.insert(0, ("rounds", f"{len(history)}, kept round {kept}; stopped because {why}"))
    share = getattr(model, "contamination_", None)
    if share is not None:
        facts.append(("training samples above it", f"{100 * share:.1f} %"))
    return facts


def _rule(model: Any) -> str:
    rule = getattr(model, "threshold_rule_", None)
    return f", placed by the rule {rule} without labels" if rule else ""


def _rounds(model: Any, doubts: list[Doubt]) -> dict[str, Any] | None:
    history = getattr(model, "history_", None)
    if history is None or not len(history):
        return None
    trust = np.stack([history.weights(t) for t in range(len(history))])
    rows = [d.row for d in doubts if 0 <= d.row < trust.shape[1]]
    return {
        "kept": history.kept,
        "crossings": history.crossings(),
        "samples": trust.shape[1],
        "quantiles": np.quantile(trust, QUANTILES, axis=1).T.round(4).tolist(),
        "curves": trust[:, rows].T.round(4).tolist(),
    }


def _doubts(model: Any, recipe: Recipe | None) -> list[Doubt]:
    if recipe is not None and recipe.doubts:
        return recipe.doubts
    weights = getattr(model, "weights_", None)
    if weights is None:
        return []
    scores = model.history_[model.history_.kept].scores
    rows = np.argsort(weights, kind="stable")[:SHOWN]
    return [Doubt(int(i), f"row {i}", float(weights[i]), float(scores[i])) for i in rows]


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
