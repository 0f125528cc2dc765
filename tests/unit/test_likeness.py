"""Scans that are unlike the training scans do not pass without a word."""

import csv

import numpy as np
import pytest

from aberra import IntensityThreshold
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.localise.likeness import LEAST_LIMIT, Looks, look_of, too_much
from aberra.recipe import Recipe
from aberra.workflow import fit, score


def heads(n, seed=0, power=1.0):
    """Discs with three kinds of tissue."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:32, :32] - 15.5
    away = np.hypot(x, y) + rng.normal(0, 0.3, (n, 1, 32, 32))
    tissue = np.select([away < 5, away < 10, away < 13], [0.3, 0.8, 0.6], 0.0)
    return (tissue**power).astype(np.float32)


def test_the_same_kind_of_scan_gets_no_remark_and_another_contrast_does():
    looks = Looks.of([look_of(heads(10, seed)) for seed in range(5)])
    assert looks.limit == LEAST_LIMIT
    assert looks.remark(look_of(heads(10, seed=9))) == ""
    turned = heads(10, seed=9)
    turned = np.where(turned > 0, 1.1 - turned, 0).astype(np.float32)
    assert "unlike the training scans" in looks.remark(look_of(turned))
    assert "unlike" in looks.remark(look_of(np.zeros((3, 1, 8, 8), np.float32)))


def test_training_scans_that_vary_make_the_limit_wide():
    wide = Looks.of([look_of(heads(10, seed, power)) for seed, power in enumerate((0.5, 1, 2, 3))])
    assert wide.limit == 2 * wide.largest > LEAST_LIMIT
    assert wide.remark(look_of(heads(10, 9, 2.5))) == ""


def test_a_look_is_the_percentiles_of_the_head_and_its_share():
    images = np.linspace(0, 1, 1001, dtype=np.float32)[::-1].reshape(1, 1, 7, 143)
    expected = [*(0.101 + 0.899 * np.arange(0.1, 0.95, 0.1)), 900 / 1001]
    np.testing.assert_allclose(look_of(images), expected, atol=1e-3)
    assert look_of(np.zeros((1, 1, 4, 4), np.float32)).tolist() == [0] * 10
    border = np.array([0.1, 0.1, 0.5, 0.0], np.float32)  # 0.1 is still background
    np.testing.assert_allclose(look_of(border), [*[0.5] * 9, 0.25])
    even = Looks.of([np.full(10, v) for v in (0.0, 0.5, 0.75)])
    assert even.remark(np.full(10, 1.5)) == ""  # as far as the limit
    looks = Looks.of([np.full(10, v) for v in (0.1, 0.2, 0.5)])
    assert looks == Looks([0.2] * 10, pytest.approx(0.3))
    assert looks.remark(np.full(10, 0.79)) == "" != looks.remark(np.full(10, 0.81))
    assert too_much(0.199) == "" != too_much(0.2)


@pytest.mark.slow
def test_a_scan_with_another_contrast_is_remarked_on_in_scores_csv(tmp_path):
    scan, _ = head_phantom()
    noise = np.random.default_rng(0).normal(0, 2, (2, *scan.array.shape))
    usual = [np.where(scan.array > 0, scan.array + n, 0).astype(np.float32) for n in noise]
    other = np.where(usual[1] > 0, 1.4 * usual[1].max() - usual[1], 0).astype(np.float32)
    for folder, name, array in (("train", "a", usual[0]), ("new", "same", usual[1]),
                                ("new", "other", other)):  # fmt: skip
        write_nifti(tmp_path / folder / f"{name}.nii.gz", array, scan)
    fitted = fit(tmp_path / "train", detector=IntensityThreshold())
    assert Recipe.of(fitted.recipe.notes()).training_looks() is not None
    score(fitted, tmp_path / "new", tmp_path / "maps")
    with (tmp_path / "maps" / "scores.csv").open() as file:
        remarks = {line["scan"]: line["remark"] or line["error"] for line in csv.DictReader(file)}
    assert remarks["same.nii.gz"] == ""
    assert remarks["other.nii.gz"]
