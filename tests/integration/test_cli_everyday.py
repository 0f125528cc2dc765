"""Files as people have them, through fit and score: what is written any way means the same."""

import errno
import json
import signal

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from safetensors import safe_open
from typer.testing import CliRunner

from aberra import SpatialAE, load
from aberra.cli import app
from aberra.data.sources import kind_of_path
from aberra.data.sources.table_file import TableFile
from aberra.progress import listening, stop_requested, stopping_between_steps

RNG = np.random.default_rng(0)
N = 60
COLUMNS = {
    "whole": [str(v) for v in RNG.integers(20, 60, N)],
    "broken": [f"{v:.3f}" for v in RNG.normal(50, 3, N)],
    "truth": ["True" if v else "False" for v in RNG.random(N) < 0.5],
    "answer": ["yes" if v else "no" for v in RNG.random(N) < 0.5],
    "day": [f"2024-{m:02d}-{d:02d}" for m, d in RNG.integers(1, 13, (N, 2))],
    "far": ["9999-12-31" if v else "2024-05-01" for v in RNG.random(N) < 0.3],
    "moment": [f"2024-01-{d:02d} {h:02d}:30:00" for d, h in RNG.integers(1, 24, (N, 2))],
    "clock": [f"{h:02d}:{m:02d}" for h, m in RNG.integers(0, 24, (N, 2))],
    "code": [f"{v:03d}" for v in RNG.integers(0, 5, N)],
}


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output


def written(path, columns, mark=","):
    lines = [
        mark.join(columns),
        *(mark.join(cells) for cells in zip(*columns.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def scores_of(folder, data):
    run("fit", data, "-o", folder / "m.aberra")
    run("score", folder / "m.aberra", data, "-o", folder / "s.csv", "--reasons", "none")
    return pd.read_csv(folder / "s.csv"), load(folder / "m.aberra")


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_a_file_scores_as_it_was_fitted(tmp_path, column):
    data = written(tmp_path / "t.csv", {"x": COLUMNS["broken"], column: COLUMNS[column]})
    found, model = scores_of(tmp_path, data)
    trained = np.asarray(model.history_[model.history_.kept].scores)
    np.testing.assert_allclose(found["score"], trained, rtol=1e-12)
    assert found["flag"].mean() == model.contamination_


@pytest.mark.slow
def test_decimal_commas(tmp_path):
    numbers = RNG.normal(50, 3, N)
    numbers[7] = 500
    plain = {"w": [f"{v:.2f}" for v in numbers], "age": COLUMNS["whole"]}
    german = {"w": [cell.replace(".", ",") for cell in plain["w"]], "age": plain["age"]}
    wanted, _ = scores_of(tmp_path, written(tmp_path / "plain.csv", plain))
    data = written(tmp_path / "german.csv", german, ";")
    assert TableFile(data).decimal_comma
    assert "decimal comma" in run("fit", data, "-o", tmp_path / "g.aberra")
    found, _ = scores_of(tmp_path, data)
    pd.testing.assert_frame_equal(found, wanted)
    assert found["score"].idxmax() == 7
    mixed = written(tmp_path / "mixed.csv", {**german, "x": plain["w"]}, ";")
    assert not TableFile(mixed).decimal_comma  # 1.5 beside 1,5: lists, not numbers
    thousands = written(tmp_path / "thousands.csv", {"w": ["999", "1,234"] * 30}, ";")
    assert not TableFile(thousands).decimal_comma


def test_a_column_of_numbers_with_a_word_in_it_is_named(tmp_path):
    cells = [f"{v:.3f}" for v in RNG.normal(50, 3, N)]
    cells[5] = "broken off"
    data = written(tmp_path / "t.csv", {"w": cells, "age": COLUMNS["whole"]})
    said = run("fit", data, "-o", tmp_path / "m.aberra")  # 50.123 might be fifty thousand
    assert "numbers but for 'broken off' (1 row)" in " ".join(said.split())
    shorter = [cell[:5] for cell in cells]
    shorter[5] = cells[5]
    data = written(tmp_path / "t.csv", {"w": shorter, "age": COLUMNS["whole"]})
    said = run("fit", data, "-o", tmp_path / "m.aberra")
    said = " ".join(said.split())
    assert "w: written as '1234.56'; 'broken off' in line 7 is not, and counts as a gap" in said
    cells[5] = "-"
    said = run("fit", written(data, {"w": cells, "age": COLUMNS["whole"]}), "-o", tmp_path / "m2")
    assert "1 gap in 1 column takes the column's median" in " ".join(said.split())


def test_gaps_of_text_and_columns_that_only_rise_are_told(tmp_path):
    gaps = {"word": (["red", "blue", ""] * N)[:N], "w": ["", "", *COLUMNS["whole"][2:]]}
    data = written(tmp_path / "t.csv", {"number": [str(k * k) for k in range(N)], **gaps})
    said = " ".join(run("fit", data, "-o", tmp_path / "m.aberra").split())
    assert (
        "2 gaps in 1 column take the column's median, and make a row odd where they are unusual; "
        f"{N // 3} gaps in text count as a value of their own"
    ) in said
    assert "in order number rises from row to row: if it only numbers or dates the rows," in said
    assert "--drop number" in said


def test_identifiers_stay_as_they_are_written(tmp_path):
    names = [f"{k:04d}" for k in range(N)]
    data = written(tmp_path / "t.csv", {"id": names, "x": COLUMNS["broken"]})
    said = run("--json", "fit", data, "-o", tmp_path / "m.aberra")
    assert '"name": "00' in said


def test_labels_beside_the_rows_of_an_npz_do_not_train(tmp_path):
    np.savez(tmp_path / "t.npz", X=RNG.normal(size=(N, 3)), y=RNG.integers(0, 2, N))
    said = run("fit", tmp_path / "t.npz", "-o", tmp_path / "m.aberra")
    assert "y (labels beside the rows" in said
    assert load(tmp_path / "m.aberra").n_features_in_ == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x,city\n" + "1,Z\xfcrich\n2,Bern\n" * 20, "rows, 2 of 2 columns"),
        ("\n\nx,y\n" + "1,2\n2,4\n3,1\n" * 20, "rows, 2 of 2 columns"),
        ("x,y\n1,2\n", "has 1 row. Give at least 10"),
    ],
)
def test_what_is_said_about_files(tmp_path, text, said):
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    fine = "columns" in said
    out = run("fit", tmp_path / "t.csv", "-o", tmp_path / "m.aberra", code=0 if fine else 3)
    assert said in " ".join(out.split())
    if fine:
        run("score", tmp_path / "m.aberra", tmp_path / "t.csv", "-o", tmp_path / "s.csv")


def test_no_command_overwrites_its_input(tmp_path):
    data = written(tmp_path / "t.csv", {"x": COLUMNS["broken"], "y": COLUMNS["whole"]})
    model = tmp_path / "m.aberra"
    run("fit", data, "-o", model)
    before = data.read_bytes(), model.read_bytes()
    for words in (
        ("fit", data, "-o", data),
        ("score", model, data, "-o", data),
        ("score", model, data, "-o", model),
        ("report", model, data, "-o", data),
        ("report", model, "-o", model),
    ):
        assert "is the input itself" in run(*words, code=3)
    (tmp_path / "letter.txt").write_text("Dear reader")
    assert "is not a model" in run("fit", data, "-o", tmp_path / "letter.txt", code=3)
    assert (data.read_bytes(), model.read_bytes()) == before


def test_results_belong_to_their_images(tmp_path):
    train = RNG.random((20, 12, 12)).astype(np.float32)
    np.save(tmp_path / "train.npy", train)
    model, maps = tmp_path / "m.aberra", tmp_path / "maps"
    run("fit", tmp_path / "train.npy", "-o", model, "--detector", "intensity")
    np.save(tmp_path / "a.npy", train[:3])
    np.save(tmp_path / "b.npy", np.concatenate([train[:1], train[:2] + 5]))
    assert "3 scored now, 0 before" in run("score", model, tmp_path / "a.npy", "-o", maps)
    first = (maps / "scores.csv").read_bytes()
    assert "2 scored now, 1 before" in run("score", model, tmp_path / "b.npy", "-o", maps)
    run("score", model, tmp_path / "b.npy", "-o", tmp_path / "fresh")
    assert (maps / "scores.csv").read_bytes() == (tmp_path / "fresh/scores.csv").read_bytes()
    assert (maps / "scores.csv").read_bytes() != first


def test_a_damaged_picture_costs_only_itself(tmp_path):
    for k in range(8):
        place = tmp_path / ("train" if k < 6 else "new")
        place.mkdir(exist_ok=True)
        image = RNG.integers(0, 200, (16, 16)).astype(np.uint8)
        Image.fromarray(image).save(place / f"p{k}.png")
    damaged = tmp_path / "new" / "p6.png"
    damaged.write_bytes(damaged.read_bytes()[:60])
    model = tmp_path / "m.aberra"
    run("fit", tmp_path / "train", "-o", model, "--detector", "intensity")
    said = run("score", model, tmp_path / "new", "-o", tmp_path / "maps", code=3)
    assert "2 images, 1 scored now" in said
    assert "Failed: p6.png" in said
    lines = pd.read_csv(tmp_path / "maps" / "scores.csv", keep_default_na=False)
    assert lines["error"].str.contains("damaged").tolist() == [True, False]
    (tmp_path / "new" / "p7.png").unlink()
    out = tmp_path / "none"
    assert "None of 1 could be scored" in run("score", model, tmp_path / "new", "-o", out, code=3)


@pytest.mark.parametrize("robust", ["adc", "iadc"])
def test_pictures_that_trained_an_ensemble_score_as_they_did(tmp_path, robust):
    (tmp_path / "train").mkdir()
    for k in range(12):
        Image.fromarray(RNG.integers(90, 110, (16, 16), np.uint8)).save(
            tmp_path / f"train/{k:02d}.png"
        )
    out = tmp_path / "m.aberra"
    run("fit", tmp_path / "train", "-o", out, "--detector", "intensity", "--robust", robust)
    run("score", out, tmp_path / "train", "-o", tmp_path / "maps")
    model = load(out)
    last = model.history_[model.history_.kept] if robust == "iadc" else model.round_
    lines = pd.read_csv(tmp_path / "maps/scores.csv")
    np.testing.assert_allclose(lines["score"], last.scores, rtol=1e-6)
    assert lines["percentile"].max() == 100


def test_a_picture_beside_dicom_series_is_a_logo(tmp_path):
    (tmp_path / "IM0001").write_bytes(bytes(128) + b"DICM")
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "logo.bmp")
    assert kind_of_path(tmp_path) == "volumes"


@pytest.mark.slow
def test_an_interrupted_localiser_goes_on_where_it_was(tmp_path):
    images = RNG.random((16, 1, 32, 32)).astype(np.float32)
    settings = {"train_steps": 60, "batch_size": 4, "random_state": 0}
    model = SpatialAE(checkpoint=tmp_path, **settings)

    def press(task, fraction, note):
        if task == "training steps" and 0.3 < fraction < 0.5:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        with (
            pytest.raises(KeyboardInterrupt, match=r"after step 20 of 60\. The same command goes"),
            stopping_between_steps(),
            listening(press),
        ):
            model.fit(images)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(list(tmp_path.iterdir())) == 1
    seen = []
    with listening(lambda task, fraction, note: seen.append(fraction)):
        model.fit(images)
    assert min(seen) > 0.5  # from step 20 on
    whole = SpatialAE(**settings).fit(images)
    np.testing.assert_array_equal(model.anomaly_map(images), whole.anomaly_map(images))


@pytest.mark.slow
def test_a_model_that_cannot_be_saved_is_not_trained_again(tmp_path, monkeypatch):
    (tmp_path / "train").mkdir()
    for k in range(6):
        Image.fromarray(RNG.integers(90, 110, (32, 32), np.uint8)).save(tmp_path / f"train/{k}.png")
    out, kept = tmp_path / "m.aberra", tmp_path / "m.aberra.training"
    fit = ("fit", tmp_path / "train", "-o", out, "--detector", "spatial-ae")

    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device", given[1])

    with monkeypatch.context() as patch:
        patch.setattr("aberra.model_file.save", full)
        said = run(*fit, "--time-budget", "0.05", code=3)
    assert f"Error: No space left on device ({out}). Fix this, then give the same" in said
    [state] = kept.iterdir()
    done = trained_steps(state)
    with monkeypatch.context() as patch:
        patch.setattr("aberra.model_file.save", full)
        run(*fit, "--time-budget", "0.02", code=3)
    assert trained_steps(state) > done > 0
    run(*fit, "--time-budget", "0.02")
    assert out.exists()
    assert not kept.exists()


def trained_steps(state):
    with safe_open(state, "numpy") as file:
        return json.loads(file.metadata()["aberra"])["step"]


def test_ctrl_c_is_not_lost_where_nobody_asks_for_it():
    usual = signal.default_int_handler  # which a job in the background does not have
    before = signal.signal(signal.SIGINT, usual)
    try:
        with pytest.raises(KeyboardInterrupt), stopping_between_steps():
            signal.raise_signal(signal.SIGINT)
        with stopping_between_steps():
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):  # the second one does not wait
                signal.raise_signal(signal.SIGINT)
            assert stop_requested()
        assert signal.getsignal(signal.SIGINT) is usual
    finally:
        signal.signal(signal.SIGINT, before)
