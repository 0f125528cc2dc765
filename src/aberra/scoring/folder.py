"""A folder of results with one line for each input in `scores.csv`; a stopped run goes on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aberra.errors import DataError
from aberra.files import write_atomically
from aberra.locks import alone

SCORES = "scores.csv"
RUN = ".aberra-run.json"

Line = Mapping[str, str]


@dataclass
class ResultFolder:
    """The results of one run over many inputs.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    fingerprint : str
        Digest of the model and the settings. Lines of another run are not taken over, nor those
        of an input that has changed since: each line goes with a mark of its input.
    columns : sequence of str
        Of `scores.csv`; the first names the input, "error" says why there is no result.
    """

    folder: Path
    fingerprint: str
    columns: Sequence[str]
    lines: dict[str, Line] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder, and keep other runs out of it for the length of the block."""
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(
                f"{self.folder} is a file, but maps need a folder. Choose another name."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with alone(self.folder / SCORES):
            yield

    def begin(self) -> None:
        """Take over the lines of an earlier, interrupted run."""
        held = self._held_run()
        if held.get("fingerprint") == self.fingerprint:
            self.lines = {line[self.columns[0]]: line for line in self._held_lines()}
            self.marks = {str(name): str(mark) for name, mark in held.get("inputs", {}).items()}
        self._write_run()

    def is_done(self, name: str, mark: str) -> bool:
        """Say whether there is a result for this very input, with the files that belong to it."""
        line = self.lines.get(name)
        if line is None or line["error"] or self.marks.get(name) != mark:
            return False
        return (self.folder / line["map"]).is_file()

    def add(self, line: Line, mark: str) -> None:
        """Keep the result for one input."""
        name = line[self.columns[0]]
        self.lines[name], self.marks[name] = line, mark

    def write(self, names: Sequence[str]) -> None:
        """Write `scores.csv` for these inputs, as far as there are results, in their order."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.lines[name] for name in names if name in self.lines)
        write_atomically(self.folder / SCORES, text.getvalue().encode("utf-8", "surrogateescape"))
        self._write_run()  # afterwards: a line without its mark is done again, not trusted

    def _write_run(self) -> None:
        run = {"fingerprint": self.fingerprint, "inputs": self.marks}
        write_atomically(self.folder / RUN, json.dumps(run).encode())

    def _held_run(self) -> dict[str, Any]:
        try:
            held = json.loads((self.folder / RUN).read_bytes())
        except (OSError, ValueError):
            return {}
        return held if isinstance(held, dict) and isinstance(held.get("inputs"), dict) else {}

    def _held_lines(self) -> Iterator[Line]:
        try:
            with (self.folder / SCORES).open(
                newline="", encoding="utf-8", errors="surrogateescape"
            ) as file:
                rows = csv.DictReader(file)
                if rows.fieldnames == list(self.columns):
                    yield from rows
        except OSError:
            return
