"""A file with numbers and dates as people write them, through fit, score and everything after."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import load
from aberra.cli import app
from aberra.data.sources.columns import choose_columns
from aberra.workflow import fit_table, from_blocks

N = 300
PLANTED = 120


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def euros(values):
    marks = str.maketrans(",.", ".,")
    return [f"{v:,.2f} €".translate(marks) for v in values]


def sales(seed, planted=False):
    """Return rows of a shop in Germany."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 9, N)
    price = n * rng.normal(300, 20, N)
    day = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 120, N), "D")
    if planted:
        price[PLANTED] = 94_000.0
    return pd.DataFrame(
        {
            "day": day.strftime("%d.%m.%Y"),
            "price": euros(price),
            "n": n,
            "discount": [f"{v:.0f} %" for v in rng.integers(0, 30, N)],
            "shop": rng.choice(["Bonn", "Köln"], N),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with sales, their model, and sales of later days."""
    folder = tmp_path_factory.mktemp("written")
    first = sales(0, planted=True)
    first.loc[[40, 90], "price"] = ["on request", "12,00 $"]
    first.to_csv(folder / "sales.csv", sep=";", index=False)
    sales(1).to_csv(folder / "new.csv", sep=";", index=False)
    said = run("fit", folder / "sales.csv", "-o", folder / "m.aberra")
    (folder / "said.txt").write_text(said)
    return folder


def test_fit_says_how_the_columns_are_written(folder):
    said = (folder / "said.txt").read_text()
    assert "numbers price: written as '1.234,56 €'; 2 cells are not and count as gaps" in said
    assert "the first 'on request' in line 42" in said
    assert "numbers discount: written as '1234 %'" in said
    assert "dates day: written as '27.02.2026'" in said
    assert "2 gaps in 1 column take the column's median" in said
    assert "text shop: every value becomes how rare it is" in said
    assert "left out" not in said


def test_a_planted_price_is_found_and_new_rows_are_not_flagged(folder):
    run("score", folder / "m.aberra", folder / "sales.csv", "-o", folder / "s.csv")
    found = pd.read_csv(folder / "s.csv")
    assert found["score"].idxmax() == PLANTED
    assert found["reason_1"][PLANTED] == "price"
    run("score", folder / "m.aberra", folder / "new.csv", "-o", folder / "new_s.csv")
    assert pd.read_csv(folder / "new_s.csv")["flag"].mean() < 0.05


@pytest.mark.slow
def test_the_same_rows_in_parquet_block_by_block_and_in_python(folder):
    rows = pd.read_csv(folder / "sales.csv", sep=";")
    rows.to_parquet(folder / "sales.parquet")
    run("score", folder / "m.aberra", folder / "sales.csv", "-o", folder / "s.csv")
    wanted = pd.read_csv(folder / "s.csv")["score"]
    model = load(folder / "m.aberra")
    np.testing.assert_allclose(model.anomaly_score(rows[model.column_names()]), wanted)
    for name in ("sales.csv", "sales.parquet"):
        fitted = fit_table(folder / name, on_error="stop", robust="none")  # block by block
        assert fitted.model.reader_.forms == model.reader_.forms
        said = dict(fitted.recipe.choices)
        assert "the first 'on request' in row 40" in " ".join(map(str, fitted.recipe.choices))
        assert said["missing values"].startswith("2 gaps in 1 column")
        assert fitted.recipe.doubts[0].row == PLANTED


@pytest.mark.slow
def test_report_and_export_know_written_columns(folder):
    pytest.importorskip("matplotlib")
    run("report", folder / "m.aberra", folder / "sales.csv", "-o", folder / "r.html")
    assert "usually" in (folder / "r.html").read_text()
    onnx = pytest.importorskip("onnx")
    run("export", folder / "m.aberra", "-o", folder / "m.onnx")
    held = {p.key: p.value for p in onnx.load(str(folder / "m.onnx")).metadata_props}
    first = {part["column"]: part for part in reversed(json.loads(held["preparation"]))}
    assert first["price"] == {"column": "price", "part": "value", "written": "1.234,56 €"}
    assert first["day"]["written"] == "27.02.2026"
    assert "Text and dates (day, discount, price, shop) are not read" in held["stated"]


def test_a_sample_names_the_row_of_the_whole_table(folder, monkeypatch):
    whole = from_blocks.blocks_of
    few = {"sample_rows": 100}
    monkeypatch.setattr(from_blocks, "blocks_of", lambda *how: replace(whole(*how), **few))
    rows = sales(0)
    rows.loc[range(1, N, 40), "price"] = [f"ask {k}" for k in range(1, N, 40)]
    rows.to_csv(folder / "long.csv", index=False)
    said = str(fit_table(folder / "long.csv", on_error="stop", robust="none").recipe.choices)
    first, row = re.search(r"'ask (\d+)' in row (\d+)", said).groups()
    assert first == row


def test_gaps_are_an_error_on_request(folder):
    rows = sales(0)
    rows.to_csv(folder / "whole.csv", sep=";", index=False)
    settings = ["--robust", "none", "--missing", "error", "-o", folder / "e.aberra"]
    run("fit", folder / "whole.csv", *settings)
    said = run("score", folder / "e.aberra", folder / "sales.csv", "-o", folder / "x.csv", code=3)
    assert "'price' is written as '1.234,56 €', but has 'on request' too" in said


def test_columns_with_a_form_are_used_and_name_no_rows():
    k = np.arange(60)
    table = pd.DataFrame(
        {
            "who": [f"P{v:03d}" for v in k],
            "price": [f"{v}.{v:02d} $" for v in k],
            "when": pd.date_range("2026-01-01 00:01", periods=60, freq="61min").strftime(
                "%d.%m.%Y %H:%M"
            ),
            "fee": ["1,00 €"] * 60,
            "plot": [f"{v}/{v + 1}" for v in k],
        }
    )
    found = choose_columns(table)
    assert found.used == ["price", "when"]
    assert found.id_column == "who"
    assert found.dropped["fee"] == "the same value everywhere"
    unclear = table.assign(plot=[f"{v + 1},{v + 100}" for v in k])
    assert choose_columns(unclear).dropped["plot"].startswith("can be read in two ways")
    assert choose_columns(table.drop(columns="who")).id_column == "plot"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_cells_in_another_form_are_told_when_rows_are_scored(folder, tmp_path, ending):
    rows = sales(1)
    rows.loc[[7, 9, 30], "price"] = ["on request", "12.50 $", "  "]
    rows.loc[5, "day"] = "31.02.2026"
    data = tmp_path / f"new.{ending}"
    rows.to_csv(data, sep=";", index=False) if ending == "csv" else rows.to_parquet(data)
    said = run("score", folder / "m.aberra", data, "-o", tmp_path / "s.csv")
    at = {"csv": ("line 9", "line 7"), "parquet": ("row 7", "row 5")}[ending]
    price = f"2 cells are not written as '1.234,56 €' ('on request' in {at[0]}, ...)"
    assert f"price: {price}; they count as gaps." in said
    day = f"1 cell is not written as '27.02.2026' ('31.02.2026' in {at[1]})"
    assert f"day: {day}; it counts as a gap." in said


def test_a_column_that_is_written_in_another_way_is_refused(folder, tmp_path):
    rows = sales(1)
    rows["price"] = [f"${k * 3.5:,.2f}" for k in range(N)]
    rows.to_csv(tmp_path / "new.csv", sep=";", index=False)
    words = ("score", folder / "m.aberra", tmp_path / "new.csv", "-o", tmp_path / "s.csv")
    said = run(*words, code=3)
    assert "'price' was written as '1.234,56 €' when the model was fitted, but 300 of 300" in said
    assert not (tmp_path / "s.csv").exists()
