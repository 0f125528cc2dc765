"""Columns of lists and objects: they can be dropped, and are not read where no model takes them."""

import numpy as np
import pandas as pd
import pytest

from aberra.errors import DataError
from aberra.workflow import fit_table, score

N = 60
RNG = np.random.default_rng(0)
PLAIN = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)}).round(3)
NESTED = PLAIN.assign(stops=[[1, 2]] * N, who=[{"name": "Ada"}] * N)[["stops", "a", "who", "b"]]
WAYS = ["rows.parquet", "rows.feather", "rows.jsonl", "rows.json", "folder", "blocks"]


def placed(folder, way, table):
    """Return where the table is, and what else to tell a fit."""
    place = folder / way
    if way in ("folder", "blocks"):
        place.mkdir()
        for k in range(2):
            half = table[k * N // 2 : (k + 1) * N // 2]
            half.reset_index(drop=True).to_parquet(place / f"{k}.parquet")
        return place, ({"on_error": "stop"} if way == "blocks" else {})
    if way.endswith(".parquet"):
        table.to_parquet(place)
    elif way.endswith(".feather"):
        table.to_feather(place)
    else:
        table.to_json(place, orient="records", lines=way.endswith("l"))
    return place, {}


@pytest.mark.parametrize("way", WAYS)
def test_they_can_be_dropped(tmp_path, way):
    data, more = placed(tmp_path, way, NESTED)
    with pytest.raises(DataError, match=r"Column 'stops' .*Leave it out: --drop stops"):
        fit_table(data, robust="none", **more)
    fitted = fit_table(data, robust="none", drop=["who", "stops"], **more)
    assert fitted.recipe.columns == ["a", "b"]
    assert set(fitted.recipe.dropped) == {"stops", "who"}
    assert any("2 of 4 columns" in said for _, said in fitted.recipe.choices)
    with pytest.raises(DataError, match="There is no column 'stop'"):
        fit_table(data, robust="none", drop=["who", "stops", "stop"], **more)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_does_not_take_them_scores_the_file(tmp_path, way):
    plain = tmp_path / "plain.parquet"
    PLAIN.to_parquet(plain)
    fitted = fit_table(plain, robust="none")
    score(fitted, plain, tmp_path / "wanted.csv")
    data, more = placed(tmp_path, way, NESTED)
    score(fitted, data, tmp_path / "scores.csv", **more)
    assert (tmp_path / "scores.csv").read_bytes() == (tmp_path / "wanted.csv").read_bytes()


def test_a_dropped_column_that_names_the_rows_is_read(tmp_path):
    table = NESTED.assign(patient=[f"p{k}" for k in range(N)])
    table.to_parquet(tmp_path / "rows.parquet")
    dropped = ["who", "stops", "patient"]
    fitted = fit_table(tmp_path / "rows.parquet", robust="none", drop=dropped, id_column="patient")
    assert fitted.recipe.id_column == "patient"
