"""New data in which some cells are no numbers or dates: these count as gaps, and it is told."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import load
from aberra.cli import app
from aberra.data.blocks.chunks import ChunkedTable
from aberra.data.blocks.opening import blocks_of
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.progress import hearing
from aberra.scoring.rows import RowAnswers
from aberra.scoring.table import score_table
from aberra.viewer.rows import ScoredRows
from aberra.workflow import feedback, fit_table, report, score

RNG = np.random.default_rng(0)
N = 300
COLUMNS = {
    "whole": [str(v) for v in RNG.integers(20, 60, N)],
    "broken": [f"{v:.3f}" for v in RNG.normal(50, 3, N)],
    "truth": ["True" if v else "False" for v in RNG.random(N) < 0.5],
    "day": [f"2024-{m:02d}-{d:02d}" for m, d in RNG.integers(1, 13, (N, 2))],
    "far": ["9999-12-31" if v else "2024-05-01" for v in RNG.random(N) < 0.3],
    "moment": [f"2024-01-{d:02d} {h:02d}:30:00" for d, h in RNG.integers(1, 24, (N, 2))],
    "fine": [f"2024-01-{d:02d} {h:02d}:30:00.123456789" for d, h in RNG.integers(1, 24, (N, 2))],
    "zone": [f"2024-01-{d:02d}T{h:02d}:30:00+02:00" for d, h in RNG.integers(1, 24, (N, 2))],
    "clock": [f"{h:02d}:{m:02d}" for h, m in RNG.integers(0, 24, (N, 2))],
}
KIND = dict.fromkeys(("day", "far", "moment", "fine", "zone"), "date")
STEADY = [f"{v:.3f}" for v in RNG.normal(0, 1, N)]


def written(path, cells):
    lines = ["x,v", *(",".join(pair) for pair in zip(STEADY, cells, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


def with_cells(cells, rows, text):
    return [text if k in rows else cell for k, cell in enumerate(cells)]


@pytest.fixture
def small_blocks(monkeypatch):
    """Types are settled by about the first hundred rows, as in a file of more than four MB."""
    monkeypatch.setattr("aberra.data.sources.csv_file.BLOCK", 2000)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of the columns x and v, which holds numbers."""
    folder = tmp_path_factory.mktemp("model")
    data = written(folder / "train.csv", COLUMNS["broken"])
    return fit_table(data, folder / "m.aberra", robust="none").path


@pytest.mark.parametrize("rows", [{0}, {3, 250, 299}])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_cell_that_is_none_counts_as_a_gap(tmp_path, small_blocks, column, rows):
    cells = COLUMNS[column]
    fitted = fit_table(written(tmp_path / "train.csv", cells), robust="none")
    gaps = score(
        fitted, written(tmp_path / "gaps.csv", with_cells(cells, rows, "")), tmp_path / "g.csv"
    )
    odd = score(
        fitted, written(tmp_path / "odd.csv", with_cells(cells, rows, "abc")), tmp_path / "o.csv"
    )
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "g.csv").read_bytes()
    assert not gaps.odd_cells
    (told,) = map(str, odd.odd_cells)
    n, line, what = len(rows), min(rows) + 2, KIND.get(column, "number")
    cells_are = f"{n} cells are no {what}s" if n > 1 else f"1 cell is no {what}"
    assert told.startswith(f"v: {cells_are} ('abc' in line {line}")
    assert odd.drift.verdict == gaps.drift.verdict


def test_decimal_commas_beside_bad_cells(tmp_path):
    german = [f"{float(v):.2f}".replace(".", ",") for v in COLUMNS["broken"]]

    def rows_of(name, cell):
        cells = with_cells(german, {4}, cell)
        lines = [f"{a};{b}" for a, b in zip(cells, cells[::-1], strict=True)]
        (tmp_path / name).write_text("\n".join(["x;v", *lines]) + "\n")
        return tmp_path / name

    fitted = fit_table(rows_of("train.csv", german[4]), robust="none")
    found = [
        score(fitted, rows_of(f"{k}.csv", cell), tmp_path / f"scores{k}.csv")
        for k, cell in enumerate(["", "abc", "1.2"])
    ]
    assert [len(one.odd_cells) for one in found] == [0, 2, 2]
    assert len({one.path.read_bytes() for one in found}) == 1


def test_the_shell_tells_in_a_sentence(tmp_path, model):
    data = written(tmp_path / "new.csv", with_cells(COLUMNS["broken"], {7, 9, 200}, "abc"))
    words = ["score", str(model), str(data), "-o"]
    sentence = "v: 3 cells are no numbers ('abc' in line 9, ...); they count as gaps."
    said = CliRunner().invoke(app, [*words, str(tmp_path / "s.csv")])
    assert (said.exit_code, len(pd.read_csv(tmp_path / "s.csv"))) == (0, N)
    assert sentence in " ".join(said.output.split())
    piped = CliRunner().invoke(app, [*words, "-"])
    assert sentence in piped.stderr
    held = CliRunner().invoke(app, ["--json", *words, str(tmp_path / "s.csv")])
    (told,) = json.loads(held.stdout)["odd_cells"]
    assert (told["column"], told["n_cells"], told["place"]) == ("v", 3, "line 9")


def test_a_blank_cell_is_a_gap_of_which_nothing_is_said(tmp_path, model):
    rows = with_cells(COLUMNS["broken"], {7}, "  ")
    found = score(model, written(tmp_path / "new.csv", rows), tmp_path / "s.csv")
    assert (found.n_rows, found.odd_cells) == (N, [])


def test_a_model_that_takes_no_gaps_says_where_the_cell_is(tmp_path):
    data = written(tmp_path / "train.csv", COLUMNS["broken"])
    fitted = fit_table(data, robust="none", missing="error")
    bad = written(tmp_path / "new.csv", with_cells(COLUMNS["broken"], {7}, "abc"))
    with pytest.raises(DataError, match=r"new\.csv, line 9: 'abc' in the column 'v' is no number"):
        score(fitted, bad, tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


@pytest.mark.parametrize("column", ["broken", "day"])
def test_a_column_of_text_is_another_table(tmp_path, column):
    fitted = fit_table(written(tmp_path / "train.csv", COLUMNS[column]), robust="none")
    most = with_cells(COLUMNS[column], set(range(2, 180)), "abc")
    what = f"'v' held {KIND.get(column, 'number')}s when the model was fitted, but now holds"
    with pytest.raises(DataError, match=what):
        score(fitted, written(tmp_path / "new.csv", most), tmp_path / "s.csv")


def test_a_column_that_becomes_text_later_is_another_table(tmp_path, model, small_blocks):
    most = with_cells(COLUMNS["broken"], set(range(120, N)), "abc")
    with pytest.raises(DataError, match=r"'v' held numbers .* 180 of 300 cells now are none"):
        score(model, written(tmp_path / "new.csv", most), tmp_path / "s.csv")


def test_a_single_row_with_a_bad_cell_is_scored(tmp_path, model):
    (tmp_path / "new.csv").write_text("x,v\n0.1,abc\n")
    found = score(model, tmp_path / "new.csv", tmp_path / "s.csv")
    assert (found.n_rows, [one.n_cells for one in found.odd_cells]) == (1, [1])


@pytest.mark.parametrize("parts", [1, 3])
def test_a_continued_run_counts_every_cell_once(tmp_path, model, small_blocks, parts, monkeypatch):
    rows = {5, 70, 99, 100, 101, 210, 299}
    cells = with_cells(COLUMNS["broken"], rows, "abc")
    for k in range(parts):
        some = slice(k * N // parts, (k + 1) * N // parts)
        pd.DataFrame({"x": STEADY[some], "v": cells[some]}).to_csv(
            tmp_path / f"{k}.csv", index=False
        )
    monkeypatch.setattr("aberra.data.blocks.parts.BLOCK_ROWS", 40)
    table = TableFile(tmp_path / "0.csv")
    if parts > 1:
        table = ChunkedTable(blocks_of(str(tmp_path / "*.csv")))
    scorer = RowAnswers(load(model), ["x", "v"])
    whole = score_table(scorer, table, tmp_path / "whole.parquet", "", 20)

    done = iter([0, 1, "stop"])  # in the middle of a block

    def stopping(*_):
        if next(done) == "stop":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("aberra.scoring.table.advance", stopping)
        with pytest.raises(KeyboardInterrupt):
            score_table(scorer, table, tmp_path / "again.parquet", "", 20)
    again = score_table(scorer, table, tmp_path / "again.parquet", "", 20)
    assert again.n_resumed == 60
    assert again.odd == whole.odd
    (told,) = whole.odd
    assert (told.n_cells, told.row, told.text) == (len(rows), 5, "abc")
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_files_of_a_folder_say_where_the_cell_is(tmp_path, model):
    (tmp_path / "data").mkdir()
    for k, rows in enumerate([set(), {3, 4}, {0}]):
        written(tmp_path / "data" / f"{k}.csv", with_cells(COLUMNS["broken"], rows, "abc"))
    into_folder = score(model, tmp_path / "data", tmp_path / "scores")
    again = score(model, tmp_path / "data", tmp_path / "scores")
    one_file = score(model, str(tmp_path / "data" / "*.csv"), tmp_path / "s.csv", on_error="stop")
    for found in (into_folder, again, one_file):
        (told,) = found.odd_cells
        assert (found.n_rows, told.n_cells) == (3 * N, 3)
        assert told.place.startswith("line 5 of ")
        assert told.place.endswith("1.csv")


def test_whole_reads_take_such_cells_and_say_so(tmp_path, model):
    data = written(tmp_path / "new.csv", with_cells(COLUMNS["broken"], {7}, "abc"))
    (tmp_path / "marks.csv").write_text("row,mark\n3,reject\n7,accept\n")
    said = []
    with hearing(said.append):
        assert ScoredRows(load(model), None, TableFile(data)).table["v"].isna().sum() == 1
        assert feedback(model, data, tmp_path / "marks.csv").n_rejected == 1
        report(model, data, tmp_path / "page.html")
    assert said == ["v: 1 cell is no number ('abc' in line 9); it counts as a gap."] * 3


def test_many_columns_are_not_all_listed(tmp_path):
    names = [f"v{j}" for j in range(8)]
    train = pd.DataFrame(RNG.normal(size=(50, 8)), columns=names)
    train.to_csv(tmp_path / "train.csv", index=False)
    fitted = fit_table(tmp_path / "train.csv", tmp_path / "m.aberra", robust="none")
    new = train.astype(object)
    new.loc[4] = "abc"
    new.to_csv(tmp_path / "new.csv", index=False)
    words = ["score", str(fitted.path), str(tmp_path / "new.csv"), "-o", str(tmp_path / "s.csv")]
    said = CliRunner().invoke(app, words).output
    assert "v4: 1 cell is no number ('abc' in line 6)" in said
    assert "3 more columns with such cells" in said
    assert "v5: " not in said


@pytest.mark.parametrize("way", ["rows.xlsx", "rows.parquet", "category.parquet", "folder"])
@pytest.mark.parametrize("column", ["broken", "day"])
def test_text_in_other_files_and_in_a_folder(tmp_path, way, column):
    fitted = fit_table(written(tmp_path / "train.csv", COLUMNS[column]), robust="none")
    cells = with_cells(COLUMNS[column], {7, 250}, "abc")
    new = tmp_path / way
    table = pd.DataFrame({"x": np.array(STEADY, float), "v": cells})
    if way == "folder":
        new.mkdir()
        written(new / "a.csv", cells)
    elif way == "rows.xlsx":
        pytest.importorskip("openpyxl")
        table.to_excel(new, index=False)
    else:
        (table.astype({"v": "category"}) if way[0] == "c" else table).to_parquet(new)
    found = score(fitted, new, tmp_path / "s.csv")
    what = KIND.get(column, "number")
    (told,) = map(str, found.odd_cells)
    assert told == f"v: 2 cells are no {what}s ('abc' in row 7, ...); they count as gaps."
    gaps = written(tmp_path / "gaps.csv", with_cells(COLUMNS[column], {7, 250}, ""))
    score(fitted, gaps, tmp_path / "g.csv")
    assert (tmp_path / "s.csv").read_bytes() == (tmp_path / "g.csv").read_bytes()


def test_thousands_are_not_taken_for_decimals(tmp_path, model):
    rows = [f"{k % 7}.5;{20 + k % 30},{k:03d}" for k in range(N)]
    (tmp_path / "new.csv").write_text("\n".join(["x;v", *rows]) + "\n")
    with pytest.raises(DataError, match="now holds text"):
        score(model, tmp_path / "new.csv", tmp_path / "s.csv")
