"""What was trained, in words: from the model, and from the recipe where there is one."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.recipe import Recipe
from aberra.report.contents import Fact, Training
from aberra.report.words import count, number, percent
from aberra.robust.iadc import IADC, Ensemble, default_detector

RULES = {
    "knee": "at the knee of the sorted training scores, where they begin to rise steeply",
    "mixture": "where a component of high scores takes over from the ordinary ones",
    "consensus": "midway between the knee of the sorted scores and the start of a high component",
    "tail": "where an ordinary sample would come to lie with a chance of 5 %",
    "target_rate": "so that 5 % of the training samples lie above it",
    "robust_z": "at a fixed number of robust deviations above the median",
    "share": "so that the share of training samples that was asked for lies above it",
}
REASONS = {
    "settled": "the ranking had settled",
    "max_rounds": "the limit of rounds was reached before the ranking settled",
    "interrupted": "it was interrupted; the finished rounds were kept",
}
PLAIN = {
    "IADC": "Copies of a detector train in rounds; each time, what looks odd counts less.",
    "ADC": "Copies of a detector train on resampled data, every sample counting fully; the score "
    "is their mean.",
    "MultiView": "A row is odd if it lies far from the bulk, has no near neighbours, or holds rare "
    "values.",
    "OCSVM": "A smooth border is drawn around the bulk of the data; the score is the distance "
    "beyond it.",
    "HybridOCSVM": "A network learns a short code of each sample, and a border is drawn around the "
    "bulk of the codes.",
    "AutoEncoder": "A network learns to rebuild samples through a bottleneck; what it rebuilds "
    "badly is odd.",
    "DeepSVDD": "A network learns to move samples close to one point; what stays far away is odd.",
    "RSRAE": "A network learns to rebuild samples from a few directions that most of them share; "
    "what it rebuilds badly is odd.",
    "DAGPR": "A network learns a short code of each sample, and a regression learns how odd the "
    "codes are.",
    "ADDM": "A network learns to remove noise from healthy images until a second network is "
    "fooled; images are noised and restored, and what differs is odd.",
    "DDPM": "A network learns to remove noise from healthy images; images are noised and restored, "
    "and what differs is odd.",
    "AnoDDPM": "A network learns to remove cloud-like noise from healthy images; images are noised "
    "and restored, and what differs is odd.",
    "SpatialAE": "A network learns to rebuild healthy images from a small map; what it rebuilds "
    "badly is odd.",
    "DenseVAE": "A network learns to rebuild healthy images from a short code; what it rebuilds "
    "badly is odd.",
    "FAnoGAN": "A network learns to make healthy images and looks for the one nearest to the "
    "input; what differs is odd.",
    "VQTransformer": "A network spells images in a fixed set of pieces, replaces unlikely pieces, "
    "and what differs is odd.",
    "IntensityThreshold": "Pixels are compared with the median of the healthy images; no network.",
}
THINGS = {"table": "row", "images": "image", "volumes": "slice"}


def thing_of(model: Any, recipe: Recipe | None) -> str:
    """Return what one training sample is called."""
    if recipe is not None:
        return THINGS[recipe.kind]
    return "row" if model.image_shape_ is None else "image"


def name_of(model: Any) -> str:
    """Return the model in a few words, such as "IADC around DeepSVDD"."""
    if not isinstance(model, Ensemble):
        return type(model).__name__
    return f"{type(model).__name__} around {type(_inner(model)).__name__}"


def training_scores(model: Any) -> NDArray[np.float64] | None:
    """Return the scores of the training samples, where the model keeps them."""
    if isinstance(model, IADC):
        return model.history_[model.history_.kept].scores
    last = getattr(model, "round_", None)
    return None if last is None else last.scores


def n_samples(model: Any, recipe: Recipe | None) -> int | None:
    """Return how many samples trained, where anything tells."""
    scores = training_scores(model)
    if scores is not None:
        return len(scores)
    return None if recipe is None else recipe.n_samples


def describe(model: Any, recipe: Recipe | None) -> Training:
    """Return what is to be said about the training."""
    return Training(
        name_of(model),
        _sentences(model),
        _facts(model, recipe),
        [] if recipe is None else list(recipe.choices),
        [] if recipe is None else sorted(recipe.dropped.items()),
        [] if recipe is None else [(k, number(v)) for k, v in sorted(recipe.metrics.items())],
        _changed_settings(model),
    )


def _sentences(model: Any) -> list[str]:
    """Return what the classes say about themselves, and where the threshold comes from."""
    parts = [(type(model).__name__, model)]
    if isinstance(model, Ensemble):
        inner = _inner(model)
        parts.append((type(inner).__name__, inner))
    sentences = [f"{name}. {_in_words(part)}" for name, part in parts]
    return [*sentences, threshold_sentence(model)]


def threshold_sentence(model: Any) -> str:
    """Say where the threshold lies and how it was found."""
    value = number(model.threshold_)
    if not hasattr(model, "threshold_rule_"):
        rate = percent(model.false_alarm_rate)
        return (
            f"Pixels of the map above {value} are flagged. On images held out from training, "
            f"{rate} of the pixels lie above it."
        )
    rule = RULES.get(model.threshold_rule_, f"by the rule {model.threshold_rule_}")
    return f"The threshold {value} was placed {rule}. No label was used."


def _facts(model: Any, recipe: Recipe | None) -> list[Fact]:
    facts = []
    if recipe is not None:
        facts.append(Fact("Training data", recipe.data))
    n = n_samples(model, recipe)
    if n is not None:
        facts.append(Fact("Training samples", count(n, thing_of(model, recipe))))
    facts += _size(model, recipe)
    if isinstance(model, Ensemble):
        facts.append(Fact("Members", str(model.n_members), "trained on resampled data"))
    if isinstance(model, IADC):
        h = model.history_
        facts.append(
            Fact("Rounds", str(len(h)), f"round {h.kept + 1} was kept; {REASONS[h.reason]}")
        )
    if recipe is not None:
        facts += _from_recipe(recipe)
    return facts


def _size(model: Any, recipe: Recipe | None) -> list[Fact]:
    if model.image_shape_ is not None:
        channels, height, width = model.image_shape_
        return [Fact("Image", f"{height} by {width} pixels, {count(channels, 'channel')}")]
    names = column_names(model, recipe)
    return [Fact("Columns", str(model.n_features_in_), ", ".join(names or []))]


def _from_recipe(recipe: Recipe) -> list[Fact]:
    facts = []
    if recipe.id_column is not None:
        facts.append(Fact("Identifier", recipe.id_column, "names the rows, was not trained on"))
    if recipe.label_column is not None:
        facts.append(Fact("Label", recipe.label_column, "measures the result, was not trained on"))
    if recipe.seconds:
        facts.append(Fact("Time", f"{recipe.seconds:.1f} s"))
    return facts


def column_names(model: Any, recipe: Recipe | None) -> list[str] | None:
    """Return the columns that trained, or None where nobody noted them."""
    if recipe is not None and recipe.columns:
        return list(recipe.columns)
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _inner(model: Ensemble) -> Any:
    return default_detector(model.image_shape_) if model.detector is None else model.detector


def _in_words(part: Any) -> str:
    """Say what a model does; a foreign one says it itself."""
    own = (inspect.getdoc(type(part)) or "").split("\n", maxsplit=1)[0]
    return PLAIN.get(type(part).__name__, own)


def _changed_settings(model: Any) -> list[tuple[str, str]]:
    """Return the settings that differ from the defaults, of the model and of its detector."""
    parts = [("", model)]
    if isinstance(model, Ensemble) and model.detector is not None:
        parts.append((f"{type(model.detector).__name__}: ", model.detector))
    lines = []
    for owner, part in parts:
        defaults = inspect.signature(type(part).__init__).parameters
        for name, value in part.get_params(deep=False).items():
            if name != "detector" and repr(value) != repr(defaults[name].default):
                lines.append((f"{owner}{name}", repr(value)))
    return lines
