"""A folder of results with one line for each input in `scores.csv`; a stopped run goes on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aberra.errors import DataError
from aberra.files import write_atomically

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
        Digest of the model and the settings. Lines of another run are not taken over.
    columns : sequence of str
        Of `scores.csv`; the first names the input, "error" says why there is no result.
    """

    folder: Path
    fingerprint: str
    columns: Sequence[str]
    lines: dict[str, Line] = field(default_factory=dict)

    def begin(self) -> None:
        """Take over the lines of an earlier, interrupted run."""
        if self.folder.exists() and not self.folder.is_dir():
            raise DataError(f"{self.folder} is a file. Give the name of a folder for the maps.")
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._held_fingerprint() == self.fingerprint:
            self.lines = {line[self.columns[0]]: line for line in self._held_lines()}
        mark = {"fingerprint": self.fingerprint}
        write_atomically(self.folder / RUN, json.dumps(mark).encode())

    def is_done(self, name: str) -> bool:
        """Say whether there is a result for this input, with the files that belong to it."""
        line = self.lines.get(name)
        if line is None or line["error"]:
            return False
        return (self.folder / line["map"]).is_file()

    def add(self, line: Line) -> None:
        """Keep the result for one input."""
        self.lines[line[self.columns[0]]] = line

    def write(self, names: Sequence[str]) -> None:
        """Write `scores.csv` for these inputs, as far as there are results, in their order."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.lines[name] for name in names if name in self.lines)
        write_atomically(self.folder / SCORES, text.getvalue().encode())

    def _held_fingerprint(self) -> str | None:
        try:
            return str(json.loads((self.folder / RUN).read_bytes())["fingerprint"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _held_lines(self) -> Iterator[Line]:
        try:
            with (self.folder / SCORES).open(newline="", encoding="utf-8") as file:
                rows = csv.DictReader(file)
                if rows.fieldnames == list(self.columns):
                    yield from rows
        except OSError:
            return
