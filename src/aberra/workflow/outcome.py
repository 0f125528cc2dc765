"""What comes out of fitting a file: the model, its recipe, and where both are kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aberra import model_file
from aberra.errors import DataError
from aberra.explain.doubts import AS_IADC_WOULD, any_doubted
from aberra.files import check_folder_of, refuse_special, refuse_to_overwrite, starts_with
from aberra.locks import alone, real
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

    @property
    def about_trust(self) -> str:
        """What to know about the trust in the training samples; empty where it was learnt."""
        return AS_IADC_WOULD if self.model.training_rounds() is None else ""

    @property
    def doubted(self) -> bool:
        """Whether any of the training samples has lost trust."""
        return any_doubted(doubt.trust for doubt in self.recipe.doubts)

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
        save_with_recipe(self.model, self.recipe, Path(path))
        return replace(self, path=Path(path))


def carried_out(learn: Callable[[], tuple[Any, Recipe]], data: Path, output: Path | None) -> Fitted:
    """Learn from a file, save what was learnt if there is an output, and say how long it took."""
    started = time.perf_counter()
    if output is None:
        model, recipe = _learnt(learn, None)
    else:
        check_model_place(output, data)
        with alone(output):
            model, recipe = _learnt(learn, output)
    return Fitted(model, recipe, time.perf_counter() - started, output)


def _learnt(learn: Callable[[], tuple[Any, Recipe]], output: Path | None) -> tuple[Any, Recipe]:
    with keeping_trainings():  # until the model is saved
        model, recipe = learn()
        if output is not None:
            save_with_recipe(model, recipe, output)
    if output is not None:
        with suppress(OSError):  # not there, or holds another training
            checkpoint_folder(output).rmdir()
    return model, recipe


def check_model_place(output: Path, data: Path) -> None:
    """Raise an error, before any work, if a model could not be written there."""
    refuse_special(output)
    refuse_to_overwrite(output, data)
    if output.is_file() and output.stat().st_size and not starts_with(output, MAGIC):
        raise DataError(f"{output} already exists and is not a model. Choose another name.")
    if output.is_dir():
        raise DataError(f"{output} is a folder. Give the name of a file, such as model.aberra.")
    check_folder_of(output)
    if checkpoint_folder(output).is_file():
        raise DataError(
            f"Unfinished training would be kept in the folder {checkpoint_folder(output)}, but "
            "there is a file of that name. Remove it."
        )


def checkpoint_folder(output: Path) -> Path:
    """Return where an unfinished training of a localiser is kept."""
    output = real(output)
    return output.with_name(f"{output.name}.training")


def save_with_recipe(model: Any, recipe: Recipe | None, path: Path) -> None:
    """Save a model with what is known about its training."""
    model_file.save(without_times(model), path, None if recipe is None else recipe.notes())


def without_times(model: Any) -> Any:
    """Return the model without the wall times of its rounds: a seed decides every byte of a file.

    Temporary: not needed once the model file itself leaves them out.
    """
    held = vars(model)
    if not {"history_", "round_"} & set(held):
        return model
    timeless = copy(model)
    if "round_" in held:
        timeless.round_ = replace(model.round_, seconds=0.0)
    if "history_" in held:
        rounds = [replace(one, seconds=0.0) for one in model.history_]
        timeless.history_ = replace(model.history_, rounds=rounds)
    return timeless
