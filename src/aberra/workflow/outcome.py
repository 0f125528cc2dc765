"""What comes out of fitting a file: the model, its recipe, and where both are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aberra import model_file
from aberra.errors import DataError
from aberra.files import refuse_to_overwrite, starts_with
from aberra.model_file.container import MAGIC
from aberra.progress import keeping_trainings
from aberra.recipe import Recipe


@dataclass(frozen=True)
class Fitted:
    """A model that was fitted on a file.

    Parameters
    ----------
    model : estimator
        The fitted model.
    recipe : Recipe
        How the file became training data, what was chosen and why, and which training samples
        the model trusts least.
    seconds : float
        How long reading, training and saving took.
    path : Path or None
        The model file, if one was written.
    """

    model: Any
    recipe: Recipe
    seconds: float
    path: Path | None = None

    def save(self, path: str | Path) -> Fitted:
        """Save the model with its recipe, as `fit` does when it is given an output.

        Parameters
        ----------
        path : path
            The model file to write.

        Returns
        -------
        fitted : Fitted
            The same, with its `path`.
        """
        _save(self.model, self.recipe, Path(path))
        return replace(self, path=Path(path))


def carried_out(learn: Callable[[], tuple[Any, Recipe]], data: Path, output: Path | None) -> Fitted:
    """Learn from a file, save what was learnt if there is an output, and say how long it took."""
    started = time.perf_counter()
    if output is not None:
        check_model_place(output, data)
    with keeping_trainings():  # until the model is saved
        model, recipe = learn()
        if output is not None:
            _save(model, recipe, output)
    if output is not None:
        with suppress(OSError):  # not there, or holds another training
            checkpoint_folder(output).rmdir()
    return Fitted(model, recipe, time.perf_counter() - started, output)


def check_model_place(output: Path, data: Path) -> None:
    """Raise an error, before any work, if a model could not be written there."""
    refuse_to_overwrite(output, data)
    if output.is_file() and output.stat().st_size and not starts_with(output, MAGIC):
        raise DataError(f"{output} already exists and is not a model. Choose another name.")
    if output.is_dir():
        raise DataError(f"{output} is a folder. Give the name of a file, such as model.aberra.")
    if not output.parent.is_dir():
        raise DataError(f"There is no folder {output.parent}. Create it first.")
    if checkpoint_folder(output).is_file():
        raise DataError(
            f"Unfinished training would be kept in the folder {checkpoint_folder(output)}, but "
            "there is a file of that name. Remove it."
        )


def checkpoint_folder(output: Path) -> Path:
    """Return where an unfinished training of a localiser is kept."""
    return output.with_name(f"{output.name}.training")


def _save(model: Any, recipe: Recipe, path: Path) -> None:
    model_file.save(model, path, recipe.notes())
