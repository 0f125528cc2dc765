"""What happened in each round, when to stop, and which round to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, overload

import numpy as np
from numpy.typing import NDArray

from aberra.contract.members import Scores
from aberra.declare import LATER, Shape
from aberra.errors import DataError
from aberra.robust.sample import MOST_ROWS, Sampled, ranks_of, some_rows
from aberra.robust.weighting import (
    LOST_TRUST,
    apart_weights,
    crossings,
    importance_weights,
    newly_doubted,
)

RESTLESS = 0.25  # a ranking with more than this share of the crossings by chance is not at rest


@dataclass(frozen=True, eq=False)
class Round:
    """One round of an ensemble, as seen on the training rows.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Score of every training row: the mean over the members of this round.
    seconds : float
        Time it took to train the members and to score the rows.
    crossings : int or None, default=None
        How many rows entered the top share of the ranking since the round before; None for the
        first round.
    sample : Sampled or None, default=None
        Which rows the scores belong to, if these are not all; so it is in a model of more than
        10,000 rows that was loaded from a file.
    """

    scores: Annotated[NDArray[np.float64], Shape("N")] = field(repr=False)
    seconds: float
    crossings: int | None = None
    sample: Sampled | None = field(default=None, repr=False, metadata=LATER)

    @property
    def n_rows(self) -> int:
        """Rows that trained."""
        return len(self.scores) if self.sample is None else self.sample.n_rows

    def of_rows(self, rows: NDArray[np.int32], trust: Scores) -> Round:
        """Return the round as it was for some rows; `trust` is that in all rows after it."""
        n_low = int(np.count_nonzero(trust < LOST_TRUST))
        ranks, kept = ranks_of(self.scores)[rows], trust[rows].astype(np.float32)
        sample = Sampled(len(trust), n_low, rows, ranks, kept)
        return replace(self, scores=self.scores[rows], sample=sample)


@dataclass(eq=False, repr=False)
class History(Sequence[Round]):
    """The rounds of one fit, in order; a sequence of `Round`.

    Parameters
    ----------
    outlier_ratio : float
        The top share of the ranking whose crossings are counted.
    patience : int
        Rounds without a new minimum of the crossings after which training stops.
    temperature : float
        How gently the trust in a row falls with its score.
    trust : {"apart", "median"}
        The rule by which trust follows from the scores.
    fingerprint : str, default=""
        Digest of rows and settings; a warm start goes on only if it is the same.
    rounds : list of Round, default=[]
        The rounds so far.
    reason : str, default=""
        Why training stopped: "clean", "settled", "max_rounds" or "interrupted"; "harm", where
        doubt in rows led away from what the advisers say, and the first round is kept; or "heard",
        where it did not, and the last one is kept.

    Attributes
    ----------
    kept : int
        Index of the round whose members make up the fitted model.
    """

    outlier_ratio: float
    patience: int
    temperature: float
    trust: str = "median"
    fingerprint: str = ""
    rounds: list[Round] = field(default_factory=list)
    reason: str = ""

    def __len__(self) -> int:
        return len(self.rounds)

    @overload
    def __getitem__(self, index: int) -> Round: ...
    @overload
    def __getitem__(self, index: slice) -> list[Round]: ...
    def __getitem__(self, index: int | slice) -> Round | list[Round]:
        return self.rounds[index]

    def __repr__(self) -> str:
        if not self.rounds:
            return "History(no rounds yet)"
        plural = "s" if len(self) > 1 else ""
        why = f", {self.reason}" if self.reason else ""
        return f"History({len(self)} round{plural}, kept number {self.kept + 1}{why})"

    @property
    def kept(self) -> int:
        """Index of the round to keep."""
        if self.decided:
            return self._decided_round()
        return kept_round(self.crossings(), self._by_chance())

    @property
    def decided(self) -> bool:
        """Whether the reason to stop, and not the crossings, says which round to keep."""
        return self.reason in ("harm", "heard")

    def _decided_round(self) -> int:
        return 0 if self.reason == "harm" else len(self) - 1

    def append(self, line: Round) -> None:
        """Add a finished round and count its crossings."""
        if self.rounds:
            line = replace(line, crossings=self._moved(line.scores, self.rounds[-1].scores))
        self.rounds.append(line)

    def _moved(self, s: Scores, previous: Scores) -> int:
        """Count the rows that have gone over to the odder side since the round before."""
        if self.trust == "apart":
            return newly_doubted(apart_weights(s), apart_weights(previous))
        return crossings(s, previous, self.outlier_ratio)

    def weights(self, index: int) -> Scores:
        """Return the trust in each row that follows from a round's scores."""
        scores, sample = self.rounds[index].scores, self.rounds[index].sample
        if sample is not None:
            return sample.trust.astype(np.float64)
        return self.trust_by(scores)

    def trust_by(self, scores: Scores) -> Scores:
        """Return the trust in rows that follows from the scores of all of them."""
        if self.trust == "apart":
            return apart_weights(scores)
        return importance_weights(scores, self.temperature)

    def n_low(self, index: int) -> int:
        """Return how many rows had low trust after a round."""
        sample = self.rounds[index].sample
        if sample is not None:
            return sample.n_low
        return int(np.count_nonzero(self.weights(index) < LOST_TRUST))

    @property
    def sampled(self) -> bool:
        """Whether only some of the rows are kept, as in a file of a long table."""
        return bool(self.rounds) and self.rounds[0].sample is not None

    def as_saved(self) -> History:
        """Return what a file keeps: of more than 10,000 rows the oddest and some others."""
        if not self.rounds or self.sampled or len(self.rounds[0].scores) <= MOST_ROWS:
            return self
        rows = some_rows(self.rounds[self.kept].scores)
        kept = [line.of_rows(rows, self.weights(t)) for t, line in enumerate(self.rounds)]
        return replace(self, rounds=kept)

    @property
    def clean(self) -> bool:
        """Whether the first round left nobody in doubt, so that no other round is needed."""
        if self.trust != "apart" or len(self) != 1:
            return False
        return self.reason == "clean" if self.sampled else bool((self.weights(0) >= 0.5).all())

    def next_weights(self, n: int) -> Scores:
        """Return the weights of the coming round: 1 for the first, then by the last scores."""
        return self.weights(-1) if self.rounds else np.ones(n)

    def settled(self, outlier_ratio: float | None = None) -> bool:
        """Say whether the ranking has come to rest, at this ratio or another."""
        if self.clean:
            return True
        h = self.crossings(outlier_ratio)
        return settled(h, self.patience, self._by_chance(outlier_ratio))

    def _by_chance(self, outlier_ratio: float | None = None) -> float:
        """Return the crossings to expect of two unrelated rankings; none before the first round."""
        r = self.outlier_ratio if outlier_ratio is None else outlier_ratio
        return r * (1 - r) * sum(line.n_rows for line in self.rounds[:1])

    def goes_on(self, max_rounds: int) -> bool:
        """Say whether another round is due."""
        if self.decided:
            return False
        return len(self.rounds) < max_rounds and not self.settled()

    def crossings(self, outlier_ratio: float | None = None) -> list[int]:
        """Return h_2, h_3, ...: rows that entered the top share since the round before.

        Under the rule "apart" they are the rows that lost trust, and no share is watched.
        """
        if outlier_ratio is None or self.trust == "apart":
            return [line.crossings for line in self.rounds if line.crossings is not None]
        if self.sampled:
            raise DataError(
                "The file of this model keeps only some of its training rows, so crossings cannot "
                "be counted at another outlier ratio. Fit the model again."
            )
        pairs = zip(self.rounds[1:], self.rounds[:-1], strict=True)
        return [crossings(now.scores, before.scores, outlier_ratio) for now, before in pairs]

    def replay(self, outlier_ratio: float) -> int:
        """Return the index of the round that another outlier ratio would have kept.

        The ratio decides only when to stop, never what is learnt, so one long run answers for all
        ratios, as far as its rounds go.
        """
        if self.decided:
            return self._decided_round()
        h, by_chance = self.crossings(outlier_ratio), self._by_chance(outlier_ratio)
        ends = (t for t in range(1, len(h) + 1) if settled(h[:t], self.patience, by_chance))
        return kept_round(h[: next(ends, len(h))], by_chance)

    def note(self) -> str:
        """Return a few words for a progress bar."""
        last = self.rounds[-1].crossings
        moved = "first round" if last is None else f"{last} rows crossed"
        return f"round {len(self)}: {moved}"


def settled(h: Sequence[int], patience: int, by_chance: float) -> bool:
    """Say whether the crossings have stopped falling: no new minimum for `patience` rounds.

    The minimum counts only if it is at most a quarter of the crossings that two unrelated rankings
    would have, `by_chance`. Above that the ranking is still moving, however little the count
    changes from round to round. Without any crossing the ranking has settled at once.
    """
    if not h:
        return False
    calm = min(h) <= RESTLESS * by_chance
    return h[-1] == 0 or (calm and len(h) - 1 - int(np.argmin(h)) >= patience)


def kept_round(h: Sequence[int], by_chance: float) -> int:
    """Return the index of the round to keep: the one with the fewest crossings, h_1 aside.

    Where no round was calm, the number of crossings says nothing about which round is best, and
    the last one is kept, because it has learnt most about which rows to trust.
    """
    if not h:
        return 0
    return int(np.argmin(h)) + 1 if min(h) <= RESTLESS * by_chance else len(h)
