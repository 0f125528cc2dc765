"""The automatic brain mask."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from aberra.data.mri.brain import _eroded, _grown, brain_mask, otsu, slice_brain_mask
from aberra.data.mri.nifti import read_mask, read_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume
from aberra.errors import DataError

DATA = os.environ.get("ABERRA_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="ABERRA_DATA does not name the data folder")


def dice(a, b):
    return 2.0 * (a & b).sum() / (a.sum() + b.sum())


@pytest.mark.slow
def test_finds_the_brain_of_the_phantom_under_noise_and_shading():
    spacing = (2.5, 3.0, 6.0)
    shape = tuple(int(220 / s) for s in spacing)
    affine = np.diag([*spacing, 1.0])
    affine[:3, 3] = -np.array(spacing) * (np.array(shape) - 1) / 2
    scan, brain = head_phantom(affine, shape)
    noisy = scan.array + np.random.default_rng(0).normal(0, 3, shape) + 20
    shade = 1 + 0.3 * np.linspace(-1, 1, shape[2])  # brighter at the top
    assert dice(brain_mask(Volume(noisy * shade, affine)), brain) > 0.93


@pytest.mark.slow
def test_a_dark_lesion_at_the_surface_stays_inside():
    scan, brain = head_phantom(lesion=(-48, 0, 40), radius=12)
    lesion = (scan.array == 15.0) & brain
    mask = brain_mask(scan)
    assert (mask & lesion).sum() > 0.7 * lesion.sum()


def test_no_brain_no_mask():
    noise = np.random.default_rng(0).uniform(0, 1, (30, 30, 30))
    with pytest.raises(DataError, match="give a mask"):
        brain_mask(Volume(noise, np.diag([2.0, 2.0, 2.0, 1.0])))


@pytest.mark.slow
def test_a_slice():
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    affine[:3, 3] = -111.0
    scan, brain = head_phantom(affine, (112, 112, 112))
    assert dice(slice_brain_mask(scan.array[:, :, 60], 2.0), brain[:, :, 60]) > 0.93
    assert not slice_brain_mask(np.zeros((40, 40)), 2.0).any()


@pytest.mark.parametrize("shape", [(13, 17, 11), (40, 1, 3), (21, 30)])
@pytest.mark.parametrize(("radius", "spacing"), [(0.0, 1.0), (4.0, 2.0), (6.1, 1.7), (20.0, 0.9)])
def test_masks_grow_and_shrink_by_a_ball(shape, radius, spacing):
    for share in (0.02, 0.5, 0.98):
        mask = np.random.default_rng(len(shape)).random(shape) < share
        mask.flat[0], mask.flat[-1] = True, False  # SciPy's distance to nothing has no meaning
        outside = ndimage.distance_transform_edt(~mask, sampling=spacing)
        inside = ndimage.distance_transform_edt(mask, sampling=spacing)
        np.testing.assert_array_equal(_grown(mask, radius, spacing), outside <= radius)
        np.testing.assert_array_equal(_eroded(mask, radius, spacing), inside > radius)


def test_otsu_parts_two_groups():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(10, 2, 5000), rng.normal(50, 5, 2000)])
    assert 15 < otsu(values) < 40


@pytest.mark.slow
@needs_data
def test_dice_on_a_real_head():
    name = "IXI357-HH-2076"  # one of the two whose neck comes off last
    folder = Path(DATA) / "mri" / "nifti"
    scan = read_nifti(folder / f"{name}_t1w.nii.gz")
    brain = read_mask(folder / f"{name}_brain.nii.gz", scan)
    assert dice(brain_mask(scan), brain) > 0.95
