"""One page about a model and what it found: HTML that holds its own pictures and charts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from aberra.errors import DataError
from aberra.explain.subject import Subject
from aberra.recipe import Recipe
from aberra.report.compose import compose
from aberra.report.contents import Findings
from aberra.report.findings import ImagesToReport, TableToReport, of_images, of_table
from aberra.report.page import render

__all__ = ["ImagesToReport", "TableToReport", "html"]

TOP = 24  # as many as fill the gallery


def html(
    model: Any,
    data: Any = None,
    *,
    recipe: Recipe | None = None,
    title: str = "Anomaly report",
    top: int = TOP,
) -> str:
    """Return a page about a fitted model and, with `data`, about what it finds in them.

    Parameters
    ----------
    model : estimator
        Any fitted detector, ensemble or localiser of Aberra.
    data : DataFrame, ndarray, TableToReport, ImagesToReport or ScansToReport, optional
        Rows (the index names them), images of shape (n, channels, height, width), or one of the
        report's own kinds, which carry names and can be larger than memory. By default the page
        is about the model alone. If these are the training data, the page also shows how far
        each of them is trusted.
    recipe : Recipe, optional
        What `aberra fit` noted.
    title : str, default="Anomaly report"
        Heading of the page.
    top : int, default=24
        How many of the oddest samples to list.

    Returns
    -------
    page : str
        The same bytes for the same input.

    Examples
    --------
    >>> import numpy as np
    >>> from aberra import IADC, OCSVM
    >>> from aberra.report import html
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> page = html(IADC(OCSVM(), max_rounds=2, random_state=0).fit(X), X)
    >>> page.startswith("<!doctype html>")
    True
    """
    subject = Subject(model, recipe)
    findings = None if data is None else _findings(subject, as_data(data), top)
    return render(compose(subject, recipe, findings, title))


def as_data(data: Any) -> Any:
    """Return a data frame or an array as one of the report's kinds of data."""
    if isinstance(data, pd.DataFrame):
        return TableToReport([(data, [str(name) for name in data.index])])
    if not isinstance(data, np.ndarray):
        return data
    if data.ndim == 4:
        return ImagesToReport(
            [f"image {k}" for k in range(len(data))], lambda some: data[list(some)]
        )
    if data.ndim != 2:
        raise DataError(
            f"An array of shape {data.shape} is neither rows nor images. Give (n, columns) or "
            "(n, channels, height, width)."
        )
    frame = pd.DataFrame(data, columns=[f"column {j}" for j in range(data.shape[1])])
    return TableToReport([(frame, [f"row {k}" for k in range(len(data))])])


def _findings(subject: Subject, data: Any, top: int) -> Findings:
    if isinstance(data, TableToReport):
        if subject.sees_images:
            raise DataError("The model was trained on images, not on rows. Give images.")
        return of_table(subject, data, top)
    if not subject.sees_images:
        raise DataError("The model was trained on rows, not on images. Give a table.")
    if isinstance(data, ImagesToReport):
        return of_images(subject, data, top)
    from aberra.report.scans import of_scans

    return of_scans(subject, data, top)
