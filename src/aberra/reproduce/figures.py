"""The papers' figures, drawn from finished cells; vector, and legible in grey."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.extras import need
from aberra.plots import LINE, NORMAL, ODD
from aberra.reproduce import features, odds
from aberra.reproduce.profiles import Profile
from aberra.reproduce.results import finished, spreads
from aberra.reproduce.store import Record, Store

# Differ in hue, lightness, dash and marker at once.
STYLES = {
    "OCSVM": ("#000000", "-", "o"),
    "OCSVM-H": ("#0072B2", "--", "s"),
    "AE": ("#D55E00", "-.", "^"),
    "Deep SVDD": ("#009E73", ":", "D"),
    "RSRAE": ("#CC79A7", (0, (5, 1)), "v"),
    "DAGPR": ("#56B4E9", (0, (1, 1)), "x"),
}
Panel = Callable[[Any, str, list[Record]], None]


def outlier_ratio(store: Store, profile: Profile) -> Any:
    """AUROC of IADC against the outlier ratio r that decides when to stop."""

    def panel(ax: Any, name: str, records: list[Record]) -> None:
        for detector, (colour, dash, marker) in STYLES.items():
            own = [r for r in records if r["setting"]["detector"] == detector]
            if not own:
                continue
            ratios = [float(r) for r in own[0]["kept"]]
            curves = [[100 * r["rounds"][k] for k in r["kept"].values()] for r in own]
            mean = np.mean(curves, axis=0)
            ax.plot(ratios, mean, color=colour, ls=dash, marker=marker, ms=4, label=detector)
        ax.axvline(records[0]["contamination"], color=LINE, lw=0.8, ls=":")
        ax.set(xlabel="outlier ratio r", ylabel="AUROC")

    return _panels(_odds(store, profile), odds.SETS, panel, legend=True)


def auc_per_round(store: Store, profile: Profile) -> Any:
    """AUROC of IADC with Deep SVDD in every round; the mean of what the rule keeps is marked."""

    def panel(ax: Any, name: str, records: list[Record]) -> None:
        n = min(len(r["rounds"]) for r in records)
        curves = 100 * np.array([r["rounds"][:n] for r in records])
        _band(ax, curves.mean(axis=0), curves.std(axis=0), NORMAL, "-o", "mean and deviation")
        kept = 100 * float(np.mean([r["auroc"]["IADC"] for r in records]))
        ax.axhline(kept, color=ODD, ls="--", label="round kept, r = 0.5")
        for record in records:
            t = record["kept"]["0.5"]
            if t < n:
                ax.plot(t + 1, 100 * record["rounds"][t], "x", color=ODD, ms=7)
        _rounds(ax)
        ax.set_ylabel("AUROC")

    return _panels(_drawn(store, profile), odds.SETS, panel, legend=True)


def spread_boxplots(store: Store, profile: Profile) -> Any:
    """Spread of each row's score over the seeds, for Deep SVDD."""
    found = {k[1]: v for k, v in spreads(store, profile).items() if k[0] == odds.DRAWN}

    def panel(ax: Any, name: str, records: list[Record]) -> None:
        kinds = ("Single", "ADC", "IADC")
        boxes = []
        for kind in kinds:
            low, first, middle, third, high = records[0]["spread"][kind]["quantiles"]
            mean = records[0]["spread"][kind]["mean"]
            box = {"whislo": low, "q1": first, "med": middle, "q3": third, "whishi": high}
            boxes.append({**box, "mean": mean, "label": kind})
        ax.bxp(boxes, showfliers=False, showmeans=True, medianprops={"color": ODD})
        ax.set(ylabel="deviation of the score")

    return _panels({name: [held] for name, held in found.items()}, odds.SETS, panel)


def weights_per_round(store: Store, profile: Profile) -> Any:
    """Trust in normal and in anomalous rows, round by round, for Deep SVDD."""

    def panel(ax: Any, name: str, records: list[Record]) -> None:
        n = min(len(r["trust"]) for r in records)
        for kind, colour, dash in (("normal", NORMAL, "-"), ("anomalous", ODD, "--")):
            held = np.array([[line[kind] for line in r["trust"][:n]] for r in records])
            mean, median, deviation = held.mean(axis=0).T
            _band(ax, mean, deviation, colour, dash, f"{kind}, mean")
            ax.plot(np.arange(1, n + 1), median, color=colour, ls=":", label=f"{kind}, median")
        _rounds(ax)
        ax.set(ylabel="trust", ylim=(0, 1))

    return _panels(_drawn(store, profile), odds.SETS, panel, legend=True)


def feature_space(store: Store, profile: Profile) -> Any:
    """Codes of Deep SVDD, alone and inside IADC, by t-SNE; circles hold shares of the rows."""
    records = finished(store, features.jobs(profile))
    figure, axes = _axes(len(records), 2)
    for line, record in zip(axes, records, strict=True):
        odd = np.array(record["anomalous"], dtype=bool)
        for ax, (kind, held) in zip(line, record["maps"].items(), strict=True):
            _codes(ax, held, odd)
            ax.set_title(f"{record['setting']['set']}, {kind}")
    if records:
        axes[0, 0].legend(frameon=False, fontsize=7, loc="upper left")
    return figure


def score_histograms(store: Store, profile: Profile) -> Any:
    """Scores of Deep SVDD, alone and inside IADC, with a Gaussian fitted to either kind of row."""
    drawn = {k: v for k, v in _drawn(store, profile).items() if k in features.SETS}
    figure, axes = _axes(len(drawn), 2)
    for line, (name, records) in zip(axes, drawn.items(), strict=True):
        for ax, (kind, held) in zip(line, records[0]["histograms"].items(), strict=True):
            _histogram(ax, held)
            ax.set(title=f"{name}, {kind}", xlabel="anomaly score", ylabel="density")
    if drawn:
        axes[0, 0].legend(frameon=False, fontsize=7)
    return figure


FIGURES: dict[str, Callable[[Store, Profile], Any]] = {
    "outlier-ratio": outlier_ratio,
    "auc-per-round": auc_per_round,
    "spread-boxplots": spread_boxplots,
    "weights-per-round": weights_per_round,
    "feature-space": feature_space,
    "score-histograms": score_histograms,
}


def as_svg(figure: Any) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes."""
    matplotlib = need("matplotlib", "report", "Drawing figures")
    held = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "aberra", "svg.fonttype": "none"}):
        figure.savefig(held, format="svg", metadata={"Date": None})
    return held.getvalue()


def _odds(store: Store, profile: Profile) -> dict[str, list[Record]]:
    return _by_set(finished(store, odds.jobs(profile, resample=(True,))))


def _drawn(store: Store, profile: Profile) -> dict[str, list[Record]]:
    records = finished(store, odds.jobs(profile, resample=(True,)))
    return _by_set(r for r in records if r["setting"]["detector"] == odds.DRAWN)


def _by_set(records: Iterable[Record]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["setting"]["set"], []).append(record)
    return groups


def _panels(
    records: dict[str, list[Record]], names: Sequence[str], panel: Panel, legend: bool = False
) -> Any:
    """Draw one panel a set, in the paper's order; an empty one says that its runs are missing."""
    figure, axes = _axes(2, 3)
    for ax, name in zip(axes.flat, names, strict=True):
        ax.set_title(name)
        if name in records:
            panel(ax, name, records[name])
        else:
            ax.text(0.5, 0.5, "not run", ha="center", transform=ax.transAxes, color=LINE)
    if legend:
        full = next(
            (ax for ax, name in zip(axes.flat, names, strict=True) if name in records), None
        )
        if full is not None:
            figure.legend(*full.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def _axes(n_rows: int, n_columns: int) -> tuple[Any, NDArray[Any]]:
    need("matplotlib", "report", "Drawing figures")
    from matplotlib.figure import Figure

    height = 2.6 * max(n_rows, 1) + 0.4
    figure = Figure(figsize=(3.4 * n_columns, height), layout="constrained")
    if n_rows == 0:
        figure.text(0.5, 0.5, "not run", ha="center", color=LINE)
        return figure, np.empty((0, n_columns), dtype=object)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def _rounds(ax: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("round")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _band(
    ax: Any,
    middle: NDArray[np.float64],
    spread: NDArray[np.float64],
    colour: str,
    style: str,
    label: str,
) -> None:
    rounds = np.arange(1, len(middle) + 1)
    ax.plot(rounds, middle, style, color=colour, ms=3, label=label)
    ax.fill_between(rounds, middle - spread, middle + spread, color=colour, alpha=0.2, lw=0)


def _codes(ax: Any, held: dict[str, Any], odd: NDArray[np.bool_]) -> None:
    from matplotlib.patches import Circle

    points, centre = np.array(held["points"]), held["centre"]
    ax.scatter(*points[~odd].T, s=4, color=NORMAL, label="normal", rasterized=True)
    ax.scatter(*points[odd].T, s=9, color=ODD, marker="^", label="anomalous", rasterized=True)
    ax.plot(*centre, "x", color="black", ms=9, mew=2)
    for radius in held["radii"]:
        ax.add_patch(Circle(centre, radius, fill=False, ls="--", color=LINE, lw=0.9))
    ax.set(xticks=[], yticks=[], aspect="equal")


def _histogram(ax: Any, held: dict[str, Any]) -> None:
    edges = np.array(held["edges"])
    x = np.linspace(edges[0], edges[-1], 200)
    for kind, colour, hatch in (("normal", NORMAL, ""), ("anomalous", ODD, "///")):
        part = held[kind]
        counts = np.array(part["counts"], dtype=float)
        total = max(counts.sum(), 1.0) * (edges[1] - edges[0])
        ax.stairs(
            counts / total, edges, fill=True, alpha=0.45, color=colour, hatch=hatch, label=kind
        )
        mean, std = part["mean"], max(part["std"], 1e-12)
        density = np.exp(-(((x - mean) / std) ** 2) / 2) / (std * np.sqrt(2 * np.pi))
        ax.plot(x, density, ls="--", lw=0.9, color=colour)
        if edges[0] <= mean <= edges[-1]:
            ax.axvline(mean, ls="--", lw=1.8, color=colour)
