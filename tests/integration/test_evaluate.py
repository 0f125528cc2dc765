"""`evaluate`: outlined lesions in, metrics with intervals out."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from aberra import IntensityThreshold
from aberra.cli import app
from aberra.data.mri.files import read_volume
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.errors import DataError
from aberra.localise.volumes import score_volume
from aberra.report.evaluation import OutlinedSlice, chosen_cases
from aberra.workflow import evaluate, fit
from aberra.workflow.evaluating import _slices, interval_over, mask_of
from aberra.workflow.opened import opened

PLACES = {"a": (-30, 20, 30), "b": (25, -20, 35), "c": None}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A model of healthy phantoms, three scans and the masks of their lesions."""
    root = tmp_path_factory.mktemp("evaluate")
    rng = np.random.default_rng(0)
    plain, _ = head_phantom()

    def noisy(array):
        return np.where(array > 0, array + rng.normal(0, 2, array.shape), 0).astype(np.float32)

    for k in range(2):
        write_nifti(root / "healthy" / f"h{k}.nii.gz", noisy(plain.array), plain)
    for name, place in PLACES.items():
        scan, _ = head_phantom(lesion=place)
        write_nifti(root / "scans" / f"{name}_t1w.nii.gz", noisy(scan.array), scan)
        write_nifti(root / "masks" / f"{name}_lesion.nii.gz", scan.array != plain.array, scan)
    fit(root / "healthy", root / "model.aberra", detector=IntensityThreshold("dark"))
    return root


@pytest.mark.slow
def test_lesions_are_found_and_everything_is_written(data, tmp_path):
    found = evaluate(data / "model.aberra", data / "scans", data / "masks", tmp_path / "out")
    assert found.patients.index.tolist() == ["a_t1w", "b_t1w", "c_t1w"]
    assert (found.patients.auroc[:2] > 0.95).all()
    assert np.isnan(found.patients.auroc["c_t1w"])  # there is nothing to find
    assert found.patients.millilitres["c_t1w"] == 0
    table = found.intervals.set_index(["protocol", "metric"])
    assert (table.low <= table["mean"]).all()
    assert (table["mean"] <= table.high).all()
    assert {"standard", "published"} == set(found.intervals.protocol)
    held = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert len(held["patients"]) == 3
    written = pd.read_csv(tmp_path / "out" / "patients.csv")
    assert written.auroc[0] == pytest.approx(found.patients.auroc.iloc[0])
    text = (tmp_path / "out" / "evaluation.md").read_text()
    assert "on 3 scans" in text
    assert "By size of the lesion" in text
    html = (tmp_path / "out" / "evaluation.html").read_text()
    assert html.count("<figure>") == 2  # the scan without a lesion has nothing to show
    assert html.count("data:image/png") == 8
    assert "The worst, by Dice" in html
    assert "Scan by scan" in html
    assert "<script" in html
    assert "http://" not in html


@pytest.mark.slow
def test_a_scan_without_a_mask_is_left_out_and_named(data, tmp_path):
    (tmp_path / "masks").mkdir()
    one = data / "masks" / "a_lesion.nii.gz"
    (tmp_path / "masks" / one.name).write_bytes(one.read_bytes())
    found = evaluate(data / "model.aberra", data / "scans", tmp_path / "masks", tmp_path / "out")
    assert len(found.patients) == 1
    assert set(found.errors) == {"b_t1w.nii.gz", "c_t1w.nii.gz"}
    (tmp_path / "masks" / one.name).unlink()
    with pytest.raises(DataError, match="None of 3 scans"):
        evaluate(data / "model.aberra", data / "scans", tmp_path / "masks", tmp_path / "out")


def test_the_mask_of_a_scan_is_the_one_of_its_name(tmp_path):
    for name in ("x_t1w", "x_t1w_mask", "y_lesion", "z_a", "z_b"):
        (tmp_path / f"{name}.nii.gz").touch()
    assert mask_of(tmp_path / "x_t1w.nii.gz", tmp_path).name == "x_t1w_mask.nii.gz"
    assert mask_of(tmp_path / "elsewhere" / "y_t1w.nii.gz", tmp_path).name == "y_lesion.nii.gz"
    with pytest.raises(DataError, match="several masks"):
        mask_of(tmp_path / "elsewhere" / "z_t1w.nii.gz", tmp_path)
    with pytest.raises(DataError, match="no mask"):
        mask_of(tmp_path / "elsewhere" / "w_t1w.nii.gz", tmp_path)


def test_intervals_draw_patients_and_not_their_slices():
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(10), 50)
    values = np.repeat(rng.normal(size=10), 50) + 0.01 * rng.normal(size=500)
    low, high = interval_over(values, owners, seed=0)
    by_slice = interval_over(values, np.arange(500), seed=0)
    assert high - low > 3 * (by_slice[1] - by_slice[0])
    assert np.isnan(interval_over(np.full(3, np.nan), np.arange(3), 0)).all()


@pytest.mark.slow
def test_the_command_says_where_the_page_is(data, tmp_path):
    words = ["evaluate", str(data / "model.aberra"), str(data / "scans")]
    more = ["--masks", str(data / "masks"), "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["--json", *words, *more])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {line["metric"] for line in told["metrics"]} >= {"auroc", "dice", "average_precision"}


def test_pictures_show_the_middle_and_the_worst_and_never_the_best():
    lesion = np.zeros((8, 8), bool)
    lesion[2:5, 2:5] = True
    flat = np.full((8, 8), 0.5, np.float32)
    slices = [OutlinedSlice(str(k), 10.0, flat, flat, flat * k, lesion) for k in range(9)]
    slices.append(OutlinedSlice("healthy", 10.0, flat, flat, flat, np.zeros((8, 8), bool)))
    dices = [k / 10 for k in range(9)] + [0.0]
    middle, worst = chosen_cases(slices, dices, 0.5)
    assert [case.name for case in middle.cases] == ["3", "4", "5"]
    assert [case.name for case in worst.cases] == ["0", "1", "2"]
    assert chosen_cases(slices[-1:], [0.0], 0.5) == []
    (only,) = chosen_cases(slices[:2], dices, 0.5)
    assert [case.name for case in only.cases] == ["0", "1"]


@pytest.mark.slow
def test_the_maps_that_are_judged_are_those_that_score_writes(data):
    known = opened(data / "model.aberra")
    preparation = known.recipe.scan_preparation()
    path, mask = data / "scans" / "a_t1w.nii.gz", data / "masks" / "a_lesion.nii.gz"
    judged = _slices(known.model, path, mask, preparation, None)
    scored = score_volume(known.model, read_volume(path), preparation, "auto", 1.0)
    np.testing.assert_array_equal(judged.maps, scored.maps)
