"""Exported models say the same as the models, in onnxruntime."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import IsolationForest
from typer.testing import CliRunner

from aberra import (
    ADC,
    DAGPR,
    IADC,
    OCSVM,
    RSRAE,
    AutoEncoder,
    DeepSVDD,
    HybridOCSVM,
    MultiView,
    export_onnx,
    save,
)
from aberra.cli import app
from aberra.errors import DataError

ROWS = load_breast_cancer().data[:300]
SHORT = {"random_state": 0}


def session(model, folder):
    file = export_onnx(model, folder / "model.onnx")
    return onnxruntime.InferenceSession(file.path, providers=["CPUExecutionProvider"])


def assert_says_the_same(model, X, folder, within=1e-5, numbers=None):
    X = np.asarray(X, dtype=np.float64) if numbers is None else X
    given = X if numbers is None else numbers
    scores, flags = session(model, folder).run(None, {"X": given})
    expected = model.anomaly_score(X)
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(scores, expected, rtol=0, atol=within * model.bulk_.scale)
    np.testing.assert_array_equal(flags, model.predict(X) == -1)


@pytest.mark.slow
def test_the_default(tmp_path):
    assert_says_the_same(IADC(random_state=0).fit(ROWS), ROWS, tmp_path)


def table_with_everything():
    """Codes, pairs of codes that never meet, a constant, copies, gaps, and a column of two."""
    rng = np.random.default_rng(0)
    n = len(ROWS)
    code = rng.integers(0, 4, n)
    pair = np.where(code == 0, rng.integers(0, 2, n), rng.integers(0, 4, n))
    X = np.column_stack([ROWS[:, :6], code, pair, np.full(n, 3.0)])
    X[:12] = X[0]
    X[rng.random(X.shape) < 0.02] = np.nan
    return X


def strange(X):
    new = X.copy()
    new[::7, -1] = 4.0  # the constant breaks
    new[::5, -2] = 9.0  # a code never seen
    new[1::5, -3:-1] = [0, 3]  # codes that never meet
    new[::3, 2] *= 100
    new[::11, 1] = 1e90
    new[::13, 0] = np.nan
    return new


@pytest.mark.slow
def test_evidence_gaps_and_marks(tmp_path):
    X = table_with_everything()
    model = IADC(random_state=0, missing="impute").fit(X)
    counted = model.members_.parts[0].lens.evidence
    assert counted.coded
    assert counted.pairs
    assert len(counted.copied)
    assert len(counted.constant)
    assert_says_the_same(model, strange(X), tmp_path)
    model.feedback(X[20:26], [1, 0, 1, 0, 1, 0])
    assert_says_the_same(model, strange(X), tmp_path)


def test_columns_of_few_values(tmp_path):
    rng = np.random.default_rng(0)
    flags = rng.random((len(ROWS), 2)) < 0.1
    codes = rng.choice(3, len(ROWS), p=(0.7, 0.2, 0.1))
    X = np.column_stack([codes, ROWS[:, :3], flags]).astype(float)
    model = MultiView(random_state=0).fit(X)
    assert [lump.column for lump in model.members_.lens.lumps] == [0, 4, 5]
    new = X.copy()
    new[::3, 0], new[1::3, 5], new[2::3, 4] = 0.5, 7.0, -2.0  # between, and beyond
    assert_says_the_same(model, np.concatenate([X, new]), tmp_path)
    assert_says_the_same(MultiView(random_state=0).fit(X[:, 4:]), X[:, 4:], tmp_path)


def test_more_columns_than_rows(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 50))
    assert_says_the_same(MultiView(random_state=0).fit(X), X, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "detector",
    [
        OCSVM(),
        AutoEncoder(epochs=2, **SHORT),
        RSRAE(epochs=2, **SHORT),
        DeepSVDD(epochs=2, pretrain_epochs=2, **SHORT),
        DAGPR(pretrain_epochs=2, **SHORT),
        HybridOCSVM(pretrain_epochs=2, **SHORT),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_networks_and_machines_alone_and_together(detector, tmp_path):
    gaps = ROWS.copy()
    gaps[::9, 3] = np.nan
    alone = detector.set_params(missing="impute").fit(gaps)
    assert_says_the_same(alone, gaps, tmp_path, within=1e-9)
    detector.set_params(missing="error")
    together = ADC(detector, n_members=2, random_state=0).fit(ROWS)
    assert_says_the_same(together, ROWS, tmp_path, within=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "detector",
    [
        AutoEncoder(epochs=1, **SHORT),
        RSRAE(epochs=1, **SHORT),
        HybridOCSVM(pretrain_epochs=1, **SHORT),
    ],
    ids=lambda detector: type(detector).__name__,
)
def test_networks_on_images(detector, tmp_path):
    images = np.random.default_rng(0).random((30, 1, 12, 9))
    model = ADC(detector, n_members=2, random_state=0).fit(images)
    assert_says_the_same(model, images, tmp_path, within=1e-4)


@pytest.mark.slow
def test_one_call_of_a_denoiser(tmp_path):
    torch = pytest.importorskip("torch")
    from aberra import DDPM

    images = np.random.default_rng(0).random((8, 1, 16, 16))
    model = DDPM(train_steps=1, batch_size=4, random_state=0).fit(images)
    x = model.members_.frame.inward(images[:3])
    time = torch.tensor([0.1, 0.2, 0.3])
    given = {"images": x.numpy(), "time": time.numpy()}
    (noise,) = session(model, tmp_path).run(None, given)
    with torch.inference_mode():
        expected = model.members_.nets[0](x, time).numpy()
    np.testing.assert_allclose(noise[0], expected, atol=1e-5)


@pytest.mark.slow
def test_one_call_of_a_patch_finder_restores(tmp_path):
    from aberra import PatchFinder

    images = np.random.default_rng(0).random((8, 1, 16, 16), dtype=np.float32)
    model = PatchFinder(train_steps=1, batch_size=4, random_state=0).fit(images)
    frame = model.members_.frame
    (restored,) = session(model, tmp_path).run(None, {"images": frame.inward(images[:3]).numpy()})
    expected = frame.inward(model.reconstruct(images[:3])).numpy()
    np.testing.assert_allclose(restored[0], expected, atol=1e-5)


def test_text_and_dates_become_numbers_as_the_file_says(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": rng.normal(size=120),
            "clinic": rng.choice(["north", "south"], 120),
            "when": pd.date_range("2024-01-01", periods=120, freq="7h"),
        }
    )
    model = IADC(encode="auto", random_state=0).fit(table)
    made = session(model, tmp_path)
    held = made.get_modelmeta().custom_metadata_map
    assert "clinic, when" in json.loads(held["stated"])[0]
    columns = [_number(table, about) for about in json.loads(held["preparation"])]
    scores, _ = made.run(None, {"X": np.column_stack(columns)})
    np.testing.assert_allclose(scores, model.anomaly_score(table), atol=1e-5)


def _number(table, about):
    """Do what the metadata of a file say, with nothing of Aberra's."""
    column = table[about["column"]]
    if about["part"] == "value":
        return column.to_numpy()
    if about["part"] == "rarity":
        return column.map(about["values"]).fillna(about["otherwise"]).to_numpy()
    seconds = (column - pd.Timestamp(0)).dt.total_seconds().to_numpy()
    if about["part"] == "elapsed":
        return np.where(seconds > about["latest"], about["later"], seconds)
    function = {"sine": np.sin, "cosine": np.cos}[about["function"]]
    return function(2 * np.pi * (seconds / about["period_seconds"]))


def test_what_cannot_be_expressed_is_refused(tmp_path):
    model = ADC(IsolationForest(), n_members=1).fit(ROWS)
    with pytest.raises(DataError, match="only Aberra's own detectors"):
        export_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path):
    save(MultiView(random_state=0).fit(ROWS), tmp_path / "m.aberra")
    given = ["export", str(tmp_path / "m.aberra"), "-o"]
    done = CliRunner().invoke(app, ["--json", *given, str(tmp_path / "m.onnx")])
    assert done.exit_code == 0, done.output
    said = json.loads(done.output)
    assert said["bytes"] == (tmp_path / "m.onnx").stat().st_size
    assert any("refuses" in sentence for sentence in said["stated"])
    wrong = CliRunner().invoke(app, [*given, str(tmp_path / "m.txt")])
    assert wrong.exit_code == 3
    assert "ends in .onnx" in wrong.output
