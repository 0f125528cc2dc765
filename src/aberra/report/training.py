"""What was trained, in words: from the model, and from the recipe where there is one."""

from __future__ import annotations

import inspect
from typing import Any

from aberra.recipe import Recipe
from aberra.report.contents import Fact, Training
from aberra.report.subject import Subject
from aberra.robust.ensemble import Ensemble
from aberra.robust.iadc import IADC
from aberra.words import count, number

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


def describe(subject: Subject) -> Training:
    """Return what is to be said about the training."""
    recipe = subject.recipe
    return Training(
        subject.name,
        _sentences(subject),
        _facts(subject),
        [] if recipe is None else list(recipe.choices),
        [] if recipe is None else sorted(recipe.dropped.items()),
        []
        if recipe is None
        else [(k.upper(), number(v)) for k, v in sorted(recipe.metrics.items())],
        _changed_settings(subject.model),
    )


def _sentences(subject: Subject) -> list[str]:
    """Say what the model does, and where the thresholds come from."""
    parts = [subject.model]
    if subject.detector is not subject.model:
        parts.append(subject.detector)
    sentences = [f"{type(part).__name__}. {_in_words(part)}" for part in parts]
    if subject.threshold is not None:
        rule = RULES.get(subject.rule, f"by the rule {subject.rule}")
        sentences.append(
            f"The threshold {number(subject.threshold)} was placed {rule}. No label was used."
        )
    if hasattr(subject.model, "anomaly_map") and subject.map_threshold is not None:
        sentences.append(
            f"Where the map exceeds {number(subject.map_threshold)}, a pixel is flagged."
        )
    return sentences


def _facts(subject: Subject) -> list[Fact]:
    model, recipe = subject.model, subject.recipe
    facts = [] if recipe is None else [Fact("Training data", recipe.data)]
    if subject.n_samples is not None:
        facts.append(Fact("Training samples", count(subject.n_samples, subject.thing)))
    facts.append(_size(model))
    if isinstance(model, Ensemble):
        facts.append(Fact("Members", str(model.n_members), "trained on resampled data"))
    if isinstance(model, IADC):
        h = model.history_
        facts.append(
            Fact("Rounds", str(len(h)), f"round {h.kept + 1} was kept; {REASONS[h.reason]}")
        )
    return facts if recipe is None else facts + _from_recipe(recipe)


def _size(model: Any) -> Fact:
    if model.image_shape_ is not None:
        channels, height, width = model.image_shape_
        return Fact("Image", f"{height} by {width} pixels, {count(channels, 'channel')}")
    names = [str(name) for name in getattr(model, "feature_names_in_", [])]
    return Fact("Columns", str(model.n_features_in_), ", ".join(names))


def _from_recipe(recipe: Recipe) -> list[Fact]:
    facts = []
    if recipe.id_column is not None:
        facts.append(Fact("Identifier", recipe.id_column, "names the rows, was not trained on"))
    if recipe.label_column is not None:
        facts.append(Fact("Label", recipe.label_column, "measures the result, was not trained on"))
    return facts


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
