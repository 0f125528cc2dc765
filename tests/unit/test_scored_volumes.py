"""A scan whose voxels are the pixels of its slices: all that is said about it in closed form."""

import json
from dataclasses import replace

import numpy as np
import pytest

from aberra.data.mri.nifti import read_nifti, write_nifti
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Volume
from aberra.errors import DataError
from aberra.localise.healthy import CalmScan, healthy_scans
from aberra.localise.likeness import Looks, look_of
from aberra.localise.relative import HealthyHeights
from aberra.localise.volumes import ScanRecord, score_scan, score_volume
from aberra.scoring.folder import ResultFolder
from aberra.scoring.scans import COLUMNS, ScanScoring, score_scans

SHAPE = (20, 22, 24)  # voxels of 2 mm
PLAIN = Preparation(size=16, field=32.0, step=2.0, below_top=(4.0, 20.0), across=0.0)
SCAN = Volume(np.random.default_rng(0).uniform(10, 100, SHAPE), np.diag([2.0, 2.0, 2.0, 1.0]))
BRAIN = np.zeros(SHAPE, bool)
BRAIN[4:16, 6:18, 3:20] = True  # its top is at 38 mm, its middle at 19 and 23 mm
HEIGHTS = np.random.default_rng(1).integers(0, 100, (9, 16, 16)).astype(np.float32)
ON_SLICES = np.zeros(SHAPE, bool)
ON_SLICES[2:18, 4:20, 9:18] = True


class Fixed:
    """Stands for a trained localiser: the same maps, whatever it sees."""

    def __init__(self, maps=HEIGHTS):
        self.maps = maps

    def anomaly_map(self, images):
        return self.maps

    def segment(self, images):
        return self.maps > 50


def in_place(values):
    """Return slices, the topmost first and from front to back, as voxels of the scan."""
    found = np.zeros(SHAPE, values.dtype)
    found[2:18, 4:20, 9:18] = values[::-1, ::-1].transpose(2, 1, 0)
    return found


def test_every_voxel_has_the_height_of_its_pixel():
    images, grid = prepare(SCAN, BRAIN, PLAIN)
    np.testing.assert_allclose(grid.below_top, np.arange(4.0, 21.0, 2.0))
    scored = score_volume(Fixed(), SCAN, PLAIN, BRAIN)
    inside = BRAIN & ON_SLICES
    np.testing.assert_array_equal(scored.scored, ON_SLICES)
    np.testing.assert_array_equal(scored.looked_at, inside)
    expected = np.where(BRAIN, in_place(HEIGHTS), 0)
    np.testing.assert_allclose(scored.anomaly_map, expected, atol=1e-3)
    np.testing.assert_array_equal(scored.segmentation, expected > 50)
    assert scored.share_flagged == (expected > 50).sum() / inside.sum()
    assert scored.millilitres == pytest.approx(0.008 * (expected > 50).sum())
    assert scored.share_not_scored == (BRAIN & ~ON_SLICES).sum() / BRAIN.sum()
    one = np.zeros(SHAPE, bool)
    one[np.unravel_index(expected.argmax(), SHAPE)] = True
    assert replace(scored, segmentation=one, brain=one).share_flagged == 1
    top = np.sort(expected[inside])[-round(0.02 * inside.sum()) :]
    assert scored.score == pytest.approx(top.mean())
    few = np.zeros(SHAPE, bool)
    few[tuple(np.argwhere(inside)[[3, 70, 99]].T)] = True
    assert replace(scored, brain=few).score == scored.anomaly_map[few].max()
    assert scored.description == "9 axial slices, 4-20 mm below top of brain"
    np.testing.assert_array_equal(scored.look, look_of(images))
    assert sum(one.millilitres for one in scored.findings) <= scored.millilitres
    averaged = score_volume(Fixed(), SCAN, replace(PLAIN, across=6.0), BRAIN, threshold=50.0)
    assert not np.allclose(averaged.anomaly_map, scored.anomaly_map, atol=1)
    seen = averaged.anomaly_map[inside]
    np.testing.assert_array_equal(averaged.segmentation[inside], seen > 50)
    assert np.isnan(replace(scored, whole_brain=None).share_not_scored)
    np.testing.assert_array_equal(replace(scored, brain=None).looked_at, ON_SLICES)
    nothing = replace(scored, segmentation=np.zeros(SHAPE, bool), brain=np.zeros(SHAPE, bool))
    assert nothing.share_flagged == 0


def test_a_height_that_is_the_threshold_is_not_flagged():
    for threshold in (50.0, 50.5, 0.0):
        scored = score_volume(Fixed(), SCAN, PLAIN, BRAIN, threshold)
        expected = BRAIN & (in_place(HEIGHTS) > threshold)
        np.testing.assert_array_equal(scored.segmentation, expected)
        calm = CalmScan.of(scored, BRAIN)
        assert calm.score == scored.score
        (largest, *_) = scored.findings
        assert calm.largest(threshold) == pytest.approx(largest.millilitres)
    lonely = np.zeros_like(HEIGHTS)
    lonely[4, 8, 8], lonely[4, 8, 9] = 3.0, 1.0
    scored = score_volume(Fixed(lonely), SCAN, PLAIN, BRAIN, np.inf)
    calm = CalmScan.of(scored, BRAIN)
    sizes = [healthy_scans([calm, calm], height).largest for height in (0.5, 1.0, 2.9, 3.0)]
    np.testing.assert_allclose(sizes, np.array([[0.016], [0.008], [0.008], [0.0]]) * [1, 1])


def test_of_a_healthy_scan_only_what_was_looked_at_in_its_brain_is_kept():
    heights = 1 + np.random.default_rng(0).random(SHAPE, dtype=np.float32)  # everywhere
    scored = replace(score_volume(Fixed(), SCAN, PLAIN, BRAIN, np.inf), anomaly_map=heights)
    inside = ON_SLICES & BRAIN
    assert inside.sum() < min(ON_SLICES.sum(), BRAIN.sum())
    calm = CalmScan.of(scored, BRAIN)
    np.testing.assert_array_equal(calm.values, heights[inside])
    np.testing.assert_array_equal(np.unpackbits(calm.where)[: inside.size], inside.ravel())
    assert calm.shape == SHAPE
    voxel = abs(np.linalg.det(SCAN.affine[:3, :3])) / 1000
    assert calm.largest(0.5) == pytest.approx(inside.sum() * voxel)


def test_what_lies_half_way_is_neither_flagged_nor_brain():
    thick = replace(PLAIN, step=4.0)  # every second plane of voxels lies between two slices
    maps = np.zeros((5, 16, 16), np.float32)
    maps[2] = 1.0
    flagged = score_volume(Fixed(maps), SCAN, thick, BRAIN, 0.5).segmentation
    assert np.flatnonzero(flagged.any(axis=(0, 1))).tolist() == [13]  # 12 mm below the top
    between = replace(PLAIN, size=15, field=30.0)  # pixels between the voxels
    scored = score_volume(Fixed(np.zeros((9, 15, 15))), SCAN, between, BRAIN, 0.5)
    inside = scored.on_slices(BRAIN).brain
    for axes in ((0, 1), (0, 2)):  # of the 12 voxels a side those between two of the brain
        assert np.flatnonzero(inside.any(axis=axes)).tolist() == list(range(2, 13))


def test_a_finding_in_a_file_has_its_chance_and_much_that_is_flagged_a_warning(tmp_path):
    scan = write_nifti(tmp_path / "s.nii.gz", SCAN.array, SCAN)
    mask = write_nifti(tmp_path / "brain.nii.gz", BRAIN, SCAN)
    piece, everything = np.zeros_like(HEIGHTS), np.ones_like(HEIGHTS)
    piece[3:6, 6:9, 6:9] = 1.0  # 27 voxels of 8 cubic millimetres
    for name, maps in (("piece", piece), ("everything", everything)):
        folder = tmp_path / name
        record = score_scan(Fixed(maps), scan, folder, PLAIN, mask=lambda path: mask,
                            threshold=0.5, p_value=lambda ml: ml / 1000)  # fmt: skip
        (found,) = json.loads((folder / "s_findings.json").read_text())["findings"]
        assert found["p_value"] == pytest.approx(found["millilitres"] / 1000)
        assert record.n_findings == 1
        assert ("flagged in 100 %" in record.remark) == (name == "everything")
        assert (record.remark == "") == (name == "piece")
        if name == "piece":
            assert found["millilitres"] == pytest.approx(0.216)


def test_a_header_that_was_put_right_moves_no_brain_on_the_slices():
    # The same scan with its axes in another order, of which its header knows nothing.
    turned = Volume(SCAN.array.transpose(2, 0, 1), SCAN.affine, axes="SRA")
    brain = BRAIN.transpose(2, 0, 1)
    plain = score_volume(Fixed(), SCAN, PLAIN, BRAIN)
    other = score_volume(Fixed(), turned, PLAIN, brain)
    np.testing.assert_array_equal(other.anomaly_map.transpose(1, 2, 0), plain.anomaly_map)
    np.testing.assert_array_equal(other.on_slices(brain).brain, plain.on_slices(BRAIN).brain)
    known, calm = CalmScan.of(plain, BRAIN), CalmScan.of(other, brain)
    assert HealthyHeights.of([calm.slices]) == HealthyHeights.of([known.slices])


def test_a_scan_that_could_not_be_read_has_no_results():
    record = ScanRecord("s.nii", error="damaged")
    assert (record.n_findings, record.remark, record.slices, record.map_path) == (0, "", "", None)
    unknown = (record.largest, record.millilitres, record.score, record.share_not_scored)
    assert np.isnan(unknown).all()


def test_a_model_that_answers_in_another_shape_is_named():
    with pytest.raises(DataError, match=r"anomaly_map gave shape \(8, 16, 16\)"):
        score_volume(Fixed(HEIGHTS[1:]), SCAN, PLAIN, BRAIN)
    with pytest.raises(DataError, match="mask"):
        score_volume(Fixed(), SCAN, PLAIN, BRAIN[1:])


def test_what_is_usual_is_measured_on_the_slices_and_blank_outside_the_brain():
    scored = score_volume(Fixed(), SCAN, PLAIN, BRAIN)
    slices = scored.on_slices(BRAIN)
    np.testing.assert_array_equal(in_place(slices.brain), BRAIN & ON_SLICES)
    usual = HealthyHeights.of([slices])
    percentile, z = scored.relative(usual)
    expected = usual.relative(HEIGHTS, np.arange(4.0, 21.0, 2.0))
    for found, own in zip((percentile, z), expected, strict=True):
        np.testing.assert_allclose(found, np.where(BRAIN, in_place(own), 0), atol=1e-3)


@pytest.mark.parametrize("relative", [False, True])
def test_a_scan_leaves_its_files_and_a_line(tmp_path, relative):
    scan = write_nifti(tmp_path / "s.nii.gz", SCAN.array, SCAN)
    mask = write_nifti(tmp_path / "brain.nii.gz", BRAIN, SCAN)
    scored = score_volume(Fixed(), read_nifti(scan), PLAIN, BRAIN, 97.0)
    usual = HealthyHeights.of([scored.on_slices(BRAIN)]) if relative else None
    looks = Looks([0.0] * 10, 0.0) if relative else None
    record = score_scan(Fixed(), scan, tmp_path / "maps", PLAIN, mask=lambda path: mask,
                        threshold=97.0, looks=looks, p_value=lambda ml: 0.25,
                        relative_to=usual)  # fmt: skip
    about = json.loads((tmp_path / "maps" / "s_findings.json").read_text())
    assert record.n_findings == len(about["findings"]) == len(scored.findings)
    assert {one["p_value"] for one in about["findings"]} <= {0.25}
    assert ("unlike the training scans" in record.remark) == relative == bool(record.remark)
    assert about["remark"] == record.remark
    assert (record.largest, record.score) == (scored.anomaly_map.max(), scored.score)
    assert record.millilitres == scored.millilitres
    assert record.share_not_scored == scored.share_not_scored
    assert record.slices == scored.description
    for path, values in (
        (record.map_path, scored.anomaly_map),
        (record.segmentation_path, scored.segmentation),
        (tmp_path / "maps" / "s_scored.nii.gz", scored.looked_at),
    ):
        np.testing.assert_allclose(read_nifti(path).array, values, atol=1e-3)
    others = {"s_percentile.nii.gz", "s_z.nii.gz"} if relative else set()
    assert {path.name for path in (tmp_path / "maps").iterdir()} == others | {
        "s_anomaly.nii.gz", "s_segmentation.nii.gz", "s_scored.nii.gz", "s_findings.csv",
        "s_findings.json",
    }  # fmt: skip


@pytest.mark.parametrize("asked", [False, True])
def test_scans_of_one_name_have_folders_of_their_own_and_relative_maps_only_if_asked(
    asked, tmp_path, monkeypatch
):
    monkeypatch.setattr("aberra.localise.volumes.brain_mask", lambda scan: BRAIN)
    root, out = tmp_path / "scans", tmp_path / "maps"
    paths = [write_nifti(root / name / "t1.nii.gz", SCAN.array, SCAN) for name in ("a", "b")]
    calm = CalmScan.of(score_volume(Fixed(), SCAN, PLAIN, BRAIN), BRAIN)
    healthy = healthy_scans([calm, calm], 50.0)
    way = ScanScoring(PLAIN, 50.0, healthy=healthy, relative=asked)
    results = ResultFolder(out, "run", COLUMNS)
    with results.held():
        lines = list(score_scans(Fixed(), paths, root, results, way))
    assert [line["scan"] for line in lines] == ["a/t1.nii.gz", "b/t1.nii.gz"]
    assert [line["map"] for line in lines] == [f"{k}/t1_anomaly.nii.gz" for k in "ab"]
    for name in "ab":
        there = {path.name for path in (out / name).iterdir()}
        assert ("t1_z.nii.gz" in there) == ("t1_percentile.nii.gz" in there) == asked
