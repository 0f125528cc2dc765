"""What can be reproduced: names, the work behind each, and the files it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from aberra.files import write_atomically
from aberra.reproduce import features, mri, odds, results, unseen
from aberra.reproduce.claims import claims
from aberra.reproduce.figures import FIGURES, as_svg
from aberra.reproduce.page import page
from aberra.reproduce.profiles import Profile
from aberra.reproduce.store import Store
from aberra.reproduce.tables import HEADS, Row, as_csv, as_latex, as_markdown
from aberra.reproduce.work import Job

Jobs = Callable[[Profile], list[Job]]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the papers.

    Parameters
    ----------
    title : str
    jobs : callable
        From a profile to the work.
    rows : callable, optional
        From finished cells to rows; None for a figure.
    digits : int, default=1
        Decimals shown.
    csv : callable, optional
        From rows to CSV, where it is not the usual one.
    heads : tuple of str
        Names of the first two columns.
    """

    title: str
    jobs: Jobs
    rows: Callable[[Store, Profile], list[Row]] | None = None
    digits: int = 1
    csv: Callable[[Sequence[Row]], str] = as_csv
    heads: tuple[str, str] = HEADS


def _resampled(profile: Profile) -> list[Job]:
    return odds.jobs(profile, resample=(True,))


def _drawn(profile: Profile) -> list[Job]:
    return [job for job in _resampled(profile) if job.settings[0]["detector"] == odds.DRAWN]


EXPERIMENTS: dict[str, Experiment] = {
    "odds-adc": Experiment(
        "ADC with and without resampling on the ODDS sets, AUROC",
        odds.jobs,
        lambda store, profile: results.odds_rows(store, profile, "ADC"),
    ),
    "odds-iadc": Experiment(
        "IADC with and without resampling on the ODDS sets, AUROC",
        odds.jobs,
        lambda store, profile: results.odds_rows(store, profile, "IADC"),
    ),
    "odds-spread": Experiment(
        "Mean deviation of the rows' scores over the seeds; less is better",
        _resampled,
        results.spread_rows,
        digits=4,
    ),
    "mnist-unseen": Experiment(
        "MNIST, new images, AUROC by contamination of the training images",
        lambda profile: unseen.jobs(profile, "mnist"),
        lambda store, profile: results.unseen_rows(store, profile, "mnist"),
    ),
    "cifar10-unseen": Experiment(
        "CIFAR-10, new images, AUROC by contamination of the training images",
        lambda profile: unseen.jobs(profile, "cifar10"),
        lambda store, profile: results.unseen_rows(store, profile, "cifar10"),
    ),
    "mnist-transductive": Experiment(
        "MNIST, the contaminated training images themselves, AUROC",
        lambda profile: unseen.jobs(profile, "mnist"),
        results.transductive_rows,
    ),
    "addm-mri": Experiment(
        "Localisers on Edinburgh's tumours, trained on healthy IXI brains",
        mri.jobs,
        results.mri_rows,
        digits=3,
        csv=results.mri_csv,
        heads=("method", "protocol"),
    ),
    "outlier-ratio": Experiment("Figure: AUROC against the outlier ratio r", _resampled),
    "auc-per-round": Experiment("Figure: AUROC of every round, Deep SVDD", _drawn),
    "spread-boxplots": Experiment("Figure: spread of the scores over seeds, Deep SVDD", _drawn),
    "weights-per-round": Experiment("Figure: trust in the rows by round, Deep SVDD", _drawn),
    "feature-space": Experiment("Figure: codes of Deep SVDD by t-SNE", features.jobs),
    "score-histograms": Experiment("Figure: histograms of the scores, Deep SVDD", _drawn),
}


def setting_line(name: str, profile: Profile) -> str:
    """Say in one line what a profile reduced, for the head of every table."""
    if "mnist" in name or "cifar" in name:
        one = unseen.jobs(profile, "cifar10" if "cifar" in name else "mnist")[0].settings[0]
        epochs = profile.cifar_epochs if "cifar" in name else profile.image_epochs
        batch = f"{profile.image_batch} images a step" if profile.image_batch else "full batches"
        return (
            f"Profile {profile.name}: classes {', '.join(map(str, profile.classes))}, "
            f"{one['normal'] or 'all'} normal images of {one['pixels']} x {one['pixels']} pixels, "
            f"{profile.test or 'all'} test images of each class, {profile.image_seeds} seeds, "
            f"{one['members']} members, at most {one['rounds']} rounds, {epochs:.0%} of the "
            f"epochs, {batch}."
        )
    if name == "addm-mri":
        return (
            f"Profile {profile.name}: {profile.mri_size} x {profile.mri_size} pixels, preset "
            f"{profile.mri_preset}, {profile.mri_steps or 'all'} training steps of the diffusion "
            f"models, {profile.mri_seeds} seeds (rivals one). The paper trained on NFBS."
        )
    return (
        f"Profile {profile.name}: {profile.seeds} seeds ({profile.few_seeds} on {odds.LARGEST}), "
        f"{profile.members} members, at most {profile.rounds} rounds, {profile.epochs:.0%} of the "
        f"epochs, {profile.rows or 'all'} rows."
    )


def head_of(name: str, profile: Profile) -> str:
    """Return what stands above a table."""
    return f"{EXPERIMENTS[name].title}. {setting_line(name, profile)}"


def write_results(name: str, profile: Profile, folder: Path) -> list[Path]:
    """Write the table or figure of an experiment from what is finished; return the files."""
    store, experiment = Store(folder), EXPERIMENTS[name]
    if experiment.rows is None:
        made = {f"{name}.svg": as_svg(FIGURES[name](store, profile))}
    else:
        rows = experiment.rows(store, profile)
        head = head_of(name, profile)
        legend = "The paper's figure in brackets; ± is the deviation over seeds."
        table = as_markdown(rows, experiment.digits, experiment.heads)
        made = {
            f"{name}.md": f"# {name}\n\n{head} {legend}\n\n{table}".encode(),
            f"{name}.csv": experiment.csv(rows).encode(),
            f"{name}.tex": f"% {head}\n{as_latex(rows, experiment.digits)}".encode(),
        }
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in made.items():
        write_atomically(folder / file, data)
    return [folder / file for file in made]


def write_summary(profile: Profile, folder: Path) -> list[Path]:
    """Write all tables in one CSV file, the claims, and one page with all tables and figures."""
    store = Store(folder)
    rows = {name: e.rows(store, profile) for name, e in EXPERIMENTS.items() if e.rows is not None}
    run = {name: held for name, held in rows.items() if any(r.mean is not None for r in held)}
    tables = {
        name: (head_of(name, profile), held, EXPERIMENTS[name].digits, EXPERIMENTS[name].heads)
        for name, held in run.items()
    }
    drawn = {
        name: (EXPERIMENTS[name].title, (folder / f"{name}.svg").read_bytes())
        for name in FIGURES
        if (folder / f"{name}.svg").exists()
    }
    every = [row for held in rows.values() for row in held]
    made = {
        "TABLE.csv": as_csv(every).encode(),
        "claims.md": claims(store, profile, rows).encode(),
        "index.html": page(tables, drawn).encode(),
    }
    for file, data in made.items():
        write_atomically(folder / file, data)
    return [folder / file for file in made]
