"""Names and words from other people: in spreadsheets, on terminals, in odd encodings."""

import datetime
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from PIL import Image
from rich.table import Table

from aberra import ADC, IADC, OCSVM, IntensityThreshold, MultiView
from aberra.data.blocks.opening import blocks_of
from aberra.errors import DataError
from aberra.terminal import console, visible
from aberra.viewer.app import AsciiAnswer
from aberra.workflow import fit, score

FORMULAS = ["=1+1", "+2", "-3", "@SUM(A1)", "\t=1", "\n=1", "plain", "a=b"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["=a", "b", "c"])
    frame.insert(0, "who", [f"{FORMULAS[k % 8]}{k}" for k in range(80)])
    path = tmp_path_factory.mktemp("table") / "rows.csv"
    frame.to_csv(path, index=False)
    return path, fit(path, id_column="who")


def test_formulas_get_an_apostrophe_only_where_asked(table, tmp_path):
    path, fitted = table
    plain, safe = tmp_path / "plain.csv", tmp_path / "safe.csv"
    score(fitted, path, plain, reasons="all")
    score(fitted, path, safe, reasons="all", neutralise=True)
    ids = pd.read_csv(plain)["id"].tolist()
    assert ids == pd.read_csv(path)["who"].tolist()  # as it was, by default
    found = pd.read_csv(safe)
    assert found["id"].tolist() == [f"'{v}" if v[0] in "=+-@\t\n" else v for v in ids]
    assert "'=a" in set(found["reason_1"]) | set(found["reason_2"]) | set(found["reason_3"])
    assert (found["score"] == pd.read_csv(plain)["score"]).all()


def test_escape_sequences_do_not_reach_the_terminal(capsys):
    evil = "\x1b]0;owned\x07\x1b[2J\u202e[bold]id[/bold]"
    shown = Table(evil)
    shown.add_row(evil)
    for what in (evil, shown):
        console().print(what, markup=False)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out
    assert "\u202e" not in out
    assert r"\x1b]0;owned" in out.replace("\n", "")
    assert visible("a\u2028b") == r"a\u2028b"
    assert visible("café\n\t日本") == "café\n\t日本"


def command(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "aberra", *words],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


@pytest.mark.slow
def test_a_terminal_that_knows_only_ascii(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 2)), columns=["größe", "b"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ("fit", str(tmp_path / "rows.csv"), "-o", str(tmp_path / "m.aberra"))
    done = command(*words, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert rb"gr\xf6\xdfe" in done.stdout


@pytest.mark.slow
def test_file_names_that_are_not_utf_8(tmp_path):
    folder = os.fsencode(tmp_path) + b"/pictures"
    os.mkdir(folder)
    for k in range(6):
        name = os.fsdecode(folder + b"/\xff%d.png" % k)
        Image.fromarray(np.full((8, 8), 20 * k, np.uint8)).save(name)
    model = tmp_path / "m.aberra"
    fit(tmp_path / "pictures", model, detector="intensity")
    done = command("score", str(model), str(tmp_path / "pictures"), "-o", str(tmp_path / "maps"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "maps" / "scores.csv").read_bytes().count(b"\xff") > 6
    again = score(model, tmp_path / "pictures", tmp_path / "maps")
    assert again.n_resumed == 6
    assert AsciiAnswer({"name": "\udcff"}).body == rb'{"name":"\udcff"}'


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather", "npy"])
def test_tables_whose_names_are_not_utf_8(ending, tmp_path):
    """Arrow takes no such name, and the commands called it a bug."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/d\xff"))
    folder.mkdir()
    plain, path = tmp_path / f"rows.{ending}", folder / f"\udcfe.{ending}"
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    if ending == "npy":
        np.save(plain, X)
    else:
        write = {"parquet": frame.to_parquet, "feather": frame.to_feather}
        write.get(ending, partial(frame.to_csv, index=False))(plain)
    path.write_bytes(plain.read_bytes())
    model = folder / "\udcfe.aberra"
    fit(path, model, detector="ocsvm", robust="none")
    for given, output in ((plain, tmp_path / "a.csv"), (path, folder / "\udcfd.csv")):
        score(model, given, output)
    assert (folder / "\udcfd.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    score(model, path, folder / "\udcfd.parquet")
    assert blocks_of(path).n_rows == 60


X = np.random.default_rng(0).normal(size=(60, 3))


def same_scores(foreign, plain, **settings):
    one = MultiView(random_state=0, **settings).fit(foreign)
    other = MultiView(random_state=0, **settings).fit(plain)
    assert one.anomaly_score(foreign).tobytes() == other.anomaly_score(plain).tobytes()


def test_tensors_that_carry_a_gradient():
    same_scores(torch.tensor(X, requires_grad=True), X)
    images = torch.rand(12, 1, 8, 8, requires_grad=True)
    assert IntensityThreshold().fit(images).anomaly_map(images).shape == (12, 8, 8)


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (MultiView(random_state=0), X),
        (ADC(OCSVM(), n_members=1, random_state=0), X),
        (IADC(OCSVM(), n_members=1, max_rounds=1, random_state=0), X),
        (IntensityThreshold(random_state=0), X[:, :, None, None] * np.ones((1, 1, 8, 8))),
    ],
    ids=lambda one: type(one).__name__,
)
def test_weights_may_be_tensors_of_any_kind(model, rows):
    weights = torch.linspace(1.0, 2.0, 60, requires_grad=True)
    expected = model.fit(rows, sample_weight=weights.detach().numpy()).anomaly_score(rows)
    np.testing.assert_array_equal(
        model.fit(rows, sample_weight=weights).anomaly_score(rows), expected
    )


def test_tensors_of_other_kinds():
    same_scores(torch.tensor(X).to_sparse(), X)
    short = torch.tensor(X).bfloat16()
    same_scores(short, short.float().numpy())
    with pytest.raises(DataError, match="no numbers"):
        MultiView().fit(torch.empty(60, 3, device="meta"))
    with pytest.raises(DataError, match=r"tensor of torch\.complex64 has no rows of plain numbers"):
        MultiView().fit(torch.zeros(60, 3, dtype=torch.complex64).conj())


def test_other_columns_than_the_model_was_fitted_on_are_named():
    """NumPy's and scikit-learn's own errors came, about types that cannot be promoted."""
    frame = pd.DataFrame(X, columns=list("abc"))
    model = MultiView().fit(frame)
    days = pd.date_range("2024-01-01", periods=len(X))
    with pytest.raises(DataError, match=r"'b' held numbers .* now holds datetime64.*Give it"):
        model.anomaly_score(frame.assign(b=days))
    with pytest.raises(DataError, match=r"occur more than once: \['a'\]"):
        model.anomaly_score(frame.set_axis(["a", "a", "c"], axis=1))


def test_masked_cells_are_gaps():
    """The mask was left out, and what it hides was learnt."""
    masked = np.ma.masked_greater(X, 1.0)
    gaps = np.where(X > 1.0, np.nan, X)
    same_scores(masked, gaps, missing="impute")
    with pytest.raises(ValueError, match="missing"):
        MultiView().fit(masked)
    same_scores(np.ma.masked_greater(X, 1e9), X)


def test_an_engine_that_joblib_does_not_know():
    with pytest.raises(DataError, match=r"no joblib backend 'dusk' for `engine`.*registered"):
        ADC(OCSVM(), n_members=2, engine="dusk").fit(X)


def test_arrays_of_dates_and_of_the_other_byte_order():
    same_scores(X.astype(">f8"), X)
    rng = np.random.default_rng(0)
    days = rng.integers(0, 2000, (60, 2)).astype("M8[D]")
    same_scores(days, pd.DataFrame(days))
    spans = rng.integers(0, 2000, (60, 2)).astype("m8[s]")
    same_scores(spans, pd.DataFrame(spans))


def test_sparse_columns():
    frame = pd.DataFrame(X, columns=list("abc"))
    sparse = frame.assign(a=pd.arrays.SparseArray(X[:, 0]))
    same_scores(sparse, frame)


def test_polars_with_text_and_dates():
    polars = pytest.importorskip("polars")
    start = datetime.date(2020, 1, 1)
    held = {
        "a": X[:, 0],
        "ward": ["n", "s", "n"] * 20,
        "day": [start + datetime.timedelta(days=int(k * 37 % 900)) for k in range(60)],
    }
    given = polars.DataFrame(held)
    same_scores(given, given.to_pandas(), encode="auto")
    same_scores(given.lazy(), given, encode="auto")
    with pytest.raises(DataError, match="Text instead of numbers"):
        MultiView().fit(given)


LISTS = [[1.0, 2.0], [3.0]] * 30
NESTED_CELLS = {
    "lists": LISTS,
    "arrays": [np.array(one) for one in LISTS],
    "objects": [{"a": 1}] * 60,
    "a list among text": ["a", None, ["b"]] * 20,
    "a list among numbers": [1, 2, [3]] * 20,
    "Arrow's lists": pd.array(LISTS, pd.ArrowDtype(pa.list_(pa.float64()))),
}


@pytest.mark.parametrize("cells", NESTED_CELLS.values(), ids=NESTED_CELLS)
@pytest.mark.parametrize("encode", ["auto", "error"])
def test_columns_of_lists_are_named(encode, cells):
    """NumPy's own error reached whoever fitted a data frame, or a wrong advice did."""
    frame = pd.DataFrame({"a": X[:, 0], "many": cells})
    for model in (IADC(encode=encode), OCSVM(encode=encode)):
        with pytest.raises(DataError, match=r"Column 'many' holds .*, not numbers, dates or text"):
            model.fit(frame)


def test_columns_of_lists_are_named_wherever_they_come_from():
    polars = pytest.importorskip("polars")
    held = {"a": X[:, 0].tolist(), "many": LISTS}
    for table in (polars.DataFrame(held), pa.table(held)):
        with pytest.raises(DataError, match="Column 'many' holds ndarray, not numbers"):
            MultiView(encode="auto").fit(table)
    cells = np.array([[x, None] for x in X[:, 0]], dtype=object)
    cells[:, 1] = LISTS
    with pytest.raises(DataError, match="Column '1' holds list, not numbers"):
        MultiView(encode="auto").fit(cells)
    model = MultiView(encode="auto").fit(pd.DataFrame({"a": X[:, 0], "many": ["x", "y"] * 30}))
    with pytest.raises(DataError, match="Column 'many' holds list, not numbers"):
        model.anomaly_score(pd.DataFrame(held))


def test_true_is_no_number_of_members():
    with pytest.raises(ValueError, match="n_members"):
        ADC(n_members=True).fit(X)


@pytest.mark.slow
def test_every_engine_gives_the_same_bytes():
    alone = ADC(OCSVM(), n_members=2, random_state=0).fit(X)
    spread = ADC(OCSVM(), n_members=2, random_state=0, engine="multiprocessing").fit(X)
    assert spread.anomaly_score(X).tobytes() == alone.anomaly_score(X).tobytes()
