"""What an exported file says about itself, so that it can be used without Aberra."""

from __future__ import annotations

import json
from typing import Any

import aberra
from aberra.data.date_parts import PERIODS
from aberra.data.rarity import MISSING, NEW
from aberra.explain.subject import Subject

PLAIN = {"value"}


def about_rows(model: Any, margin: float) -> dict[str, str]:
    """Return the metadata of a detector or an ensemble."""
    return {
        "aberra": aberra.__version__,
        "model": Subject(model).name,
        "threshold": repr(float(model.threshold_)),
        "flagged_above": repr(margin),
        "preparation": json.dumps([] if model.image_shape_ else preparation(model)),
        "stated": json.dumps(stated(model)),
    }


def preparation(model: Any) -> list[dict[str, Any]]:
    """Return, for each number of the input, the column it comes from and how."""
    names = model.column_names() or [str(j) for j in range(model.n_features_in_)]
    reader = model.reader_
    if reader is None:
        return [{"column": name, "part": "value"} for name in names]
    found: list[dict[str, Any]] = []
    for j, parts in enumerate(reader.parts):
        for part in parts:
            found += [{"column": names[j], **about} for about in _part(reader, j, part)]
    return found


def _part(reader: Any, j: int, part: str) -> list[dict[str, Any]]:
    form = (reader.forms or {}).get(j)
    written = {} if form is None else {"written": form}
    if part == "value":
        unit = {"unit": "seconds"} if reader.kinds[j] == "duration" else {}
        return [{"part": part, **written, **unit}]
    if part == "rarity":
        values = dict(reader.rarity[j])
        otherwise = values.pop(NEW, reader.unseen)
        gap = values.pop(MISSING, reader.unseen)
        return [{"part": part, "values": values, "gap": gap, "otherwise": otherwise}]
    if part == "elapsed":
        latest, ordinary = reader.latest[j]
        ends = {"latest": latest, "later": ordinary}
        return [{"part": part, **written, "unit": "seconds since 1970", **ends}]
    about = {"period_seconds": PERIODS[part], **written}
    return [{"part": part, "function": f, **about} for f in ("sine", "cosine")]


def stated(model: Any) -> list[str]:
    """Return what the graph leaves to its user, in sentences."""
    unchecked = "The graph does not check its input for infinity or huge numbers."
    if model.image_shape_ is not None:
        return [unchecked]
    found = []
    read = [one for one in preparation(model) if one["part"] not in PLAIN or "written" in one]
    foreign = sorted({one["column"] for one in read})
    if foreign:
        found.append(
            f"Text and dates ({', '.join(foreign)}) are not read by the graph: its input are the "
            'numbers that "preparation" in the metadata describes, one column each.'
        )
    gaps = model.missing == "impute"
    found.append(
        "A gap is NaN."
        if gaps
        else "The model was fitted on a table without gaps and refuses them; the graph does not "
        "look."
    )
    return [*found, unchecked]
