"""Tables that are neither CSV nor Parquet, and tables in many files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.json as pajson
import pyarrow.parquet as pq
from pyarrow import feather

from aberra.data.sources.allowance import COPIES, SMALLER, Allowance
from aberra.data.sources.arrow_frames import check_cells, check_rows
from aberra.data.sources.json_rows import check_lines, check_objects, objects_in
from aberra.data.sources.sheets import first_sheet, whole
from aberra.data.sources.unpacking import ENDINGS as PACKED
from aberra.errors import DataError
from aberra.files import reading, starts_with
from aberra.progress import remark

EXCEL = (".xlsx", ".xlsm")
FEATHER = (".feather", ".arrow", ".ipc")
LINES = (".jsonl", ".ndjson")
ARROW = b"ARROW1"
PLAIN = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".json", *EXCEL, *FEATHER, *LINES)
MORE_TABLES = (*PLAIN, ".zip", *(f"{plain}{packed}" for plain in PLAIN for packed in PACKED))

Converter = Callable[[Path, Path, Allowance], Path]


def converter(name: str) -> Converter | None:
    """Return what turns a file of this name into Parquet; None if it needs none."""
    if name.endswith(EXCEL):
        return from_excel
    if name.endswith(FEATHER):
        return from_feather
    if name.endswith(LINES):
        return from_json_lines
    return from_json if name.endswith(".json") else None


def from_excel(path: Path, target: Path, allowance: Allowance) -> Path:
    """Take the first sheet, whose first row names the columns."""
    with reading(path, "Save the sheet as CSV."):
        frame = first_sheet(path, allowance).apply(whole)
        return written(frame.set_axis([str(name) for name in frame.columns], axis=1), target)


def from_feather(path: Path, target: Path, allowance: Allowance) -> Path:
    """Take an Arrow file, also known as Feather."""
    with reading(path, "Save it again as Parquet."):
        if starts_with(path, ARROW):  # the first version of Feather does not pack anything
            _check_batches(path, allowance)
        table = feather.read_table(path)
        check_cells(table)
        pq.write_table(table, target)
    return target


def _check_batches(path: Path, allowance: Allowance) -> None:
    """Refuse too many rows; all batches but the last have as many as the first."""
    with path.open("rb") as source, pa.ipc.open_file(source) as held:
        if n := held.num_record_batches:
            check_rows(held.schema, n * held.get_batch(0).num_rows, allowance)


def from_json_lines(path: Path, target: Path, allowance: Allowance) -> Path:
    """Take one JSON object a line; its names are the columns."""
    with reading(path, "Every line must be one JSON object without lists or objects in it."):
        check_lines(path, allowance)
        pq.write_table(pajson.read_json(path), target)
    return target


def from_json(path: Path, target: Path, allowance: Allowance) -> Path:
    """Take a list of JSON objects, or one object a line."""
    with path.open("rb") as file:
        first = file.read(1 << 12).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if first == b"{":
        return from_json_lines(path, target, allowance)
    with reading(path, "It must be a list of objects, or one object a line."):
        rows = objects_in(path, allowance)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError(f"{path} is no list of JSON objects.")
        check_objects(rows, allowance)
        return written(_with_whole_numbers(pd.DataFrame(rows), rows), target)


def _with_whole_numbers(frame: pd.DataFrame, rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return a frame whose whole numbers keep all digits, also beside gaps."""
    for name in frame.select_dtypes("float").columns:
        values = [row.get(name) for row in rows]
        if all(value is None or type(value) is int for value in values):
            with suppress(OverflowError):  # beyond 64 bits
                frame[name] = pd.array(values, "Int64")
    return frame


def files_of_table(folder: Path) -> list[Path]:
    """Return the files of a folder that together are one table, by name.

    What cannot be read, such as a link that leads nowhere, is among them: `check_file` tells.
    """
    found = sorted(
        path
        for path in folder.rglob("*")
        if not path.is_dir() and not path.name.startswith((".", "_"))
        and path.name.lower().endswith(MORE_TABLES)
    )  # fmt: skip
    if not found:
        raise DataError(f"There is no table in the folder {folder}.")
    return found


def tell_of_links(folder: Path) -> None:
    """Say which folders lie beside these files only as links, which are not followed."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and path.is_dir():
            remark(f"Left out: {path} (a link to a folder, which is not followed).")


def joined(frames: Iterable[tuple[Path, pd.DataFrame]], target: Path, allowance: Allowance) -> Path:
    """Put the rows of several files into one; all must have the same columns."""
    held: list[pd.DataFrame] = []
    size = 0
    for path, frame in frames:
        if held and set(frame.columns) != set(held[0].columns):
            odd = sorted(map(str, set(frame.columns) ^ set(held[0].columns)))[:5]
            raise DataError(
                f"{path} has other columns than the files before it ({odd}). Files of a folder "
                "are one table: give them the same columns, or give one file."
            )
        size += COPIES * int(frame.memory_usage(index=False).sum())
        allowance.check(size, SMALLER)
        held.append(frame)
    return written(pd.concat(held, ignore_index=True), target)


def written(frame: pd.DataFrame, target: Path) -> Path:
    """Write a data frame; cells of different types in a column become text."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        plain = frame.apply(_as_text_if_mixed)
        table = pa.Table.from_pandas(plain, preserve_index=False)
    pq.write_table(table, target)
    return target


def _as_text_if_mixed(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.dtype != object:
        return column
    return column.map(str, na_action="ignore")
