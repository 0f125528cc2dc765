"""NFBS and Edinburgh by AnoDDPM's protocol, on tiny trees of their layout; and npz files."""

import os
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from aberra.data.mri import datasets
from aberra.data.mri.datasets import (
    EDINBURGH_SLICES,
    NFBS_SLICES,
    anoddpm_window,
    centre_crop,
    edinburgh,
    nfbs,
    npz_slices,
    resize,
)
from aberra.data.mri.prepare import Preparation
from aberra.errors import DataError
from aberra.reproduce import mri_slices

DATA = os.environ.get("ABERRA_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="ABERRA_DATA does not name the data folder")


def save(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(array, np.eye(4)), path)


@pytest.fixture
def nfbs_tree(tmp_path):
    generator = np.random.default_rng(0)
    for name in ("A00028185", "A00028352", "A00032875"):
        scan = generator.gamma(1.0, 100.0, (24, 110, 18)).astype(np.float32)
        save(tmp_path / name / f"sub-{name}_ses-NFB3_T1w.nii.gz", scan)
        save(tmp_path / name / f"sub-{name}_ses-NFB3_T1w_brain.nii.gz", scan * 0.5)
    return tmp_path


def test_window_is_mean_and_deviations():
    values = np.random.default_rng(0).normal(5.0, 2.0, (30, 30, 30))
    window = anoddpm_window(values)
    mean, sd = values.mean(), values.std()
    assert window.min() == pytest.approx((mean - sd) / (3 * sd))
    assert window.max() == pytest.approx((mean + 2 * sd) / (3 * sd))


def test_crop_is_centred_and_pads():
    images = np.ones((1, 256, 192))
    cropped = centre_crop(images, 235, 235)
    assert cropped.shape == (1, 235, 235)
    np.testing.assert_array_equal(np.flatnonzero(cropped[0, 0]), np.arange(21, 213))
    rows = np.arange(256.0)[None, :, None] * np.ones((1, 1, 300))
    assert centre_crop(rows, 235, 240)[0, 0, 0] == 10  # half of 21, rounded to even
    np.testing.assert_array_equal(centre_crop(rows, 256, 300), rows)


@pytest.mark.parametrize(("start", "size"), [(40, 64), (100, 32)])
def test_resize_is_pillows_bilinear(start, size):
    image_of = pytest.importorskip("PIL.Image").fromarray
    image = np.random.default_rng(0).uniform(size=(start, start)).astype(np.float32)
    expected = np.asarray(image_of(image).resize((size, size), resample=2))
    np.testing.assert_allclose(resize(image[None], size)[0], expected, atol=1e-5)


def test_nfbs(nfbs_tree):
    loaded = nfbs(nfbs_tree, slices=(40, 80, 100), size=32)
    assert loaded.images.shape == (9, 1, 32, 32)
    assert loaded.subjects[[0, 3, 8]].tolist() == ["A00028185", "A00028352", "A00032875"]
    assert loaded.positions[:3].tolist() == [40, 80, 100]
    path = nfbs_tree / "A00028352" / "sub-A00028352_ses-NFB3_T1w.nii.gz"
    window = anoddpm_window(nib.load(path).get_fdata())
    expected = resize(centre_crop(window[:, 80][None], 235, 235), 32)[0]
    np.testing.assert_allclose(loaded.images[4, 0], np.clip(expected, 0, 1), atol=1e-6)
    assert list(NFBS_SLICES) == list(range(40, 101))
    with pytest.raises(DataError, match="none is left to test"):
        nfbs(nfbs_tree, "test")
    with pytest.raises(DataError, match="has 110 slices, but slice 120"):
        nfbs(nfbs_tree, slices=[120])
    with pytest.raises(DataError, match="No ID/sub-ID"):
        nfbs(nfbs_tree / "A00028185")


def test_nfbs_jitter_is_small_and_seeded(tmp_path):
    scan = np.zeros((100, 90, 100), np.float32)
    scan[40:60, :, 40:60] = 100.0
    save(tmp_path / "A1" / "sub-A1_ses-NFB3_T1w.nii.gz", scan)
    one, same, other = (
        nfbs(tmp_path, slices=range(40, 90, 5), size=235, jitter=s).images for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    plain = nfbs(tmp_path, slices=[40], size=235).images[0, 0]
    middle = np.argwhere(plain > 0.5).mean(axis=0)
    shifts = np.array([np.argwhere(image[0] > 0.5).mean(axis=0) - middle for image in one])
    assert np.abs(shifts[:, 0]).max() <= 9.5
    assert np.abs(shifts[:, 1]).max() <= 2.5
    assert np.abs(shifts[:, 0]).max() > 2.5
    area = np.array([(image > 0.5).sum() for image in one])
    np.testing.assert_allclose(area, (plain > 0.5).sum(), rtol=0.06)


@pytest.fixture
def edinburgh_tree(tmp_path):
    generator = np.random.default_rng(0)
    for name in ("17904", "19849"):
        scan = generator.gamma(1.0, 100.0, (20, 256, 12)).astype(np.float32)
        tumour = np.zeros(scan.shape, np.uint8)
        tumour[5:15, 100:220, 3:9] = 3
        save(tmp_path / name / "T1_COR_3D_x" / f"anon_{name}.nii", scan)
        save(tmp_path / name / "T1_COR_3D_x" / f"anon_{name}_corrected.nii", scan * 2)
        save(tmp_path / name / "T2_AX" / f"anon_{name}.nii", scan * 3)
        save(tmp_path / name / "tissue_classes" / f"cleaned_{name}.nii", tumour)
    return tmp_path


def test_edinburgh(edinburgh_tree):
    loaded = edinburgh(edinburgh_tree, size=64)
    assert loaded.images.shape == (8, 1, 64, 64)
    assert loaded.masks.shape == (8, 64, 64)
    assert loaded.subjects.tolist() == ["17904"] * 4 + ["19849"] * 4
    assert loaded.positions.tolist() == [170, 180, 190, 200, 155, 161, 168, 175]
    path = edinburgh_tree / "17904" / "T1_COR_3D_x" / "anon_17904.nii"
    window = anoddpm_window(nib.load(path).get_fdata())
    plane = window[:, 180, :].T  # third axis down, first axis across
    expected = resize(centre_crop(plane[None], 175, 240), 64)[0]
    np.testing.assert_allclose(loaded.images[1, 0], np.clip(expected, 0, 1), atol=1e-6)
    assert loaded.masks.any(axis=(1, 2)).all()
    assert 0.5 < loaded.masks[0].sum() / (64 * 64 * 60 / (175 * 240)) < 2.0
    assert len(EDINBURGH_SLICES) == 22


def test_large_slices_of_the_papers_table_come_from_the_scans(
    nfbs_tree, edinburgh_tree, tmp_path, monkeypatch
):
    folder = tmp_path / "data" / "mri"
    folder.mkdir(parents=True)
    (folder / "nfbs").symlink_to(nfbs_tree)
    monkeypatch.setattr(datasets, "NFBS_TRAINING", 1)
    monkeypatch.setattr(mri_slices, "N_TUNE_NFBS", 1)
    parts = mri_slices.healthy_parts(144, tmp_path / "data")
    subjects = {name: np.unique(held.subject).tolist() for name, held in parts.items()}
    assert subjects == {"train": ["A00028185"], "tune": ["A00028352"], "healthy": ["A00032875"]}
    assert parts["train"].images.shape == (16, 1, 144, 144)
    assert parts["train"].brain.any()
    with pytest.raises(DataError, match="cut from the scans themselves"):
        mri_slices.sick_slices(144, tmp_path / "data")
    (folder / "edinburgh").symlink_to(edinburgh_tree)
    sick = mri_slices.sick_slices(144, tmp_path / "data")
    assert (sick.images.shape, sick.lesion.shape) == ((8, 1, 144, 144), (8, 144, 144))
    assert sick.lesion.any(axis=(1, 2)).all()


def test_edinburgh_says_what_is_amiss(edinburgh_tree, tmp_path):
    with pytest.raises(DataError, match="No folder of a patient"):
        edinburgh(tmp_path / "17904")
    extra = edinburgh_tree / "17904" / "T1_COR_3D_x" / "anon_other.nii"
    save(extra, np.ones((3, 3, 3), np.float32))
    with pytest.raises(DataError, match=r"holds 2 files .*anon_other\.nii"):
        edinburgh(edinburgh_tree)
    extra.unlink()
    mask = edinburgh_tree / "17904" / "tissue_classes" / "cleaned_17904.nii"
    save(mask, np.arange(60, dtype=np.float32).reshape(3, 4, 5))
    with pytest.raises(DataError, match=r"shape \(3, 4, 5\), but"):
        edinburgh(edinburgh_tree)
    mask.unlink()
    with pytest.raises(DataError, match="holds 0 files tissue_classes/cleaned"):
        edinburgh(edinburgh_tree)


@pytest.fixture
def npz(tmp_path):
    generator = np.random.default_rng(0)
    image = np.zeros((5, 128, 128), np.uint8)
    image[:, 30:100, 40:90] = generator.integers(30, 200, (5, 70, 50))
    image[4] = image[0] // 4
    np.savez(
        tmp_path / "set.npz",
        img=image,
        brain=image > 0,
        subject=np.array(["a", "a", "b", "b", "b"]),
        mm_below_top=np.array([8, 10, 8, 10, 12], np.int16),
    )
    return tmp_path / "set.npz"


def test_npz(npz):
    loaded = npz_slices(npz, Preparation(size=104))
    raw = np.load(npz)["img"]
    # 208 mm of 2 mm pixels are 104: twelve pixels fall away on each side.
    np.testing.assert_array_equal(loaded.images[0, 0] > 0, raw[0, 12:116, 12:116] > 0)
    assert loaded.positions.tolist() == [8, 10, 8, 10, 12]
    assert loaded.masks is None
    np.testing.assert_array_equal(loaded.brains[0], raw[0, 12:116, 12:116] > 0)
    assert loaded.images[4].mean() < 0.5 * loaded.images[3].mean()  # one scale for all of b
    apart = npz_slices(npz, Preparation(size=104, normalise="slice"))
    assert apart.images[4].mean() == pytest.approx(apart.images[0].mean(), rel=0.05)
    only = npz_slices(npz, Preparation(size=32), subjects=["b"])
    assert only.images.shape == (3, 1, 32, 32)
    assert npz_slices(npz, Preparation(size=128), pixel=None).images.shape == (5, 1, 128, 128)


def test_npz_says_what_is_amiss(npz, tmp_path):
    with pytest.raises(DataError, match="no slice of the subjects"):
        npz_slices(npz, subjects=["z"])
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(DataError, match=r"no array \['img', 'subject'\]"):
        npz_slices(tmp_path / "other.npz")


@needs_data
def test_the_sets_of_the_paper():
    path = Path(DATA) / "mri" / "edinburgh22_t1_2mm128.npz"
    tumours = npz_slices(path, Preparation(normalise="slice"))
    assert tumours.images.shape == (88, 1, 64, 64)
    assert tumours.masks.any(axis=(1, 2)).all()
    assert len(np.unique(tumours.subjects)) == 22
    assert set(np.unique(tumours.subjects)) == set(EDINBURGH_SLICES)
    assert (tumours.images == 1).mean() < 0.15
