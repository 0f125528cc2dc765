"""From a file to a model to scores, as somebody at a shell sees it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.covariance import EllipticEnvelope
from typer.testing import CliRunner

from aberra import ADC, IADC, OCSVM, MultiView, SpatialAE, load, save
from aberra.cli import app
from aberra.cli.shell import Exit
from aberra.data.mri.nifti import read_nifti, write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.model_file import load_notes
from aberra.progress import deadline
from aberra.recipe import Recipe
from aberra.scoring.rows import RowAnswers
from aberra.scoring.table import score_table
from aberra.workflow.budget import Budget, fit_in_rounds
from aberra.workflow.image_source import as_images
from aberra.workflow.training_scans import held_out, thinned


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def answer(*words, code=0):
    return json.loads(run("--json", *words, code=code).stdout)


@pytest.fixture(scope="module")
def patients():
    """300 rows with an identifier, text, gaps, useless columns; 15 rows are odd in `b`."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    table.loc[:14, "b"] += 8
    table = table.mask(rng.random(table.shape) < 0.03)
    table["clinic"] = rng.choice(["north", "south", "007"], 300)
    table["unit"] = "kg"
    table["sick"] = np.repeat([1, 0], [15, 285])
    table.insert(0, "patient", [f"{k:04d}" for k in rng.permutation(300)])
    return table


@pytest.fixture(scope="module")
def place(patients, tmp_path_factory):
    """A folder with the table and a model of it."""
    folder = tmp_path_factory.mktemp("fit")
    patients.to_csv(folder / "patients.csv", index=False)
    said = answer(
        "fit", folder / "patients.csv", "-o", folder / "m.aberra", "--label-column", "sick",
        "--id-column", "patient",
    )  # fmt: skip
    (folder / "said.json").write_text(json.dumps(said))
    return folder


def test_fit_says_what_it_chose(place, patients):
    said = json.loads((place / "said.json").read_text())
    assert said["columns"] == ["a", "b", "c", "clinic"]
    assert set(said["dropped"]) == {"patient", "unit", "sick"}
    assert said["metrics"]["auroc"] > 0.95
    odd = set(patients["patient"][:15])
    assert len({doubt["name"] for doubt in said["doubts"]} & odd) >= 8
    assert said["doubts"][0]["reasons"][0][0] == "b"
    recipe = Recipe.of(load_notes(place / "m.aberra"))
    assert recipe.id_column == "patient"
    model = load(place / "m.aberra")
    assert isinstance(model.detector, MultiView)
    assert (model.missing, model.encode) == ("impute", "auto")


def test_summary_fits_one_screen(place):
    said = run("fit", place / "patients.csv", "-o", place / "again.aberra", "--detector", "ocsvm",
               "--robust", "none", "--drop", "clinic", "--drop", "sick").stdout  # fmt: skip
    assert len(said.splitlines()) <= 40
    for words in ("left out as asked", "OCSVM, as asked", "gaps in 3 columns", "by rule knee",
                  "least trusted", "because of", "counted fully", "aberra score"):  # fmt: skip
        assert words in said
    scores = run("score", place / "again.aberra", place / "patients.csv", "-o", place / "s.csv")
    assert "oddest rows" in scores.stdout
    assert pd.read_csv(place / "s.csv")["percentile"].between(0, 100).all()  # from the recipe


def test_labels_never_train(place, patients):
    shuffled = patients.assign(sick=patients["sick"].sample(frac=1, random_state=1).to_numpy())
    shuffled.to_csv(place / "shuffled.csv", index=False)
    said = answer("fit", place / "shuffled.csv", "-o", place / "n.aberra", "--label-column", "sick",
                  "--id-column", "patient")  # fmt: skip
    true, other = load(place / "m.aberra"), load(place / "n.aberra")
    X = patients[["a", "b", "c", "clinic"]]
    assert np.array_equal(true.anomaly_score(X), other.anomaly_score(X))
    assert said["metrics"]["auroc"] < 0.8


@pytest.mark.slow
def test_same_seed_same_bytes(place):
    for name in ("one", "two"):
        run("-q", "fit", place / "patients.csv", "-o", place / f"{name}.aberra", "--seed", 3)
    one, two = load(place / "one.aberra"), load(place / "two.aberra")
    assert np.array_equal(one.weights_, two.weights_)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scores_are_those_of_the_model(place, patients, ending):
    out = place / f"scores.{ending}"
    said = answer("score", place / "m.aberra", place / "patients.csv", "-o", out)
    assert said["rows"] == 300
    assert set(said["ignored_columns"]) == {"unit", "sick"}
    got = pd.read_csv(out, dtype={"id": str}) if ending == "csv" else pd.read_parquet(out)
    names = [f"reason_{k}" for k in (1, 2, 3)]
    assert got.columns.tolist() == ["id", "score", "percentile", "flag", *names]
    assert got["id"].tolist() == patients["patient"].tolist()  # zeros in front are kept
    model = load(place / "m.aberra")
    expected = model.anomaly_score(patients[["a", "b", "c", "clinic"]])
    assert np.array_equal(got["score"], expected)
    assert np.array_equal(got["flag"], expected > model.threshold_)
    assert got["percentile"].max() == 100
    assert (got["percentile"].rank() == got["score"].rank(method="average")).all()
    assert got["reason_1"].notna().tolist() == got["flag"].tolist()
    assert (got["reason_1"][:15] == "b").mean() > 0.8
    assert not (place / f"scores.{ending}.parts").exists()


def test_columns_are_matched_by_name(place, patients):
    mixed = patients[["c", "clinic", "b", "a"]]
    mixed.to_parquet(place / "mixed.parquet")
    answer("score", place / "m.aberra", place / "mixed.parquet", "-o", place / "x.parquet",
           "--reasons", "none")  # fmt: skip
    got = pd.read_parquet(place / "x.parquet")
    assert got["row"].tolist() == list(range(300))
    assert got["reason_1"].isna().all()
    expected = load(place / "m.aberra").anomaly_score(patients[["a", "b", "c", "clinic"]])
    assert np.array_equal(got["score"], expected)


@pytest.mark.slow
def test_chunks_change_nothing(place, tmp_path):
    model = load(place / "m.aberra")
    scorer = RowAnswers(model, ["a", "b", "c", "clinic"], "patient", reasons="all")
    files = [tmp_path / "small.csv", tmp_path / "large.csv"]
    for path, rows in zip(files, (37, 1000), strict=True):
        score_table(scorer, TableFile(place / "patients.csv"), path, "m", rows)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
def test_a_killed_run_goes_on_and_writes_the_same_bytes(place, tmp_path):
    big = pd.concat([pd.read_csv(place / "patients.csv")] * 10, ignore_index=True)
    big.to_parquet(tmp_path / "big.parquet", row_group_size=700)
    code = (
        "import sys; from pathlib import Path; from aberra import load\n"
        "from aberra.data.sources.table_file import TableFile\n"
        "from aberra.scoring.rows import RowAnswers; from aberra.scoring.table import score_table\n"
        "scorer = RowAnswers(load(sys.argv[1]), ['a', 'b', 'c', 'clinic'], reasons='none')\n"
        "print(score_table(scorer, TableFile(Path(sys.argv[2])), Path(sys.argv[3]), 'm', 100)"
        ".n_resumed)\n"
    )
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        code,
        place / "m.aberra",
        tmp_path / "big.parquet",
    ]
    out, parts = tmp_path / "s.parquet", tmp_path / "s.parquet.parts"
    process = subprocess.Popen([*command, out], stdout=subprocess.PIPE)
    while not (parts / "00000002.parquet").exists():
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not out.exists()
    scorer = RowAnswers(load(place / "m.aberra"), ["a", "b", "c", "clinic"], reasons="none")
    found = score_table(scorer, TableFile(tmp_path / "big.parquet"), out, "m", 100)
    assert 300 <= found.n_resumed < 3000
    whole = tmp_path / "whole.parquet"
    score_table(scorer, TableFile(tmp_path / "big.parquet"), whole, "m", 100)
    assert out.read_bytes() == whole.read_bytes()


def test_parts_of_another_run_are_not_used(place, tmp_path):
    model, table = load(place / "m.aberra"), TableFile(place / "patients.csv")
    broken = tmp_path / "patients.csv"
    text = (place / "patients.csv").read_text().splitlines()
    broken.write_text(
        "\n".join([*text[:200], text[200].replace(text[200].split(",")[1], "inf", 1)])
    )
    columns = ["a", "b", "c", "clinic"]
    with pytest.raises(DataError, match=r"Rows 150 to 199 .*infinity in column 'a'"):
        score_table(RowAnswers(model, columns), TableFile(broken), tmp_path / "s.csv", "m", 50)
    assert len(list((tmp_path / "s.csv.parts").glob("*.parquet"))) == 3
    found = score_table(RowAnswers(model, columns), table, tmp_path / "s.csv", "m", 50)
    assert found.n_resumed == 0


def test_models_from_python_can_score(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 3))
    np.savez(tmp_path / "x.npz", X=X)
    model = IADC(OCSVM(), max_rounds=1, random_state=0).fit(X)
    save(model, tmp_path / "m.aberra")
    run("-q", "score", tmp_path / "m.aberra", tmp_path / "x.npz", "-o", tmp_path / "s.csv")
    got = pd.read_csv(tmp_path / "s.csv")
    assert np.array_equal(got["score"], model.anomaly_score(X))
    assert got["percentile"].max() == 100


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fit", "none.csv", "-o", "m"], Exit.DATA, "no file or folder"),
        (["fit", "p.csv", "-o", "nowhere/m"], Exit.DATA, "no folder nowhere"),
        (["fit", "p.csv", "-o", "m", "--drop", "zzz"], Exit.DATA, "no column 'zzz'"),
        (["fit", "p.csv", "-o", "m", "--label-column", "a"], Exit.DATA, "must hold two"),
        (["fit", "p.csv", "-o", "m", "--detector", "addm"], Exit.USAGE, "does not take a table"),
        (["fit", "p.csv", "-o", "m", "--missing", "error"], Exit.DATA, "NaN in column"),
        (["fit", "pictures", "-o", "m", "--id-column", "x"], Exit.USAGE, "is for tables, but"),
        (
            ["fit", "pictures", "-o", "m", "--robust", "adc", "--time-budget", "1"],
            Exit.USAGE,
            "cannot stop early",
        ),
        (["fit", "few.csv", "-o", "m"], Exit.DATA, "at least 10"),
        (["score", "m.aberra", "few.csv", "-o", "s.csv"], Exit.DATA, "lacks columns"),
        (["score", "m.aberra", "pictures", "-o", "s.csv"], Exit.DATA, "fitted on a table, but"),
        (["score", "m.aberra", "p.csv", "-o", "s.txt"], Exit.DATA, "ends in .parquet or .csv"),
        (["score", "p.csv", "p.csv", "-o", "s.csv"], Exit.DATA, "Cannot load"),
        (["score", "m.aberra", "p.csv", "-o", "s.csv", "--id-column", "q"], Exit.DATA, "'q'"),
    ],
)
def test_errors_are_a_sentence_and_a_code(place, tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_bytes((place / "patients.csv").read_bytes())
    (tmp_path / "m.aberra").write_bytes((place / "m.aberra").read_bytes())
    (tmp_path / "few.csv").write_text("q,r\n1,2\n3,5\n")
    (tmp_path / "pictures").mkdir()
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "pictures" / "a.png")
    assert said in " ".join(run(*words, code=code).output.split())
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
def test_time_budget_keeps_the_finished_rounds(dirty_blob):
    X, _ = dirty_blob
    model = IADC(random_state=0)
    assert fit_in_rounds(model, X, Budget(minutes=1e-6))
    assert len(model.history_) == 1
    assert model.history_.reason == "interrupted"
    assert model.max_rounds == 30
    whole = IADC(random_state=0)
    assert not fit_in_rounds(whole, X, Budget(minutes=10))
    straight = IADC(random_state=0).fit(X)
    assert np.array_equal(whole.weights_, straight.weights_)
    assert whole.history_.reason == straight.history_.reason


def test_time_budget_is_told(place):
    said = run("fit", place / "patients.csv", "-o", place / "b.aberra", "--time-budget", "0.01")
    assert "rounds" in said.stdout
    assert load(place / "b.aberra").max_rounds == 30


@pytest.mark.slow
def test_a_training_stops_at_its_deadline():
    images = np.random.default_rng(0).random((8, 1, 16, 16))
    with deadline(0.0) as limit:
        stopped = SpatialAE(train_steps=50, batch_size=4, random_state=0).fit(images)
    assert limit.stopped_at == 1 / 50
    with deadline(60.0) as limit:
        one_step = SpatialAE(train_steps=1, batch_size=4, random_state=0).fit(images)
    assert limit.stopped_at is None
    assert np.array_equal(stopped.anomaly_map(images), one_step.anomaly_map(images))


@pytest.mark.parametrize("detector", [MultiView(), EllipticEnvelope()])
def test_reasons_are_those_of_one_hidden_cell_at_a_time(dirty_blob, detector):
    X, _ = dirty_blob
    model = ADC(detector, n_members=2, random_state=0).fit(X)
    rows = X[20:27] + 6 * np.eye(7, X.shape[1])  # each odd in at most one column
    parts = np.zeros(rows.shape)
    for reference in model.references_:
        for j, value in enumerate(reference):
            hidden = rows.copy()
            hidden[:, j] = value
            fall = model.anomaly_score(rows) - model.anomaly_score(hidden)
            parts[:, j] += np.maximum(fall, 0.0)
    wanted = parts / parts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.explain(rows), wanted, rtol=1e-9, atol=1e-12)


def test_scans_are_held_out_and_slices_thinned(monkeypatch):
    scans = [Path(str(k)) for k in range(20)]
    monkeypatch.setattr("aberra.workflow.training_scans.brain_mask", lambda scan: scan)
    monkeypatch.setattr("aberra.workflow.training_scans.read_volume", lambda path, axes: path)
    train, held, errors = held_out(scans, 0, None)
    assert (len(train), len(held), errors) == (18, 2, {})
    assert held_out([Path("a"), Path("b")], 0, None)[1] == []

    def refuse(path, axes):
        if path == held[0]:
            raise DataError("cut short")

    monkeypatch.setattr("aberra.workflow.training_scans.read_volume", refuse)
    train, others, errors = held_out(scans, 0, None)  # another takes the place
    assert (len(train), len(others), errors) == (17, 2, {held[0]: "cut short"})
    assert held[1] in others
    monkeypatch.setattr("aberra.workflow.training_scans.MOST_BYTES", 40 * 4 * 64)
    some = thinned(np.zeros((100, 1, 8, 8), np.float32))
    assert (len(some), some[0], some[-1]) == (40, 0, 99)
    assert as_images(np.zeros((2, 8, 9, 3))).shape == (2, 3, 8, 9)
    assert as_images(np.zeros((2, 8, 9))).shape == (2, 1, 8, 9)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """24 pictures of the same square, the last with a hole in it."""
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for k in range(24):
        image = rng.integers(0, 30, (40, 32))
        image[8:30, 8:24] += 180
        if k == 23:
            image[12:20, 10:18] = 0
        Image.fromarray(image.astype(np.uint8)).save(folder / f"p{k:02d}.png")
    return folder


def test_pictures(pictures, tmp_path):
    said = answer("fit", pictures, "-o", tmp_path / "m.aberra", "--detector", "intensity")
    assert said["preparation"] == {"height": 40, "width": 32, "channels": 1, "deep": False}
    out = tmp_path / "maps"
    words = ["score", tmp_path / "m.aberra", pictures, "-o", out]
    assert answer(*words)["scored"] == 24
    table = pd.read_csv(out / "scores.csv").set_index("image")
    assert table["score"].idxmax() == "p23.png"
    assert table["flag"]["p23.png"]
    with np.load(out / table["map"]["p23.png"]) as file:
        assert file["map"].shape == (40, 32)
        assert file["segmentation"][14:18, 12:16].all()
    with Image.open(out / table["picture"]["p23.png"]) as picture:
        assert picture.size == (32, 40)
    before = (out / "scores.csv").read_bytes()
    (out / table["map"]["p03.png"]).unlink()
    assert answer(*words)["scored"] == 1  # only what is missing
    assert (out / "scores.csv").read_bytes() == before
    assert answer("fit", pictures, "-o", tmp_path / "m.aberra", "--detector", "intensity",
                  "--seed", 1)["model"]  # fmt: skip
    assert answer(*words)["scored"] == 24  # another model


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Two healthy heads; in another folder one with a lesion, and a file that is no scan."""
    folder = tmp_path_factory.mktemp("scans")
    rng = np.random.default_rng(0)
    healthy, _ = head_phantom()
    sick, _ = head_phantom(lesion=(-30, 20, 30))
    for name, scan in {
        "healthy/a": healthy,
        "healthy/b": healthy,
        "new/h": healthy,
        "new/ward/sick": sick,
    }.items():
        noisy = np.where(scan.array > 0, scan.array + rng.normal(0, 2, scan.array.shape), 0)
        write_nifti(folder / f"{name}.nii.gz", noisy.astype(np.float32), scan)
    (folder / "new" / "broken.nii.gz").write_bytes(b"no scan")
    return folder


@pytest.mark.slow  # finding the brain takes a second or more a scan
def test_scans(scans, tmp_path):
    said = answer("fit", scans / "healthy", "-o", tmp_path / "m.aberra", "--detector", "intensity")
    assert said["preparation"]["size"] == 64
    assert said["n_samples"] > 50
    out = tmp_path / "maps"
    words = ["score", tmp_path / "m.aberra", scans / "new", "-o", out]
    said = answer(*words, code=3)  # one of them is no scan
    assert said["view"] == f"aberra view {out} --scans {scans / 'new'}"
    assert list(said["errors"]) == ["broken.nii.gz"]
    table = pd.read_csv(out / "scores.csv").set_index("scan")
    assert table.columns.tolist() == [
        "map", "segmentation", "score", "percentile", "z", "millilitres", "findings", "not_scored",
        "remark", "error"
    ]  # fmt: skip
    assert table["score"]["ward/sick.nii.gz"] > table["score"]["h.nii.gz"]
    assert table["map"]["ward/sick.nii.gz"] == "ward/sick_anomaly.nii.gz"
    scan, found = (
        read_nifti(scans / "new/ward/sick.nii.gz"),
        read_nifti(out / table["segmentation"]["ward/sick.nii.gz"]),
    )
    assert np.array_equal(found.affine, scan.affine)
    lesion = tuple(round(v) for v in scan.to_voxels((-30, 20, 30)))
    assert found.array[lesion] == 1
    again = answer(*words, code=3)  # what is broken is tried again, the rest is done
    assert (again["scored"], list(again["errors"])) == (0, ["broken.nii.gz"])
    shutil.copy(scans / "new/h.nii.gz", tmp_path / "sick.nii.gz")
    alone = tmp_path / "alone"
    answer("score", tmp_path / "m.aberra", tmp_path / "sick.nii.gz", "-o", alone)
    healthy = (alone / "scores.csv").read_bytes()
    shutil.copy(scans / "new/ward/sick.nii.gz", tmp_path / "sick.nii.gz")  # the name stays
    assert answer("score", tmp_path / "m.aberra", tmp_path / "sick.nii.gz", "-o", alone)["scored"]
    assert (alone / "scores.csv").read_bytes() != healthy
    failed = run("score", tmp_path / "m.aberra", scans / "new/broken.nii.gz", "-o", alone, code=3)
    assert "None of 1 could be scored. broken.nii.gz" in failed.output
    one = answer("score", tmp_path / "m.aberra", scans / "new/h.nii.gz", "-o", tmp_path / "one")
    assert one["scans"] == 1


@pytest.mark.slow
def test_axes_stand_in_for_headers_that_are_wrong(scans, tmp_path):
    for path in scans.glob("healthy/*.nii.gz"):
        scan = read_nifti(path)
        turned = Volume(scan.array.transpose(2, 0, 1), scan.affine)  # the header still says RAS
        write_nifti(tmp_path / "turned" / path.name, turned.array, turned)
    found = {}
    for name, folder, extra in (
        ("right", scans / "healthy", []),
        ("turned", tmp_path / "turned", ["--axes", "SRA"]),
    ):
        model, out = tmp_path / f"{name}.aberra", tmp_path / f"{name}-maps"
        said = answer("fit", folder, "-o", model, "--detector", "intensity", *extra)
        answer("score", model, folder, "-o", out)
        scores = pd.read_csv(out / "scores.csv")["score"]
        found[name] = [said["n_samples"], said["map_threshold"], *scores]
    np.testing.assert_allclose(found["turned"], found["right"], rtol=1e-4)


@pytest.mark.slow
def test_a_trained_localiser_within_a_budget(scans, tmp_path):
    said = answer("fit", scans / "healthy", "-o", tmp_path / "m.aberra", "--time-budget", "0.05")
    choices = dict(said["choices"])
    assert "training stopped after" in choices["time budget"]
    assert said["map_threshold"] > 0
    model = load(tmp_path / "m.aberra")
    assert model.checkpoint is None
    assert model.map_threshold_ == said["map_threshold"]
    assert not (tmp_path / "m.aberra.training").exists()
    said = answer("score", tmp_path / "m.aberra", scans / "new", "-o", tmp_path / "maps", code=3)
    assert said["scored"] == 2
    assert list(said["errors"]) == ["broken.nii.gz"]
