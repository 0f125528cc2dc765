"""A CSV file gives all its rows, or an error that names the line."""

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aberra.data.sources import allowance, csv_check
from aberra.data.sources.columns import why_not
from aberra.data.sources.csv_check import Called, QuoteScan, check_csv, header_of
from aberra.data.sources.csv_file import BLOCK
from aberra.data.sources.staged import table_at
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError


def file_with(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def rows_with(cell, at=501, n=1000):
    lines = [f"name{k},{k}" for k in range(1, n + 1)]
    lines[at - 1] = f"{cell},{at}"
    return "name,number\n" + "\n".join(lines) + "\n"


def test_a_quote_that_never_closes_is_named_by_its_line(tmp_path):
    table = TableFile(file_with(tmp_path, rows_with('"Ada')))
    with pytest.raises(DataError, match=r"rows\.csv, line 502: .* never closed"):
        table.read()
    with pytest.raises(DataError, match="line 502"):
        list(table.chunks(["number"], {"number": "number"}, 100))


def test_two_quotes_without_partners_do_not_swallow_the_rows_between_them(tmp_path):
    text = rows_with('"Ada').replace("name700,", '"name700,')
    with pytest.raises(DataError, match=r"in line 502 meets another one only in line 701"):
        TableFile(file_with(tmp_path, text)).read()


@pytest.mark.parametrize(
    "cell",
    ['"Ada, B."', '"Ada ""the first"""', '""', '5" disk', '"two\nlines"', 'a"b"c', '"a"b', '""""'],
)
def test_sound_and_harmless_quotes_pass(cell, tmp_path):
    table = TableFile(file_with(tmp_path, rows_with(cell)))
    assert len(table.read()) == 1000
    assert sum(len(c.frame) for c in table.chunks(["number"], {"number": "number"}, 99)) == 1000


def test_two_lost_quotes_that_look_like_one_cell_do_not_swallow_the_rows_between_them(tmp_path):
    """Each stands where a quote may stand, so 2,000 rows became one cell without a word."""
    lines = [f"{k},name" for k in range(2, 5002)]
    lines[999], lines[2999] = '1001,"name', '3001,name"'
    text = "number,name\n" + "\n".join(lines) + "\n"
    said = r"rows\.csv: the quote that opens a cell in line 1,001 meets .* line 3,001, so 2,000 "
    with pytest.raises(DataError, match=said):
        TableFile(file_with(tmp_path, text)).read()
    with pytest.raises(DataError, match=said):  # the same, where quotes are looked at one by one
        check_csv(file_with(tmp_path, text.replace("2,name", 'name 5" disk', 1)), ",")
    with pytest.raises(DataError, match=r"in line 1,000 .* line 3,000, .* save the table as Parq"):
        check_csv(file_with(tmp_path, text), ",", Called(tmp_path / "rows.csv", added=1))


@pytest.mark.parametrize("piece", [50, 1 << 22])
@pytest.mark.parametrize("first", ["p,0.5,x", 'a 5" disk,0.5,x'])
def test_a_few_rows_between_two_lost_quotes_are_not_lost(first, piece, tmp_path, monkeypatch):
    """They vanished without a word, above all where nobody reads that column."""
    monkeypatch.setattr(csv_check, "PIECE", piece)
    lines = ["name,value,note", first, *(f"p{k},{k}.5,ok" for k in range(2, 90))]
    lines[9], lines[11] = 'p9,9.5,"ok', 'p11,11.5,ok"'
    table = TableFile(file_with(tmp_path, "\n".join(lines) + "\n"))
    said = r"opens a cell in line 10 meets another one only in line 12\. .* so 2 rows would be lost"
    with pytest.raises(DataError, match=said):
        list(table.chunks(["value"], {"value": "number"}, 100))
    lines[9:12] = ['p9,9.5,"see 7, 8', "and 9, 10, both", '11, 12"']  # sound text
    assert len(TableFile(file_with(tmp_path, "\n".join(lines) + "\n")).read()) == 87


@pytest.mark.parametrize("piece", [500, 1 << 22])
def test_a_cell_may_have_a_thousand_lines(piece, tmp_path, monkeypatch):
    monkeypatch.setattr(csv_check, "PIECE", piece)

    def table(*ends):
        cells = ['"' + 'a ""word""\n' * n + '"' for n in ends]
        return file_with(tmp_path, "text,number\n" + "".join(f"{cell},1\n" for cell in cells))

    check_csv(table(1000, 3, 1000), ",")
    with pytest.raises(DataError, match="in line 1,007 meets another one only in line 2,008"):
        check_csv(table(1000, 3, 1001, 1002), ",")


@pytest.mark.parametrize("most", [1, 2, 1000])
@given(st.text(alphabet='a",\n', max_size=40), st.integers(1, 5))
@settings(max_examples=300)
def test_pieces_of_any_size_give_the_same_verdict(most, text, size):
    def verdict(size):
        scan, data, held = QuoteScan(Called(Path("x")), ","), text.encode(), b""
        try:
            for start in range(0, len(data), size):
                piece = held + data[start : start + size]
                held = b'"' if piece.endswith(b'"') else b""
                scan.feed(piece[: len(piece) - len(held)], csv_check.QUOTE)
            scan.feed(held, 10)
            scan.finish()
        except DataError as error:
            return str(error)
        return ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_check, "MOST_LINES", most)
        assert verdict(size) == verdict(1000)


@given(st.lists(st.lists(st.text('a",\n é'), min_size=2, max_size=2), min_size=1, max_size=6))
@settings(max_examples=200)
def test_what_a_sound_writer_wrote_always_passes(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    scan = QuoteScan(Called(Path("x")), ",")
    scan.feed(text.getvalue().encode(), 10)
    scan.finish()


def test_a_header_of_any_length_is_read_whole(tmp_path):
    names = [f"a rather long name of column {k}" for k in range(5000)]
    path = file_with(tmp_path, ",".join(names) + "\n" + ",".join("1" * 5000) + "\n")
    assert path.stat().st_size > 1 << 17
    assert TableFile(path).columns == names
    assert list(TableFile(path).read()) == names
    names[4] = "one that\ngoes on"  # what closes its quote may come after the first piece
    quoted = ",".join(f'"{name}"' for name in names)
    path = file_with(tmp_path, quoted + "\n" + ",".join("1" * 5000) + "\n", "b.csv")
    assert header_of(path)[0] == names
    early = quoted.index("goes on")
    held, csv_check.HEAD = csv_check.HEAD, early
    try:
        assert TableFile(path).columns == names
    finally:
        csv_check.HEAD = held
    assert list(TableFile(path).read()) == names


@pytest.mark.parametrize("lines", [3, 19, 20, 40])
def test_a_header_whose_quote_is_never_closed_is_told_apart(lines, tmp_path):
    path = file_with(tmp_path, 'a,"b\n' + "1,2\n" * lines)
    assert header_of(path)[0] == ["a", "b"]
    with pytest.raises(DataError, match=r"line 1: a quote opens a cell"):
        check_csv(path, ",")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_byte_of_nought_is_told(encoding, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\n1,2\n".encode(encoding))
    with pytest.raises(DataError, match=r"rows.csv, line 1: .*byte 0.* save it as UTF-8"):
        table_at(path).read()
    path.write_bytes(b"a,b\n1,2\n3,\0\n")
    with pytest.raises(DataError, match=r"rows.csv, line 3: .*byte 0"):
        table_at(path).read()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_mark_names_the_encoding(encoding, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,\u00e4\n1,2\n".encode(encoding))
    assert table_at(path).read().to_dict("list") == {"a": [1], "\u00e4": [2]}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("﻿a;b\n1;2\n", ["a", "b"]),
        ('"a\nb",c\n1,2\n', ["a\nb", "c"]),
        ('5" disk,c\n1,2\n', ['5" disk', "c"]),
        ("\r\n\r\na\tb\r\n1\t2\r\n", ["a", "b"]),
        ("\uff48eight,b\u2028c\n1,2\n", ["\uff48eight", "b\u2028c"]),
    ],
)
def test_headers_are_read_as_arrow_reads_them(text, names, tmp_path):
    path = file_with(tmp_path, text)
    assert header_of(path)[0] == names
    assert list(TableFile(path).read()) == names


def test_a_packed_trap_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    check_csv(path, ",")
    monkeypatch.setattr(allowance, "LARGE", 1 << 20)
    with pytest.raises(DataError, match="Unpack it first"):
        check_csv(path, ",")
    with pytest.raises(DataError, match="Unpack it first"):
        TableFile(path).read()


def test_many_columns_take_no_quadratic_time(tmp_path):
    names = [f"c{k}" for k in range(60_000)]
    path = file_with(tmp_path, ",".join(names) + "\n" + ",".join("1" * 60_000) + "\n")
    assert len(TableFile(path).columns) == 60_000  # quadratic, this took a minute


def test_names_that_occur_twice_are_told(tmp_path):
    path = file_with(tmp_path, "a,b,a\n1,2,3\n")
    with pytest.raises(DataError, match="several columns"):
        _ = TableFile(path).columns


def test_whole_file_is_one_chunk_or_many_the_same(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f'"n ""{k}""\n",{v}' for k, v in enumerate(rng.normal(size=2000))]
    table = TableFile(file_with(tmp_path, "name,v\n" + "\n".join(lines)))
    parts = [c.frame for c in table.chunks(["name", "v"], {"name": "text", "v": "number"}, 300)]
    assert sum(map(len, parts)) == len(table.read()) == 2000


LONG = "x" * 200_000  # more than Python's own reader takes by itself


def test_a_long_cell_does_not_hide_where_another_one_is(tmp_path):
    limit = csv.field_size_limit()
    lines = [f"{LONG},0", *(f"text,{k}" for k in range(30)), "text,soon"]
    table = table_at(file_with(tmp_path, "note,number\n" + "\n".join(lines)))
    assert "'soon' (1 row) in line 33" in why_not(table.read()["number"], table.place_of)
    lines[20] += ",one too many"
    with pytest.raises(DataError, match="line 22: 3 cells"):
        table_at(file_with(tmp_path, "note,number\n" + "\n".join(lines), "b.csv")).read()
    assert header_of(file_with(tmp_path, f"{LONG},b\n1,2\n", "c.csv"))[0] == [LONG, "b"]
    assert csv.field_size_limit() == limit


def test_without_a_header_lines_are_counted_as_the_file_has_them(tmp_path):
    path = file_with(tmp_path, "1,2\n3,4\n5\n")
    with pytest.raises(DataError, match=r"rows.csv, line 3: 1 cell, but the first line has 2"):
        table_at(path, header=False).read()
    path.write_text('1,2\n3,4\n5,"6\n')
    with pytest.raises(DataError, match=f"{path}, line 3: a quote opens"):
        table_at(path, header=False).read()
    path.write_text('1,2\n"3,4\n5,6"7\n')
    with pytest.raises(DataError, match=f"{path}: .* in line 2 meets another one only in line 3"):
        table_at(path, header=False).read()
    path.write_text("1,2\n3,4\n5,6\n")
    assert table_at(path, header=False).place_of(2) == "line 3"


def test_messages_name_the_file_and_not_a_copy_of_it(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes('a,b\n1,"2\n'.encode("utf-16"))
    with pytest.raises(DataError, match=f"^{path}, line 2"):
        table_at(path).read()
    path.write_bytes("\n".encode("utf-16"))
    with pytest.raises(DataError, match=f"^{path} is empty"):
        table_at(path)
    path.write_bytes("a,b".encode("utf-16"))
    with pytest.raises(DataError, match=f"^{path} has nothing but its first line. .*--no-header"):
        table_at(path).read()


def test_the_last_letter_says_how_a_file_is_encoded(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("n,drink\n1,tea\n2,caf\u00e9".encode("cp1252"))
    assert table_at(path).read()["drink"].tolist() == ["tea", "caf\u00e9"]
    path.write_bytes("n,drink\n1,caf\u00e9\n2,caf\u00e9".encode()[:-1])
    with pytest.raises(DataError, match="line 3: the byte 0xc3"):
        table_at(path)


def test_a_row_that_is_longer_than_a_block_is_told(tmp_path):
    table = TableFile(file_with(tmp_path, "a,b\n1," + "x" * (2 * BLOCK) + "\n"))
    with pytest.raises(DataError, match=r"rows\.csv has a row of more than 4 MB"):
        list(table.chunks(["a"], {"a": "number"}, 9))
