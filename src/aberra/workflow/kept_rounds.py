"""What a long fit keeps beside its output, so that the same command goes on after a stop."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aberra import model_file
from aberra.data.blocks.scores import ScoreSketch
from aberra.data.blocks.source import Task
from aberra.data.drift.packed import packed, unpacked
from aberra.data.drift.portrait import Portrait
from aberra.errors import AberraError
from aberra.files import write_atomically
from aberra.progress import kept_for_later
from aberra.recipe import Recipe
from aberra.robust.by_blocks import Survey
from aberra.workflow.outcome import without_times

ROUNDS = "rounds.aberra"
ARRAYS = ("bins", "counts", "top", "positions")  # of a sketch of scores


@dataclass(frozen=True)
class KeptRounds:
    """The model after its rounds, and what each finished task of the second pass brought.

    Parameters
    ----------
    folder : Path or None
        None keeps nothing, where there is no output to keep it beside.
    mark : str
        Digest of everything that the result depends on. What another run kept is not used.
    """

    folder: Path | None
    mark: str

    def rounds(self) -> tuple[Any, Recipe, list[str]] | None:
        """Return the model, its unfinished recipe, and the files it was trained without."""
        if self.folder is None or not (self.folder / ROUNDS).is_file():
            return None
        try:
            notes = model_file.load_notes(self.folder / ROUNDS)
            recipe = Recipe.of(notes)
            if notes.get("mark") != self.mark or recipe is None:
                return None
            model = model_file.load(self.folder / ROUNDS)
        except (AberraError, OSError):  # damaged: the rounds are run again
            return None
        kept_for_later(self.folder / ROUNDS)
        return model, recipe, [str(name) for name in notes.get("skipped", [])]

    def keep_rounds(self, model: Any, recipe: Recipe, skipped: list[str]) -> None:
        """Keep the model after its rounds, and the names of files it was trained without."""
        if self.folder is None:
            return
        self.folder.mkdir(exist_ok=True)
        for old in self.folder.glob("task-*.npz"):
            old.unlink()
        notes = {**recipe.notes(), "mark": self.mark, "skipped": skipped}
        model_file.save(without_times(model), self.folder / ROUNDS, notes)
        kept_for_later(self.folder / ROUNDS)

    def keep(self, task: Task, found: Survey) -> None:
        """Keep what one task brought."""
        if self.folder is None:
            return
        s, buffer = found.scores, io.BytesIO()
        np.savez(
            buffer,
            mark=np.array(self.mark),
            task=np.array(task, np.int64),
            ends=np.array([s.origin, s.lowest]),
            bins=s.bins,
            counts=s.counts,
            top=s.top,
            positions=s.positions,
            portrait=np.array(packed(found.portrait)),
        )
        file = self.folder / f"task-{task.position:015d}.npz"
        write_atomically(file, buffer.getvalue())
        kept_for_later(file)

    def done(self, before: Portrait) -> dict[Task, Survey]:
        """Return what finished tasks brought; `before` is the portrait of the sample."""
        if self.folder is None or not self.folder.is_dir():
            return {}
        found = (self._task(file, before) for file in sorted(self.folder.glob("task-*.npz")))
        return dict(entry for entry in found if entry is not None)

    def _task(self, file: Path, before: Portrait) -> tuple[Task, Survey] | None:
        try:
            with np.load(file, allow_pickle=False) as held:
                if str(held["mark"]) != self.mark:
                    return None
                origin, lowest = (float(end) for end in held["ends"])
                bins, counts, top, positions = (held[name] for name in ARRAYS)
                scores = ScoreSketch(origin, bins, counts, top, positions, lowest)
                portrait = unpacked(str(held["portrait"]), before)
                task = Task(*(int(k) for k in held["task"]))
        except Exception:  # NumPy raises nearly anything for damaged bytes: done again
            return None
        kept_for_later(file)
        return task, Survey(scores, portrait)
