"""What follows from holding new rows against the portrait: a verdict, and the reasons for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from aberra.data.drift.evidence import DIRT, chance, corrected, interval, shifted, turned_over
from aberra.data.drift.portrait import ColumnPortrait, Portrait
from aberra.data.drift.sentences import IN_UTC, about, shown
from aberra.words import count, percent

Verdict = Literal["steady", "watch", "moved"]
VERDICTS: tuple[Verdict, ...] = ("steady", "watch", "moved")

RARE, VERY_RARE = 0.05, 0.01  # corrected p-values below which to watch, and to call it a move
LARGE = 0.1  # share of rows: a smaller difference is watched, however certain it is
# Times columns per training row: how far scores of new rows may lie beside those of the training
# rows, which the model knows; 1.3 to 2.3 were measured at 5 to 20 rows a column.
LEARNT_BY_HEART = 2.5
FEW_ROWS = 100  # with fewer, only large drifts can be found

MARKED = (
    "Marks of a review have changed the scores since the training, so scores and flags do not "
    "count here."
)


@dataclass(frozen=True)
class ColumnDrift:
    """How one column of new rows differs from the training data.

    Parameters
    ----------
    name : str
    verdict : {"steady", "watch", "moved"}
    effect : float
        The share of rows that would at least have to change their value to look like the training
        rows again, between 0 and 1.
    p_value : float
        At most how likely this is if nothing has changed but 5 % of dirt, corrected for the number
        of columns.
    gaps, gaps_before : float
        The share of rows without a value, now and in training.
    why : str
        What is different, in words; empty if nothing is.
    before, now : ColumnPortrait
        Both distributions, for charts.
    """

    name: str
    verdict: Verdict
    effect: float
    p_value: float
    gaps: float
    gaps_before: float
    why: str
    before: ColumnPortrait = field(repr=False)
    now: ColumnPortrait = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        names = ("name", "verdict", "effect", "p_value", "gaps", "gaps_before", "why")
        return {name: vars(self)[name] for name in names}


@dataclass(frozen=True)
class Drift:
    """How new rows differ from the rows that a model was trained on.

    Parameters
    ----------
    verdict : {"steady", "watch", "moved"}
        "moved" if a column, the scores or the share of flagged rows differ by far more than chance
        and 5 % of dirt explain; "watch" if the difference is small, or not quite certain.
    n_rows, n_flagged : int
        New rows, and how many of them are flagged.
    expected : float
        The share of training rows that is flagged.
    flagged_interval : tuple of float
        Between what the underlying share of flagged rows lies now (95 %).
    score_effect, score_p_value, flagged_p_value : float
        As for columns, of the scores and of the share flagged.
    columns : list of ColumnDrift
        All columns, those that moved most first.
    why : list of str
        The reasons for the verdict in sentences, and what else is worth knowing.
    """

    verdict: Verdict
    n_rows: int
    n_flagged: int
    expected: float
    flagged_interval: tuple[float, float]
    score_effect: float
    score_p_value: float
    flagged_p_value: float
    columns: list[ColumnDrift] = field(repr=False)
    why: list[str]

    @property
    def moved(self) -> list[str]:
        """Names of the columns that are not steady, those that moved most first."""
        return [column.name for column in self.columns if column.verdict != "steady"]

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: everything, but of steady columns only their number."""
        held = {name: value for name, value in vars(self).items() if name != "columns"}
        shown = [column.as_dict() for column in self.columns if column.verdict != "steady"]
        steady = len(self.columns) - len(shown)
        return {**held, "columns": shown, "n_steady_columns": steady}

    def table(self) -> pd.DataFrame:
        """Return one line for each column, those that moved most first."""
        return pd.DataFrame([column.as_dict() for column in self.columns]).set_index("name")

    def __str__(self) -> str:
        """Return the verdict and the reasons for it."""
        return "\n".join([self.verdict, *(f"  {sentence}" for sentence in self.why)])


def compared(
    before: Portrait, now: Portrait, zoned: Collection[int] = (), *, marked: bool = False
) -> Drift:
    """Hold new rows against the portrait of the training data.

    Parameters
    ----------
    before : Portrait
        Of the training data, with scores.
    now : Portrait
        Of the new rows, counted at the same points (`Portrait.count`).
    zoned : collection of int
        Columns whose new dates have offsets from UTC, by position; they are told in UTC.
    marked : bool, default=False
        Whether marks of a review have changed the scores since the training: scores and flags then
        say nothing about the rows.

    Returns
    -------
    drift : Drift
    """
    pairs = list(zip(before.columns, now.columns, strict=True))
    effects = [_effects(one, two) for one, two in pairs]
    shares = [one.n_flagged / max(one.n_rows, 1) for one in (before, now)]
    flagged = 0.0 if marked else abs(shares[0] - shares[1])
    known = not marked and before.scores is not None and now.scores is not None
    scores = shifted(before.scores, now.scores) if known else 0.0  # type: ignore[arg-type]
    chances = [p for (_, values, gaps) in effects for p in (values, gaps)]
    known_too_well = DIRT + LEARNT_BY_HEART * len(before.columns) / max(before.n_rows, 1)
    chances.append(chance(scores, before.n_rows, now.n_rows, known_too_well))
    chances.append(chance(flagged, before.n_rows, now.n_rows))
    *by_column, p_scores, p_flagged = corrected(chances)
    kinds = {one.name: IN_UTC if k in zoned else one.kind for k, (one, _) in enumerate(pairs)}
    columns = [
        _column(one, two, effect, min(by_column[2 * k : 2 * k + 2]), kinds[one.name])
        for k, ((one, two), (effect, *_)) in enumerate(zip(pairs, effects, strict=True))
    ]
    columns.sort(key=lambda column: (-VERDICTS.index(column.verdict), -column.effect))
    verdicts = [_verdict(scores, p_scores), _verdict(flagged, p_flagged)]
    overall = max([*(c.verdict for c in columns), *verdicts], key=VERDICTS.index)
    expected, share = shares
    between = interval(now.n_flagged, now.n_rows)
    why = [
        *_about_flagged(share, expected, between, verdicts),
        *([MARKED] if marked else []),
        *(f"{c.name} {_mark(c)}: {c.why}." for c in columns if c.verdict != "steady"),
        *_about_time(columns, verdicts[0], kinds),
        *_asides(columns, now.n_rows),
    ]
    return Drift(
        overall, now.n_rows, now.n_flagged, expected, between, scores, p_scores, p_flagged,
        columns, why,
    )  # fmt: skip


def _effects(before: ColumnPortrait, now: ColumnPortrait) -> tuple[float, float, float]:
    """Return how far a column differs, and how likely its values and its gaps are by chance."""
    gaps = abs(before.gap_share - now.gap_share)
    rows = (before.n + before.n_gaps, now.n + now.n_gaps)
    p_gaps = chance(gaps, *rows)
    if before.categories is not None and now.categories is not None:
        effect = turned_over(before.categories, now.categories)
    else:
        assert before.numbers is not None
        assert now.numbers is not None
        effect = 0.0 if _goes_on(before, now) else shifted(before.numbers, now.numbers)
    return max(effect, gaps), chance(effect, before.n, now.n), p_gaps


def _goes_on(before: ColumnPortrait, now: ColumnPortrait) -> bool:
    """Say whether a column of dates does what dates do: new rows are later than old ones."""
    if before.kind != "time" or before.numbers is None or now.numbers is None or not now.n:
        return False
    return now.numbers.lowest >= before.numbers.lowest and (
        now.numbers.quantile(0.5) >= before.numbers.quantile(0.5)
    )


def _column(
    before: ColumnPortrait, now: ColumnPortrait, effect: float, p_value: float, kind: str
) -> ColumnDrift:
    return ColumnDrift(
        before.name,
        _verdict(effect, p_value),
        effect,
        p_value,
        now.gap_share,
        before.gap_share,
        "; ".join(about(before, now, kind)),
        before,
        now,
    )


def _verdict(effect: float, p_value: float) -> Verdict:
    if p_value >= RARE:
        return "steady"
    return "moved" if p_value < VERY_RARE and effect >= LARGE else "watch"


def _mark(column: ColumnDrift) -> str:
    return f"{'has moved' if column.verdict == 'moved' else 'may be moving'} " + (
        f"({percent(column.effect)} of the rows, p {_p(column.p_value)})"
    )


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"{value:.3f}"


def _about_flagged(
    share: float, expected: float, between: tuple[float, float], verdicts: Sequence[Verdict]
) -> list[str]:
    low, high = between
    said = [
        f"{percent(share)} of the rows are flagged (between {percent(low)} and {percent(high)}); "
        f"in training {percent(expected)} were."
    ]
    if verdicts[0] != "steady":
        said.append("The scores as a whole are no longer distributed as in training.")
    return said


def _about_time(
    columns: Sequence[ColumnDrift], scores: Verdict, kinds: Mapping[str, str]
) -> list[str]:
    """Say which dates go on after the end of the training data, and what that may do."""
    said = []
    for column in columns:
        old, new = column.before, column.now
        if not _goes_on(old, new) or old.numbers is None or new.numbers is None:
            continue
        if new.numbers.highest > old.numbers.highest:
            last, end = (
                shown(one.highest, kinds[column.name]) for one in (new.numbers, old.numbers)
            )
            said.append(f"{column.name} goes on until {last}; the training data end at {end}.")
    if said and scores != "steady":
        said.append(
            "Aberra's detectors find no row odd for a later date alone, so something else has "
            "moved the scores."
        )
    return said


def _asides(columns: Sequence[ColumnDrift], n_rows: int) -> list[str]:
    """Return what does not decide the verdict, but is worth knowing."""
    said = []
    for column in columns:
        old, new = column.before.categories, column.now.categories
        if column.verdict != "steady" or old is None or new is None:
            continue
        if new.n_others and old.complete:
            said.append(f"{column.name}: {column.why}.")
    if n_rows < FEW_ROWS:
        said.append(
            f"{count(n_rows, 'row')} {'is' if n_rows == 1 else 'are'} few: only a large drift "
            "would show."
        )
    return said
