"""How models keep up with a stream that changes: fitted once, `Stream`, River's trees.

    ABERRA_DATA=... python -m benchmarks.streaming [--out results/streaming.md]

A stream is 8,192 rows of a real table in random order, its labelled anomalies among them; half of
its columns move. `none`: nothing does. `gradual`: by three standard deviations from the first row
to the last. `abrupt`: by two, at once, in the middle. `recurring`: there and back again, every
2,048 rows. Every model begins with the same 2,048 rows and then scores each batch of 256 before it
learns from it; nothing is ever cleaned. Labels only measure: the mean AUROC over windows of 512
rows, and the share of normal rows that is flagged. Finished cells are kept, so an interrupted run
goes on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from aberra import IADC, Stream
from aberra.metrics import auroc
from benchmarks.records import append, data_folder, environment, read

Rows = NDArray[np.float64]
TABLES = (
    "odds_extra/mammography",
    "odds_extra/annthyroid",
    "odds/satellite",
    "odds/shuttle",
    "odds_extra/pendigits",
)
DRIFTS = ("none", "gradual", "abrupt", "recurring")
MOST_ROWS, FIRST, BATCH, WINDOW = 8192, 2048, 256, 512
RAW = Path("results/streaming.jsonl")


@dataclass(frozen=True)
class Cell:
    """One model on one stream."""

    table: str
    drift: str
    model: str
    auroc: float
    false_flags: float | None
    cpu_seconds: float


class Learner(Protocol):
    """What a model of a stream can do."""

    def learn(self, rows: Rows) -> None:
        """Take in a batch."""

    def score(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_] | None]:
        """Return the scores of a batch, and its flags if there are any."""


class Once:
    """Fitted on the first rows, and never again."""

    def __init__(self, rows: Rows) -> None:
        self.model: Any = IADC(random_state=0).fit(rows)

    def learn(self, rows: Rows) -> None:
        """Learn nothing."""

    def score(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_] | None]:
        """Return scores and flags."""
        scores = self.model.anomaly_score(rows)
        return scores, self.model.predict(rows) == -1


class Forgetting(Once):
    """`Stream` as it is."""

    def __init__(self, rows: Rows) -> None:
        self.model = Stream(random_state=0).partial_fit(rows)

    def learn(self, rows: Rows) -> None:
        """Remember, forget, fit again."""
        self.model.partial_fit(rows)


class OnlyForgetting(Forgetting):
    """`Stream` whose remembered rows stay where they were."""

    def __init__(self, rows: Rows) -> None:
        self.model = Stream(follow=False, random_state=0).partial_fit(rows)


class HalfSpaceTrees:
    """River's, with its scaling to [0, 1]."""

    def __init__(self, rows: Rows) -> None:
        from river import anomaly, compose, preprocessing

        trees = anomaly.HalfSpaceTrees(n_trees=25, height=12, window_size=250, seed=0)
        self.model = compose.Pipeline(preprocessing.MinMaxScaler(), trees)
        self.learn(rows)

    def learn(self, rows: Rows) -> None:
        """Take in one row after the other."""
        for row in rows:
            self.model.learn_one(dict(enumerate(row)))

    def score(self, rows: Rows) -> tuple[Rows, NDArray[np.bool_] | None]:
        """Return scores; it has no threshold of its own."""
        return np.array([self.model.score_one(dict(enumerate(row))) for row in rows]), None


MODELS: dict[str, Callable[[Rows], Learner]] = {
    "IADC(), fitted once": Once,
    "Stream()": Forgetting,
    "Stream(follow=False)": OnlyForgetting,
    "River's HalfSpaceTrees": HalfSpaceTrees,
}

CHOSEN = (
    "Memory, refits and the rule for levels were chosen while looking at these streams, so read "
    "Stream's lead as the upper end."
)


def drifting(X: Rows, drift: str, rng: np.random.Generator) -> Rows:
    """Return the rows with half of their columns moved; `none` moves nothing."""
    n, d = X.shape
    columns = rng.choice(d, max(1, d // 2), replace=False)
    sign = rng.choice([-1.0, 1.0], len(columns))
    t = np.linspace(0, 1, n, endpoint=False)
    moved = {"none": 0 * t, "gradual": 3 * t, "abrupt": 2.0 * (t >= 0.5)}
    moved["recurring"] = 2.0 * ((4 * t) // 1 % 2)
    found = X.copy()
    found[:, columns] += moved[drift][:, None] * X[:, columns].std(axis=0) * sign
    return found


def cell(path: str, drift: str, name: str) -> Cell:
    """Run one model on one stream."""
    rng = np.random.default_rng(1)
    with np.load(data_folder() / f"{path}.npz") as held:
        some = rng.permutation(len(held["X"]))[:MOST_ROWS]
        X, y = held["X"][some].astype(np.float64), held["y"].ravel()[some] > 0
    X = drifting(X, drift, rng)
    started = time.process_time()
    model, scores, flags = MODELS[name](X[:FIRST]), [], []
    for k in range(FIRST, len(X), BATCH):
        found, flagged = model.score(X[k : k + BATCH])
        scores.append(found)
        flags.append(flagged)
        model.learn(X[k : k + BATCH])
    seconds = time.process_time() - started
    odd = y[FIRST:]
    known = [flagged for flagged in flags if flagged is not None]
    share = float(np.concatenate(known)[~odd].mean()) if known else None
    area = _area(odd, np.concatenate(scores))
    return Cell(path.split("/")[1], drift, name, area, share, seconds)


def _area(odd: NDArray[np.bool_], scores: Rows) -> float:
    """Return the mean AUROC over windows of the stream that have anomalies."""
    windows = [slice(k, k + WINDOW) for k in range(0, len(odd), WINDOW)]
    kept = [w for w in windows if 0 < odd[w].sum() < len(odd[w])]
    return float(np.mean([auroc(odd[w], scores[w]) for w in kept]))


def complete(cells: list[Cell]) -> list[Cell]:
    """Return the cells of the tables that every model has been through."""
    wanted = len(DRIFTS) * len(MODELS)
    return [c for c in cells if sum(other.table == c.table for other in cells) == wanted]


def page(cells: list[Cell]) -> str:
    """Return the results as Markdown."""
    tables = sorted({c.table for c in cells})
    lines = [
        "# A stream that changes",
        "",
        "`ABERRA_DATA=... python -m benchmarks.streaming`; the script says how streams are made. "
        f"Means over {len(tables)} tables ({', '.join(tables)}): AUROC in percent, and in brackets "
        "the normal rows that were flagged, in percent.",
        "",
        f"| model | {' | '.join(DRIFTS)} | CPU seconds a stream |",
        "|---|" + "---|" * (len(DRIFTS) + 1),
    ]
    for name in MODELS:
        own = [c for c in cells if c.model == name]
        shown = [_mean([c for c in own if c.drift == drift]) for drift in DRIFTS]
        seconds = np.mean([c.cpu_seconds for c in own])
        lines.append(f"| {name} | {' | '.join(shown)} | {seconds:.0f} |")
    lines += ["", CHOSEN, "", "Every stream, AUROC in percent:", "", *_every(cells)]
    made = environment() | {"river": version("river")}
    return "\n".join([*lines, "", f"Made with {made}.", ""])


def _every(cells: list[Cell]) -> list[str]:
    """Return one line for each stream, with all models."""
    held = {(c.table, c.drift, c.model): c.auroc for c in cells}
    lines = [f"| table | drift | {' | '.join(MODELS)} |", "|" + "---|" * (len(MODELS) + 2)]
    for table, drift in dict.fromkeys((c.table, c.drift) for c in cells):
        shown = [f"{100 * held[table, drift, name]:.1f}" for name in MODELS]
        lines.append(f"| {table} | {drift} | {' | '.join(shown)} |")
    return lines


def _mean(cells: list[Cell]) -> str:
    area = f"{100 * np.mean([c.auroc for c in cells]):.1f}"
    flags = [c.false_flags for c in cells if c.false_flags is not None]
    return f"{area} ({100 * np.mean(flags):.1f})" if flags else area


def main() -> None:
    """Run what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/streaming.md"))
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # rounds that are used up, of single refits
    done = {(line["table"], line["drift"], line["model"]) for line in read(RAW)}
    for path in asked.tables:
        for drift in DRIFTS:
            for name in MODELS:
                if (path.split("/")[1], drift, name) not in done:
                    found = cell(path, drift, name)
                    append(RAW, asdict(found))
                    print(found, flush=True)
    asked.out.write_text(page(complete([Cell(**line) for line in read(RAW)])))


if __name__ == "__main__":
    main()
