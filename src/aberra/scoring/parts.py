"""Finished pieces of a long run, kept beside its output until they are joined."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from aberra.errors import DataError
from aberra.files import check_folder_of, refuse_special, replacing, write_atomically
from aberra.locks import real

MANIFEST = "manifest.json"
RUN = b"aberra-run"  # under which a piece keeps the fingerprint of its run, and its place in it
FORMULA = r"^([=+\-@\t\r\n])"  # how a cell begins that spreadsheets compute
OUTPUTS = (".parquet", ".csv")


@dataclass(frozen=True)
class Parts:
    """The folder `OUTPUT.parts`, with one Parquet file for each finished piece.

    Whoever works in it holds `locks.alone(output)`. Every piece says which run it belongs to and
    its place there, so that even without the lock no piece of another run gets into the result, and
    none that was moved.

    Parameters
    ----------
    output : Path
        The result, ending in `.parquet` or `.csv`.
    fingerprint : str
        Digest of everything that the result depends on. Pieces of another run are thrown away.
    rows : int
        Rows a piece; only the last may have fewer.
    neutralise : bool, default=False
        Whether text in a CSV file that a spreadsheet would take for a formula gets an apostrophe.
    """

    output: Path
    fingerprint: str
    rows: int
    neutralise: bool = False

    @property
    def folder(self) -> Path:
        """Where the pieces are."""
        output = real(self.output)
        return output.with_name(f"{output.name}.parts")

    def begin(self) -> int:
        """Return how many full pieces are finished already, from the first on without a gap."""
        if os.path.lexists(self.folder) and (self.folder.is_symlink() or not self.folder.is_dir()):
            raise DataError(
                f"{self.folder} is in the way: finished pieces of {self.output.name} are kept in a "
                "folder of this name. Move it away, or choose another name for the result."
            )
        if self._fingerprint() != self.fingerprint:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(
            self.folder / MANIFEST, json.dumps({"fingerprint": self.fingerprint}).encode()
        )
        index = 0
        while self._is_full(index):
            index += 1
        return index

    def add(self, index: int, piece: pa.Table) -> None:
        """Keep a finished piece."""
        buffer = io.BytesIO()
        said = {**(piece.schema.metadata or {}), RUN: self._mark(index)}
        pq.write_table(piece.replace_schema_metadata(said), buffer)
        write_atomically(self._path(index), buffer.getvalue())

    def pieces(self, n_rows: int) -> Iterator[pa.Table]:
        """Yield the finished pieces in their order; refuse if they are not these many rows of ours.

        Parameters
        ----------
        n_rows : int
            How many rows the result has.
        """
        for index, start in enumerate(range(0, n_rows, self.rows)):
            expected = min(self.rows, n_rows - start)
            if self._n_rows(index) != expected:
                raise DataError(
                    f"{self._path(index)} does not hold the {expected:,} rows that this run put "
                    f"there. Delete the folder {self.folder} and give the same command again."
                )
            with self._path(index).open("rb") as file:
                piece = pq.read_table(file)
            yield piece

    def join(self, schema: pa.Schema, n_rows: int) -> None:
        """Write the output, all or nothing, with memory for one piece; remove the pieces."""
        self.finish(schema, self.pieces(n_rows))

    def finish(self, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
        """Write some tables as the output, all or nothing; remove the pieces."""
        with replacing(self.output) as temporary:
            writer = pq.ParquetWriter if _is_parquet(self.output) else pacsv.CSVWriter
            # opened here, as Arrow takes no name that is not UTF-8
            with open(temporary, "wb") as out, writer(out, schema) as file:
                for table in tables:
                    file.write_table(self._as_written(table.replace_schema_metadata()))
        shutil.rmtree(self.folder)

    def _as_written(self, table: pa.Table) -> pa.Table:
        spreadsheet = self.neutralise and not _is_parquet(self.output)
        return _without_formulas(table) if spreadsheet else table

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:08d}.parquet"

    def _mark(self, index: int) -> str:
        return f"{self.fingerprint}/{index}"

    def _is_full(self, index: int) -> bool:
        return self._n_rows(index) == self.rows

    def _n_rows(self, index: int) -> int | None:
        """Return how many rows a piece has; None if it is not there, not whole, or another's."""
        try:
            with self._path(index).open("rb") as file:
                about = pq.read_metadata(file)
        except (OSError, pa.ArrowException):
            return None
        ours = (about.metadata or {}).get(RUN) == self._mark(index).encode()
        return int(about.num_rows) if ours else None

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
    refuse_special(output)
    check_folder_of(output)
    if output.is_dir():
        raise DataError(f"{output} is a folder. Give the name of a file.")


def _without_formulas(piece: pa.Table) -> pa.Table:
    """Return the rows with an apostrophe before text that begins as a formula does."""
    for k, field in enumerate(piece.schema):
        if pa.types.is_string(field.type):
            marked = pc.replace_substring_regex(piece.column(k), FORMULA, r"'\1")
            piece = piece.set_column(k, field, marked)
    return piece


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")
