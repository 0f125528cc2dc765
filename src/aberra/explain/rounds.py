"""How the rounds of a training went, and why it stopped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from aberra.contract.scorer import Scorer
from aberra.robust.history import History
from aberra.words import count

# Why training stopped, as the end of the sentence "Training stopped because ...".
STOPPED = {
    "clean": "no sample lost its trust, so that there was nothing to learn from another round",
    "settled": "the ranking had settled",
    "max_rounds": "it had used all of its rounds, before the ranking settled",
    "interrupted": "it was interrupted, and the finished rounds were kept",
    "harm": "doubt in samples led the ranking away from a second opinion",
    "heard": "it had heard a second opinion and learnt from it",
}


@dataclass(frozen=True)
class RoundLine:
    """One round in numbers.

    Parameters
    ----------
    number : int
        Counted from 1.
    crossings : int or None
        Samples that entered the odder part of the ranking; None in the first round.
    low_trust : int
        Samples with low trust after the round.
    kept : bool
        Whether the model consists of this round's members.
    """

    number: int
    crossings: int | None
    low_trust: int
    kept: bool


@dataclass(frozen=True)
class RoundsStory:
    """The story of a training in rounds.

    Parameters
    ----------
    history : History
        At least one round.
    because : str
        Why training stopped, as a clause.
    """

    history: History
    because: str

    @property
    def kept(self) -> int:
        """Index of the round that was kept."""
        return self.history.kept

    @property
    def crossings(self) -> list[int]:
        """Crossings of the second round and the later ones."""
        return self.history.crossings()

    @cached_property
    def trust(self) -> NDArray[np.float64]:
        """Trust in each training sample that is kept, after each round, (n_rounds, n)."""
        return np.stack([self.history.weights(t) for t in range(len(self.history))])

    @cached_property
    def lines(self) -> list[RoundLine]:
        """The rounds in numbers."""
        crossings: list[int | None] = [None, *self.crossings]
        return [
            RoundLine(t + 1, crossings[t], self.history.n_low(t), t == self.kept)
            for t in range(len(self.history))
        ]

    def in_short(self) -> str:
        """Tell the story in one line, such as "7, round 5 was kept; the ranking had settled"."""
        return f"{len(self.history)}, round {self.kept + 1} was kept; {self.because}"

    def sentences(self, thing: str = "sample") -> list[str]:
        """Tell the story in whole sentences; `thing` is what a training sample is called."""
        if not self.crossings:
            return [f"Training had one round only, so no {thing} could cross over."]
        took = count(len(self.history), "round")
        return [f"Training took {took}. It stopped because {self.because}.", self._why_kept(thing)]

    def _why_kept(self, thing: str) -> str:
        if self.history.reason == "harm":
            return f"Round 1 was kept, which trusts all {thing}s the same."
        if self.history.reason == "heard":
            return f"Round {self.kept + 1} was kept, the first to follow its own ranking again."
        fewest = 1 + int(np.argmin(self.crossings)) == self.kept
        why = (
            f"in this round the fewest {thing}s crossed over to the odder part of the ranking"
            if fewest
            else "no round was calm, so the last one was taken, which has learnt the most"
        )
        return f"Round {self.kept + 1} was kept: {why}."


def story_of(model: Scorer, because: str = "") -> RoundsStory | None:
    """Return the story of a model's rounds.

    Parameters
    ----------
    model : Scorer
    because : str, default=""
        Why training stopped, as a clause, where the caller knows better than the model.

    Returns
    -------
    story : RoundsStory or None
        None for a model that was not trained in rounds.
    """
    history = cast(History | None, model.training_rounds())
    return RoundsStory(history, because or STOPPED[history.reason]) if history else None
