"""Excel files, row by row: one cell far out, or one very long, must not take all memory.

A workbook is a zip of XML. What its entries unpack to is known before anything is read, but how
wide its sheet is shows only in its cells: what it says of its dimensions is not to be relied on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
from pandas.io import parsers

from aberra.data.sources.allowance import SMALLER, Allowance
from aberra.errors import DataError
from aberra.extras import need

CELLS = ("xl/worksheets/", "xl/sharedstrings")  # entries that hold cells
IN_CELLS, ELSEWHERE = 4, 40  # bytes in memory for one of such an entry, and of any other
CELL = 64  # bytes of a cell while rows become a table
MOST_ROWS = 1 << 20  # that Excel and LibreOffice have; a number beyond would stand for blank rows
EXACT = 1 << 53  # below which every whole number is a float
SHEET = ": its first sheet"


def first_sheet(path: Path, allowance: Allowance) -> pd.DataFrame:
    """Return the first sheet, whose first row names the columns."""
    openpyxl = need("openpyxl", "files", "An Excel file")
    _check_entries(path, allowance)
    with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
        rows = _rows(book.worksheets[0], allowance)
    if not rows:
        raise DataError(f"The first sheet of {allowance.called} is empty.")
    as_pandas_reads: Any = parsers
    return pd.DataFrame(as_pandas_reads.TextParser(rows, header=0).read())


def whole(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of whole numbers as such, also beside gaps, where pandas has floats."""
    if column.dtype != float or not (column.dropna() % 1 == 0).all():
        return column
    return column.astype("Int64") if column.abs().max() < EXACT else column


def _check_entries(path: Path, allowance: Allowance) -> None:
    """Refuse what unpacks to too much; zipfile never gives more than an entry claims."""
    with ZipFile(path) as archive:
        entries = archive.infolist()
    sizes = [_weight(entry.filename) * entry.file_size for entry in entries]
    allowance.check(sum(sizes), SMALLER)


def _weight(name: str) -> int:
    return IN_CELLS if name.lower().startswith(CELLS) else ELSEWHERE


def _rows(sheet: Any, allowance: Allowance) -> list[list[Any]]:
    """Return the rows up to the last one with a value, all of the same length."""
    sheet.reset_dimensions()
    rows = list(_counted(sheet, allowance))
    while rows and not rows[-1]:
        rows.pop()
    width = max(map(len, rows), default=0)
    return [row + [""] * (width - len(row)) for row in rows]


def _counted(sheet: Any, allowance: Allowance) -> Iterator[list[Any]]:
    """Yield the values of each row; all rows will be as long as the longest one."""
    width = 1
    for n, cells in enumerate(sheet.rows, 1):
        if n > MOST_ROWS:
            raise DataError(
                f"{allowance.called}{SHEET} numbers a row beyond {MOST_ROWS:,}, the most that a "
                "sheet has. Save it again with a spreadsheet program, or as CSV."
            )
        row = [_value(cell) for cell in cells]
        while row and row[-1] == "":
            row.pop()
        width = max(width, len(row))
        allowance.check(n * width * CELL, SMALLER, SHEET)
        yield row


def _value(cell: Any) -> Any:
    """Return a value as pandas has it: whole numbers without a point, errors as gaps."""
    if cell.value is None:
        return ""
    if cell.data_type == "e":
        return np.nan
    if cell.data_type == "n":
        whole = int(cell.value)
        return whole if whole == cell.value else float(cell.value)
    return cell.value
