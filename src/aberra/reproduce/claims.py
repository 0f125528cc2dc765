"""What the papers claim, put to the test on finished cells: counts, means, and every exception."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from aberra.reproduce import odds, unseen
from aberra.reproduce.profiles import Profile
from aberra.reproduce.results import finished, spreads
from aberra.reproduce.store import Record, Store
from aberra.reproduce.tables import Row

VERDICTS = ("ahead", "level", "behind", "paper had none", "not run")
NAMED = 1.0  # points of AUROC; an exception below that is not named
TINY = 1e-12  # a spread of nothing is as wide as another
Groups = dict[tuple[str, str, bool], list[Record]]


def claims(store: Store, profile: Profile, tables: Mapping[str, Sequence[Row]]) -> str:
    """Return everything below as Markdown."""
    groups = _odds_groups(store, profile)
    mri = {(r.detector, r.variant, r.case): r for r in tables.get("addm-mri", ())}
    parts = [
        "# What the papers claim, and what holds here",
        f"Profile {profile.name}. A pair is a detector on a data set, mean over its seeds; "
        f"differences are points of AUROC x 100. Exceptions of at least {NAMED:g} are named.",
        verdicts(tables),
        "## ODDS",
        *order_of_variants(groups),
        *resampling(groups),
        resampling_and_spread(store, profile),
        spread_falls(store, profile),
        indifference(groups),
        stop_near_best(groups),
        "## Images",
        *(images_robust(store, profile, images) for images in ("mnist", "cifar10")),
        "## Brain MRI",
        half_the_steps(mri),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


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
    return "\n".join(lines)


def order_of_variants(groups: Groups) -> list[str]:
    """Compare Single, ADC and IADC, resampled."""
    made = []
    for better, than in (("ADC", "Single"), ("IADC", "ADC"), ("IADC", "Single")):
        gains = {
            f"{detector} on {name}": _mean(records, better) - _mean(records, than)
            for (detector, name, resampled), records in groups.items()
            if resampled
        }
        made.append(_compared(f"{better} over {than}", gains))
    return made


def resampling(groups: Groups) -> list[str]:
    """Compare members that see a bootstrap with members that see all rows."""
    made = []
    for variant in ("ADC", "IADC"):
        gains = {
            f"{detector} on {name}": _mean(records, variant)
            - _mean(groups[detector, name, False], variant)
            for (detector, name, resampled), records in groups.items()
            if resampled and (detector, name, False) in groups
        }
        made.append(_compared(f"Resampling helps {variant}", gains))
    return made


def resampling_and_spread(store: Store, profile: Profile) -> str:
    """Compare the spread of the ranks over the seeds with and without resampling."""
    title = "- **Resampling makes the ranking steadier**"
    with_it, without = (spreads(store, profile, way) for way in (True, False))
    pairs = [place for place in with_it if place in without and place[0] != "OCSVM"]
    if not pairs:
        return f"{title}: not run."
    told = []
    for kind in ("ADC", "IADC"):
        here, there = (
            np.array([held[place]["spread"][kind]["ranks"] for place in pairs])
            for held in (with_it, without)
        )
        ratio = np.median((here + TINY) / (there + TINY))
        told.append(f"{kind} spreads less with it in {sum(here < there)}, median ratio {ratio:.2f}")
    return f"{title} ({len(pairs)} pairs), deviation of the ranks over seeds: {'; '.join(told)}."


def spread_falls(store: Store, profile: Profile) -> str:
    """Compare the spread of a row's score over the seeds: as printed, and in ranks."""
    found = {
        " on ".join(place): held["spread"]
        for place, held in spreads(store, profile).items()
        if place[0] != "OCSVM"  # exact and, on all rows, without randomness
    }
    if not found:
        return "- **The spread of the scores falls**: not run."
    told = []
    for measure, words in (("mean", "of the sigmoid score, IADC-9"), ("ranks", "of the ranks")):
        ratios = {
            kind: {
                pair: held[kind][measure] / held["Single"][measure] for pair, held in found.items()
            }
            for kind in ("ADC", "IADC")
        }
        parts = (
            f"{kind} has less than Single in {sum(r < 1 for r in each.values())}, median ratio "
            f"{np.median(list(each.values())):.2f}"
            for kind, each in ratios.items()
        )
        rises = [f"{pair} ({ratio:.2f})" for pair, ratio in ratios["IADC"].items() if ratio > 1]
        told.append(f"{words}: {'; '.join(parts)}.{_listed(' IADC has more for', rises)}")
    return (
        f"- **The spread of the scores falls** ({len(found)} pairs). Deviation over seeds "
        f"{' Deviation '.join(told)}"
    )


def indifference(groups: Groups) -> str:
    """See how much the outlier ratio changes the AUROC of the round that is kept."""
    ranges = {}
    for (detector, name, resampled), records in groups.items():
        if resampled:
            curves = [[100 * r["rounds"][k] for k in r["kept"].values()] for r in records]
            mean = np.mean(curves, axis=0)
            ranges[f"{detector} on {name}"] = float(np.ptp(mean))
    if not ranges:
        return "- **Indifferent to r**: not run."
    wide = [f"{pair} ({value:.1f})" for pair, value in ranges.items() if value >= 3 * NAMED]
    ratios = ", ".join(f"{r:g}" for r in odds.RATIOS)
    return (
        f"- **Indifferent to r**: between r = {ratios} the AUROC of a pair differs by "
        f"{np.median(list(ranges.values())):.1f} points in the median."
        f"{_listed(f' By {3 * NAMED:g} or more', wide)}"
    )


def stop_near_best(groups: Groups) -> str:
    """Compare the round that is kept with the first, the last and the best in hindsight."""
    kinds: dict[str, Callable[[Record], float]] = {
        "kept": lambda r: r["auroc"]["IADC"],
        "first": lambda r: r["rounds"][0],
        "last": lambda r: r["rounds"][-1],
        "best": lambda r: max(r["rounds"]),
    }
    pairs = [records for (_, _, resampled), records in groups.items() if resampled]
    if not pairs:
        return "- **The stop is near the best round**: not run."
    mean = {
        kind: 100 * float(np.mean([np.mean([f(r) for r in records]) for records in pairs]))
        for kind, f in kinds.items()
    }
    return (
        f"- **The stop is near the best round**: over {len(pairs)} pairs the round that is kept "
        f"has {mean['kept']:.1f} on average, the first (ADC) {mean['first']:.1f}, the last that "
        f"was run {mean['last']:.1f}, the best in hindsight (chosen with labels) "
        f"{mean['best']:.1f}."
    )


def images_robust(store: Store, profile: Profile, images: str) -> str:
    """See what contamination costs Single, ADC and IADC on new images."""
    records = [
        r
        for r in finished(store, unseen.jobs(profile, images))
        if r["setting"]["detector"] != "OCSVM"
    ]
    if not records:
        return f"- **{images}**: not run."
    lines = [
        f"**{images}**, mean AUROC over the network detectors ({len(records)} runs):",
        "",
        "| contamination | Single | ADC | IADC |",
        "|---|---|---|---|",
    ]
    for ratio in sorted(unseen.RATIOS):
        held = [r for r in records if r["setting"]["contamination"] == ratio]
        if held:
            means = (f"{_mean(held, kind):.1f}" for kind in ("Single", "ADC", "IADC"))
            lines.append(f"| {ratio:.0%} | {' | '.join(means)} |")
    return "\n".join(lines)


def half_the_steps(mri: Mapping[tuple[str, str, str], Row]) -> str:
    """Compare ADDM at T = 500 with its rivals at T = 1000, in the paper's protocol."""
    own = mri.get(("ADDM T=500", "anoddpm", "auc"))
    rivals = {
        detector: row
        for (detector, protocol, case), row in mri.items()
        if (protocol, case) == ("anoddpm", "auc") and detector.endswith("T=1000")
    }
    if own is None or own.mean is None or not rivals:
        return "- **ADDM at T = 500 level with rivals at T = 1000**: not run."
    told = (f"{d.removesuffix(' T=1000')} {r.mean:.3f}" for d, r in rivals.items() if r.mean)
    return (
        f"- **ADDM at T = 500 level with rivals at T = 1000**: pixel AUROC {own.mean:.3f}; at "
        f"T = 1000 {', '.join(told)}. The study is in [mri.md](mri.md)."
    )


def _odds_groups(store: Store, profile: Profile) -> Groups:
    groups: Groups = {}
    for record in finished(store, odds.jobs(profile)):
        s = record["setting"]
        groups.setdefault((s["detector"], s["set"], s["resample"]), []).append(record)
    return groups


def _mean(records: Iterable[Record], kind: str) -> float:
    return 100 * float(np.mean([r["auroc"][kind] for r in records]))


def _compared(claim: str, gains: Mapping[str, float]) -> str:
    if not gains:
        return f"- **{claim}**: not run."
    values = np.array(list(gains.values()))
    losses = [f"{pair} ({gain:.1f})" for pair, gain in gains.items() if gain <= -NAMED]
    return (
        f"- **{claim}**: ahead in {int((values > 0).sum())} of {len(values)} pairs, "
        f"{values.mean():+.1f} on average, {np.median(values):+.1f} in the median, best "
        f"{values.max():+.1f}.{_listed(' It fails for', losses)}"
    )


def _listed(head: str, items: Sequence[Any]) -> str:
    return f"{head}: {', '.join(items)}." if items else ""
