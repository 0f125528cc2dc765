"""The card of a model: what somebody who finds the file has to know, as Markdown.

It is written when the model is saved, from the model alone, and carries no date, so that saving the
same model twice gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aberra.explain.subject import Subject
from aberra.explain.training import changed_settings
from aberra.model_file.kinds import damaged
from aberra.words import number

LONGEST = 1 << 16  # characters of a card in a file that are shown
LONGEST_CELL = 2000  # characters of a cell: a wide table has more names than anybody reads
CAUTIONS = """## Before you use it

- Scores of this model can be compared with each other, not with those of other models.
- The threshold was placed without labels. A flag is a place to start looking, not a verdict.
- The model knows data like those it was trained on. Where new data differ, its scores mean less.
"""
FOR_TABLES = "- `aberra score` and `model.compare(X)` say whether new rows are still like them.\n"


def card_of(model: Any, versions: Mapping[str, str]) -> str:
    """Return the card of a fitted model.

    Parameters
    ----------
    model : estimator
    versions : mapping
        Names and versions of what wrote the file.

    Returns
    -------
    card : str
        Markdown.
    """
    subject = Subject(model)
    lines = "\n".join(f"| {name} | {_cell(value)} |" for name, value in _lines(subject, versions))
    said = "\n".join(f"- {_cell(sentence)}" for sentence in subject.sentences())
    cautions = CAUTIONS + ("" if subject.sees_images else FOR_TABLES)
    return f"# {subject.name}\n\n{said}\n\n| | |\n|---|---|\n{lines}\n\n{cautions}"


def _lines(subject: Subject, versions: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for fact in subject.facts():
        yield fact.name, f"{fact.value} ({fact.note})" if fact.note else fact.value
    yield "Threshold", f"{number(subject.model.threshold_)}, {subject.model.threshold_rule_}"
    changed = ", ".join(f"{name}={value}" for name, value in changed_settings(subject.model))
    yield "Settings", changed or "the defaults"
    yield "Written by", ", ".join(f"{name} {version}" for name, version in versions.items())


def _cell(text: str) -> str:
    """Return text that stays within its cell, and is no link or tag."""
    one_line = " ".join(text.split())
    if len(one_line) > LONGEST_CELL:
        one_line = f"{one_line[:LONGEST_CELL]} ..."
    return "".join(f"\\{c}" if c in "\\|[]<>`*_#" else c for c in one_line)


def checked_card(held: Any) -> str:
    """Return the card that a file holds, if it is text; files of 0.2.0 may have a long one."""
    if not isinstance(held, str):
        damaged("card", "not a text")
    return held if len(held) <= LONGEST else f"{held[:LONGEST]} ..."
