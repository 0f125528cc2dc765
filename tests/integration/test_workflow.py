"""Whatever the shell can do, a Python function does in one line, with the same bytes."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.covariance import EllipticEnvelope
from typer.testing import CliRunner

from aberra import IADC, DeepSVDD, IntensityThreshold, MultiView, SpatialAE, load
from aberra.cli import app
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.errors import ArgumentError, DataError, ModelFileError
from aberra.workflow import fit, fit_images, fit_scans, fit_table, report, score

RNG = np.random.default_rng(0)


def shell(*words):
    result = CliRunner().invoke(app, ["--json", *map(str, words)])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def contents(folder):
    """Return every file below a folder with its bytes."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A CSV file with an identifier, text, gaps and two rows that are odd in `b`."""
    frame = pd.DataFrame(RNG.normal(size=(80, 3)), columns=list("abc"))
    frame.loc[:1, "b"] += 9
    frame = frame.mask(RNG.random(frame.shape) < 0.02)
    frame["ward"] = RNG.choice(["north", "south"], 80)
    frame.insert(0, "patient", [f"P{k:03d}" for k in RNG.permutation(80)])
    path = tmp_path_factory.mktemp("table") / "patients.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Twelve pictures of a square, the last with a hole in it."""
    folder = tmp_path_factory.mktemp("images") / "pictures"
    folder.mkdir()
    for k in range(12):
        image = RNG.integers(0, 30, (20, 16))
        image[4:15, 4:12] += 180
        if k == 11:
            image[6:10, 5:9] = 0
        Image.fromarray(image.astype(np.uint8)).save(folder / f"p{k:02d}.png")
    return folder


@pytest.fixture(scope="module")
def heads(tmp_path_factory):
    """Two phantom heads, one with a lesion."""
    folder = tmp_path_factory.mktemp("scans") / "heads"
    for name, lesion in (("healthy", None), ("sick", (-30, 20, 30))):
        scan, _ = head_phantom(lesion=lesion)
        noisy = np.where(scan.array > 0, scan.array + RNG.normal(0, 2, scan.array.shape), 0)
        write_nifti(folder / f"{name}.nii.gz", noisy.astype(np.float32), scan)
    return folder


# The same bytes as the shell


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"detector": "ocsvm", "robust": "none", "seed": 3},
        {"robust": "adc", "id_column": "patient", "drop": ["ward"]},
    ],
)
def test_fit_of_a_table(table, tmp_path, settings):
    words = [
        word
        for name, value in settings.items()
        for one in (value if isinstance(value, list) else [value])
        for word in (f"--{name.replace('_', '-')}", one)
    ]
    said = shell("fit", table, "-o", tmp_path / "shell.aberra", *words)
    fitted = fit_table(table, tmp_path / "python.aberra", **settings)
    assert contents(tmp_path)["shell.aberra"] == contents(tmp_path)["python.aberra"]
    assert said["columns"] == fitted.recipe.columns
    assert fitted.path == tmp_path / "python.aberra"
    assert fitted.seconds > 0
    later = fit(table, **settings).save(tmp_path / "later.aberra")
    assert later.path.read_bytes() == fitted.path.read_bytes()


@pytest.mark.parametrize("robust", ["none", "adc", "iadc"])
def test_fit_of_images(pictures, tmp_path, robust):
    options = ["--detector", "intensity", "--robust", robust, "--look-for", "darker", "--seed", 2]
    shell("fit", pictures, "-o", tmp_path / "shell.aberra", *options)
    settings = {"detector": "intensity", "robust": robust, "look_for": "darker", "seed": 2}
    fit_images(pictures, tmp_path / "python.aberra", **settings)
    assert contents(tmp_path)["shell.aberra"] == contents(tmp_path)["python.aberra"]


@pytest.mark.slow
def test_fit_and_score_of_scans(heads, tmp_path):
    model = tmp_path / "shell.aberra"
    shell("fit", heads, "-o", model, "--detector", "intensity", "--preset", "medium")
    fitted = fit_scans(heads, tmp_path / "p.aberra", detector="intensity", preset="medium")
    assert model.read_bytes() == fitted.path.read_bytes()
    assert fitted.recipe.preparation["size"] == 128
    shell("score", model, heads, "-o", tmp_path / "shell")
    found = score(model, heads, tmp_path / "python")
    assert contents(tmp_path / "shell") == contents(tmp_path / "python")
    assert (found.n_scans, found.n_scored, found.n_resumed, found.errors) == (2, 2, 0, {})
    assert found.oddest[0]["scan"] == "sick.nii.gz"
    again = score(fitted, heads, tmp_path / "python")
    assert (again.n_scored, again.n_resumed) == (0, 2)
    pages = [tmp_path / "shell.html", tmp_path / "python.html"]
    shell("report", model, heads, "-o", pages[0])
    report(model, heads, pages[1])
    assert pages[0].read_bytes() == pages[1].read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_score_and_report_of_a_table(table, tmp_path, ending):
    fitted = fit(table, tmp_path / "m.aberra")
    shell("score", fitted.path, table, "-o", tmp_path / f"shell.{ending}", "--reasons", "all")
    found = score(fitted.path, table, tmp_path / f"python.{ending}", reasons="all")
    files = contents(tmp_path)
    assert files[f"shell.{ending}"] == files[f"python.{ending}"]
    assert (found.n_rows, found.n_resumed, found.id_column) == (80, 0, "patient")
    assert found.oddest[0]["reason_1"] == "b"
    held = score(fitted, table, tmp_path / f"held.{ending}", reasons="all")
    assert held.path.read_bytes() == found.path.read_bytes()
    shell("report", fitted.path, table, "-o", tmp_path / "shell.html", "--top", 5)
    written = report(fitted.path, table, tmp_path / "python.html", top=5)
    assert (tmp_path / "shell.html").read_bytes() == written.path.read_bytes()
    assert written.n_bytes == written.path.stat().st_size


def test_score_and_report_of_images(pictures, tmp_path):
    fitted = fit(pictures, tmp_path / "m.aberra", detector="intensity")
    shell("score", fitted.path, pictures, "-o", tmp_path / "shell")
    found = score(fitted.path, pictures, tmp_path / "python")
    assert contents(tmp_path / "shell") == contents(tmp_path / "python")
    assert (found.n_images, found.n_scored, found.n_resumed, found.errors) == (12, 12, 0, {})
    assert found.oddest[0]["image"] == "p11.png"
    assert score(fitted, pictures, tmp_path / "python").n_resumed == 12
    shell("report", fitted.path, pictures, "-o", tmp_path / "shell.html")
    report(fitted.path, pictures, tmp_path / "python.html")
    assert contents(tmp_path)["shell.html"] == contents(tmp_path)["python.html"]


# What Python can do besides


def test_detectors_with_settings_of_their_own(table, pictures, tmp_path):
    mine = DeepSVDD(epochs=2, pretrain_epochs=1)
    fitted = fit_table(table, tmp_path / "m.aberra", detector=mine, robust="none", seed=5)
    assert (fitted.model.epochs, fitted.model.random_state) == (2, 5)
    assert fitted.model is not mine
    assert mine.random_state is None
    assert dict(fitted.recipe.choices)["detector"] == "DeepSVDD, as asked"
    fitted = fit_images(pictures, detector=IntensityThreshold(smooth=3), look_for="darker")
    assert (fitted.model.smooth, fitted.model.side) == (3, "dark")
    fitted = fit_table(table, detector=EllipticEnvelope(), robust="adc")
    assert isinstance(fitted.model.detector, EllipticEnvelope)


def test_a_model_that_was_never_saved(table, pictures, tmp_path):
    frame = pd.read_csv(table)[["a", "b", "c"]]
    model = IADC(MultiView(), max_rounds=1, missing="impute", random_state=0).fit(frame)
    found = score(model, table, tmp_path / "s.csv")
    assert found.ignored_columns == ["patient", "ward"]
    assert found.remarks == ["The model does not use patient, ward."]
    assert found.oddest[0]["row"] in (0, 1)
    assert "IADC" in report(model, output=tmp_path / "r.html").path.read_text("utf-8")
    with pytest.raises(DataError, match=r"IADC was fitted on a table, but .* holds images"):
        score(model, pictures, tmp_path / "maps")


def test_localisers_from_python_draw_maps_of_files(pictures, tmp_path):
    images = np.stack([np.asarray(Image.open(path)) for path in sorted(pictures.iterdir())])
    model = IntensityThreshold(random_state=0).fit(images[:, None])
    found = score(model, pictures, tmp_path / "maps")
    lines = pd.read_csv(found.path)
    assert lines["percentile"].isna().all()  # nothing is known of the training scores
    np.testing.assert_array_equal(lines["score"], model.anomaly_score(images[:, None]))
    np.testing.assert_array_equal(lines["flag"], lines["score"] > model.threshold_)
    with np.load(tmp_path / "maps" / lines["map"][11]) as file:
        assert np.array_equal(file["segmentation"], model.segment(images[11:, None])[0])
    blind = DeepSVDD(epochs=1, pretrain_epochs=1, random_state=0).fit(images[:, None])
    with pytest.raises(DataError, match="tells which images are odd, but not where"):
        score(blind, pictures, tmp_path / "none")


@pytest.mark.slow
def test_only_an_output_keeps_an_unfinished_training(pictures, tmp_path, monkeypatch):
    seen = []
    trained = SpatialAE.fit

    def watched(self, images):
        seen.append(self.checkpoint)
        return trained(self, images)

    monkeypatch.setattr(SpatialAE, "fit", watched)
    short = SpatialAE(train_steps=2, batch_size=4)
    fit_images(pictures, detector=short)
    fitted = fit_images(pictures, tmp_path / "m.aberra", detector=short)
    assert seen == [None, str(tmp_path / "m.aberra.training")]
    assert fitted.model.checkpoint is None
    assert load(fitted.path).checkpoint is None
    assert contents(tmp_path).keys() == {"m.aberra"}


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"detector": "addm"}, "detector"),
        ({"detector": "nonsense"}, "detector"),
        ({"detector": IntensityThreshold()}, "detector"),
        ({"detector": EllipticEnvelope(), "robust": "none"}, "detector"),
        ({"robust": "nonsense"}, "robust"),
        ({"missing": "nonsense"}, "missing"),
        ({"time_budget": 0}, "time_budget"),
        ({"preset": "small"}, "preset"),
        ({"pattern": "*"}, "pattern"),
    ],
)
def test_arguments_that_make_no_sense(table, tmp_path, settings, argument):
    with pytest.raises(ArgumentError) as caught:
        fit(table, tmp_path / "m.aberra", **settings)
    assert caught.value.argument == argument
    assert contents(tmp_path) == {}


def test_a_model_that_is_not_there(table, tmp_path):
    with pytest.raises(ModelFileError, match="Cannot load"):
        score(tmp_path / "none.aberra", table, tmp_path / "s.csv")
