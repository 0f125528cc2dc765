"""The figures of the papers' tables that pages tell in words, counted in results/TABLE.csv.

`python docs/figures.py` writes them between the marks of README.md and results/README.md;
`make tables` draws the tables first. A test keeps them true.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

PAGES = ("README.md", "results/README.md", "docs/guide/papers.md")
TABLE = "results/TABLE.csv"
SPREADS = "odds-spread"  # says nothing about how well anything is found
COMPARED = ("ahead", "level", "behind")
MARKED = re.compile(r"(<!-- figures: (\S+) -->).*?(<!-- end -->)", re.DOTALL)
Line = Mapping[str, str]


def counted(lines: Iterable[Line]) -> Counter[str]:
    """Count the cells that can be compared with the paper's by their verdict."""
    return Counter(line["verdict"] for line in lines if line["verdict"] in COMPARED)


def told(lines: list[Line]) -> dict[str, str]:
    """Return the words for every mark."""
    of = {name: counted(x for x in lines if x["table"] == name) for name in _tables(lines)}
    whole: Counter[str] = sum((of[name] for name in of if name != SPREADS), Counter())
    return {
        "cells": f"Of the {whole.total()} cells that can be compared, spreads left out, "
        f"{_words(whole)}; {of['addm-mri']['behind']} of the latter are of brain MRI",
        **{name: f"Of {own.total()} cells {_words(own)}" for name, own in of.items()},
    }


def _tables(lines: Iterable[Line]) -> list[str]:
    return list(dict.fromkeys(line["table"] for line in lines))


def _words(count: Counter[str]) -> str:
    return f"{count['ahead']} are ahead, {count['level']} level and {count['behind']} behind"


def filled(page: str, words: Mapping[str, str]) -> str:
    """Return a page with the words between its marks."""
    return MARKED.sub(lambda mark: mark[1] + words[mark[2]] + mark[3], page)


def pages(root: Path) -> dict[Path, str]:
    """Return every page with its figures as they should be."""
    with (root / TABLE).open(encoding="utf-8", newline="") as file:
        words = told(list(csv.DictReader(file)))
    return {root / page: filled((root / page).read_text("utf-8"), words) for page in PAGES}


def main() -> None:
    """Write the pages of the checkout."""
    for path, text in pages(Path(__file__).parents[1]).items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
