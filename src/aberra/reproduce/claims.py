"""What the papers claim, put to the test on finished cells: counts, means, and every exception.

The claims about a table stand with the table. Here is what they share, and the page of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from aberra.reproduce.experiment import Experiment
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Record, Store
from aberra.reproduce.tables import Row

VERDICTS = ("ahead", "level", "behind", "withheld", "stale", "paper had none", "not run")
COMPARED = VERDICTS[:3]
NAMED = 1.0  # points of AUROC; an exception below that is not named


def claims_text(
    experiments: Iterable[Experiment],
    store: Store,
    profile: Profile,
    tables: Mapping[str, Sequence[Row]],
) -> str:
    """Return what holds of the claims of all experiments, chapter by chapter, as Markdown."""
    chapters: dict[str, list[str]] = {}
    for experiment in experiments:
        if experiment.claims is not None:
            chapters.setdefault(experiment.chapter, []).extend(experiment.claims(store, profile))
    parts = [
        "# What the papers claim, and what holds here",
        f"Profile {profile.name}. A pair is a detector on a data set, mean over its seeds; "
        f"differences are points of AUROC x 100. Exceptions of at least {NAMED:g} are named.",
        verdicts(tables),
    ]
    for title, told in chapters.items():
        parts += [f"## {title}", *told]
    return "\n\n".join(parts) + "\n"


def verdicts(tables: Mapping[str, Sequence[Row]]) -> str:
    """Count the cells of every table that are ahead, level, behind, without a peer, not run."""
    lines = [
        f"| table | {' | '.join(VERDICTS)} |",
        "|---|" + "---|" * len(VERDICTS),
    ]
    total: Counter[str] = Counter()
    for name, rows in tables.items():
        count = Counter(str(row.verdict) for row in rows)
        total += count
        lines.append(f"| {name} | {' | '.join(str(count[v]) for v in VERDICTS)} |")
    lines.append(f"| **all** | {' | '.join(str(total[v]) for v in VERDICTS)} |")
    figures = (row for rows in tables.values() for row in rows if not row.less_is_better)
    return "\n".join(lines) + f"\n\n{_in_words(total, Counter(row.verdict for row in figures))}"


def _in_words(total: Mapping[str, int], without: Mapping[str, int]) -> str:
    """Say what the counts mean; `without` leaves out the spreads, where less is better."""
    ahead, level, behind = (total[v] for v in COMPARED)
    rest = ", ".join(f"{without[v]} {v}" for v in COMPARED)
    images = without["withheld"]
    return (
        f"Of the {ahead + level + behind} cells that can be compared with the paper's, {ahead} are "
        f"ahead, {level} level (within one deviation) and {behind} behind; without the table of "
        f"spreads, which says nothing about how well anything is found, {rest}. The verdict is "
        f"withheld on {total['withheld'] - images} spreads, whose printed measure depends on the "
        f"scale of the scores, where the ranks do not agree, and on {images} cells of images of "
        "other classes or sizes than the paper's. TABLE.csv says why for each. Where the ranks do "
        "agree, a spread far below the paper's may still be one of scores on a smaller scale. In "
        "the MRI table no deviation is printed, so there hardly anything can be level."
    )


def mean_auroc(records: Iterable[Record], kind: str) -> float:
    """Return the mean AUROC x 100 of one variant."""
    return 100 * float(np.mean([r["auroc"][kind] for r in records]))


def compared(claim: str, gains: Mapping[str, float]) -> str:
    """Say in how many pairs a claim holds, by how much, and for which it fails."""
    if not gains:
        return f"- **{claim}**: not run."
    values = np.array(list(gains.values()))
    losses = [f"{pair} ({gain:.1f})" for pair, gain in gains.items() if gain <= -NAMED]
    return (
        f"- **{claim}**: ahead in {int((values > 0).sum())} of {len(values)} pairs, "
        f"{values.mean():+.1f} on average, {np.median(values):+.1f} in the median, best "
        f"{values.max():+.1f}.{exceptions(' It fails for', losses)}"
    )


def exceptions(head: str, items: Sequence[str]) -> str:
    """Return a sentence that names the items; nothing if there are none."""
    return f"{head}: {', '.join(items)}." if items else ""
