"""Rounds that settle: other ways from the scores of one round to the trust of the next.

    python -m benchmarks.settle_study run [SET ...]   adds what is missing to settle_study.jsonl
    python -m benchmarks.settle_study table           writes settle_study.md

Deep SVDD on Shuttle and the hybrid machine on Thyroid swing from round to round. Each rule below
changes one thing of the papers' form; none sees a label. The other pairs show whether it harms
where nothing was wrong. Needs `ABERRA_DATA`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from aberra import IADC, MultiView
from aberra.data.registry import load_table
from aberra.reproduce.settings import detector_of, settings_of
from aberra.reproduce.store import append_line, read_lines
from aberra.rng import draw_seeds, entropy_of
from aberra.robust.history import History, Round
from aberra.robust.rounds import Setup, Turn, _drawn_rows, train_and_score, train_round
from aberra.robust.start import ADVICE, N_ADVISERS
from aberra.robust.weighting import apart_weights
from benchmarks.records import environment
from benchmarks.start_study import story_of

RESULTS, TABLE = Path("results/settle_study.jsonl"), Path("results/settle_study.md")
SEEDS = range(3)
PAIRS = [
    ("OCSVM-H", "thyroid"),
    ("AE", "cardio"),
    ("AE", "thyroid"),
    ("OCSVM-H", "cardio"),
    ("Deep SVDD", "cardio"),
    ("Deep SVDD", "thyroid"),
    ("RSRAE", "cardio"),
    ("RSRAE", "thyroid"),
    ("OCSVM-H", "satimage-2"),
    ("Deep SVDD", "satimage-2"),
    ("Deep SVDD", "shuttle"),
]
Scores = NDArray[np.float64]
Key = tuple[str, str, str, str, int]


def robust(s: Scores) -> Scores:
    """Return scores in deviations from the median, by the distance of the upper quartile."""
    middle, upper = np.quantile(s, (0.5, 0.75), axis=-1, keepdims=True)
    return (s - middle) / np.maximum(upper - middle, 1e-300)


def mean_of_raw(scores: Scores) -> Scores:
    """Join members as the papers do."""
    return scores.mean(axis=0)


def mean_of_standard(scores: Scores) -> Scores:
    """Join members whose scores were brought to one scale."""
    return robust(scores).mean(axis=0)


def mean_of_ranks(scores: Scores) -> Scores:
    """Join the ranks that members give."""
    return rankdata(scores, axis=1).mean(axis=0) / scores.shape[1]


def by_the_last(history: History, w: Scores, new: Scores) -> Scores:
    """Trust by the last round alone, as the papers do."""
    return new


def by_all_rounds(history: History, w: Scores, new: Scores) -> Scores:
    """Trust by the mean of the scores of all rounds, each on one scale."""
    return history.trust_by(np.mean([robust(line.scores) for line in history], axis=0))


def half_of_before(history: History, w: Scores, new: Scores) -> Scores:
    """Go half of the way to the trust by the last round."""
    return (w + new) / 2


def quarter_of_before(history: History, w: Scores, new: Scores) -> Scores:
    """Go a quarter of the way to the trust by the last round."""
    return 0.75 * w + 0.25 * new


def shrinking_steps(history: History, w: Scores, new: Scores) -> Scores:
    """Average the trust before the first round and that of every round."""
    step = 1 / (len(history) + 1)
    return (1 - step) * w + step * new


def trust_of_all(history: History, w: Scores, new: Scores) -> Scores:
    """Average the trust of all rounds."""
    return np.mean([history.weights(t) for t in range(len(history))], axis=0)


def calm_steps(history: History, w: Scores, new: Scores) -> Scores:
    """Go the further to the new trust, the fewer rows have crossed."""
    h = history[-1].crossings
    if h is None:
        return new
    step = max(0.1, 1 - h / (0.5 * history._by_chance()))
    return (1 - step) * w + step * new


class Rule(NamedTuple):
    """How members are joined, and how trust follows."""

    joined: Callable[[Scores], Scores] = mean_of_raw
    trusted: Callable[[History, Scores, Scores], Scores] = by_the_last  # before, by the last round


RULES = {
    "papers": Rule(),
    "standard scores of members": Rule(mean_of_standard),
    "ranks of members": Rule(mean_of_ranks),
    "scores of all rounds": Rule(trusted=by_all_rounds),
    "trust of all rounds": Rule(trusted=trust_of_all),
    "half of the way": Rule(trusted=half_of_before),
    "a quarter of the way": Rule(trusted=quarter_of_before),
    "shrinking steps": Rule(trusted=shrinking_steps),
    "calm steps": Rule(trusted=calm_steps),
}
# What members of `MultiView` say about the rows may count in several ways. "advised" multiplies the
# trust by theirs; "apart" does so by their own rule, which doubts only what lies apart from the
# bulk; "joint" adds their scores to the detector's, both on one scale, before trust is worked out.
# The library's "advised" start is "advised and joint" here, half of the way.
STARTS = (
    "equal",
    "informed",
    "advised",
    "advised, apart",
    "joint",
    "advised and joint",
    "equal, all apart",
    "advised, all apart",
)
# Those between which the choice was made.
CLOSE = (
    ("equal", "half of the way"),
    ("equal", "a quarter of the way"),
    ("advised", "half of the way"),
    ("advised", "a quarter of the way"),
    ("joint", "half of the way"),
    ("advised and joint", "half of the way"),
)


def run_rule(model: IADC, X: Scores, seed: int, start: str, rule: Rule) -> History:
    """Return the rounds of one seed under a start and a rule."""
    data = model._validate(X, reset=True)
    setup, entropy = model._setup(data, model.resample), entropy_of(seed)
    history = model._new_history(setup)
    said = advisers(data, entropy)  # as `aberra.robust.start.advice` asks them
    w, prior = begun(start, history, said)
    while history.goes_on(model.max_rounds):
        scores = member_scores(setup, Turn(entropy, len(history), w * prior))
        history.append(Round(rule.joined(scores), 0.0))
        own = history[-1].scores
        joint = robust(own) + robust(said) if "joint" in start else own
        w = rule.trusted(history, w, history.trust_by(joint))
    return history


def advisers(data: Scores, entropy: int) -> Scores:
    """Return what five members of `MultiView` say about the rows."""
    view = MultiView()
    setup = Setup(view, view._prepare(data), data, N_ADVISERS, resample=False)
    return train_round(setup, [Turn(entropy, ADVICE, np.ones(len(data)))])[1][0].scores


def begun(start: str, history: History, said: Scores) -> tuple[Scores, Scores]:
    """Return the weights of the first round, and what counts in every round besides."""
    one = np.ones(len(said))
    if start == "advised, apart":
        return one, apart_weights(said)
    if start.startswith("advised"):
        return one, history.trust_by(said)
    return (one if "equal" in start else history.trust_by(said)), one


def member_scores(setup: Setup, turn: Turn) -> Scores:
    """Train one round and return the scores of each member, (m, n)."""
    m, n = setup.n_members, len(setup.data)
    weights = np.broadcast_to(turn.weights, (m, n))
    seeds = draw_seeds(turn.entropy, turn.number, 1, n=m)
    return train_and_score(setup, _drawn_rows(setup, turn), weights, seeds)[1]


def wanted(sets: Sequence[str]) -> Iterator[Key]:
    """Yield what the study consists of, in the order of its work: the last choices first."""
    pairs = [pair for pair in PAIRS if not sets or pair[1] in sets]
    for seed in SEEDS[:2]:
        for pair in pairs:
            yield from ((*pair, *way, seed) for way in CLOSE)
    for seed in SEEDS:
        for pair in pairs:
            yield from ((*pair, start, "papers", seed) for start in STARTS)
    for pair in pairs:
        for start in ("advised", "equal"):
            yield from ((*pair, start, rule, 0) for rule in RULES)


def measured(detector: str, name: str, start: str, rule: str, seed: int) -> dict[str, Any]:
    """Run one seed and return what happened."""
    X, y = load_table(name)
    base = detector_of({"detector": detector, "params": settings_of(detector)})
    begun = time.process_time()
    trust = "apart" if "all apart" in start else "median"
    model = IADC(base, max_rounds=15, trust=trust)
    history = run_rule(model, X, seed, start, RULES[rule])
    return story_of(history, y, time.process_time() - begun)


def run(sets: Sequence[str]) -> None:
    """Run what is missing."""
    for key in wanted(sets):
        if key in found():
            continue
        line = measured(*key)
        names = dict(zip(("detector", "set", "start", "rule", "seed"), key, strict=True))
        append_line(RESULTS, {**names, **line, **environment()})
        print(*key, round(line["auroc"], 1), line["rounds"], line["cpu_seconds"], flush=True)


def found() -> dict[Key, dict[str, Any]]:
    """Return what has been measured."""
    return {
        (r["detector"], r["set"], r["start"], r["rule"], r["seed"]): r for r in read_lines(RESULTS)
    }


def table() -> None:
    """Write the mean over the seeds of every start and rule that was run."""
    done = found()
    ways = dict.fromkeys((start, rule) for start in STARTS for rule in RULES)
    lines = ["| start | rule | " + " | ".join(map(" on ".join, PAIRS)) + " |"]
    lines.append("|---|---|" + "---|" * len(PAIRS))
    for way in ways:
        each = [[r["auroc"] for k, r in done.items() if (*pair, *way) == k[:4]] for pair in PAIRS]
        if any(each):
            cells = (f"{np.mean(own):.1f} [{len(own)}]" if own else "" for own in each)
            lines.append(f"| {' | '.join(way)} | {' | '.join(cells)} |")
    head = "AUROC x 100 of the round that is kept, mean over the [seeds]; at most 15 rounds."
    TABLE.write_text(f"# Rounds that settle\n\n{head}\n\n" + "\n".join(lines) + "\n")
    print(TABLE.read_text())


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2:])
    else:
        table()
