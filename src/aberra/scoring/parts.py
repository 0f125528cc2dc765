"""Finished pieces of a long run, kept beside its output until they are joined."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from aberra.errors import DataError
from aberra.files import replacing, write_atomically

MANIFEST = "manifest.json"
OUTPUTS = (".parquet", ".csv")


@dataclass(frozen=True)
class Parts:
    """The folder `OUTPUT.parts`, with one Parquet file for each finished piece.

    Parameters
    ----------
    output : Path
        The result, ending in `.parquet` or `.csv`.
    fingerprint : str
        Digest of everything that the result depends on. Pieces of another run are thrown away.
    """

    output: Path
    fingerprint: str

    @property
    def folder(self) -> Path:
        """Where the pieces are."""
        return self.output.with_name(f"{self.output.name}.parts")

    def begin(self) -> int:
        """Return how many pieces are finished already, from the first on without a gap."""
        if self._fingerprint() != self.fingerprint:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(
            self.folder / MANIFEST, json.dumps({"fingerprint": self.fingerprint}).encode()
        )
        return sum(1 for _ in self._finished())

    def add(self, index: int, piece: pa.Table) -> None:
        """Keep a finished piece."""
        buffer = io.BytesIO()
        pq.write_table(piece, buffer)
        write_atomically(self._path(index), buffer.getvalue())

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the finished pieces in their order."""
        for path in self._finished():
            yield pq.read_table(path)

    def join(self, schema: pa.Schema) -> None:
        """Write the output, all or nothing, with memory for one piece; remove the pieces."""
        with replacing(self.output) as temporary:
            writer = pq.ParquetWriter if _is_parquet(self.output) else pacsv.CSVWriter
            with writer(str(temporary), schema) as file:
                for piece in self.pieces():
                    file.write_table(piece)
        shutil.rmtree(self.folder)

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:08d}.parquet"

    def _finished(self) -> Iterator[Path]:
        index = 0
        while self._path(index).exists():
            yield self._path(index)
            index += 1

    def _fingerprint(self) -> str | None:
        try:
            held = json.loads((self.folder / MANIFEST).read_bytes())
            return str(held["fingerprint"])
        except (OSError, ValueError, KeyError, TypeError):
            return None


def check_output(output: Path) -> None:
    """Raise an error if scores cannot be written there, before any work is done."""
    if not output.name.lower().endswith(OUTPUTS):
        raise DataError(
            f"The scores of a table go to a file that ends in .parquet or .csv, not to {output}."
        )
    if not output.parent.is_dir():
        raise DataError(f"There is no folder {output.parent}. Create it first.")
    if output.is_dir():
        raise DataError(f"{output} is a folder. Give the name of a file.")


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")
