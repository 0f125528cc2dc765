"""The text of a CSV file: its encoding, its header, and lines of the wrong length."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from aberra.data.sources.allowance import UNPACK as IF_MEANT
from aberra.data.sources.allowance import Allowance
from aberra.data.sources.csv_check import header_of, long_cells
from aberra.errors import DataError
from aberra.files import reading

PIECE = 1 << 22
UNPACK = "Unpack it yourself, or copy it again from where it came from."
MARKS = {  # the longer ones first: that of UTF-32 begins as that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WESTERN = "cp1252"  # Latin-1 as Windows writes it
# Letters of two or more bytes that are UTF-8.
PROPER = re.compile(rb"[\xc3-\xdf][\x80-\xbf](?![\x80-\xbf])|[\xe1-\xef][\x80-\xbf]{2}")
FIGURES = re.compile(r"^[+-]?[.,]?\d[\d.,:/eE+-]*$")  # a number or a date
WHOLE = re.compile(r"^\s*\d+\s*$")
FEW = 2  # numbers that are in some order anyway
FEWEST_CELLS = 3  # of a row that is told from text
MEASURED = re.compile(r"^\s*-?\d+[.,]\d+\s*$|^\s*-\d+\s*$|^\d{4}-\d\d-\d\d")  # no name of a column


def readable_csv(path: Path, fresh: Callable[[], Path], header: bool, allowance: Allowance) -> Path:
    """Return a CSV file in UTF-8 with a header: the file itself if it is one.

    Parameters
    ----------
    path : Path
    fresh : callable
        Makes a folder for a corrected copy.
    header : bool
        Whether the first line names the columns.
    allowance : Allowance
        How much it may become, and what messages call it.
    """
    called = allowance.called
    encoding = encoding_of(path, allowance)
    source = path
    if encoding is not None:
        source = _as_utf8(path, fresh() / _unpacked_name(path), encoding, allowance)
    if not header:
        return _with_names(source, fresh() / _unpacked_name(path), allowance)
    _refuse_rows_as_names(source, called)
    return source


def encoding_of(path: Path, allowance: Allowance) -> str | None:
    """Return how a file is encoded; None if it is UTF-8.

    A file that is not UTF-8 is Western European text (Windows-1252). But if other letters in it are
    proper UTF-8, a few bytes are damaged, and guessing would spoil the rest.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    called, line, beyond = allowance.called, 1, False
    pieces = chain(_pieces(path, allowance), [b""])  # at last, what is left of a letter
    for k, piece in enumerate(pieces):
        if k == 0 and (mark := _marked(piece)) is not None:
            return mark
        if b"\0" in piece:
            _refuse_zero(called, line + piece[: piece.index(b"\0")].count(b"\n"))
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            if beyond or not before.isascii() or PROPER.search(error.object[error.end :]):
                _refuse_byte(called, line + before.count(b"\n"), error.object[error.start])
            return WESTERN
        beyond = beyond or not text.isascii()
        line += piece.count(b"\n")
    return None


def _marked(piece: bytes) -> str | None:
    """Return the encoding that a mark at the beginning of a file names."""
    return next((name for mark, name in MARKS.items() if piece.startswith(mark)), None)


def _refuse_zero(path: Path, line: int) -> NoReturn:
    raise DataError(
        f"{path}, line {line:,}: there is a byte 0, which no CSV file in UTF-8 has. If it was "
        "written as UTF-16 or UTF-32, save it as UTF-8; otherwise it is damaged or no CSV file."
    )


def _refuse_byte(path: Path, line: int, byte: int) -> None:
    raise DataError(
        f"{path}, line {line:,}: the byte 0x{byte:02x} is no letter in UTF-8, which the rest of "
        "the file is written in. Correct this line."
    )


def _pieces(path: Path, allowance: Allowance) -> Iterator[bytes]:
    size = 0
    with reading(path, UNPACK), pa.input_stream(str(path), compression="detect") as stream:
        while piece := stream.read(PIECE):
            size += len(piece)
            allowance.check(size, IF_MEANT)
            yield bytes(piece)


def _as_utf8(path: Path, target: Path, encoding: str, allowance: Allowance) -> Path:
    """Write a copy in UTF-8."""
    size = 0
    with _text(path, encoding) as text, target.open("w", encoding="utf-8", newline="") as out:
        while piece := text.read(PIECE):
            size += len(piece)
            allowance.check(size, IF_MEANT)
            out.write(piece)
    return target


@contextmanager
def _text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with reading(path, UNPACK), pa.input_stream(str(path), compression="detect") as stream:
        yield io.TextIOWrapper(stream, encoding=encoding, errors="replace", newline="")


def _unpacked_name(path: Path) -> str:
    return path.name[:-3] if path.name.lower().endswith(".gz") else path.name


def _with_names(source: Path, target: Path, allowance: Allowance) -> Path:
    """Write a copy with x0, x1, ... on top."""
    cells, mark = header_of(source, allowance.called)
    with target.open("wb") as out:
        out.write(mark.join(f"x{j}" for j in range(len(cells))).encode() + b"\n")
        for k, piece in enumerate(_pieces(source, allowance)):
            out.write(piece.removeprefix(codecs.BOM_UTF8) if k == 0 else piece)
    return target


def _refuse_rows_as_names(path: Path, called: Path) -> None:
    """Ask about a file whose first line is a row of values, not the names of columns."""
    names, _ = header_of(path, called)
    odd = [name for name in names if MEASURED.match(name)]
    if not odd and len(names) > FEW and all(map(WHOLE.match, names)):
        odd = [] if _is_an_axis(names[::-1]) else names
    if not odd or _is_an_axis(names):
        return
    raise DataError(
        f"The first line of {called} looks like a row, not like names of columns: "
        f"{odd[0].strip()!r}. If the file has no header, give --no-header (in Python "
        "header=False); the columns are then called x0, x1, ... Otherwise rename this column."
    )


def _is_an_axis(names: list[str]) -> bool:
    """Say whether names are rising numbers, such as the wavelengths of a spectrum."""
    try:
        values = [float(name.replace(",", ".")) for name in names]
    except ValueError:
        return False
    return len(values) > FEW and all(a < b for a, b in pairwise(values))


def ragged_line(path: Path, delimiter: str, n_cells: int) -> tuple[int, int] | None:
    """Return the first line with another number of cells, and that number."""
    with _text(path, "utf-8") as text, long_cells():
        rows = csv.reader(text, delimiter=delimiter)
        for cells in rows:
            if cells and len(cells) != n_cells:
                return rows.line_num, len(cells)
    return None


def line_of_row(path: Path, delimiter: str, row: int) -> int:
    """Return the line, counted from 1, in which a row of a CSV file ends."""
    with _text(path, "utf-8") as text, long_cells():
        rows = csv.reader(text, delimiter=delimiter)
        lines = (rows.line_num for cells in rows if cells)
        return next(islice(lines, row + 1, None))  # the header is the first


def rows_in_a_cell(path: Path, delimiter: str, n_cells: int) -> tuple[int, int] | None:
    """Return the first and the last line of a cell that seems to be rows between two lost quotes.

    Every one of its lines has as many cells as the header, with numbers in the same columns. Text
    of several lines hardly ever looks like that, as its first line shares one with other cells.
    """
    seen: list[str] = []

    def remembered(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            seen.append(line)
            yield line

    with _text(path, "utf-8") as text, long_cells():
        rows = csv.reader(remembered(text), delimiter=delimiter)
        for _ in rows:
            if len(seen) > 1 and _are_rows(seen, delimiter, n_cells):
                return rows.line_num - len(seen) + 1, rows.line_num
            seen.clear()
    return None


def _are_rows(lines: list[str], delimiter: str, n_cells: int) -> bool:
    if n_cells < FEWEST_CELLS or any(line.count(delimiter) != n_cells - 1 for line in lines):
        return False
    cells = [[cell.strip('"\r\n ') for cell in line.split(delimiter)] for line in lines]
    columns = [{bool(FIGURES.match(c)) for c in column if c} for column in zip(*cells, strict=True)]
    return {True} in columns and {False, True} not in columns
