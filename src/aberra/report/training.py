"""What was trained, from the model and from the recipe where there is one."""

from __future__ import annotations

from aberra.explain.subject import Subject
from aberra.explain.training import Fact, changed_settings
from aberra.recipe import Recipe
from aberra.report.contents import TrainingSection
from aberra.words import number


def describe(subject: Subject, recipe: Recipe | None) -> TrainingSection:
    """Return what is to be said about the training."""
    facts = subject.facts()
    if recipe is None:
        settings = changed_settings(subject.model)
        return TrainingSection(subject.name, subject.sentences(), facts, [], [], [], settings)
    return TrainingSection(
        subject.name,
        subject.sentences(),
        [Fact("Training data", recipe.data), *facts, *_noted_facts(recipe)],
        recipe.shown_choices(),
        sorted(recipe.dropped.items()),
        [(name.upper(), number(value)) for name, value in sorted(recipe.metrics.items())],
        changed_settings(subject.model),
    )


def _noted_facts(recipe: Recipe) -> list[Fact]:
    facts = []
    if recipe.id_column is not None:
        facts.append(Fact("Identifier", recipe.id_column, "names the rows; not trained on"))
    if recipe.label_column is not None:
        facts.append(Fact("Label", recipe.label_column, "measures the result; not trained on"))
    return facts
