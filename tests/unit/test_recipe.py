"""What `aberra fit` did is found again in the model file."""

import json

import pytest

from aberra.errors import ModelFileError
from aberra.explain.doubts import Doubt
from aberra.recipe import Recipe

RECIPE = Recipe(
    "table",
    "patients.csv",
    3,
    columns=["a", "b"],
    dropped={"id": "identifier"},
    id_column="id",
    choices=[("detector", "MultiView")],
    doubts=[Doubt(2, "p3", 0.1, 5.0, [("a", 0.75), ("b", 0.25)])],
    metrics={"auroc": 0.9},
)


def test_recipe_survives_json():
    assert Recipe.of(json.loads(json.dumps(RECIPE.notes()))) == RECIPE


def test_recipes_with_wall_times_are_still_read():
    notes = json.loads(json.dumps(RECIPE.notes()))
    notes["recipe"]["seconds"] = 3.2
    assert Recipe.of(notes) == RECIPE


def test_models_saved_from_python_have_none():
    assert Recipe.of({}) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda r: r.pop("columns"),
        lambda r: r.update(kind="sound"),
        lambda r: r["doubts"][0].pop("trust"),
        lambda r: r.update(choices=[1]),
    ],
)
def test_strange_recipes_are_refused(spoil):
    notes = json.loads(json.dumps(RECIPE.notes()))
    spoil(notes["recipe"])
    with pytest.raises(ModelFileError, match="recipe"):
        Recipe.of(notes)
