"""What was flagged, piece by piece; what was not looked at; what is no scan."""

import csv
import io
import json
import shutil
from dataclasses import FrozenInstanceError, asdict, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.interpolate import RegularGridInterpolator

from aberra import SpatialAE
from aberra.data.mri.files import find_volumes, read_volume, stem
from aberra.data.mri.nifti import read_nifti, write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation
from aberra.data.mri.volume import direction_matrix
from aberra.data.sources import kind_of_path
from aberra.errors import ArgumentError, DataError, ModelFileError
from aberra.localise.findings import findings, findings_csv, findings_json
from aberra.localise.healthy import CalmScan, HealthyScans, healthy_scans
from aberra.localise.relative import SHARES, HealthyHeights, SliceMaps, _percentiles, _plane
from aberra.localise.volumes import across_slices, score_scan, score_volume
from aberra.recipe import Recipe
from aberra.workflow import fit_scans, score, training_scans
from aberra.workflow.about import about_ending
from aberra.workflow.budget import Ending

TURNED = np.array([[0, 2.0, 0, -10], [0, 0, 3.0, 5], [-1.0, 0, 0, 7], [0, 0, 0, 1]])


class Dark:
    """Stands for a trained localiser: what is dark is odd."""

    def anomaly_map(self, images):
        return 1 - images[:, 0]

    def segment(self, images):
        return images[:, 0] < 0.3


def test_pieces_have_their_size_place_and_height():
    heights = np.zeros((20, 20, 20))
    heights[2:6, 3:5, 10:14] = 2.0  # 32 voxels of 6 mm3
    heights[2, 3, 10] = 5.0
    heights[10:15, 10:15, 2:6] = 3.0  # 100 voxels
    heights[18, 18, 18] = 9.0  # 0.006 ml: too small
    first, second = findings(heights, heights > 1, TURNED)
    assert (first.number, second.number) == (1, 2)
    assert first.millilitres == pytest.approx(0.6)
    assert second.millilitres == pytest.approx(0.192)
    assert (second.x, second.y, second.z) == pytest.approx((2 * 3.5 - 10, 3 * 11.5 + 5, 7 - 3.5))
    assert (second.peak, second.mean) == pytest.approx((5.0, 2.0 + 3 / 32))
    with pytest.raises(FrozenInstanceError):  # what was found stays what it was
        first.millilitres = 0.0


def test_voxels_that_touch_at_a_corner_are_one_piece_and_nothing_gives_nothing():
    flagged = np.zeros((8, 8, 8), bool)
    flagged[1:4, 1:4, 1:4] = flagged[4:7, 4:7, 4:7] = True
    assert len(findings(flagged * 1.0, flagged, np.diag([2.0, 2, 2, 1]))) == 1
    assert findings(np.zeros((4, 4, 4)), np.zeros((4, 4, 4), bool), np.eye(4)) == []
    assert findings_csv([]) == b"number,millilitres,x,y,z,peak,mean,p_value\n"


@pytest.mark.slow
def test_a_scan_gets_its_findings_and_a_mask_of_what_was_looked_at(tmp_path):
    scan, _ = head_phantom(lesion=(-30, 20, 30))
    path = write_nifti(tmp_path / "head.nii.gz", scan.array, scan)
    record = score_scan(Dark(), path, tmp_path / "maps", mask="auto", threshold=0.7)
    text = (tmp_path / "maps" / "head_findings.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == record.n_findings
    places = np.array([[float(row[k]) for k in "xyz"] for row in rows])
    assert np.linalg.norm(places - (-30, 20, 30), axis=1).min() < 6
    seen = read_nifti(tmp_path / "maps" / "head_scored.nii.gz").array > 0
    heights = read_nifti(tmp_path / "maps" / "head_anomaly.nii.gz").array
    assert seen.any()
    assert not heights[~seen].any()


def test_what_lies_below_the_slices_is_said():
    scan, brain = head_phantom()
    shallow = score_volume(Dark(), scan, Preparation(below_top=(8, 40)), brain)
    deep = score_volume(Dark(), scan, Preparation(below_top=(0, 200)), brain)
    assert shallow.share_not_scored > 0.3
    assert deep.share_not_scored < 0.02
    assert (shallow.looked_at <= brain).all()


def test_masks_and_derivatives_are_no_scans(tmp_path):
    scan, _ = head_phantom()
    names = [
        "sub-01/anat/sub-01_T1w.nii.gz",
        "sub-01/anat/sub-01_desc-brain_mask.nii.gz",
        "sub-01/anat/sub-01_dseg.nii.gz",
        "sub-02_seg.nii",
        "derivatives/fmriprep/sub-01/anat/sub-01_desc-preproc_T1w.nii.gz",
        "maps/sub-01_T1w_scored.nii.gz",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write_nifti(tmp_path / name, scan.array, scan)
    assert find_volumes(tmp_path) == [tmp_path / names[0]]
    assert find_volumes(tmp_path, "*_dseg*") == [tmp_path / names[2]]
    below = find_volumes(tmp_path / Path(names[4]).parts[0])
    assert below == [tmp_path / names[4]]


def test_endings_in_capitals_are_scans_too(tmp_path):
    scan, _ = head_phantom()
    path = write_nifti(tmp_path / "head.nii.gz", scan.array, scan)
    loud = path.rename(tmp_path / "HEAD.NII.GZ")
    assert find_volumes(tmp_path) == [loud]
    assert kind_of_path(tmp_path) == kind_of_path(loud) == "volumes"
    assert stem(loud) == "HEAD"
    assert read_volume(loud).array.shape == scan.array.shape


def test_axes_may_be_small_letters_and_wrong_ones_are_no_bug(tmp_path):
    assert (direction_matrix("spr") == direction_matrix("SPR")).all()
    with pytest.raises(ArgumentError, match="does not name three directions"):
        fit_scans(tmp_path, axes="SPX")


def test_a_training_that_hardly_began_is_called_so():
    model = SpatialAE()
    (_, text), *_ = about_ending(model, Ending(2.0, True, 0.01))
    assert "1 % of its steps: far too few" in text
    (_, text), *_ = about_ending(model, Ending(2.0, True, 0.9))
    assert "too few" not in text


@pytest.mark.slow
def test_freesurfers_scans_are_read(tmp_path):
    nib = pytest.importorskip("nibabel")
    scan, _ = head_phantom()
    nib.save(nib.MGHImage(scan.array.astype(np.float32), scan.affine), tmp_path / "brain.mgz")
    (found,) = find_volumes(tmp_path)
    again = read_volume(found)
    assert stem(found) == "brain"
    assert np.allclose(again.array, scan.array)
    assert np.allclose(again.affine, scan.affine, atol=1e-3)
    record = score_scan(Dark(), found, tmp_path / "maps", mask="auto", threshold=0.7)
    assert record.map_path.name == "brain_anomaly.nii.gz"


def test_a_piece_is_as_likely_as_healthy_scans_say():
    healthy = HealthyScans([1.0, 2.0, 3.0, 4.0], [0.0, 0.3, 0.6, 2.0])
    assert healthy.p_value(5.0) == 1 / 5  # one more scan could always be the first
    assert healthy.p_value(0.6) == 3 / 5
    assert healthy.p_value(0.0) == 1.0
    assert [healthy.percentile(score) for score in (0.5, 2.5, 9.0)] == [0.0, 50.0, 100.0]
    assert healthy.percentile(2.0) == 25.0  # a score as high is not lower
    heights = np.zeros((20, 20, 20))
    heights[10:15, 10:15, 2:6] = 3.0  # 0.6 ml
    (found,) = findings(heights, heights > 1, TURNED, p_value=healthy.p_value)
    assert found.p_value == 3 / 5
    assert b",0.6\n" in findings_csv([found])
    (unknown,) = findings(heights, heights > 1, TURNED)
    assert findings_csv([unknown]).endswith(b",\n")
    held = json.loads(findings_json([found, unknown], {"scan": "s.nii"}))
    assert held["scan"] == "s.nii"
    assert held["findings"][0] == {**vars(found)}
    assert held["findings"][1]["p_value"] is None
    assert findings_json([], {"scan": "s"}) == b'{\n "scan": "s",\n "findings": []\n}\n'
    assert healthy.z(2.5) == 0.0
    assert healthy.z(4.0) == pytest.approx(1.5 / np.std([1, 2, 3, 4], ddof=1))
    assert np.isnan(HealthyScans([1.0], [0.0]).z(2.0))
    assert HealthyScans([1.0, 3.0], [0.0, 0.0]).z(4.0) == pytest.approx(2 / np.sqrt(2))


def some_heights(n_scans=3, seed=0):
    """Return heights that are normal, twice as wide in the back half and 5 higher from 40 mm on."""
    rng, scans = np.random.default_rng(seed), []
    for _ in range(n_scans):
        depths = np.arange(8.0, 79.0, 2.0)
        maps = rng.normal(size=(len(depths), 32, 32))
        maps[:, 16:] *= 2
        maps[depths >= 40] += 5
        scans.append(SliceMaps(maps.astype(np.float32), np.ones(maps.shape, bool), depths))
    return scans


def test_heights_are_measured_by_what_is_usual_at_their_place():
    usual = HealthyHeights.of(some_heights(8))
    (new,) = some_heights(1, seed=1)
    percentile, z = usual.relative(new.maps, new.below_top)
    high, low = new.below_top < 28, new.below_top > 52  # planes in between see both sides
    front, back = slice(0, 4), slice(28, 32)  # and so do the places in the middle
    for depths, rows in product((high, low), (front, back)):
        own = percentile[depths, rows]
        for share in (5.0, 50.0, 95.0):
            assert np.mean(own < share) == pytest.approx(share / 100, abs=0.03)
        assert z[depths, rows].mean() == pytest.approx(0, abs=0.05)
        assert z[depths, rows].std() == pytest.approx(1, abs=0.05)
    highest, _ = usual.relative(new.maps + 100, new.below_top)
    lowest, _ = usual.relative(new.maps - 100, new.below_top)
    assert (highest == 100).all()
    assert (lowest == 0).all()


def test_a_place_with_few_pixels_is_judged_by_its_plane_and_a_calm_one_makes_nothing_odd():
    (one,) = some_heights(1)
    one.brain[:, :, :20] = False  # the left side holds no brain
    one.maps[:, :12, 20:] = 0.0  # and one corner is always calm
    usual = np.array(HealthyHeights.of([one]).table)
    assert usual.shape == (8, 4, 4, 2 + len(SHARES))
    assert np.isfinite(usual).all()
    np.testing.assert_array_equal(usual[:, 0, 0], usual[:, 3, 0])
    assert usual[..., 1].min() == pytest.approx(0.25 * np.median(usual[..., 1]))


def test_a_piece_that_is_just_as_large_as_asked_for_is_listed():
    heights = np.zeros((9, 9, 9))
    heights[1, 1, 1:4] = heights[5, 5, 5:7] = 1.0  # three voxels and two, a millimetre a side
    for smallest, sizes in ((2 * 0.001, [0.003, 0.002]), (3 * 0.001, [0.003]), (0.0031, [])):
        found = findings(heights, heights > 0, np.eye(4), smallest)
        assert [one.millilitres for one in found] == pytest.approx(sizes)


def test_two_hundred_pixels_tell_what_is_usual_at_a_place_or_plane():
    generator = np.random.default_rng(0)
    maps = generator.normal(size=(1, 40, 40)).astype(np.float32)
    everything = np.arange(5, dtype=np.float32)
    there = np.zeros((1, 40, 40), bool)
    there[0, :15, :15].flat[:200] = True  # of the 225 pixels of the first place and around it
    for n, more in ((200, False), (199, True), (199, False)):
        brain = there.copy()
        brain[0, 13, 4] = n == 200  # the last of them
        brain[0, 39, 39] = more
        assert brain.sum() == n + more
        found = _plane([SliceMaps(maps, brain, np.zeros(1))], 0.0, everything)
        expected = maps[brain] if n + more == 200 else everything
        assert found[0, 0, 0] == pytest.approx(expected.mean(dtype=float))
        assert found[3, 3, 0] == pytest.approx(expected.mean(dtype=float))


def usual_by_hand(scans):
    """Return mean, deviation and levels at all places, (5, 4, 4, 15), from the pixels around."""
    every = np.concatenate([one.maps[one.brain] for one in scans])
    table = np.empty((5, 4, 4, 15))
    for plane, row, column in np.ndindex(5, 4, 4):
        pools = {"place": [], "plane": []}
        for one in scans:
            for image, brain, depth in zip(one.maps, one.brain, one.below_top, strict=True):
                if abs(depth - (5 + 10 * plane)) < 10:
                    up, left = 6 * row - 3, 10 * column - 5  # half a place before
                    there = np.zeros_like(brain)
                    there[max(0, up) : up + 12, max(0, left) : left + 20] = True
                    pools["place"].append(image[brain & there])
                    pools["plane"].append(image[brain])
        pools = [np.concatenate(pool) for pool in pools.values()]
        own = next((pool for pool in pools if len(pool) >= 200), every).astype(float)
        table[plane, row, column] = own.mean(), own.std(), *np.quantile(own, SHARES)
    table[..., 1] = np.maximum(table[..., 1], np.median(table[..., 1]) / 4)
    return table


def test_what_is_usual_at_a_place_and_what_is_not_is_written_out():
    rng, scans = np.random.default_rng(0), []
    for _ in range(2):
        depths = np.arange(5.0, 40.0, 3.0)
        maps = rng.normal(size=(12, 24, 40)) * (1 + np.linspace(0, 2, 24)[:, None])
        maps[:, :6, :10] *= 0.01
        brain = rng.random(maps.shape) < 0.9
        brain[:, 18:, 30:] = brain[8:, 2:] = False
        scans.append(SliceMaps((maps + depths[:, None, None]).astype(np.float32), brain, depths))
    usual = HealthyHeights.of(scans)
    table = usual_by_hand(scans)
    np.testing.assert_allclose(usual.table, table, rtol=1e-6)
    below_top = np.array([0.0, 7.0, 30.0, 60.0])
    maps = rng.normal(20, 15, size=(4, 24, 40)).astype(np.float32)
    percentile, z = usual.relative(maps, below_top)
    at = np.stack(
        np.meshgrid((below_top - 5) / 10, (np.arange(24) - 2.5) / 6, (np.arange(40) - 4.5) / 10,
                    indexing="ij"), axis=-1,
    )  # fmt: skip
    held = RegularGridInterpolator([np.arange(n) for n in (5, 4, 4)], table)
    mean, deviation, *levels = np.moveaxis(held(np.clip(at, 0, [4, 3, 3])), -1, 0)
    np.testing.assert_allclose(z, (maps - mean) / deviation, rtol=1e-3, atol=1e-4)
    for place in [(0, 0, 0), *rng.integers([4, 24, 40], size=(200, 3)).tolist()]:
        k = tuple(place)
        expected = np.interp(maps[k], [level[k] for level in levels], 100 * SHARES)
        assert percentile[k] == pytest.approx(expected, abs=0.01)


def test_where_healthy_scans_show_one_height_only_what_is_higher_is_odd():
    shares = [0, 1, 5, 25, 50, 75, 90, 95, 98, 99, 99.5, 99.9, 100]
    np.testing.assert_allclose(100 * SHARES, shares)
    maps = np.ones((3, 16, 16), np.float32)
    usual = HealthyHeights.of([SliceMaps(maps, np.ones(maps.shape, bool), np.arange(3.0))])
    assert np.array(usual.table).shape == (2, 4, 4, 15)
    for height, expected in ((0.999, 0.0), (1.0, 99.9), (1.001, 100.0)):
        percentile, z = usual.relative(np.full_like(maps, height), np.arange(3.0))
        np.testing.assert_allclose(percentile, expected, rtol=1e-6)
        assert np.isfinite(z).all()
        assert (np.sign(z) == np.sign(height - 1)).all()


@pytest.mark.parametrize("height", range(13))
def test_a_height_that_is_just_one_of_the_levels_has_its_percentile(height):
    levels = np.arange(13, dtype=np.float32)[:, None, None, None]
    for part in (0.0, 0.25):
        (found,) = _percentiles(np.full((1, 1, 1), height + part, np.float32), levels).flat
        low, high = 100 * SHARES[[height, min(height + 1, 12)]]
        assert found == pytest.approx(low + part * (high - low), rel=1e-6)


def test_the_largest_piece_of_a_healthy_scan_is_counted_above_the_final_height():
    scan, brain = head_phantom(lesion=(-30, 20, 30))
    scored = score_volume(Dark(), scan, mask=brain, threshold=np.inf)
    calm = CalmScan.of(scored, brain)
    flagged = (scored.anomaly_map > 0.6) & scored.scored & brain
    (first, *_) = findings(scored.anomaly_map, flagged, scan.affine)
    found = healthy_scans([calm], 0.6)
    assert found.largest == [first.millilitres]
    assert found.scores == [scored.score]
    assert healthy_scans([calm], 9.0).largest == [0.0]
    for one in scored.relative(found.heights):
        assert one[scored.looked_at].any()
        assert not one[~scored.looked_at].any()
    seen = np.sort(scored.anomaly_map[scored.scored & brain])
    assert scored.score == pytest.approx(seen[-max(1, round(0.02 * len(seen))) :].mean())
    assert (scored.share_flagged, scored.millilitres) == (0, 0)
    again = score_volume(Dark(), scan, mask=brain, threshold=0.6)
    assert again.share_flagged == again.segmentation.sum() / (scored.scored & brain).sum() > 0
    voxel = abs(np.linalg.det(scan.affine[:3, :3])) / 1000
    assert again.millilitres == pytest.approx(again.segmentation.sum() * voxel)


@pytest.mark.slow
def test_held_out_scans_give_percentiles_and_p_values(tmp_path, monkeypatch):
    monkeypatch.setattr(training_scans, "HELD_OUT", 0.5)
    rng = np.random.default_rng(0)
    scan, _ = head_phantom()
    for k in range(2):
        noisy = scan.array + rng.normal(0, 2, scan.array.shape) * (scan.array > 0)
        write_nifti(tmp_path / "healthy" / f"h{k}.nii.gz", noisy, scan)
    sick, _ = head_phantom(lesion=(-30, 20, 30))
    write_nifti(tmp_path / "sick" / "s.nii.gz", sick.array, sick)
    fitted = fit_scans(tmp_path / "healthy", detector="intensity")
    assert len(fitted.recipe.healthy["scores"]) == len(fitted.recipe.healthy["largest"]) == 1
    score(fitted, tmp_path / "sick", tmp_path / "maps")
    line = pd.read_csv(tmp_path / "maps" / "scores.csv").iloc[0]
    assert line["percentile"] == 100.0
    assert pd.read_csv(tmp_path / "maps" / "s_findings.csv")["p_value"][0] == 0.5
    held = json.loads((tmp_path / "maps" / "s_findings.json").read_text())
    assert len(held["findings"]) == line["findings"]
    both = shutil.copytree(tmp_path / "maps", tmp_path / "both")  # asked for afterwards
    score(fitted, tmp_path / "sick", both, relative=True)
    place = tuple(round(v) for v in sick.to_voxels((-30, 20, 30)))
    percentile, z = (
        read_nifti(tmp_path / "both" / f"s_{what}.nii.gz").array for what in ("percentile", "z")
    )
    assert percentile[place] > 99.9
    assert z[place] > 5
    seen = read_nifti(tmp_path / "both" / "s_scored.nii.gz").array > 0
    assert percentile[~seen].max() == z[~seen].max() == 0
    assert np.median(percentile[seen]) < 80
    with pytest.raises(DataError, match="No NIfTI"):  # none of them is taken for a scan
        find_volumes(tmp_path / "both")
    assert not (tmp_path / "both" / "dataset_description.json").exists()
    about = tmp_path / "sick" / "dataset_description.json"
    about.write_text('{"Name": "Study 7", "BIDSVersion": "1.10.0"}')
    score(fitted, tmp_path / "sick", tmp_path / "both", relative=True)
    described = json.loads((tmp_path / "both" / "dataset_description.json").read_text())
    assert described["DatasetType"] == "derivative"
    assert described["BIDSVersion"] == "1.10.0"
    assert "Study 7" in described["Name"]
    about.write_text("[not JSON")
    score(fitted, tmp_path / "sick", tmp_path / "both", relative=True)
    bare = replace(fitted, recipe=replace(fitted.recipe, healthy={}))
    with pytest.raises(ArgumentError, match="does not say how high"):
        score(bare, tmp_path / "sick", tmp_path / "bare", relative=True)


@pytest.mark.slow
def test_slices_reach_the_end_of_the_brain_when_asked(tmp_path):
    scan, _ = head_phantom()
    write_nifti(tmp_path / "healthy" / "h.nii.gz", scan.array, scan)
    shares = {}
    for whole in (False, True):
        fitted = fit_scans(tmp_path / "healthy", detector="intensity", whole_brain=whole)
        score(fitted, tmp_path / "healthy", tmp_path / f"maps-{whole}")
        table = pd.read_csv(tmp_path / f"maps-{whole}" / "scores.csv")
        shares[whole] = float(table["not_scored"][0])
    assert shares[False] > 0.15
    assert shares[True] < 0.1


def test_maps_of_neighbouring_slices_are_averaged_and_those_of_old_models_are_not():
    maps = np.zeros((41, 2, 2), np.float32)
    maps[20, 0, 0] = 1.0
    spread = across_slices(maps, Preparation(step=2.0, across=4.0))
    away = np.arange(-20, 21)
    bell = np.exp(-0.5 * (away / 2.0) ** 2)
    np.testing.assert_allclose(spread[:, 0, 0], bell / bell.sum(), atol=1e-4)
    assert not spread[:, 1].any()  # nothing moves within a slice
    np.testing.assert_array_equal(across_slices(maps, Preparation(across=0.0)), maps)
    even = np.full((6, 3, 3), 2.5, np.float32)  # the ends of a stack are not darkened
    np.testing.assert_allclose(across_slices(even, Preparation()), even, rtol=1e-6)
    old = Recipe("volumes", "scans", 3, preparation={"size": 64})
    assert old.scan_preparation().across == 0.0
    new = Recipe("volumes", "scans", 3, preparation=vars(Preparation()))
    assert new.scan_preparation() == Preparation()
    scan, brain = head_phantom(lesion=(-30, 20, 30))
    thick = score_volume(Dark(), scan, mask=brain, threshold=0.5)
    thin = score_volume(Dark(), scan, Preparation(across=0.0), brain, 0.5)
    np.testing.assert_allclose(thick.maps, across_slices(thin.maps, Preparation()))
    assert thick.segmentation.any()
    with pytest.raises(ValueError, match="across"):
        Preparation(across=-1.0)


@pytest.mark.slow
def test_a_scan_of_which_too_much_is_flagged_is_doubted(tmp_path):
    scan, _ = head_phantom()
    path = write_nifti(tmp_path / "head.nii.gz", scan.array, scan)
    calm = score_scan(Dark(), path, tmp_path / "maps", mask="auto", threshold=0.99)
    odd = score_scan(Dark(), path, tmp_path / "maps", mask="auto", threshold=-1.0)
    assert calm.remark == ""
    assert odd.remark.startswith("flagged in 100 % of what was looked at")
    assert "--axes" in odd.remark


@pytest.mark.parametrize("forge", ["deviation", "order", "shape", "text", "first"])
def test_forged_heights_of_healthy_scans_are_refused(forge):
    held = asdict(HealthyScans([1.0], [0.0], HealthyHeights.of(some_heights(1))))
    recipe = Recipe("volumes", "scans", 3, healthy=held)
    assert Recipe.of(recipe.notes()).healthy_scans().heights == HealthyHeights(**held["heights"])
    place = held["heights"]["table"][0][0]
    if forge == "deviation":
        place[0][1] = 0.0  # everything would be infinitely odd
    elif forge == "order":
        place[0][2] = 1e9
    elif forge == "shape":
        place.pop()
    elif forge == "text":
        place[0][0] = "x"
    else:
        held["heights"]["first"] = float("nan")
    with pytest.raises(ModelFileError, match="healthy"):
        Recipe.of(recipe.notes())
