"""Tables in whatever people have: each becomes a CSV or Parquet file, which `TableFile` reads.

What Arrow does not read piece by piece is converted once, into a folder of temporary files that
ends with the process. Everything else stays where it is.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from aberra.data.sources import formats, unpacking
from aberra.data.sources.allowance import Allowance
from aberra.data.sources.arrays import ARRAYS
from aberra.data.sources.csv_text import readable_csv
from aberra.data.sources.parquet_rows import PARQUET
from aberra.data.sources.queries import masked, query_to
from aberra.data.sources.standard_input import STDIN, standard_input
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.files import check_file, fingerprint, refuse_special


def table_at(path: str | Path, *, sql: str | None = None, header: bool = True) -> TableFile:
    """Return a table to read, whatever kind of file holds it.

    Parameters
    ----------
    path : path
        A file, a folder of files, "-" for standard input, or with `sql` a database: an SQLite or
        DuckDB file, the address of another one as SQLAlchemy writes it, or a file of rows, which
        the query calls `data`.
    sql : str, optional
        A query whose result is the table.
    header : bool, default=True
        Whether the first line of a CSV file names the columns. Without, they are x0, x1, ...

    Returns
    -------
    table : TableFile
    """
    if sql is not None:
        return _of_query(str(path), sql)
    if str(path) == STDIN:
        held = standard_input(_folder())
        allowance = Allowance.of(held, Path(STDIN))
        found = _converted(held, header, allowance)
        return TableFile(Path(STDIN), found, _digest(held), int(not header), allowance)
    source = Path(path)
    refuse_special(source)
    found = readable(source, header)
    if found == source:
        return TableFile(source)
    return TableFile(source, found, added=int(not header), allowance=Allowance.of(source))


def _of_query(place: str, sql: str) -> TableFile:
    target = _fresh() / "result.parquet"
    query_to(place, sql, target)
    return TableFile(Path(masked(place)), target, _digest(target))


def readable(source: Path, header: bool = True) -> Path:
    """Return a CSV, Parquet or array file with the same rows: the file itself, or a copy."""
    return _remembered(source, fingerprint(source), header)


@lru_cache(maxsize=16)
def _remembered(source: Path, mark: str, header: bool) -> Path:
    """Return the readable form of a file; `mark` changes with the file."""
    return _converted(source, header, Allowance.of(source))


def _converted(source: Path, header: bool, allowance: Allowance) -> Path:
    """Return a CSV, Parquet or array file with the same rows."""
    if source.is_dir():
        parts = formats.files_of_table(source)
        formats.tell_of_links(source)
        frames = ((part, _inside(part, header, allowance).read(hollow=True)) for part in parts)
        return formats.joined(frames, _fresh() / f"{_plain(source.name)}.parquet", allowance)
    source = within_reach(source)
    name = source.name.lower()
    if unpacking.is_packed(name):
        return _converted(unpacking.unpacked(source, _fresh(), allowance), header, allowance)
    if name.endswith((*PARQUET, *ARRAYS)):
        return source
    if (convert := formats.converter(name)) is not None:
        return convert(source, _fresh() / f"{source.stem}.parquet", allowance)
    return readable_csv(source, _fresh, header, allowance)


def within_reach(source: Path) -> Path:
    """Return a file under a name that Arrow takes: a link, if its own is not UTF-8."""
    if str(source) == _plain(str(source)):
        return source
    link = _fresh() / _plain(source.name)
    link.symlink_to(source.absolute())
    return link


def _plain(name: str) -> str:
    return name.encode("utf-8", "replace").decode("utf-8")


def _inside(part: Path, header: bool, allowance: Allowance) -> TableFile:
    """Return a file of a folder, which may become as large as the whole folder may."""
    check_file(part)
    known = replace(allowance, called=part)
    return TableFile(part, _converted(part, header, known), "", int(not header), known)


def _digest(path: Path) -> str:
    """Return a digest of the content alone: the file itself is a new one every time."""
    if path.is_dir():
        raise DataError(f"{path} is a folder.")
    with path.open("rb") as file:
        digest = sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _folder() -> Path:
    """Return the folder of temporary files of this process."""
    folder = Path(tempfile.mkdtemp(prefix="aberra-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _fresh() -> Path:
    return Path(tempfile.mkdtemp(dir=_folder()))
