"""The ODDS tables: rows of ADC and of IADC, and what holds of the claims about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from aberra.reproduce.claims import compared, exceptions, mean_auroc
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.odds import ODDS_SETS, odds_jobs, odds_reduced, own_jobs
from aberra.reproduce.profiles import Profile
from aberra.reproduce.settings import own_starts
from aberra.reproduce.store import Record, Store
from aberra.reproduce.tables import Row, Target, row, targets
from aberra.reproduce.work import Job, finished, grouped, stale

WITHOUT = "-ns"  # the paper's mark for members that see all rows
OWN = "IADC, our start"  # not the paper's method
ODDS_CHAPTER = "ODDS"
Groups = dict[tuple[str, str, bool], list[Record]]


def odds_groups(store: Store, profile: Profile) -> Groups:
    """Return the finished cells by detector, set, and whether members see resampled rows."""
    cells = finished(store, odds_jobs(profile))
    return grouped(cells, lambda s: (s["detector"], s["set"], s["resample"]))


def odds_rows(store: Store, profile: Profile, variant: str) -> list[Row]:
    """Return AUROC x 100 of one variant, with and without resampling, Single before it.

    Below IADC stands a row of ours, whose rounds begin in another way.
    """
    groups, own = odds_groups(store, profile), own_groups(store, profile)
    printed = {(t.detector, t.variant, t.case): t for t in targets(f"odds_{variant.lower()}_auc")}
    shown = {"Single": "Single", variant + WITHOUT: variant, variant: variant}
    rows = []
    for detector in ("OCSVM", *_detectors(printed)):
        for title, name in shown.items():
            for case in ODDS_SETS:
                place = (detector, title, case)
                target = printed.get(place, Target(*place, None, None))
                records = groups.get((detector, case, not title.endswith(WITHOUT)), [])
                rows.append(_odds_row(f"odds-{variant.lower()}", target, records, name))
        if variant == "IADC" and detector in own_starts():
            places = {case: Target(detector, OWN, case, None, None) for case in ODDS_SETS}
            rows += [
                _odds_row("odds-iadc", target, own.get((detector, case), []), variant)
                for case, target in places.items()
            ]
    return rows


def own_groups(store: Store, profile: Profile) -> dict[tuple[str, str], list[Record]]:
    """Return the finished cells of our rows by detector and set."""
    return grouped(finished(store, own_jobs(profile)), lambda s: (s["detector"], s["set"]))


def _detectors(printed: Mapping[tuple[str, str, str], Target]) -> list[str]:
    return list(dict.fromkeys(detector for detector, _, _ in printed))


def _odds_row(table: str, target: Target, records: Sequence[Record], name: str) -> Row:
    share = {"Single": "single_seconds"}.get(name, "seconds")
    values = [100 * r["auroc"][name] for r in records]
    epochs = 0 if name == "Single" else sum(int(r["member_epochs"]) for r in records)
    seconds = sum(float(r[share]) for r in records)
    return row(table, target, values, seconds, epochs, stale=stale(records))


def order_of_variants(groups: Groups) -> list[str]:
    """Compare Single, ADC and IADC, resampled."""
    made = []
    for better, than in (("ADC", "Single"), ("IADC", "ADC"), ("IADC", "Single")):
        gains = {
            f"{detector} on {name}": mean_auroc(records, better) - mean_auroc(records, than)
            for (detector, name, resampled), records in groups.items()
            if resampled
        }
        made.append(compared(f"{better} over {than}", gains))
    return made


def gain_of_resampling(groups: Groups) -> list[str]:
    """Compare members that see a bootstrap with members that see all rows."""
    made = []
    for variant in ("ADC", "IADC"):
        gains = {
            f"{detector} on {name}": mean_auroc(records, variant)
            - mean_auroc(groups[detector, name, False], variant)
            for (detector, name, resampled), records in groups.items()
            if resampled and (detector, name, False) in groups
        }
        made.append(compared(f"Resampling helps {variant}", gains))
    return made


def own_start(store: Store, profile: Profile) -> list[str]:
    """Compare our rows with the paper's form as run here, and with the paper's figures."""
    groups, own = odds_groups(store, profile), own_groups(store, profile)
    gains = {
        " on ".join(place): mean_auroc(records, "IADC") - mean_auroc(groups[*place, True], "IADC")
        for place, records in own.items()
        if (*place, True) in groups
    }
    rows = [r for r in odds_rows(store, profile, "IADC") if r.mean is not None]
    printed = {(r.detector, r.case): r for r in rows if r.variant == "IADC"}
    beside = [
        replace(r, paper_mean=theirs.paper_mean, paper_std=theirs.paper_std)
        for r in rows
        if r.variant == OWN and (theirs := printed.get((r.detector, r.case))) is not None
    ]
    count = Counter(r.verdict for r in beside)
    last = [f"{r.detector} on {r.case}" for r in beside if r.verdict == "behind"]
    return [
        compared(f"{OWN}, over IADC", gains),
        f"- **{OWN}, beside the paper's IADC**: {count['ahead']} ahead, {count['level']} "
        f"level, {count['behind']} behind.{exceptions(' Behind', last)}",
    ]


def odds_claims(store: Store, profile: Profile) -> list[str]:
    """Say what holds of the claims about the two tables."""
    groups = odds_groups(store, profile)
    told = [*order_of_variants(groups), *gain_of_resampling(groups)]
    return told + own_start(store, profile)


def _odds_table(
    variant: str,
    jobs: Callable[[Profile], list[Job]],
    claims: Callable[[Store, Profile], list[str]] | None = None,
) -> Experiment:
    return Experiment(
        f"odds-{variant.lower()}",
        f"{variant} with and without resampling on the ODDS sets, AUROC",
        jobs,
        rows=lambda store, profile: odds_rows(store, profile, variant),
        reduced=odds_reduced,
        claims=claims,
        chapter=ODDS_CHAPTER,
    )


def _jobs_of_both(profile: Profile) -> list[Job]:
    return odds_jobs(profile) + own_jobs(profile)


ODDS_TABLES = (_odds_table("ADC", odds_jobs), _odds_table("IADC", _jobs_of_both, odds_claims))
