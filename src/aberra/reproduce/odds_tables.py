"""The ODDS tables: rows of ADC and of IADC, and what holds of the claims about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aberra.reproduce.claims import compared, mean_auroc
from aberra.reproduce.experiment import Experiment
from aberra.reproduce.odds import ODDS_SETS, odds_jobs, odds_reduced
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Record, Store
from aberra.reproduce.tables import Row, Target, row, targets
from aberra.reproduce.work import finished, grouped, stale

WITHOUT = "-ns"  # the paper's mark for members that see all rows
ODDS_CHAPTER = "ODDS"
Groups = dict[tuple[str, str, bool], list[Record]]


def odds_groups(store: Store, profile: Profile) -> Groups:
    """Return the finished cells by detector, set, and whether members see resampled rows."""
    cells = finished(store, odds_jobs(profile))
    return grouped(cells, lambda s: (s["detector"], s["set"], s["resample"]))


def odds_rows(store: Store, profile: Profile, variant: str) -> list[Row]:
    """Return AUROC x 100 of one variant, with and without resampling, Single before it."""
    groups = odds_groups(store, profile)
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
    return rows


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


def odds_claims(store: Store, profile: Profile) -> list[str]:
    """Say what holds of the claims about the two tables."""
    groups = odds_groups(store, profile)
    return [*order_of_variants(groups), *gain_of_resampling(groups)]


def _odds_table(
    variant: str, claims: Callable[[Store, Profile], list[str]] | None = None
) -> Experiment:
    return Experiment(
        f"odds-{variant.lower()}",
        f"{variant} with and without resampling on the ODDS sets, AUROC",
        odds_jobs,
        rows=lambda store, profile: odds_rows(store, profile, variant),
        reduced=odds_reduced,
        claims=claims,
        chapter=ODDS_CHAPTER,
    )


ODDS_TABLES = (_odds_table("ADC"), _odds_table("IADC", odds_claims))
