"""Small files that stand for gigabytes: each ends in a sentence, before it has taken the memory."""

import gzip
import json
import zipfile
from datetime import datetime

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from aberra.data.blocks import extent
from aberra.data.sources import allowance, sheets
from aberra.data.sources.sheets import first_sheet
from aberra.data.sources.staged import table_at
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError

FEW_BYTES, FEW_TIMES = 1 << 20, 20  # instead of 1 GB and 200 times


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(allowance, "LARGE", FEW_BYTES)
    monkeypatch.setattr(allowance, "MOST_EXPANSION", FEW_TIMES)


def sheet(path, cells):
    book = openpyxl.Workbook()
    for (row, column), value in cells.items():
        book.active.cell(row, column, value)
    book.save(path)
    return path


def changed(path, target, old, new):
    """Return a copy of a workbook with other bytes in its entries."""
    with (
        zipfile.ZipFile(path) as source,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy,
    ):
        for name in source.namelist():
            copy.writestr(name, source.read(name).replace(old, new))
    return target


def test_a_cell_far_out_in_a_sheet_takes_no_memory(tmp_path):
    cells = {(1, 1): "a", (2, 1): 1, (3, 1): 2}
    assert len(table_at(sheet(tmp_path / "near.xlsx", cells)).read()) == 2
    far = sheet(tmp_path / "far.xlsx", cells | {(1 << 20, 1 << 14): 1})
    with pytest.raises(DataError, match=r"far\.xlsx: its first sheet unpacks to more than 1 GB"):
        table_at(far)


def test_a_row_that_no_sheet_has_is_refused_and_not_filled_up_to(tmp_path, monkeypatch):
    """The blank rows before it, which nobody wrote, would be made one by one."""
    path = sheet(tmp_path / "rows.xlsx", {(1, 1): "a", (2, 1): 1})
    far = changed(path, tmp_path / "far.xlsx", b'r="2"', b'r="%d"' % 10**11)
    with pytest.raises(
        DataError, match=r"far\.xlsx: its first sheet numbers a row beyond 1,048,576"
    ):
        table_at(far)
    last = changed(path, tmp_path / "last.xlsx", b'r="2"', b'r="50"')
    limit = allowance.Allowance.of(last)
    monkeypatch.setattr(sheets, "MOST_ROWS", 50)
    assert first_sheet(last, limit).a.tolist() == [1]
    monkeypatch.setattr(sheets, "MOST_ROWS", 49)
    with pytest.raises(DataError, match="numbers a row beyond 49"):
        first_sheet(last, limit)


def test_a_long_cell_in_a_sheet_is_refused_before_it_is_read(small, tmp_path):
    path = sheet(tmp_path / "rows.xlsx", {(1, 1): "a", (2, 1): 1, (3, 1): "word"})
    assert len(table_at(path).read()) == 2
    long = changed(path, tmp_path / "long.xlsx", b"word", b"x" * FEW_BYTES)
    with pytest.raises(DataError, match=r"long\.xlsx unpacks to more than"):
        table_at(long)


def test_sheets_are_read_as_pandas_reads_them(tmp_path):
    day = datetime(2024, 5, 17, 12, 30)
    columns = [
        ["a", 1, 2.0, 3.5, None],
        ["a", "x", "007", "n/a", ""],
        [None, True, False, None, True],
        ["when", day, None, day, day],
        [7, "#DIV/0!", 1e300, -2, "=1+1"],
        ["gap", None, None, None, None],
    ]
    cells = {(i + 1, j + 1): v for j, column in enumerate(columns) for i, v in enumerate(column)}
    path = sheet(tmp_path / "rows.xlsx", cells | {(9, 1): 4, (11, 9): None})
    found = first_sheet(path, allowance.Allowance.of(path))
    pd.testing.assert_frame_equal(found, pd.read_excel(path, engine="openpyxl"))


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_objects_with_names_of_their_own_are_refused(name, small, tmp_path):
    same = [{"a": k, "b": '"c": 1, "d\\": 2'} for k in range(3000)]
    own = [{f'a"{k}': 1, "b": 2} for k in range(500)]
    for rows in (same, own):
        text = json.dumps(rows) if name == "rows.json" else "\n".join(map(json.dumps, rows))
        path = tmp_path / f"{len(rows)}-{name}"
        path.write_text(text)
        if rows is same:
            assert table_at(path).read().shape == (3000, 2)
        else:
            with pytest.raises(DataError, match=r"500 objects with 501 names unpacks to more"):
                table_at(path)


def test_packed_json_of_many_small_objects_is_refused_before_it_is_parsed(small, tmp_path):
    path = tmp_path / "rows.json.gz"
    path.write_bytes(gzip.compress(b"[" + b"{}," * 20_000 + b"{}]"))
    with pytest.raises(DataError, match=r"rows\.json\.gz unpacks to more than"):
        table_at(path)


def long_text(path, **how):
    words = pa.DictionaryArray.from_arrays(np.zeros(2000, np.int32), ["x" * 2000])
    rows = pa.table({"a": np.arange(2000.0), "s": words.cast(pa.string())})
    pq.write_table(rows, path, compression="zstd", **how)
    return path


def test_a_long_text_in_every_row_of_a_parquet_file_is_refused(small, tmp_path):
    table = table_at(long_text(tmp_path / "rows.parquet"))
    with pytest.raises(DataError, match=r"rows\.parquet: text as that in the column 's' unpacks"):
        table.read()
    with pytest.raises(DataError, match=r"rows\.parquet: text as that in the column 's' unpacks"):
        list(table.chunks(["s"], {"s": "text"}, 2000))
    assert len(next(table.chunks(["a"], {"a": "number"}, 2000)).frame) == 2000


def test_a_dictionary_of_a_feather_file_is_refused_when_it_fills_the_rows(small, tmp_path):
    words = pa.DictionaryArray.from_arrays(np.zeros(2000, np.int32), ["x" * 2000])
    feather.write_feather(pa.table({"s": words}), tmp_path / "rows.feather")
    with pytest.raises(DataError, match="text as that in the column 's' unpacks"):
        table_at(tmp_path / "rows.feather").read()


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.binary()])
def test_what_no_frame_takes_is_refused_before_it_is_read(kind, tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"s": pa.array([None, None], kind)}), path)
    monkeypatch.setattr(pq, "read_table", None)
    with pytest.raises(DataError, match=r"Column 's' of .*rows\.parquet holds"):
        TableFile(path).read()


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv.gz", "rows.csv.bz2", "rows.npz"])
def test_many_cells_in_a_small_file_are_refused(name, small, tmp_path):
    zeros = pd.DataFrame(np.zeros((20_000, 8)), columns=[f"x{j}" for j in range(8)])
    path = tmp_path / name
    if name == "rows.npz":
        np.savez_compressed(path, X=zeros)
    elif name == "rows.parquet":
        zeros.to_parquet(path)
    else:
        zeros.astype(int).to_csv(path, index=False)
    with pytest.raises(DataError, match=r"(8 columns|array 'X.npy') unpacks"):
        table_at(path).read()


def test_a_feather_file_of_one_value_is_refused_before_it_is_read(small, tmp_path, monkeypatch):
    zeros = pa.table({f"x{j}": np.zeros(20_000) for j in range(8)})
    feather.write_feather(zeros, tmp_path / "rows.feather", compression="zstd")
    monkeypatch.setattr(feather, "read_table", None)
    with pytest.raises(DataError, match=r"20,000 rows and 8 columns unpacks"):
        table_at(tmp_path / "rows.feather")


def test_many_packed_files_do_not_fill_the_disk_together(small, tmp_path):
    with zipfile.ZipFile(tmp_path / "rows.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for k in range(4):
            archive.writestr(f"{k}.csv", "a,b\n" + "1,2\n" * 100_000)
    with pytest.raises(DataError, match=r"rows\.zip unpacks to more than"):
        table_at(tmp_path / "rows.zip")


@pytest.mark.parametrize("packed", ["gz", "bz2", "xz", "zip"])
def test_packed_rows_are_counted_by_what_is_inside(packed, tmp_path, monkeypatch):
    path = tmp_path / f"rows.csv.{packed}"
    pd.DataFrame({"a": [1] * 5000, "b": 2}).to_csv(path, index=False)
    monkeypatch.setattr(extent, "LARGE_ROWS", 6000)
    assert not extent.is_large(str(path))
    monkeypatch.setattr(extent, "LARGE_ROWS", 4000)
    assert extent.is_large(str(path))
