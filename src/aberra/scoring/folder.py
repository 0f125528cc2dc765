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
from aberra.files import result_mark, write_atomically
from aberra.locks import alone

SCORES = "scores.csv"
RUN = ".aberra-run.json"
FILES = ("map", "segmentation", "picture")  # columns that name what was written, as far as they are

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
    written: dict[str, str] = field(default_factory=dict)  # marks of the results themselves

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
            self.marks, self.written = _marks(held, "inputs"), _marks(held, "results")
        self._write_run()

    def is_done(self, name: str, mark: str) -> bool:
        """Say whether this very input has a result whose files are still those of this run."""
        line = self.lines.get(name)
        if line is None or line["error"] or self.marks.get(name) != mark:
            return False
        written = self.written.get(name)
        return written is not None and written == self._result_mark(line)

    def add(self, line: Line, mark: str) -> None:
        """Keep the result for one input."""
        name = line[self.columns[0]]
        self.lines[name], self.marks[name] = line, mark
        written = None if line["error"] else self._result_mark(line)
        self.written.pop(name, None)
        if written is not None:
            self.written[name] = written

    def write(self, names: Sequence[str]) -> None:
        """Write `scores.csv` for these inputs, as far as there are results, in their order."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.lines[name] for name in names if name in self.lines)
        write_atomically(self.folder / SCORES, text.getvalue().encode("utf-8", "surrogateescape"))
        self._write_run()  # afterwards: a line without its mark is done again, not trusted

    def _result_mark(self, line: Line) -> str | None:
        return result_mark(*(self.folder / line[name] for name in FILES if line.get(name)))

    def _write_run(self) -> None:
        run = {"fingerprint": self.fingerprint, "inputs": self.marks, "results": self.written}
        write_atomically(self.folder / RUN, json.dumps(run).encode())

    def _held_run(self) -> dict[str, Any]:
        try:
            held = json.loads((self.folder / RUN).read_bytes())
        except (OSError, ValueError):
            return {}
        return held if isinstance(held, dict) else {}

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


def _marks(held: Mapping[str, Any], kind: str) -> dict[str, str]:
    marks = held.get(kind)
    if not isinstance(marks, dict):
        return {}
    return {str(name): str(mark) for name, mark in marks.items()}
