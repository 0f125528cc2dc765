"""How far the columns of a stream have moved as a whole, and where they are likely to go next.

A sensor that drifts carries all its values along. Then old rows are not wrong, only out of date by
the same amount each, and they need not be forgotten: they are moved along. Three quarters of the
quantiles of a column have to agree on the direction before it counts as moved, so a few per cent of
dirt, a longer tail or another share of zeros move nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

AT = np.linspace(0.05, 0.95, 19)  # the quantiles that are compared; beyond them lies the dirt
AGREE = 0.25  # the step that all but this share of the quantiles at least make
STEPS = 4  # the pace is the median of so many steps: one jump is not a pace
JUMP = 0.3  # a step is a jump if it is off the pace by this part of the column's width
MOST_LEFT = 3  # levels to which the stream may return

Matrix = NDArray[np.float64]


@dataclass
class Levels:
    """The level of each column, relative to the beginning of the stream.

    Parameters
    ----------
    now : ndarray of shape (d,)
        The level of the rows that came last.
    steps : list of ndarray
        The last steps of the level, one for each piece of the stream.
    left : list of (int, ndarray)
        Levels that were left by a jump, and the number of rows before it. The stream may return.
    """

    now: Matrix
    steps: list[Matrix] = field(default_factory=list)
    left: list[tuple[int, Matrix]] = field(default_factory=list)

    @classmethod
    def at_zero(cls, d: int) -> Levels:
        """Return the levels of a stream that begins."""
        return cls(np.zeros(d))

    def follow(self, piece: Matrix, known: Matrix, place: int) -> None:
        """Take in a piece that comes after `place` rows, given known rows as at level zero."""
        step = moved(piece - self.now, known)
        if (np.abs(step - self.pace) > JUMP * width(known)).any():
            self.left = [*self.left, (place, self.now)][-MOST_LEFT:]
        self.now = self.now + step
        self.steps = [*self.steps, step][-STEPS:]

    def forget(self, place: int) -> None:
        """Forget the levels that were left before so many rows."""
        self.left = [(then, level) for then, level in self.left if then >= place]

    def likely(self) -> list[Matrix]:
        """Return the levels that rows may have that come next.

        The first is one more step ahead at the present pace: half of it, because the level is that
        of the middle of the last piece, and half to the middle of the next one.
        """
        return [self.now + self.pace, *(level for _, level in self.left)]

    @property
    def pace(self) -> Matrix:
        """The median of the last steps; 0 as long as there are too few."""
        if len(self.steps) < STEPS:
            return np.zeros_like(self.now)
        return np.asarray(np.median(self.steps, axis=0))


def width(known: Matrix) -> Matrix:
    """Return between what nine tenths of the values of each column lie."""
    found = np.zeros(known.shape[1])
    for column in range(known.shape[1]):
        values = _numbers(known[:, column])
        if len(values):
            found[column] = np.subtract(*np.quantile(values, [0.95, 0.05]))
    return found


def moved(piece: Matrix, known: Matrix) -> Matrix:
    """Return how far each column has moved: what most of its quantiles agree on, or nothing."""
    found = np.zeros(piece.shape[1])
    for column in range(piece.shape[1]):
        new, old = _numbers(piece[:, column]), _numbers(known[:, column])
        if len(new) and len(old):
            low, high = np.quantile(np.quantile(new, AT) - np.quantile(old, AT), [AGREE, 1 - AGREE])
            found[column] = max(low, 0.0) + min(high, 0.0)
    return found


def _numbers(values: Matrix) -> Matrix:
    return values[np.isfinite(values)]
