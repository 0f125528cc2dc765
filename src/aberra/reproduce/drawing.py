"""What the papers' figures share: panels, bands, and how they are written; legible in grey."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.extras import need
from aberra.plots import LINE
from aberra.reproduce.store import Record

Panel = Callable[[Any, list[Record]], None]


def as_svg(figure: Any) -> bytes:
    """Return a figure as SVG; the same figure gives the same bytes."""
    matplotlib = need("matplotlib", "report", "Drawing figures")
    held = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "aberra", "svg.fonttype": "none"}):
        figure.savefig(held, format="svg", metadata={"Date": None})
    return held.getvalue()


def subplots(n_rows: int, n_columns: int) -> tuple[Any, NDArray[Any]]:
    """Return a figure and its axes; without any rows it says that nothing was run."""
    need("matplotlib", "report", "Drawing figures")
    from matplotlib.figure import Figure

    height = 2.6 * max(n_rows, 1) + 0.4
    figure = Figure(figsize=(3.4 * n_columns, height), layout="constrained")
    if n_rows == 0:
        figure.text(0.5, 0.5, "not run", ha="center", color=LINE)
        return figure, np.empty((0, n_columns), dtype=object)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def panels(
    records: Mapping[str, list[Record]], names: Sequence[str], panel: Panel, legend: bool = False
) -> Any:
    """Draw one panel per set, in the paper's order; an empty one says that it was not run."""
    figure, axes = subplots(2, 3)
    drawn = []
    for ax, name in zip(axes.flat, names, strict=True):
        ax.set_title(name)
        if name in records:
            panel(ax, records[name])
            drawn.append(ax)
        else:
            ax.text(0.5, 0.5, "not run", ha="center", transform=ax.transAxes, color=LINE)
    if legend and drawn:
        figure.legend(*drawn[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    return figure


def round_axis(ax: Any) -> None:
    """Let the horizontal axis count rounds."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("round")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def mean_band(
    ax: Any,
    middle: NDArray[np.float64],
    spread: NDArray[np.float64],
    colour: str,
    style: str,
    label: str,
) -> None:
    """Draw a line over the rounds with a band around it."""
    rounds = np.arange(1, len(middle) + 1)
    ax.plot(rounds, middle, style, color=colour, ms=3, label=label)
    ax.fill_between(rounds, middle - spread, middle + spread, color=colour, alpha=0.2, lw=0)
