"""Three examples of the gallery as notebooks.

`python docs/notebooks.py` writes examples/notebooks from the scripts; a test keeps them true, and
runs them from top to bottom.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[1] / "examples"
CHOSEN = (
    "tables/plot_dirty_table.py",
    "trust/plot_false_discoveries.py",
    "images/plot_without_a_network.py",
)
TEXT = re.compile(r"^# %%\n((?:#.*\n)*)", re.MULTILINE)


def notebook(script: str) -> dict[str, Any]:
    """Return the notebook of a script of the gallery, with empty outputs."""
    _, head, code = script.split('"""', 2)
    title, _, text = head.strip("\n").split("\n", 2)
    cells = [_markdown(f"# {title}\n\n{text.strip()}")]
    first, *rest = TEXT.split(code)
    cells.append(_code("%matplotlib inline\n" + first.strip("\n")))
    for comment, block in zip(rest[::2], rest[1::2], strict=True):
        cells.append(_markdown("\n".join(line[2:] for line in comment.splitlines())))
        cells.append(_code(block.strip("\n")))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _markdown(text: str) -> dict[str, Any]:
    plain = re.sub(r":doc:`([^`]*)`", r"\1", text).replace("``", "`")
    return {"cell_type": "markdown", "metadata": {}, "source": plain}


def _code(source: str) -> dict[str, Any]:
    empty = {"execution_count": None, "metadata": {}, "outputs": []}
    return {"cell_type": "code", **empty, "source": source}


def place(script: str) -> Path:
    """Return where the notebook of a script lies."""
    return EXAMPLES / "notebooks" / f"{Path(script).stem.removeprefix('plot_')}.ipynb"


def written(script: str) -> str:
    """Return the text of a script's notebook."""
    return json.dumps(notebook((EXAMPLES / script).read_text("utf-8")), indent=1) + "\n"


if __name__ == "__main__":
    for script in CHOSEN:
        place(script).write_text(written(script), "utf-8")
