"""A model from whatever a path holds: a table, images, or scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aberra.data.sources import Kind, kind_of_path
from aberra.errors import ArgumentError
from aberra.recipe import Source
from aberra.workflow.choices import CALLED, LookFor, Missing, OnError, Preset
from aberra.workflow.outcome import Fitted

ONLY_FOR = {
    "table": (
        "id_column",
        "label_column",
        "drop",
        "missing",
        "sql",
        "header",
        "marks",
        "threshold",
        "contamination",
        "fdr",
        "on_error",
        "engine",
        "address",
    ),
    "images": ("preset", "look_for", "watch"),
    "volumes": ("preset", "look_for", "watch", "pattern", "axes", "whole_brain", "start_from"),
}


def fit(
    path: str | Path,
    output: str | Path | None = None,
    *,
    detector: Any = None,
    robust: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    drop: Sequence[str] | None = None,
    missing: Missing | None = None,
    sql: str | None = None,
    header: bool | None = None,
    marks: str | Path | None = None,
    threshold: str | None = None,
    contamination: float | None = None,
    fdr: float | None = None,
    preset: Preset | None = None,
    look_for: LookFor | None = None,
    pattern: str | None = None,
    axes: str | None = None,
    whole_brain: bool | None = None,
    start_from: str | Path | None = None,
    seed: int = 0,
    time_budget: float | None = None,
    watch: str | Path | None = None,
    on_error: OnError | None = None,
    engine: str | None = None,
    address: str | None = None,
) -> Fitted:
    """Learn what is normal in a file or folder: what `aberra fit` does.

    Whether the path holds a table, images or scans decides which function does the work:
    `fit_table`, `fit_images` or `fit_scans`. Their texts say more about each argument. An argument
    that is None takes its default there.

    Parameters
    ----------
    path : path
        A CSV, TSV, Parquet, Feather, Excel, JSON, npy or npz file, packed or not, or a folder of
        them, or a pattern such as `big/*.parquet`; "-" for a table from standard input; a folder of
        pictures; a NIfTI file; a folder of NIfTI files or DICOM series.
    output : path, optional
        The model file to write. By default nothing is written.
    detector : str or estimator, optional
        Name of a method, or an unfitted detector. By default "multiview" for tables, "addm" for
        images and "patch-finder" for scans.
    robust : {"iadc", "adc", "none"}, optional
        How to cope with training data that is partly anomalous. By default "iadc" for tables and
        "none" for images and scans.
    id_column, label_column : str, optional
        Tables: the column that names the rows, and the one with labels to measure the result by.
    drop : sequence of str, optional
        Tables: columns to leave out. None are by default.
    missing : {"impute", "error"}, optional
        Tables: what to do with gaps. By default they are filled ("impute").
    sql : str, optional
        Tables: a query whose result is the table; `path` is then a database.
    header : bool, optional
        Tables: whether the first line of a CSV file names the columns. By default it does.
    marks : path, optional
        Tables: what a reviewer decided about some of the rows.
    threshold : str, optional
        Tables: the rule that decides which rows are flagged, a name in `aberra.thresholds.RULES`.
        By default "fdr".
    contamination : float, optional
        Tables: the share of the training rows to flag, instead of a rule.
    fdr : float, optional
        Tables: the share of the flagged rows that may be false alarms, for the rule "fdr". By
        default 0.1.
    preset : {"small", "medium", "paper"}, optional
        Images and scans: the size of the networks. By default "small".
    look_for : {"darker", "brighter", "both"}, optional
        Images and scans: what counts as odd. By default what is best for the localiser.
    pattern : str, optional
        Scans: which names in a folder are scans. By default all ("*").
    axes : str, optional
        Scans: where the axes of the arrays really point. By default the headers are believed.
    whole_brain : bool, optional
        Scans: whether slices go down to the end of the brain. By default they end 78 mm below its
        top.
    start_from : path or str, optional
        Scans: a model to go on from, such as "brain-t1". By default training begins with nothing.
    seed : int, default=0
        The same seed and data give the same model.
    time_budget : float, optional
        Minutes that training may take. No limit by default.
    watch : path, optional
        Images and scans: a folder that gets the losses and a few restored images as training goes.
        By default nothing is shown.
    on_error : {"stop", "skip"}, optional
        Tables: what to do about files of a folder that cannot be read. By default "stop".
    engine, address : str, optional
        Tables: where the passes over a long table run, such as "ray", and where the cluster is. By
        default in this process.

    Returns
    -------
    fitted : Fitted
        The model, its recipe, how long it took, and the path of the model file.

    Raises
    ------
    DataError
        If the path holds nothing that can be used, or the model could not be written.
    ArgumentError
        If an argument makes no sense for such data.

    See Also
    --------
    score : Score other files with the model.
    report : Write a page about the model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_wine
    >>> from aberra.workflow import fit
    >>> table = load_wine(as_frame=True).data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "wine.csv"
    ...     table.to_csv(file, index=False)
    ...     fitted = fit(file, Path(folder) / "wine.aberra", drop=["proline"])
    ...     size = fitted.path.stat().st_size
    >>> fitted.recipe.kind, len(fitted.recipe.columns), size > 0
    ('table', 12, True)
    """
    kind: Source = "table" if sql is not None else kind_of_path(path)
    given = {
        "robust": robust, "id_column": id_column, "label_column": label_column, "drop": drop,
        "missing": missing, "sql": sql, "header": header, "preset": preset, "look_for": look_for,
        "pattern": pattern, "axes": axes, "marks": marks, "start_from": start_from,
        "whole_brain": whole_brain, "watch": watch,
        "threshold": threshold, "contamination": contamination, "fdr": fdr,
        "on_error": on_error, "engine": engine, "address": address,
    }  # fmt: skip
    own = {name: value for name, value in given.items() if value is not None}
    for name in set(own) - {"robust", *ONLY_FOR[kind]}:
        raise ArgumentError(name, f"{name} is {_for_what(name)}, but {path} holds {CALLED[kind]}.")
    return _fit_of(kind)(path, output, detector=detector, seed=seed, time_budget=time_budget, **own)


def _fit_of(kind: Kind) -> Callable[..., Fitted]:
    """Return the function for this kind of data; what the others need is not loaded."""
    if kind == "table":
        from aberra.workflow.from_table import fit_table

        return fit_table
    if kind == "images":
        from aberra.workflow.from_images import fit_images

        return fit_images
    from aberra.workflow.from_scans import fit_scans

    return fit_scans


def _for_what(name: str) -> str:
    kinds = [kind for kind, names in ONLY_FOR.items() if name in names]
    return f"for {' and '.join({'table': 'tables', 'volumes': 'scans'}.get(k, k) for k in kinds)}"
