"""Tables and lists of scores that once broke the viewer's pages, or kept it from starting."""

import asyncio
import json
import os

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aberra.errors import DataError
from aberra.viewer.app import Shelf, make_app
from aberra.viewer.catalogue import catalogue
from aberra.viewer.marks import NAME

ASKED = (
    "rows",
    "rows?find=a",
    "rows?sort=id",
    "rows?sort=percentile",
    "rows?sort=reason_1",
    "rows?reason=a&flagged=true",
    "overview",
    "marked",
)
SCANS = "scan,map,segmentation,score,millilitres,error\n"


def answers(folder):
    """Open a folder as the viewer does, and ask for all that its first page asks for."""
    shelf = Shelf(catalogue(folder))
    shelf.load()
    return asyncio.run(_asked(make_app(shelf)))


async def _asked(app):
    there = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=there, base_url="http://viewer") as client:
        return {path: (await client.get(f"/api/0/{path}")).status_code for path in ASKED}


TWO = [1.0, 2.0]
REFUSED = {
    "lists for names": {"id": [[1], [2]], "score": TWO},
    "objects for names": {"id": [{"a": 1}, {"a": 2}], "score": TWO},
    "bytes for names": {"id": [b"\xff", b"a"], "score": TWO},
    "lists for percentiles": {"score": TWO, "percentile": [[1], [2]]},
    "bytes for percentiles": {"score": TWO, "percentile": [b"\xff", b"a"]},
    "lists for reasons": {"score": TWO, "reason_1": [["a"], ["b"]]},
    "bytes for reasons": {"score": TWO, "reason_1": [b"\xff", b"a"]},
}


@pytest.mark.parametrize("held", REFUSED.values(), ids=REFUSED)
def test_columns_that_no_page_can_show_are_told_before_it_opens(held, tmp_path):
    pq.write_table(pa.table(held), tmp_path / "scores.parquet")
    with pytest.raises(DataError, match=r"column of the wrong type: .* again with aberra score"):
        answers(tmp_path)


def test_text_that_only_calls_itself_utf_8_is_told(tmp_path):
    data = pa.py_buffer(b"\xff\xfe")
    wrong = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.array([0, 1, 2], pa.int32()).buffers()[1], data]
    )
    pq.write_table(pa.table({"id": wrong, "score": TWO}), tmp_path / "scores.parquet")
    with pytest.raises(DataError, match=r"scores.parquet cannot be read as a table: .*UTF8"):
        answers(tmp_path)


def test_a_column_that_is_there_twice_is_named(tmp_path):
    (tmp_path / "scores.csv").write_text("id,score,score\na,1,2\n")
    with pytest.raises(DataError, match=r"several columns 'score'\. Rename"):
        answers(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "id,score,flag\n",
        "id,score\na,\n",
        "id,score,percentile\na,1,2024-01-01\nb,2,2024-01-02\n",
        "id,score,reason_1\n,1,\n" + "x" * 200_000 + ",2,a\n",
    ],
    ids=["no row", "no score", "dates for percentiles", "a long name"],
)
def test_strange_tables_are_shown(text, tmp_path):
    (tmp_path / "scores.csv").write_text(text)
    assert max(answers(tmp_path).values()) < 500


@pytest.mark.parametrize(
    "line",
    [
        "x" * 300 + ".nii,b.nii,c.nii,1,2,\n",
        "a.nii," + "m" * 300 + "_anomaly.nii.gz,c.nii,1,2,\n",
        "y" * 200_000 + ",b,c,1,2,\n",
        "/,/,/,1,2,\n",
    ],
    ids=["a name too long for a scan", "and for a map", "beyond all files", "no name at all"],
)
def test_names_that_no_file_can_have_are_listed_without_a_file(line, tmp_path):
    (tmp_path / "scores.csv").write_text(SCANS + line)
    (scan,) = catalogue(tmp_path).scans
    assert (scan.map, scan.mask, scan.findings) == (None, None, None)


@pytest.fixture
def odd_name(tmp_path):
    """A folder of one scan whose name is no UTF-8, as `aberra score` leaves it."""
    (tmp_path / os.fsdecode(b"k\xff.nii.gz")).write_bytes(b"")
    (tmp_path / "scores.csv").write_bytes(SCANS.encode() + b"k\xff.nii.gz,,,7.5,2,\n")
    return tmp_path


async def _marked(app):
    """Accept the first scan; return the answers to that, to the list of marks, and of scans."""
    there = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=there, base_url="http://viewer") as client:
        put = await client.put("/api/0/marks/0", json={"mark": "accept"})
        return put, await client.get("/api/0/marks"), await client.get("/api/0/scans")


def test_a_scan_whose_name_is_not_utf_8_can_be_marked(odd_name):
    """The mark was kept, but no answer could name it, then or later."""
    for _ in range(2):  # again, with the mark of before
        put, listed, _ = asyncio.run(_marked(make_app(Shelf(catalogue(odd_name)))))
        assert (put.status_code, listed.status_code) == (200, 200)
        held = {"k\udcff.nii.gz": "accept"}
        assert json.loads(put.content)["marks"] == json.loads(listed.content)["marks"] == held
    assert list(json.loads((odd_name / NAME).read_bytes())["marks"]["scans"]) == list(held)


def test_a_scan_whose_name_is_not_utf_8_has_its_score(odd_name):
    *_, listed = asyncio.run(_marked(make_app(Shelf(catalogue(odd_name)))))
    (scan,) = json.loads(listed.content)["scans"]
    assert (scan["name"], scan["score"], scan["millilitres"]) == ("k\udcff.nii.gz", 7.5, 2.0)
    assert scan["scan"] is not None


@pytest.mark.parametrize("instead", ["link", "folder"])
def test_marks_do_not_go_to_a_folder_that_took_the_place_of_the_one_shown(instead, tmp_path):
    shown, other = tmp_path / "shown", tmp_path / "other"
    shown.mkdir()
    (shown / "a.nii").write_bytes(b"")
    app = make_app(Shelf(catalogue(shown)))
    assert asyncio.run(_marked(app))[0].status_code == 200
    shown.rename(tmp_path / "away")
    other.mkdir()
    if instead == "link":
        shown.symlink_to(other)
    else:
        other.rename(shown)
    put, listed, _ = asyncio.run(_marked(app))
    assert put.status_code == 422
    assert "shown is not the folder that was opened" in put.json()["error"]
    assert listed.json() == {"marks": {}, "trouble": put.json()["error"]}
    assert list(shown.iterdir()) == []
    assert (tmp_path / "away" / NAME).is_file()
