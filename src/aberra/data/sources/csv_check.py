"""What to know about a CSV file before its cells are read: its header, and that quotes close.

A quote that is never closed turns the rest of a file into one cell, and parsers take that without
a word. So the file is looked through once, in pieces, at the speed of reading it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aberra.data.sources.allowance import UNPACK, Allowance
from aberra.errors import DataError
from aberra.files import reading

DELIMITERS = ",;\t|"
HEAD = 1 << 16  # bytes in which the header is looked for at first
LONGEST_HEADER = 1 << 26  # bytes: a million columns with long names
LINES_OF_HEADER = 20
LONGEST_CELL = (1 << 31) - 1  # letters
BOM = b"\xef\xbb\xbf"
LINE_END = re.compile(rb"\r\n|\r|\n")
CELL = re.compile(rb'(?:(?<=[,;\t|])|^)"(?:[^"]|"")*+"')  # one that is quoted and closed
OPEN_CELL = re.compile(rb'(?:[,;\t|]|^)"')
PIECE = 1 << 22
MOST_LINES = 1000  # line ends in a cell; more are rows between two quotes that have no partners
QUOTE, LINE_ENDS = ord('"'), (ord("\n"), ord("\r"))


@dataclass(frozen=True)
class Called:
    """What messages call a file, which may be a copy of the one that the user has.

    Parameters
    ----------
    path : Path
        The user's file.
    added : int, default=0
        Lines that the copy has on top of it: 1 if it got a header.
    """

    path: Path
    added: int = 0

    def line(self, number: int) -> str:
        """Return a line of the copy as the user counts it."""
        return f"{max(1, number - self.added):,}"


def header_of(path: Path, called: Path | None = None) -> tuple[list[str], str]:
    """Return the names in the first line of a CSV file, and its delimiter.

    The delimiter is the one that occurs most often in the header, outside quoted names. Messages
    name the file `called`, if it is not the file itself.
    """
    named = called or path
    with reading(named, "Check its first line, which names the columns."), long_cells():
        line = _first_line(path, named)
        if not line.strip():
            raise DataError(f"{named} is empty.")
        bare = CELL.sub(b"", line)
        mark = max(DELIMITERS, key=lambda m: bare.count(m.encode()))
        return next(csv.reader([line.decode("utf-8", "replace")], delimiter=mark)), mark


@contextmanager
def long_cells() -> Iterator[None]:
    """Let Python's reader of CSV take cells of any length; by itself it takes 131,072 letters."""
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _first_line(path: Path, named: Path) -> bytes:
    """Return the first line that is not empty, however long it is."""
    with pa.input_stream(str(path), compression="detect") as stream:
        head, wanted = bytearray(), HEAD
        while piece := stream.read(wanted - len(head)):
            head += piece
            line = _whole_line(bytes(head))
            if line is not None:
                return line
            if wanted > LONGEST_HEADER:
                raise DataError(
                    f"The first line of {named} goes on for more than {LONGEST_HEADER >> 20} MB, "
                    "so it is no header of a table. Check that this is a CSV file."
                )
            wanted = 2 * len(head)
    line = _whole_line(bytes(head), is_all=True)
    return bytes(head).removeprefix(BOM).strip(b"\r\n") if line is None else line


def _whole_line(head: bytes, is_all: bool = False) -> bytes | None:
    """Return the first line if its end is there; a quoted name may run over a few lines."""
    text = head.removeprefix(BOM).lstrip(b"\r\n")
    ends = [match.start() for match in islice(LINE_END.finditer(text), LINES_OF_HEADER)]
    closed = (end for end in ends if not OPEN_CELL.search(CELL.sub(b"", text[:end])))
    end = next(closed, None)
    if end is None and ends and (is_all or len(ends) == LINES_OF_HEADER):
        end = ends[0]  # no line closes the quote: the check of the file names it
    return None if end is None else text[:end]


class Quotes(NamedTuple):
    """The quotes of a piece: where they are, and what stands around them."""

    at: NDArray[np.int64]
    starts: NDArray[np.bool_]  # whether it stands at the beginning of a cell
    stops: NDArray[np.bool_]  # whether it stands at the end of one
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]


@dataclass
class QuoteScan:
    """Follows the quotes of a CSV file, piece by piece.

    A quote opens a cell only at its beginning, as RFC 4180 and Arrow have it; elsewhere it is a
    letter like any other. A cell that holds a line end must be closed properly: by a quote that a
    delimiter, a line end or the end of the file follows. Two lost quotes may look like that, with
    all rows between them in one legal cell, so a cell of very many lines is refused.

    Parameters
    ----------
    called : Called
        Named in messages.
    delimiter : str
    spans : bool, default=False
        Whether cells with a line end were found; True as soon as there may be one.
    """

    called: Called
    delimiter: str
    spans: bool = False
    inside: bool = False
    line: int = 1  # of the next byte
    opened: int = 0  # line in which the open cell began
    last: int = LINE_ENDS[0]  # the byte before the next one
    doubled: bool = False  # whether the next byte is the second of two quotes in a cell

    def feed(self, piece: bytes, following: int) -> None:
        """Look at the next bytes; `following` is the byte after them, a line end if none is."""
        data = np.frombuffer(piece, np.uint8)
        at = np.flatnonzero(data == QUOTE)
        self.spans |= self.inside and bool(len(_line_ends(data)))
        if self.doubled and len(at):  # the second of two quotes, which stand for one in the cell
            at, self.doubled = at[1:], False
        if len(at):
            before = np.where(at > 0, data[at - 1], self.last)
            after = np.append(data, np.uint8(following))[at + 1]
            ends = np.zeros(256, bool)  # by byte
            ends[[*LINE_ENDS, ord(self.delimiter)]] = True
            quotes = Quotes(at, ends[before], ends[after], before, after)
            if not self._all_in_order(piece, quotes):
                self._one_by_one(piece, quotes)
        self.line += piece.count(b"\n")
        self.last = piece[-1] if piece else self.last

    def finish(self) -> None:
        """Say so if a cell is still open at the end of the file."""
        if self.inside:
            raise DataError(
                f"{self.called.path}, line {self.called.line(self.opened)}: a quote opens a cell "
                f"here that is never closed, so the rest of the file would be one cell. {ADVICE}"
            )

    def _all_in_order(self, piece: bytes, quotes: Quotes) -> bool:
        """Take the usual case, in which every quote is where it belongs, without a loop."""
        n = len(quotes.at)
        opening = (np.arange(n) + self.inside) % 2 == 0
        # After the first, a quote may also open a cell again that the one before it closed.
        may_open = quotes.starts | ((quotes.before == QUOTE) & (np.arange(n) > 0))
        may_close = quotes.stops | (quotes.after == QUOTE)
        if not np.where(opening, may_open, may_close).all():
            return False
        if not self.spans:
            before = np.searchsorted(quotes.at, _line_ends(np.frombuffer(piece, np.uint8)))
            self.spans = bool(((before + self.inside) % 2 == 1).any())
        begun = np.flatnonzero(opening & quotes.starts)
        at_end = int(quotes.at[-1]) == len(piece) - 1
        self.doubled = bool(not opening[-1] and at_end and quotes.after[-1] == QUOTE)
        was_inside, self.inside = self.inside, bool(opening[-1]) or self.doubled
        self._check_lengths(piece, quotes.at, begun, was_inside)
        if len(begun):
            self.opened = self.line + piece.count(b"\n", 0, int(quotes.at[begun[-1]]))
        return True

    def _check_lengths(
        self, piece: bytes, at: NDArray[np.int64], begun: NDArray[np.int64], was_inside: bool
    ) -> None:
        """Refuse a cell of too many lines; lines are counted only where there is room for them."""
        bounds = np.append(begun, len(at))
        firsts, lasts = at[begun], at[bounds[1:] - 1]
        if was_inside:  # the first cell began in another piece
            firsts, lasts = np.append(0, firsts), np.append(at[bounds[0] - 1], lasts)
        if self.inside:  # the last one ends in another
            firsts, lasts = firsts[:-1], lasts[:-1]
        long = lasts - firsts > MOST_LINES
        long[: int(was_inside)] = True
        for k in np.flatnonzero(long).tolist():
            lines = piece.count(b"\n", int(firsts[k]), int(lasts[k]))
            if was_inside and k == 0:
                self._check_length(self.opened, self.line + lines)
            elif lines > MOST_LINES:
                opened = self.line + piece.count(b"\n", 0, int(firsts[k]))
                self._check_length(opened, opened + lines)

    def _check_length(self, opened: int, closed: int) -> None:
        if closed - opened <= MOST_LINES:
            return
        raise DataError(
            f"{self.called.path}: the quote that opens a cell in line {self.called.line(opened)} "
            f"meets another one only in line {self.called.line(closed)}, so {closed - opened:,} "
            "line ends would lie in one cell. Close or remove quotes that have no partner. If the "
            "cell is meant to be so long, save the table as Parquet."
        )

    def _one_by_one(self, piece: bytes, quotes: Quotes) -> None:
        line, seen = self.line, 0
        for k, place in enumerate(quotes.at.tolist()):
            line, seen = line + piece.count(b"\n", seen, place), place
            if self.doubled:
                self.doubled = False
            elif not self.inside:
                if quotes.starts[k]:
                    self.inside, self.opened = True, line
            elif quotes.after[k] == QUOTE:
                self.doubled = True
            else:
                if not quotes.stops[k] and line != self.opened:
                    self._refuse(line)
                self._check_length(self.opened, line)
                self.spans |= line != self.opened
                self.inside = False

    def _refuse(self, line: int) -> NoReturn:
        raise DataError(
            f"{self.called.path}: the quote that opens a cell in line "
            f"{self.called.line(self.opened)} meets another one only in line "
            f"{self.called.line(line)}, in the middle of a cell; one of the two has no partner. "
            f"{ADVICE}"
        )


def _line_ends(data: NDArray[np.uint8]) -> NDArray[np.int64]:
    return np.flatnonzero((data == LINE_ENDS[0]) | (data == LINE_ENDS[1]))


ADVICE = "Close the quote, or double it if it is part of the text."


class Looked(NamedTuple):
    """What is known of a CSV file once it has been looked through."""

    lines: int
    size: int  # bytes, unpacked
    spans: bool  # whether a cell has a line end

    def most_rows(self, n_columns: int) -> int:
        """Return how many rows there can be: a line end may also be part of a cell."""
        return min(self.lines, self.size // n_columns)


def check_csv(
    path: Path, delimiter: str, called: Called | None = None, allowance: Allowance | None = None
) -> Looked:
    """Raise an error that names the line if a quote has no partner, or a packed file is a trap.

    Parameters
    ----------
    path : Path
        A CSV file, perhaps packed with gzip.
    delimiter : str
    called : Called, optional
        What messages call it, if it is a copy.
    allowance : Allowance, optional
        How much it may become, if it is a copy.

    Returns
    -------
    looked : Looked
        How many lines it has, how many bytes they take, and whether cells run over lines.
    """
    known = called or Called(path)
    most = allowance or Allowance.of(path, known.path)
    scan, size, returns, held = QuoteScan(known, delimiter), 0, 0, b""
    with pa.input_stream(str(path), compression="detect") as stream:
        while piece := stream.read(PIECE):
            size += len(piece)
            most.check(size, UNPACK)
            returns += piece.count(b"\r")
            piece = held + piece
            held = b'"' if piece.endswith(b'"') else b""  # what it means, the next byte will say
            scan.feed(piece[: len(piece) - len(held)], QUOTE)
        scan.feed(held, LINE_ENDS[0])
    scan.finish()
    return Looked(max(scan.line, returns + 1), size, scan.spans)
