"""What the page of a table tells about a row, once it has the model and the rows themselves."""

import io
import threading
from contextlib import contextmanager

import httpx
import numpy as np
import pandas as pd
import pytest

from aberra import IADC, MultiView, save
from aberra.data.drift.overlay import outlined
from aberra.data.drift.portrait import ColumnPortrait
from aberra.errors import DataError
from aberra.explain.neighbours import Neighbours
from aberra.viewer.serve import make_server
from aberra.workflow import fit, open_viewer, score

N = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a typing error, a gap and a text never seen, scored by its own model."""
    place, rng = tmp_path_factory.mktemp("review"), np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "patient": [f"P{k:03d}" for k in range(N)],
            "age": rng.normal(50, 10, N).round(1),
            "height": rng.normal(170, 8, N).round(1),
            "clinic": rng.choice(["north", "south"], N),
        }
    )
    table.loc[7, "height"] = 17.0
    table.loc[8, "age"] = np.nan
    table.loc[9, "clinic"] = "elsewhere"
    table.to_csv(place / "rows.csv", index=False)
    fit(place / "rows.csv", output=place / "m.aberra")
    score(place / "m.aberra", place / "rows.csv", place / "scores.csv", reasons="all")
    return place


@contextmanager
def asking(viewer):
    """Return a client of a real server on a real port."""
    door = viewer.door
    server = make_server(viewer.shelf, door)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [door.socket]})
    thread.start()
    host = f"http://127.0.0.1:{door.port}"
    given = {"base_url": host + door.base, "headers": {"origin": host}, "trust_env": False}
    try:
        with httpx.Client(**given) as client:
            assert client.get(f"/?token={door.token}").status_code == 200
            yield client
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def asked(folder):
    """Return a client of the page with the model and the rows behind it."""
    given = {"model": folder / "m.aberra", "data": folder / "rows.csv"}
    with asking(open_viewer(folder / "scores.csv", **given)) as client:
        yield client


def line_of(client, name):
    (line,) = client.get("/api/0/rows", params={"find": name}).json()["rows"]
    return line


@pytest.mark.slow
def test_a_row_is_shown_beside_what_is_usual(asked):
    found = asked.get(f"/api/0/rows/{line_of(asked, 'P007')['row']}").json()
    first = found["columns"][0]
    assert (first["column"], first["value"]) == ("height", "17")
    assert first["usual"].startswith("usually 16")
    assert first["drawn"]["beyond"]
    assert first["drawn"]["at"] == 0.0
    assert [one["column"] for one in found["columns"]][1:] != []
    assert sum(one["share"] for one in found["columns"]) == pytest.approx(1.0)


def test_a_gap_and_a_new_text_have_their_place(asked):
    by_name = {
        one["column"]: one
        for one in asked.get(f"/api/0/rows/{line_of(asked, 'P008')['row']}").json()["columns"]
    }
    assert by_name["age"]["value"] == "missing"
    assert by_name["age"]["drawn"]["at"] is None
    other = asked.get(f"/api/0/rows/{line_of(asked, 'P009')['row']}").json()["columns"]
    clinic = next(one for one in other if one["column"] == "clinic")
    assert clinic["value"] == "elsewhere"
    assert len(clinic["drawn"]["labels"]) == len(clinic["drawn"]["shares"])


def test_neighbours_are_ordinary_rows_and_others(asked, folder):
    scores = pd.read_csv(folder / "scores.csv").set_index("id")
    found = asked.get(f"/api/0/rows/{line_of(asked, 'P007')['row']}").json()
    assert len(found["neighbours"]) == 3
    assert "P007" not in found["neighbours"]
    assert not scores.flag[found["neighbours"]].any()
    assert all(len(one["others"]) == 3 for one in found["columns"])


def test_neighbours_are_the_nearest():
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = MultiView(random_state=0).fit(X)
    table = pd.DataFrame(X)
    near = Neighbours(model, table, np.arange(0, 200, 2))
    wanted = pd.DataFrame(X[[17]] + 1e-6)
    low, middle, high = model.references_
    places = np.arcsinh((X - middle) / (high - low))
    apart = np.abs(places - places[17]).sum(axis=1)
    apart[1::2] = np.inf
    assert near.nearest(wanted, 4).tolist() == np.argsort(apart)[:4].tolist()


def test_filters_by_reason_and_by_value(asked, folder):
    scores = pd.read_csv(folder / "scores.csv")
    reasons = scores[["reason_1", "reason_2", "reason_3"]]
    page = asked.get("/api/0/rows", params={"reason": "height"}).json()
    assert page["matching"] == (reasons == "height").any(axis=1).sum() < N
    rows = pd.read_csv(folder / "rows.csv")
    tall = asked.get("/api/0/rows", params={"column": "height", "low": 180}).json()
    assert tall["matching"] == (rows.height >= 180).sum() > 0
    middle = {"column": "height", "low": 165, "high": 170}
    found = asked.get("/api/0/rows", params=middle).json()["matching"]
    assert found == rows.height.between(165, 170).sum()
    text = asked.get("/api/0/rows", params={"column": "clinic", "text": "SEWH"}).json()
    assert [line["id"] for line in text["rows"]] == ["P009"]
    wrong = asked.get("/api/0/rows", params={"column": "weight"})
    assert wrong.status_code == 422
    assert "no column 'weight'" in wrong.json()["error"]


def test_the_overview_lists_reasons_columns_and_falling_scores(asked, folder):
    found = asked.get("/api/0/overview").json()
    assert {"age", "height", "clinic"} == set(found["reasons"])
    kinds = {one["name"]: one["kind"] for one in found["columns"]}
    assert kinds == {"age": "number", "height": "number", "clinic": "text"}
    ranks, scores = np.array(found["curve"]).T
    assert ranks[0] == 1
    assert ranks[-1] == N
    assert (np.diff(scores) <= 0).all()
    assert found["flagged"] == pd.read_csv(folder / "scores.csv").flag.sum()


def test_marked_rows_are_exported_with_their_values(asked):
    row = line_of(asked, "P007")["row"]
    asked.put(f"/api/0/marks/{row}", json={"mark": "reject"})
    answer = asked.get("/api/0/marked")
    assert "attachment" in answer.headers["content-disposition"]
    found = pd.read_csv(io.BytesIO(answer.content))
    assert found[["id", "mark", "height"]].to_numpy().tolist() == [["P007", "reject", 17.0]]


def test_without_model_and_rows_the_page_says_what_it_lacks(folder):
    with asking(open_viewer(folder / "scores.csv")) as client:
        assert client.get("/api/0/overview").json()["columns"] == []
        answer = client.get("/api/0/rows/0")
    assert answer.status_code == 422
    assert "--model and --data" in answer.json()["error"]
    with pytest.raises(DataError, match="both"):
        open_viewer(folder / "scores.csv", model=folder / "m.aberra")


def test_rows_that_are_not_there(asked, folder, tmp_path):
    assert asked.get("/api/0/rows/999").status_code == 404
    pd.read_csv(folder / "rows.csv").iloc[:5].to_csv(tmp_path / "few.csv", index=False)
    given = {"model": folder / "m.aberra", "data": tmp_path / "few.csv"}
    with asking(open_viewer(folder / "scores.csv", **given)) as client:
        answer = client.get(f"/api/0/rows/{line_of(client, 'P100')['row']}")
    assert answer.status_code == 422
    assert "no row P100" in answer.json()["error"]


@pytest.mark.slow
def test_rows_without_names_are_found_by_their_position(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 2))
    X[3] = 9.0
    np.save(tmp_path / "rows.npy", X)
    save(IADC(random_state=0).fit(X), tmp_path / "m.aberra")
    score(tmp_path / "m.aberra", tmp_path / "rows.npy", tmp_path / "scores.csv")
    given = {"model": tmp_path / "m.aberra", "data": tmp_path / "rows.npy"}
    with asking(open_viewer(tmp_path / "scores.csv", **given)) as client:
        first = client.get("/api/0/rows").json()["rows"][0]
        assert first["id"] == 3
        found = client.get(f"/api/0/rows/{first['row']}").json()
    assert found["columns"][0]["value"] == "9"


def test_outline_of_values_and_of_a_range():
    column = pd.Series(np.random.default_rng(0).normal(size=500))
    portrait = ColumnPortrait.of("x", column, 65)
    middle = outlined(portrait, pd.Series([0.0]))
    assert 0.4 < middle.at < 0.6
    assert not middle.beyond
    assert sum(middle.shares) == pytest.approx(0.96, abs=0.02)
    assert outlined(portrait, pd.Series([50.0])).beyond
    dice = ColumnPortrait.of("d", pd.Series([1.0, 2.0, 3.0] * 50), 65)
    two = outlined(dice, pd.Series([2.0]))
    assert two.labels[:3] == ["1", "2", "3"]
    assert two.at == pytest.approx(1.5 / len(two.shares))
