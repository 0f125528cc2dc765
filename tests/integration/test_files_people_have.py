"""Every kind of file, made by another tool, gives the same rows; and what is wrong is named."""

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from aberra import MultiView
from aberra.data.sources import kind_of_path
from aberra.data.sources.staged import table_at
from aberra.errors import DataError
from aberra.workflow import fit, score


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "name": [f"p{k:03d}" for k in range(40)],
            "height": rng.normal(1.7, 0.1, 40).round(3),
            "visits": rng.integers(0, 9, 40),
            "clinic": rng.choice(["Köln", "Malmö"], 40),
        }
    )


def to_excel(rows, path):
    from openpyxl import Workbook

    book = Workbook()
    for line in [list(rows.columns), *rows.to_numpy().tolist()]:
        book.active.append(line)
    book.save(path)


def to_zip(rows, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("inside/rows.csv", rows.to_csv(index=False))
        file.writestr("__MACOSX/._rows.csv", "junk")


def to_lines(rows, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows.to_dict("records")))


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


WRITERS = {
    "rows.csv": lambda rows, path: rows.to_csv(path, index=False),
    "rows.xlsx": to_excel,
    "rows.jsonl": to_lines,
    "rows.json": lambda rows, path: path.write_text(json.dumps(rows.to_dict("records"))),
    "rows.feather": lambda rows, path: pyarrow.feather.write_feather(pa.table(rows), path),
    "rows.parquet": lambda rows, path: rows.to_parquet(path, index=False),
    "rows.zip": to_zip,
    "rows.csv.gz": lambda rows, path: path.write_bytes(
        gzip.compress(rows.to_csv(index=False).encode())
    ),
    "rows.csv.bz2": lambda rows, path: path.write_bytes(
        bz2.compress(rows.to_csv(index=False).encode())
    ),
    "rows.csv.xz": lambda rows, path: path.write_bytes(
        lzma.compress(rows.to_csv(index=False).encode())
    ),
    "rows.csv.zst": lambda rows, path: path.write_bytes(zstd(rows.to_csv(index=False).encode())),
    "rows.jsonl.gz": lambda rows, path: path.write_bytes(
        gzip.compress("".join(json.dumps(r) + "\n" for r in rows.to_dict("records")).encode())
    ),
    "latin.csv": lambda rows, path: path.write_bytes(rows.to_csv(index=False).encode("latin-1")),
    "latin.csv.gz": lambda rows, path: path.write_bytes(
        gzip.compress(rows.to_csv(index=False).encode("latin-1"))
    ),
    "wide.csv": lambda rows, path: path.write_bytes(rows.to_csv(index=False).encode("utf-16")),
    "comma.csv": lambda rows, path: rows.to_csv(path, index=False, sep=";", decimal=","),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_rows(name, rows, tmp_path):
    path = tmp_path / name
    WRITERS[name](rows, path)
    assert kind_of_path(path) == "table"
    table = table_at(path)
    assert table.path == path
    found = table.read()
    pd.testing.assert_frame_equal(found, rows, check_dtype=False)
    kinds = {"name": "text", "height": "number", "visits": "number", "clinic": "text"}
    chunks = [chunk.frame for chunk in table_at(path).chunks(list(rows), kinds, 16)]
    assert [len(chunk) for chunk in chunks] == [16, 16, 8]
    joined = pd.concat(chunks, ignore_index=True)
    pd.testing.assert_frame_equal(joined, rows, check_dtype=False)
    assert table.fingerprint() == table_at(path).fingerprint()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_is_one_table(ending, rows, tmp_path):
    for k, part in enumerate(np.array_split(np.arange(40), 3)):
        WRITERS[f"rows.{ending}"](rows.iloc[part], tmp_path / f"part-{k}.{ending}")
    (tmp_path / "_SUCCESS").touch()
    assert kind_of_path(tmp_path) == "table"
    pd.testing.assert_frame_equal(table_at(tmp_path).read(), rows, check_dtype=False)
    rows.rename(columns={"visits": "calls"}).to_csv(tmp_path / "part-9.csv", index=False)
    with pytest.raises(DataError, match=r"part-9.csv has other columns .*calls.*visits"):
        table_at(tmp_path)


@pytest.mark.slow
def test_queries_of_databases_and_files(rows, tmp_path):
    import duckdb
    from sqlalchemy import create_engine

    with sqlite3.connect(tmp_path / "clinic.sqlite") as lite:
        rows.to_sql("visits", lite, index=False)
    lite.close()
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as duck:
        duck.register("held", rows)
        duck.execute("CREATE TABLE visits AS SELECT * FROM held")
    engine = create_engine(f"sqlite:///{tmp_path}/other.db")
    rows.to_sql("visits", engine, index=False)
    engine.dispose()
    rows.to_parquet(tmp_path / "rows.parquet", index=False)
    asked = "SELECT * FROM visits WHERE visits > 2 ORDER BY name"
    wanted = rows[rows["visits"] > 2].reset_index(drop=True)
    for place, sql in (
        (tmp_path / "clinic.sqlite", asked),
        (tmp_path / "clinic.duckdb", asked),
        (f"sqlite:///{tmp_path}/other.db", asked),
        (tmp_path / "rows.parquet", asked.replace("FROM visits", "FROM data")),
    ):
        found = table_at(place, sql=sql)
        pd.testing.assert_frame_equal(found.read(), wanted, check_dtype=False)
        assert found.fingerprint() == table_at(place, sql=sql).fingerprint()
    with pytest.raises(DataError, match=r"cannot be read: .*Try the query"):
        table_at(tmp_path / "clinic.sqlite", sql="SELECT nonsense FROM visits")
    with pytest.raises(DataError, match="cannot be read"):  # a query must not change anything
        table_at(tmp_path / "clinic.sqlite", sql="DELETE FROM visits")


def test_passwords_do_not_reach_the_recipe():
    from aberra.data.sources.queries import masked

    assert masked("postgresql://me:secret@host/db") == "postgresql://***@host/db"


def test_fit_and_score_take_them_all(rows, tmp_path):
    to_excel(rows, tmp_path / "old.xlsx")
    to_lines(rows, tmp_path / "new.jsonl")
    fitted = fit(tmp_path / "old.xlsx", tmp_path / "m.aberra", robust="none")
    assert fitted.recipe.data == str(tmp_path / "old.xlsx")
    assert fitted.recipe.id_column == "name"
    scored = score(tmp_path / "m.aberra", tmp_path / "new.jsonl", tmp_path / "scores.csv")
    assert scored.n_rows == 40
    assert scored.drift.verdict == "steady"


@pytest.mark.slow
def test_standard_input_and_output(rows, tmp_path):
    rows.to_csv(tmp_path / "rows.csv", index=False)
    fit(tmp_path / "rows.csv", tmp_path / "m.aberra", robust="none")
    words = [sys.executable, "-m", "aberra", "score"]
    out = subprocess.run(
        [*words, tmp_path / "m.aberra", "-", "-o", "-"],
        input=rows.to_csv(index=False).encode(),
        capture_output=True,
        check=True,
    )
    scores = pd.read_csv(io.BytesIO(out.stdout))
    assert scores["id"].tolist() == rows["name"].tolist()
    assert b"steady" in out.stderr


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_a_file_without_a_header_is_noticed(tmp_path):
    path = write(tmp_path / "rows.csv", "Ada,24.0,7\nBob,31.5,8\n")
    with pytest.raises(DataError, match=r"first line .* looks like a row.*'24.0'.*--no-header"):
        table_at(path)
    found = table_at(path, header=False).read()
    assert found.columns.tolist() == ["x0", "x1", "x2"]
    assert found["x1"].tolist() == [24.0, 31.5]
    with pytest.raises(DataError, match=r"looks like a row.*'45'"):
        table_at(write(tmp_path / "whole.csv", "45,66,63\n12,7,9\n"))


@pytest.mark.parametrize(
    "header", ["400.5,401.5,402.5", "2019,2020,2021", "3,2,1", "7,5", "a,b2,c-1"]
)
def test_names_that_are_numbers_in_order_are_names(header, tmp_path):
    assert table_at(write(tmp_path / "rows.csv", f"{header}\n")).columns[0] == header.split(",")[0]


@pytest.mark.parametrize(("line", "n"), [("4,5", 2), ("4,5,6,7", 4)])
def test_ragged_lines_are_named(line, n, tmp_path):
    path = write(tmp_path / "rows.csv", f'a,b,c\n1,"x\ny",3\n{line}\n6,7,8\n')
    for read in (lambda t: t.read(), lambda t: list(t.chunks(["a"], {"a": "number"}, 10))):
        with pytest.raises(DataError, match=f"line 4: {n} cells, but the header has 3"):
            read(table_at(path))


def test_damaged_bytes_are_named_by_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\n1,Köln\n2,Malm".encode() + b"\xf6\n3,x\n")
    with pytest.raises(DataError, match="line 3: the byte 0xf6"):
        table_at(path)


def test_an_archive_that_fills_the_disk_is_refused(tmp_path, monkeypatch):
    from aberra.data.sources import allowance

    monkeypatch.setattr(allowance, "LARGE", 1000)
    monkeypatch.setattr(allowance, "MOST_EXPANSION", 2)
    path = tmp_path / "rows.csv.bz2"
    path.write_bytes(bz2.compress(b"a,b\n" + b"1,2\n" * 10_000))
    with pytest.raises(DataError, match="times its size"):
        table_at(path)


@pytest.mark.parametrize("name", ["x.xlsx", "x.feather", "x.jsonl", "x.json", "x.zip", "x.csv.xz"])
def test_damaged_files_of_every_kind_end_in_a_sentence(name, tmp_path):
    (tmp_path / name).write_bytes(b"{this is nothing of the kind")
    with pytest.raises(DataError, match=r"cannot be read|is no list"):
        table_at(tmp_path / name).read()


def test_polars_and_arrow_objects_in_python(rows):
    import polars

    settings = {"missing": "impute", "encode": "auto", "random_state": 0}
    plain = rows.drop(columns="name")
    model = MultiView(**settings).fit(plain)
    wanted = model.anomaly_score(plain)
    for other in (polars.from_pandas(plain), pa.Table.from_pandas(plain)):
        again = MultiView(**settings).fit(other)
        assert again.column_names() == list(plain)
        np.testing.assert_array_equal(again.anomaly_score(other), wanted)
        np.testing.assert_array_equal(model.anomaly_score(other), wanted)
        assert model.compare(other).verdict == "steady"
        assert np.asarray(model.explain(other[:2])).shape == (2, 3)


def test_structured_arrays_keep_the_names_of_their_columns(rows):
    plain = rows[["height", "visits"]]
    held = plain.to_records(index=False)
    for array in (held, np.asarray(held), np.asarray(held).reshape(-1, 1)):
        model = MultiView(random_state=0).fit(array)
        assert model.column_names() == ["height", "visits"]
        np.testing.assert_array_equal(model.anomaly_score(array), model.anomaly_score(plain))
    with pytest.raises(DataError, match=r"shape \(20, 2\). Its columns are height, visits"):
        MultiView().fit(np.asarray(held).reshape(20, 2))


def test_mixed_columns_are_named_with_a_line(rows, tmp_path):
    mixed = rows.assign(visits=rows["visits"].astype(str), height=(np.arange(40) / 7).astype(str))
    mixed.loc[7, "visits"] = "many"
    mixed.loc[[9, 30], "height"] = "tall"
    mixed.loc[3, "clinic"] = "two\nlines"
    mixed.to_csv(tmp_path / "rows.csv", index=False)
    recipe = fit(tmp_path / "rows.csv", robust="none").recipe
    said = "visits holds numbers but for 'many' (1 row) in line 10, so it is used as text"
    assert ("mixed", said) in recipe.choices
    said = "height: written as '1234.56'; 2 cells are not and count as gaps, the first 'tall' in"
    assert ("numbers", f"{said} line 12") in recipe.choices
    assert "height" in recipe.columns
    mixed.loc[[9, 30, 31], "height"] = "tall"  # too many to be slips
    mixed.to_csv(tmp_path / "rows.csv", index=False)
    why = fit(tmp_path / "rows.csv", robust="none").recipe.dropped["height"]
    assert why.startswith("numbers but for 'tall' (3 rows) first in line 12")


def test_whole_numbers_of_a_sheet_stay_whole_beside_a_gap(tmp_path):
    """As floats, they gave rows names such as 7.0."""
    to_excel(
        pd.DataFrame({"id": [None, 7, 8], "x": 0.5}).astype({"id": object}), tmp_path / "t.xlsx"
    )
    (chunk,) = table_at(tmp_path / "t.xlsx").chunks(["id"], {"id": "text"}, 9)
    assert chunk.frame["id"][1:].tolist() == ["7", "8"]
