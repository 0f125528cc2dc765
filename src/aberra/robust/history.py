"""What happened in each round, and which round to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from aberra.robust.weighting import crossings, importance_weights

Scores = NDArray[np.float64]

RESTLESS = 0.25  # of the crossings by chance


@dataclass(frozen=True)
class Round:
    """One round of the ensemble, as seen on the training rows.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        Mean score over all members.
    in_bag, out_of_bag : ndarray of shape (n,)
        Mean over the members that did, or did not, train on the row; NaN where there is none.
    seconds : float
        Time of training and scoring.
    """

    scores: Scores
    in_bag: Scores
    out_of_bag: Scores
    seconds: float


@dataclass
class History:
    """The rounds of one fit; behaves as a sequence of `Round`.

    Attributes
    ----------
    fingerprint : str
        Digest of rows and settings; a warm start goes on only if it is the same.
    kept : int
        Index of the round whose members make up the fitted model.
    reason : str
        Why training stopped: "settled", "max_rounds" or "interrupted".
    """

    outlier_ratio: float
    patience: int
    temperature: float
    fingerprint: str = ""
    rounds: list[Round] = field(default_factory=list)
    reason: str = ""
    _crossings: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, index: int) -> Round:
        return self.rounds[index]

    def __iter__(self) -> Iterator[Round]:
        return iter(self.rounds)

    @property
    def kept(self) -> int:
        """Index of the round to keep."""
        return kept_round(self._crossings, self._by_chance())

    def append(self, line: Round) -> None:
        """Add a finished round and count its crossings."""
        if self.rounds:
            self._crossings.append(
                crossings(line.scores, self.rounds[-1].scores, self.outlier_ratio)
            )
        self.rounds.append(line)

    def weights(self, index: int) -> Scores:
        """Return the trust in each row that follows from a round's scores."""
        return importance_weights(self.rounds[index].scores, self.temperature)

    def next_weights(self, n: int) -> Scores:
        """Return the weights of the coming round: 1 for the first, then by the last scores."""
        return self.weights(-1) if self.rounds else np.ones(n)

    def settled(self, outlier_ratio: float | None = None) -> bool:
        """Say whether the ranking has come to rest, at this ratio or another."""
        h = self.crossings(outlier_ratio)
        return settled(h, self.patience, self._by_chance(outlier_ratio))

    def _by_chance(self, outlier_ratio: float | None = None) -> float:
        """Return the crossings to expect of two unrelated rankings."""
        r = self.outlier_ratio if outlier_ratio is None else outlier_ratio
        return r * (1 - r) * len(self.rounds[0].scores) if self.rounds else 0.0

    def goes_on(self, max_rounds: int) -> bool:
        """Say whether another round is due."""
        return len(self.rounds) < max_rounds and not self.settled()

    def crossings(self, outlier_ratio: float | None = None) -> list[int]:
        """Return h_2, h_3, ...: rows that entered the top share since the round before."""
        if outlier_ratio is None:
            return list(self._crossings)
        pairs = zip(self.rounds[1:], self.rounds[:-1], strict=True)
        return [crossings(now.scores, before.scores, outlier_ratio) for now, before in pairs]

    def replay(self, outlier_ratio: float) -> int:
        """Return the index of the round that another outlier ratio would have kept.

        The ratio decides only when to stop, never what is learnt, so one long run answers for all
        ratios, as far as its rounds go.
        """
        h, by_chance = self.crossings(outlier_ratio), self._by_chance(outlier_ratio)
        ends = (t for t in range(1, len(h) + 1) if settled(h[:t], self.patience, by_chance))
        return kept_round(h[: next(ends, len(h))], by_chance)

    def note(self) -> str:
        """Return a few words for a progress bar."""
        moved = f"{self._crossings[-1]} rows crossed" if self._crossings else "first round"
        return f"round {len(self)}: {moved}"


def settled(h: Sequence[int], patience: int, by_chance: float) -> bool:
    """Say whether the crossings have stopped falling: no new minimum for `patience` rounds.

    A minimum counts only below a quarter of the crossings that two unrelated rankings would have,
    `by_chance`. Otherwise nothing has come to rest yet, however little the count changes.
    """
    if not h:
        return False
    calm = min(h) <= RESTLESS * by_chance
    return h[-1] == 0 or (calm and len(h) - 1 - int(np.argmin(h)) >= patience)


def kept_round(h: Sequence[int], by_chance: float) -> int:
    """Return the index of the round to keep: the one with the fewest crossings, h_1 aside.

    Where no round was calm, that count means nothing, and the last round is kept: the one that
    has learnt most about whom to trust.
    """
    if not h:
        return 0
    return int(np.argmin(h)) + 1 if min(h) <= RESTLESS * by_chance else len(h)


def round_from(
    member_scores: NDArray[np.float64], rows: NDArray[np.int64], seconds: float
) -> Round:
    """Summarise the members' scores (m, n) of one round."""
    inside = np.zeros(member_scores.shape, dtype=bool)
    np.put_along_axis(inside, rows, True, axis=1)
    return Round(
        scores=member_scores.mean(axis=0),
        in_bag=_mean_where(member_scores, inside),
        out_of_bag=_mean_where(member_scores, ~inside),
        seconds=seconds,
    )


def _mean_where(values: NDArray[np.float64], mask: NDArray[np.bool_]) -> Scores:
    count = mask.sum(axis=0)
    total = np.where(mask, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
