"""What a path holds, and reading it whole or in chunks gives the same rows."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pyarrow import feather

from aberra.data.blocks.chunks import ChunkedTable
from aberra.data.blocks.opening import blocks_of
from aberra.data.sources import kind_of_path
from aberra.data.sources.arrays import columns_beside, main_array
from aberra.data.sources.columns import choose_columns
from aberra.data.sources.images import find_images, read_images, shape_for
from aberra.data.sources.staged import table_at
from aberra.data.sources.table_file import TableFile
from aberra.data.written import read_as
from aberra.errors import DataError

KINDS = {"a": "number", "b": "number", "word": "text"}


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=1000), "b": rng.integers(0, 9, 1000)})
    table["word"] = rng.choice(["007", "8", "nine"], 1000)
    table.loc[17, "a"] = np.nan
    return table


def write(frame, path):
    if path.name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=170)
    elif path.name.endswith(".tsv"):
        frame.to_csv(path, index=False, sep="\t")
    else:
        frame.to_csv(path, index=False)  # gzip by its ending
    return TableFile(path)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("start", [0, 128, 896])
def test_chunks_are_the_rows_of_the_file(frame, tmp_path, name, start):
    table = write(frame, tmp_path / name)
    chunks = list(table.chunks(["word", "a", "b"], KINDS, 128, start))
    assert [chunk.start for chunk in chunks] == list(range(start, 1000, 128))
    assert all(len(chunk.frame) == 128 for chunk in chunks[:-1])
    got = pd.concat([chunk.frame for chunk in chunks], ignore_index=True)
    expected = frame[["word", "a", "b"]].iloc[start:].reset_index(drop=True)
    pd.testing.assert_frame_equal(got, expected, check_dtype=False)
    assert chunks[-1].done == 1.0


def test_text_stays_text_in_a_chunk_of_digits(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,word\n1,x\n2,007\n3,008\n")
    last = list(TableFile(path).chunks(["word"], {"word": "text"}, 1))[-1]
    assert last.frame["word"].tolist() == ["008"]


@pytest.mark.parametrize("ending", ["parquet", "json", "feather"])
def test_long_identifiers_keep_their_digits_beside_a_gap(ending, tmp_path):
    """A frame made floats of them, and all rows had the name of one."""
    path, ids = tmp_path / f"t.{ending}", [None, *range(2**60, 2**60 + 3)]
    if ending == "json":
        path.write_text(json.dumps([{"id": k} for k in ids]))
    else:
        write_table = pq.write_table if ending == "parquet" else feather.write_feather
        write_table(pa.table({"id": ids}), path)
    parts = ChunkedTable(blocks_of(str(path)))
    for table in (table_at(path), parts):
        (chunk,) = table.chunks(["id"], {"id": "text"}, 9)
        assert chunk.frame["id"][1:].tolist() == [str(k) for k in ids[1:]]


def test_identifiers_of_64_bits_without_a_sign_keep_their_type(tmp_path):
    pq.write_table(pa.table({"id": pa.array([2**64 - 1], pa.uint64())}), tmp_path / "t.parquet")
    assert TableFile(tmp_path / "t.parquet").id_type("id") == pa.uint64()


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_delimiters_gaps_and_quotes(tmp_path, mark):
    path = tmp_path / "t.csv"
    rows = [["name", "x"], ['"two\nlines"', "1.5"], ["?", "NA"], ["b", ""]]
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(mark.join(r) for r in rows).encode())
    table = TableFile(path).read()
    assert table.columns.tolist() == ["name", "x"]
    assert table["name"].tolist()[::2] == ["two\nlines", "b"]
    assert table["name"].isna().tolist() == [False, True, False]
    assert table["x"].isna().tolist() == [False, True, True]


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize(
    "prices",
    [
        ["1.234,56", "7,5", "1.012,00", "9,1"],
        ["12,5 €", "7 €", "3,25 €", "9 €"],
        ["51,3", "", "7,25", "9"],
    ],
)
def test_a_point_beside_decimal_commas_stands_between_thousands(tmp_path, mark, prices):
    sold = ["2.500", "999", "12.000", "7"]
    rows = [("price", "sold"), *zip(prices, sold, strict=True)]
    lines = [mark.join(f'"{cell}"' for cell in row) for row in rows]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    table = TableFile(tmp_path / "rows.csv")
    assert read_as(table.read()["sold"], "1.234").tolist() == [2500, 999, 12000, 7]
    odd = []
    (chunk,) = table.chunks(["sold"], {"sold": "number"}, 9, odd=odd)
    assert [cell.text for cell in odd] == ["2.500", "12.000"]  # a model of plain numbers
    assert chunk.frame["sold"].isna().tolist() == [True, False, True, False]


def test_small_numbers_beside_a_column_with_commas_stay_small(tmp_path):
    (tmp_path / "rows.csv").write_text("price;width\n51,3;2.500\n7,25;0.999\n7,5;12.000\n")
    assert TableFile(tmp_path / "rows.csv").read()["width"].tolist() == [2.5, 0.999, 12.0]


def test_hexadecimal_numbers_are_read_the_same_in_chunks(tmp_path):
    (tmp_path / "rows.csv").write_text("code,x\n0x1F,1\n0x2A,2\n,3\n0x10,4\n")
    table = TableFile(tmp_path / "rows.csv")
    (chunk,) = table.chunks(["code", "x"], {"code": "number", "x": "number"}, 9)
    pd.testing.assert_frame_equal(chunk.frame, table.read().astype(float))


def test_arrow_types_become_numbers_dates_and_text(tmp_path):
    columns = {
        "flag": pa.array([True, None, False]),
        "day": pa.array([1, 2, 3], pa.date32()),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "price": pa.array([1, 2, 3]).cast(pa.decimal128(21, 2)),
        "empty": pa.nulls(3),
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), path)
    kinds = TableFile(path).read().dtypes.map(lambda t: t.kind).tolist()
    assert kinds == ["f", "M", "O", "f", "f"]
    pq.write_table(pa.table({"list": [[1], [2]]}), path)
    with pytest.raises(DataError, match="'list'"):
        TableFile(path).read()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "empty"),
        ("t.csv", b"a,b\n1,2\n3\n", "line 3: 1 cell"),
        ("t.csv", b"a,a\n1,2\n", "several columns"),
        ("t.csv", b"a,b\n\xff\xfe,2\n", "UTF-8"),
        ("t.parquet", b"PAR1 nonsense", "cannot be read"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 50, mtime=0)[:-20], "cannot be read"),
    ],
)
def test_damaged_tables_are_named(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        TableFile(path).read({"a": "text"})
    assert name in str(caught.value)


def test_a_word_among_numbers_is_an_error_when_scoring(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n2\nthree\n")
    with pytest.raises(DataError, match="three"):
        list(TableFile(path).chunks(["a"], {"a": "number"}, 2))


def test_numpy_files(tmp_path):
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 1, 0, 0, 0])
    np.savez(tmp_path / "t.npz", X=X, y=y, notes=np.array(["x"]))
    table = TableFile(tmp_path / "t.npz")
    assert table.columns == ["x0", "x1", "y"]
    assert np.array_equal(table.read()[["x0", "x1"]], X)
    assert list(columns_beside(tmp_path / "t.npz", 6)) == ["y"]
    np.save(tmp_path / "t.npy", X)
    chunks = list(TableFile(tmp_path / "t.npy").chunks(["x1"], {}, 4, 4))
    assert chunks[0].frame["x1"].tolist() == [9.0, 11.0]
    np.savez(tmp_path / "two.npz", left=X, right=X)
    with pytest.raises(DataError, match="under the name X"):
        main_array(tmp_path / "two.npz")
    np.save(tmp_path / "bad.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        main_array(tmp_path / "bad.npy")


def test_fingerprint_follows_the_content(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    before = TableFile(path).fingerprint()
    assert TableFile(path).fingerprint() == before
    path.write_text("a\n2\n")
    assert TableFile(path).fingerprint() != before


def test_columns_that_cannot_help_are_left_out():
    table = pd.DataFrame(
        {
            "who": [f"p{k}" for k in range(20)],
            "number": range(100, 120),
            "nearly": ["same", "same", *(f"n{k}" for k in range(18))],
            "unit": "kg",
            "empty": np.nan,
            "gappy": [1.0] * 19 + [np.nan],
            "answered": ["yes"] * 19 + [None],
            "age": [30, 40] * 10,
            "label": [0, 1] * 10,
            "junk": range(0, 40, 2),
        }
    )
    found = choose_columns(table, label_column="label", drop=["junk"])
    assert found.used == ["answered", "age"]  # that somebody did not answer tells something
    assert found.id_column == "who"
    assert "never trains" in found.dropped["label"]
    assert choose_columns(table, id_column="age").id_column == "age"
    with pytest.raises(DataError, match="no column 'height'"):
        choose_columns(table, drop=["height"])
    with pytest.raises(DataError, match="No column is left"):
        choose_columns(table[["unit", "who"]])


def picture(path, shape=(20, 30), mode=np.uint8, level=200):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(shape, level, dtype=mode)).save(path)


def test_a_table_of_nothing_but_constants_tells_of_some_of_them():
    """Of 60,000 columns the message had 2.4 MB."""
    with pytest.raises(DataError, match=r"'c19': .* and 80 more\. Keep") as told:
        choose_columns(pd.DataFrame({f"c{j}": [1, 1] for j in range(100)}))
    assert len(str(told.value)) < 1000


def test_pictures_come_in_one_shape(tmp_path):
    picture(tmp_path / "a.png")
    picture(tmp_path / "deeper" / "b.jpg")
    picture(tmp_path / "c.png", (64, 10, 3))
    picture(tmp_path / "a_anomaly.png")
    paths = find_images(tmp_path)
    assert [p.name for p in paths] == ["a.png", "c.png", "b.jpg"]
    shape = shape_for(paths, longest=15)
    assert (shape.height, shape.width, shape.channels, shape.deep) == (10, 15, 3, False)
    images = read_images(paths, shape)
    assert images.shape == (3, 3, 10, 15)
    assert images.dtype == np.uint8
    assert images.min() >= 195


def test_deep_pictures_keep_their_intensities(tmp_path):
    picture(tmp_path / "a.png", mode=np.uint16, level=40_000)
    shape = shape_for(find_images(tmp_path), longest=64)
    assert read_images([tmp_path / "a.png"], shape).max() == 40_000.0
    picture(tmp_path / "b.png")
    with pytest.raises(DataError, match="more than 8 bits"):
        read_images([tmp_path / "a.png"], shape_for([tmp_path / "b.png"], longest=64))


def test_kinds_of_paths(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    np.savez(tmp_path / "stack.npz", images=np.zeros((3, 8, 8)))
    picture(tmp_path / "pictures" / "a.png")
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.nii.gz").touch()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "a.docx").touch()
    kinds = {
        "t.csv": "table",
        "rows.npy": "table",
        "stack.npz": "images",
        "pictures": "images",
        "pictures/a.png": "images",
        "scans": "volumes",
        "scans/a.nii.gz": "volumes",
    }
    assert {name: kind_of_path(tmp_path / name) for name in kinds} == kinds
    for name, words in {"nothing": "Nothing", "a.docx": "no known type", "x": "no file"}.items():
        with pytest.raises(DataError, match=words):
            kind_of_path(tmp_path / name)
