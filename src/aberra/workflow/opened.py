"""A model to work with: from a file, from `fit`, or as it is, with what its recipe says."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from aberra import model_file
from aberra.errors import DataError, ModelFileError
from aberra.pretrained import model_path
from aberra.recipe import Recipe, Source
from aberra.workflow.choices import CALLED
from aberra.workflow.outcome import Fitted, save_with_recipe


@dataclass(frozen=True)
class Opened:
    """A fitted model, and its recipe if it has one."""

    model: Any
    recipe: Recipe | None
    path: Path | None

    @property
    def name(self) -> str:
        """What to call it: the name of its file, or of its class."""
        return type(self.model).__name__ if self.path is None else self.path.name

    @property
    def kind(self) -> Source:
        """What it was fitted on; without a recipe, slices of scans cannot be told from images."""
        if self.recipe is not None:
            return self.recipe.kind
        return "table" if self.model.image_shape_ is None else "images"

    def check(self, kind: Source, data: Path) -> None:
        """Raise an error unless data of this kind are what the model was fitted on."""
        if kind != self.kind:
            raise DataError(
                f"{self.name} was fitted on {CALLED[self.kind]}, but {data} holds {CALLED[kind]}. "
                "Give data of the same kind."
            )

    def digest(self) -> str:
        """Return what tells the model from others: a digest of its file."""
        if self.path is not None:
            return sha256(self.path.read_bytes()).hexdigest()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.aberra"
            save_with_recipe(self.model, self.recipe, file)
            return sha256(file.read_bytes()).hexdigest()


def opened(model: Any) -> Opened:
    """Return a model that was given as a path, a pretrained name, a `Fitted` or an estimator."""
    if isinstance(model, Fitted):
        return Opened(model.model, model.recipe, model.path)
    if not isinstance(model, str | Path):
        return Opened(model, None, None)
    path = model_path(model)
    fitted = model_file.load(path)
    recipe = Recipe.of(model_file.load_notes(path))
    _check_fits(fitted, recipe, path)
    return Opened(fitted, recipe, path)


def _check_fits(model: Any, recipe: Recipe | None, path: Path) -> None:
    """Raise an error where a recipe makes something else of the data than the model takes."""
    if recipe is None:
        return
    takes: tuple[int, ...] | None = model.image_shape_
    made: tuple[Any, ...] | None = None
    if recipe.kind == "volumes":
        side = recipe.scan_preparation().size
        made = (1, side, side)
    elif recipe.kind == "images" and recipe.preparation:
        made = tuple(recipe.preparation.get(name) for name in ("channels", "height", "width"))
    if (recipe.kind == "table") != (takes is None) or (made is not None and made != takes):
        raise ModelFileError(
            f"Cannot load {path}: its recipe is one of {CALLED[recipe.kind]}, and its model takes "
            f"{'rows' if takes is None else f'images of shape {takes}'}. They do not fit."
        )
