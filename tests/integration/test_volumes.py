"""A scan in, a map of the scan out, found at the same place of the world; folders in a stream."""

import os
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from aberra.data.mri.files import find_volumes, read_volume
from aberra.data.mri.grid import resample
from aberra.data.mri.nifti import read_mask, read_nifti, write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Volume, apply_affine, direction_matrix, reorient
from aberra.errors import DataError
from aberra.localise.collect import collect_slices
from aberra.localise.volumes import score_scan, score_volume

DATA = os.environ.get("ABERRA_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="ABERRA_DATA does not name the data folder")
IXI = Path(DATA or ".") / "mri" / "nifti"
NAMES = [
    "IXI012-HH-1211",
    "IXI104-HH-1450",
    "IXI195-HH-1620",
    "IXI260-HH-1805",
    "IXI357-HH-2076",
    "IXI483-HH-2177",
    "IXI575-HH-2658",
    "IXI661-HH-2788",
]


class Memory:
    """Remembers one head and shows where another differs: a localiser that cannot fail."""

    def fit(self, images, sample_weight=None):
        self.images_ = np.array(images)
        return self

    def anomaly_map(self, images):
        return np.abs(images - self.images_)[:, 0]

    def segment(self, images):
        return self.anomaly_map(images) > 0.25


def found_at(segmentation, affine):
    return apply_affine(affine, np.argwhere(segmentation)).mean(axis=0)


def turned(letters, spacing, shape, angles=(0.0, 0.0)):
    a, b = angles
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_z = np.array([[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]])
    affine = np.eye(4)
    affine[:3, :3] = about_x @ about_z @ direction_matrix(letters) * spacing
    affine[:3, 3] = -affine[:3, :3] @ ((np.array(shape) - 1) / 2)
    return affine


@pytest.mark.parametrize(
    ("letters", "spacing", "angles"),
    [
        ("RAS", (3.0, 3.0, 3.0), (0.0, 0.0)),
        ("PRS", (3.0, 3.0, 3.0), (0.0, 0.0)),
        ("ILA", (4.0, 3.0, 2.5), (0.0, 0.0)),
        ("LPS", (2.5, 2.5, 6.0), (0.0, 0.0)),
        ("SPR", (3.0, 3.0, 3.0), (0.35, -0.25)),
        ("RIP", (3.0, 5.0, 3.0), (-0.2, 0.4)),
    ],
)
def test_a_lesion_is_found_where_it_was_put(letters, spacing, angles, tmp_path):
    shape = tuple(int(210 / s) for s in spacing)
    affine, lesion = turned(letters, spacing, shape, angles), (25.0, -30.0, 30.0)
    healthy, brain = head_phantom(affine, shape)
    ill, _ = head_phantom(affine, shape, lesion, 12.0)
    model = Memory().fit(prepare(healthy, brain, Preparation())[0])
    path = write_nifti(tmp_path / "scan.nii.gz", ill.array, ill)
    scored = score_volume(model, read_nifti(path), mask=brain)
    out = nib.load(write_nifti(tmp_path / "map.nii.gz", scored.anomaly_map, scored.scan))
    np.testing.assert_array_equal(out.affine, nib.load(path).affine)
    assert out.shape == shape
    np.testing.assert_allclose(found_at(scored.segmentation, out.affine), lesion, atol=1.5)
    peak = np.unravel_index(np.argmax(out.get_fdata()), shape)
    assert np.linalg.norm(apply_affine(out.affine, peak) - lesion) < 12.0
    ball = (ill.array != healthy.array) & scored.scored
    overlap = 2 * (ball & scored.segmentation).sum() / (ball.sum() + scored.segmentation.sum())
    assert overlap > 0.8
    assert not scored.anomaly_map[~scored.scored].any()
    assert not scored.segmentation[~scored.scored].any()


@pytest.mark.slow
def test_mask_blanks_and_threshold_spares_a_second_look():
    scan, brain = head_phantom()
    half = brain.copy()
    half[28:] = False

    class Bright:
        def anomaly_map(self, images):
            return images[:, 0]

        def segment(self, images):
            raise AssertionError("looked twice")

    scored = score_volume(Bright(), scan, mask=half, threshold=0.5)
    assert scored.segmentation.any()
    assert not scored.segmentation[~half].any()
    assert not scored.anomaly_map[~half].any()
    assert scored.millilitres == pytest.approx(scored.segmentation.sum() * 0.064)
    whole = score_volume(Bright(), scan, threshold=0.5)
    assert whole.anomaly_map[~brain].any()
    with pytest.raises(DataError, match=r"shape \(3, 3, 3\), but The scan has"):
        score_volume(Bright(), scan, mask=np.ones((3, 3, 3), bool))


def test_a_model_of_another_shape_is_named():
    class Flat:
        def anomaly_map(self, images):
            return images

    scan, brain = head_phantom()
    with pytest.raises(DataError, match=r"anomaly_map gave shape \(36, 1, 64, 64\)"):
        score_volume(Flat(), scan, mask=brain)


class Dark:
    def anomaly_map(self, images):
        return 1.0 - images[:, 0]

    def segment(self, images):
        return images[:, 0] < 0.4


def test_a_scan_is_as_odd_in_any_field_of_view():
    found = []
    for size in (56, 72):
        scan, brain = head_phantom(shape=(size, size, size), lesion=(-30, 20, 30))
        found.append(score_volume(Dark(), scan, mask=brain).score)
    assert found[1] == pytest.approx(found[0], rel=1e-3)


@pytest.fixture
def folder(tmp_path):
    """Three heads with their masks, one in a folder of its own."""
    root = tmp_path / "scans"
    for k, name in enumerate(("a", "b", "deep/c")):
        scan, brain = head_phantom(lesion=(20.0 * k - 20.0, 0.0, 40.0))
        write_nifti(root / f"{name}_t1.nii.gz", scan.array, scan)
        write_nifti(root / f"{name}_mask.nii.gz", brain, scan)
    return root


def mask_of(path):
    return path.with_name(path.name.replace("_t1", "_mask"))


@pytest.mark.slow
def test_scan_in_map_and_segmentation_out(folder, tmp_path):
    paths = find_volumes(folder, "*_t1*")
    assert [path.name for path in paths] == ["a_t1.nii.gz", "b_t1.nii.gz", "c_t1.nii.gz"]
    for k, path in enumerate(paths):
        record = score_scan(Dark(), path, tmp_path / "maps" / "deep", mask=mask_of)
        assert record.map_path.parent == tmp_path / "maps" / "deep"
        assert record.map_path.name == path.name.replace(".nii.gz", "_anomaly.nii.gz")
        scan, image = nib.load(record.source), nib.load(record.segmentation_path)
        np.testing.assert_array_equal(scan.affine, image.affine)
        assert (
            image.header["descrip"].item() == b"Aberra: 36 axial slices, 8-78 mm below top of brain"
        )
        near = head_phantom(lesion=(20.0 * k - 20.0, 0.0, 40.0))[0].array == 15.0
        assert image.get_fdata()[near].mean() > 0.5
        assert record.millilitres > 3.0
        assert record.error is None


def test_a_broken_scan_stops_the_run_or_is_passed_over(folder, tmp_path):
    (folder / "b_t1.nii.gz").write_bytes((folder / "b_t1.nii.gz").read_bytes()[:2000])
    with pytest.raises(DataError, match=r"b_t1.nii.gz is .*damaged"):
        score_scan(Dark(), folder / "b_t1.nii.gz", tmp_path / "maps", mask=mask_of)
    paths = find_volumes(folder, "*_t1*")
    with pytest.raises(DataError, match="damaged"):
        collect_slices(paths, tmp_path / "x.npy", mask=mask_of)
    kept = collect_slices(paths, tmp_path / "x.npy", mask=mask_of, on_error="skip")
    assert list(kept.errors) == [folder / "b_t1.nii.gz"]
    assert len(kept.images) == 72
    with pytest.raises(DataError, match="None of 1 scans"):
        collect_slices(paths[1:2], tmp_path / "x.npy", on_error="skip")


def test_training_slices_are_those_that_scoring_sees(folder, tmp_path):
    recipe = Preparation(size=32, below_top=(10.0, 60.0), step=5.0)
    paths = find_volumes(folder, "*_t1*")
    collected = collect_slices(paths, tmp_path / "slices.npy", recipe, mask=mask_of)
    assert collected.images.shape == (33, 1, 32, 32)
    assert isinstance(collected.images, np.memmap)
    assert collected.images.dtype == np.float32
    assert collected.sources[11] == paths[1]
    np.testing.assert_allclose(collected.below_top[:11], np.arange(10.0, 61.0, 5.0))
    scan = read_volume(paths[1])
    seen = []

    class Look:
        def anomaly_map(self, images):
            seen.extend(images)
            return images[:, 0]

    score_volume(Look(), scan, recipe, read_mask(mask_of(paths[1]), scan), threshold=2.0)
    np.testing.assert_array_equal(collected.images[11:22], seen)
    collected.images[:] = 0.5  # a copy on write: the file stays
    np.testing.assert_array_equal(np.load(tmp_path / "slices.npy")[11:22], seen)


# The headers of these eight files say PRS, but their arrays run to the top, the back and the right.
AXES = "SPR"


def flipped(scan, brain):
    mask = Volume(brain.astype(np.uint8), scan.affine, axes=AXES)
    return reorient(scan, "PSL"), reorient(mask, "PSL").array > 0


def regridded(scan, brain, shape, turn, zoom):
    """Return scan and mask of the same head on another grid about the same middle."""
    affine = scan.affine @ np.diag([*zoom, 1.0])
    affine[:3, :3] = turn @ affine[:3, :3]
    middles = [
        apply_affine(a, (np.array(s) - 1) / 2)
        for a, s in ((scan.affine, scan.array.shape), (affine, shape))
    ]
    affine[:3, 3] += middles[0] - middles[1]
    to_array = np.linalg.inv(scan.affine) @ affine
    mask = resample(brain, to_array, shape) > 0.5
    return Volume(resample(scan.array, to_array, shape), affine, axes=AXES), mask


CHANGES = {
    "as it is": lambda scan, brain: (scan, brain),
    "flipped": flipped,
    "oblique": lambda scan, brain: regridded(
        scan,
        brain,
        (100, 130, 120),
        turned("RAS", (1, 1, 1), (2, 2, 2), (0.2, 0.3))[:3, :3],
        (1.1, 1, 0.9),
    ),
    "anisotropic": lambda scan, brain: regridded(
        scan, brain, (48, 120, 90), np.eye(3), (2.5, 1, 1)
    ),
}


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(
    ("name", "change"),
    [(name, "as it is") for name in NAMES]
    + list(zip(NAMES[:3], ["flipped", "oblique", "anisotropic"], strict=True)),
)
def test_real_heads(name, change):
    scan = read_nifti(IXI / f"{name}_t1w.nii.gz", axes=AXES)
    brain = read_mask(IXI / f"{name}_brain.nii.gz", scan)
    inside = np.argwhere(brain)
    lesion = scan.to_world(np.quantile(inside, (0.7, 0.4, 0.4), axis=0).diagonal())
    scan, brain = CHANGES[change](scan, brain)
    points = scan.to_world(np.moveaxis(np.indices(scan.array.shape), 0, -1))
    ball = ((points - lesion) ** 2).sum(axis=-1) < 10.0**2
    ill = Volume(np.where(ball, scan.array * 0.2, scan.array), scan.affine, axes=scan.axes)
    scored = score_volume(Memory().fit(prepare(scan, brain, Preparation())[0]), ill, mask=brain)
    assert scored.anomaly_map.shape == scan.array.shape
    np.testing.assert_allclose(found_at(scored.segmentation, ill.affine), lesion, atol=2.0)
