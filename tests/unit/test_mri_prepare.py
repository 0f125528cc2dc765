"""From scan to slices and back: geometry, choice of slices, brightness."""

import ast
import re
from dataclasses import FrozenInstanceError, asdict

import numpy as np
import pytest
from scipy import ndimage

from aberra.data.mri.grid import axial_grid, covered, cut, put_back, resample
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation, normalise, place_slices, prepare
from aberra.data.mri.volume import Volume, apply_affine, direction_matrix
from aberra.errors import DataError


def turned(letters, spacing, shape, angles=(0.0, 0.0)):
    """Return an affine with the given directions, turned, the middle voxel at the origin."""
    a, b = angles
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_z = np.array([[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]])
    affine = np.eye(4)
    affine[:3, :3] = about_x @ about_z @ direction_matrix(letters) * spacing
    affine[:3, 3] = -affine[:3, :3] @ ((np.array(shape) - 1) / 2)
    return affine


GRIDS = [
    ("RAS", (2.0, 2.0, 2.0), (40, 40, 40), (0.0, 0.0)),
    ("PRS", (1.0, 1.5, 2.5), (80, 60, 40), (0.0, 0.0)),
    ("SLA", (2.0, 2.0, 2.0), (50, 50, 50), (0.3, -0.2)),
    ("LPI", (1.0, 1.0, 5.0), (80, 80, 20), (0.2, 0.5)),
]


def ramp(affine, shape):
    """Return a scan whose intensity is a linear function of its anatomical coordinates."""
    points = apply_affine(affine, np.moveaxis(np.indices(shape), 0, -1))
    return Volume((points @ (1.0, -2.0, 0.5) + 300).astype(np.float32), affine)


@pytest.mark.parametrize("case", GRIDS, ids=str)
def test_slices_show_what_lies_there(case):
    letters, spacing, shape, angles = case
    scan = ramp(turned(letters, spacing, shape, angles), shape)
    grid = axial_grid(np.arange(5) * 2.0, np.array([1.0, -2.0]), 5.0, 2.0, 20.0, 8)
    with pytest.raises(FrozenInstanceError):  # it is handed on with maps
        grid.affine = np.eye(4)
    slices = cut(scan, grid, fill=0.0)
    where = apply_affine(grid.affine, np.moveaxis(np.indices(grid.shape), 0, -1))
    expected = where @ (1.0, -2.0, 0.5) + 300
    # A linear function survives interpolation and blur, so this is exact.
    np.testing.assert_allclose(slices, expected, rtol=1e-5)
    # The first slice is the topmost; rows run to the back, columns to the right.
    assert (where[0, 0, 0] - where[1, 0, 0])[2] == 2.0
    assert (where[0, 0, 0] - where[0, 1, 0])[1] == 2.5
    assert (where[0, 0, 1] - where[0, 0, 0])[0] == 2.5


@pytest.mark.parametrize("case", GRIDS, ids=str)
def test_maps_return_to_where_they_were_made(case):
    letters, spacing, shape, angles = case
    scan = ramp(turned(letters, spacing, shape, angles), shape)
    grid = axial_grid(np.arange(30) * 2.0, np.array([1.2, -2.1]), 29.3, 2.0, 60.0, 24)
    where = apply_affine(grid.affine, np.moveaxis(np.indices(grid.shape), 0, -1))
    back = put_back(where @ (1.0, -2.0, 0.5) + 300, grid, scan)
    to_grid = np.linalg.inv(grid.affine) @ scan.affine
    index = apply_affine(to_grid, np.moveaxis(np.indices(shape), 0, -1))
    last = np.array(grid.shape) - 1.0
    inside = covered(grid, scan)
    assert (inside == ((index > -0.5) & (index < last + 0.5)).all(axis=-1)).mean() > 0.999
    deep = ((index > 5) & (index < last - 5)).all(axis=-1)  # the blur does not reach the faces
    assert deep.sum() > 100
    np.testing.assert_allclose(back[deep], scan.array[deep], rtol=1e-4)
    assert not back[~inside].any()
    assert (back[inside] > 0).all()


def test_a_wrong_header_changes_the_cut_and_not_the_place():
    scan, brain = head_phantom(turned("SPR", (4.0, 4.0, 4.0), (56, 56, 56)))
    lying = np.diag([4.0, 4.0, 4.0, 1.0])
    images, grid = prepare(scan, brain, Preparation())
    corrected = Volume(scan.array, lying, axes="SPR")
    fixed, own = prepare(corrected, brain, Preparation())
    np.testing.assert_allclose(fixed, images, atol=1e-4)
    # What is put back lies on the voxels that it was cut from, whatever the header says.
    back, there = put_back(fixed[:, 0], own, corrected), put_back(images[:, 0], grid, scan)
    np.testing.assert_allclose(back, there, atol=1e-3)
    np.testing.assert_array_equal(covered(own, corrected), covered(grid, scan))
    trusted, _ = prepare(Volume(scan.array, lying), brain, Preparation())
    assert np.abs(trusted - images).mean() > 0.05


def test_resample_averages_thin_things_instead_of_skipping_them():
    planes = np.zeros((40, 6, 6), np.float32)
    planes[::4] = 1.0  # every fourth plane: skipping sees all or nothing
    scale = np.diag([4.0, 1.0, 1.0, 1.0])
    for start in range(4):
        scale[0, 3] = start
        sampled = resample(planes, scale, (8, 6, 6), mode="nearest")[2:-2]
        np.testing.assert_allclose(sampled, 0.25, atol=0.1)
    same = resample(planes, np.eye(4), planes.shape)
    np.testing.assert_array_equal(same, planes)


def test_a_coarser_grid_sees_what_is_blurred_to_the_width_of_its_voxels():
    noise = np.random.default_rng(0).normal(size=(30, 20, 20)).astype(np.float32)
    to_array = np.diag([3.0, 1.5, 1.0, 1.0])
    to_array[:3, 3] = 4.25, 3.0, 2.0
    widths = np.sqrt(np.array([3.0, 1.5, 1.0]) ** 2 - 1)  # at half the height, with what is there
    blurred = ndimage.gaussian_filter(noise, widths / 2.3548, mode="nearest", truncate=3.0)
    at = np.meshgrid(4.25 + 3 * np.arange(7), 3 + 1.5 * np.arange(8), 2 + np.arange(9.0),
                     indexing="ij")  # fmt: skip
    expected = ndimage.map_coordinates(blurred, at, order=1)
    np.testing.assert_allclose(resample(noise, to_array, (7, 8, 9)), expected, atol=1e-3)
    lying = to_array[:, [1, 0, 2, 3]]  # the other grid has its first two axes exchanged
    sampled = resample(noise, lying, (8, 7, 9))
    np.testing.assert_allclose(sampled, np.swapaxes(expected, 0, 1), atol=1e-3)


def test_a_grid_that_is_hardly_coarser_blurs_hardly_but_does():
    point = np.zeros((21, 3, 3), np.float32)
    point[10] = 1.0
    for step, kept in ((1.0, 1.0), (1.5, 0.82), (2.0, 0.54)):
        to_array = np.diag([step, 1.0, 1.0, 1.0])
        to_array[0, 3] = 10 - 5 * step
        sigma = np.sqrt(step**2 - 1) / 2.3548
        bell = np.exp(-0.5 * (np.arange(-3, 4) / max(sigma, 1e-9)) ** 2)
        seen = resample(point, to_array, (11, 3, 3))[5, 1, 1]
        assert seen == pytest.approx(1 / bell.sum(), abs=0.01)
        assert seen == pytest.approx(kept, abs=0.01)


def test_beyond_an_array_lies_nothing_unless_it_is_said_what_does():
    beside = np.eye(4)
    beside[0, 3] = 3.0
    array = np.ones((4, 3, 3), np.float32)
    for given, expected in (({}, 0), ({"fill": 7.0}, 7), ({"mode": "nearest"}, 1)):
        sampled = resample(array, beside, (4, 3, 3), **given)
        np.testing.assert_array_equal(sampled[:, 1, 1], [1, *[expected] * 3])


def test_a_voxel_half_a_step_beside_a_slice_or_pixel_is_covered():
    scan = ramp(np.eye(4), (12, 12, 12))
    grid = axial_grid(np.array([0.0, 2.0]), np.array([5.0, 6.0]), 7.0, 2.0, 8.0, 4)
    other = axial_grid(np.array([0.0, 2.0]), np.array([5.0, 6.0]), 7.0, 2.0, 8.0, 4)
    assert grid not in [other]  # a grid is equal to itself alone
    assert len({grid, other}) == 2
    at = [np.flatnonzero(covered(grid, scan).any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1))]
    # Pixels of 2 mm at 2 to 8 mm and at 3 to 9 mm, slices at 7 and 5 mm; each reaches 1 mm.
    assert [(found.min(), found.max()) for found in at] == [(1, 9), (2, 10), (4, 8)]
    assert covered(grid, scan).sum() == 9 * 9 * 5


def test_blur_ends_after_three_deviations():
    point = np.zeros((41, 3, 3), np.float32)
    point[20] = 1.0
    sigma = np.sqrt(4.0**2 - 1) / 2.3548
    for start in range(4):
        to_array = np.diag([4.0, 1.0, 1.0, 1.0])
        to_array[0, 3] = start
        seen = resample(point, to_array, (10, 3, 3))[:, 1, 1]
        away = np.abs(start + 4 * np.arange(10) - 20)
        np.testing.assert_array_equal(seen > 0, away <= round(3 * sigma))


def test_scans_are_prepared_as_the_documentation_says():
    said = re.findall(r"^ +(\w+) : .*, default=(.*)$", Preparation.__doc__, re.MULTILINE)
    held = asdict(Preparation())
    assert {name: ast.literal_eval(value) for name, value in said} == held


def test_slices_are_chosen_by_depth():
    scan, brain = head_phantom()
    grid = place_slices(brain, scan.anatomy, Preparation(below_top=(10.0, 40.0), step=5.0))
    top = scan.to_world(np.argwhere(brain))[:, 2].max()
    np.testing.assert_allclose(grid.below_top, np.arange(10.0, 41.0, 5.0))
    np.testing.assert_allclose(
        apply_affine(grid.affine, [[0, 0, 0], [6, 0, 0]])[:, 2], [top - 10.0, top - 40.0]
    )
    middle = apply_affine(grid.affine, [3, 31.5, 31.5])[:2]
    np.testing.assert_allclose(middle, 0.0, atol=1.0)  # the phantom's brain is centred
    leaning = np.zeros((30, 8, 12), bool)  # every plane lies two voxels further to the right
    for depth in range(10):
        leaning[2 * depth : 2 * depth + 3, 2:5, 11 - depth] = True
    for step, planes in ((1.0, [3, 4, 5]), (2.0, [2, 3, 4, 5, 6])):  # half a step belongs to them
        found = place_slices(leaning, np.eye(4), Preparation(below_top=(3.0, 5.0), step=step))
        size = found.shape[2]
        middle = apply_affine(found.affine, [0, (size - 1) / 2, (size - 1) / 2])[:2]
        np.testing.assert_allclose(middle, [2 * np.mean(planes) + 1, 3])
    everything = place_slices(brain, scan.anatomy, Preparation(below_top=(0.0, 900.0)))
    assert everything.below_top[-1] <= 156.0
    with pytest.raises(DataError, match=r"brain is 148 mm high, and slices were asked for 300"):
        place_slices(brain, scan.anatomy, Preparation(below_top=(300.0, 310.0)))


def test_slices_are_chosen_by_area():
    scan, brain = head_phantom()
    recipe = Preparation(select="area", min_area=0.75, step=4.0)
    depths = place_slices(brain, scan.anatomy, recipe).below_top
    # The cross-section of an ellipsoid falls to 3/4 half way between its middle and its pole.
    np.testing.assert_allclose((depths[0], depths[-1]), (39.0, 117.0), atol=6.0)
    steps = np.zeros((8, 8, 10), bool)  # planes of 1, 2, 3, 4, 3, 4, 2 voxels, the top one first
    for depth, n in enumerate([1, 2, 3, 4, 3, 4, 2]):
        steps[2, 2 : 2 + n, 9 - depth] = True
    for share, first, last in ((1.0, 3, 5), (0.75, 2, 5), (0.5, 1, 6), (0.51, 2, 5), (0.25, 0, 6)):
        recipe = Preparation(select="area", min_area=share, step=1.0)
        found = place_slices(steps, np.eye(4), recipe).below_top
        np.testing.assert_array_equal(found, np.arange(first, last + 1))
    thick = place_slices(steps, np.eye(4), Preparation(select="area", min_area=0.9, step=2.0))
    np.testing.assert_array_equal(thick.below_top, [4.0])  # 4 + 3 + 4 voxels; halves go to even


@pytest.mark.parametrize("shift", [0.0, 21.0])
@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_brightness_does_not_depend_on_the_scanner(shift, scale):
    scan, brain = head_phantom()
    images, _ = prepare(scan, brain, Preparation())
    other = Volume(scan.array * scale + shift, scan.affine)
    np.testing.assert_allclose(prepare(other, brain, Preparation())[0], images, atol=1e-3)
    assert images.min() == 0.0
    assert images.max() == 1.0
    assert images.dtype == np.float32


def test_one_glaring_vessel_changes_nothing():
    slices = np.random.default_rng(0).uniform(0, 100, (6, 40, 40)).astype(np.float32)
    bright = slices.copy()
    bright[2, 20, 20:22] = 1e5
    plain, odd = (normalise(s, Preparation()) for s in (slices, bright))
    assert np.abs(plain - odd)[bright < 1e4].max() < 0.01


def test_each_slice_for_itself_evens_out_a_dark_top():
    plane = np.random.default_rng(0).uniform(0, 100, (40, 40)).astype(np.float32)
    stack = np.stack([plane * 0.3, plane, np.zeros_like(plane)])
    together = normalise(stack, Preparation())
    apart = normalise(stack, Preparation(normalise="slice"))
    assert together[0].mean() < 0.5 * together[1].mean()
    np.testing.assert_allclose(apart[0], apart[1], atol=1e-5)
    assert not apart[2].any()


JUST_FITS = {
    "size": (8, 4096),
    "field": (1e-3, 1000.0),
    "step": (0.1, 1000.0),
    "below_top": ((0.0, 0.0), (1000.0, 1000.0)),
    "min_area": (1e-3, 1.0),
    "black": (0.0, 100.0),
    "white": (1e-3, 100.0),
    "head": (0.0, 0.999),
    "headroom": (1.0, 1e6),
    "across": (0.0, 999.9),
}
JUST_NOT = {
    "size": (7, 4097, 64.5),
    "field": (0.0, 1000.1),
    "step": (0.099, 1000.1, -1.0),
    "select": ("top",),
    "below_top": ((-0.1, 10.0), (20.0, 10.0), (10.0, 1000.1)),
    "min_area": (0.0, 1.001),
    "normalise": ("none",),
    "black": (-0.001, 100.1),
    "white": (0.0, 100.1),
    "head": (-0.001, 1.0),
    "headroom": (0.999, 1.001e6, np.inf),
    "across": (-0.001, 1000.0),
}


def test_settings_have_the_range_that_they_say():
    for name, values in JUST_FITS.items():
        for value in values:
            assert getattr(Preparation(**{name: value}), name) == value
    for name, values in JUST_NOT.items():
        for value in values:
            with pytest.raises(ValueError, match=rf"{name}=.* must"):
                Preparation(**{name: value})


@pytest.mark.parametrize("background", [20.0, -1000.0])
def test_where_the_scan_ends_its_background_goes_on(background):
    scan, brain = head_phantom()
    narrow = Volume(scan.array[10:-10] + background, scan.affine + 0.0)
    narrow.affine[0, 3] += 40.0
    images, _ = prepare(narrow, brain[10:-10], Preparation(field=300.0))
    assert not images[..., :8].any()
    assert not images[..., -8:].any()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_background_is_that_of_every_second_voxel(axis):
    stripes = np.array([100.0, 50.0, 0.0, 50.0])[np.arange(40) % 4]
    shape = [40 if k == axis else 1 for k in range(3)]
    scan = Volume(np.broadcast_to(stripes.reshape(shape), (40, 40, 40)).copy(), np.eye(4))
    brain = np.ones((40, 40, 40), bool)
    images, _ = prepare(scan, brain, Preparation(size=32, field=64.0, below_top=(4.0, 30.0)))
    assert not images[..., :4].any()  # beyond the scan it is as dark as the darkest of them
    assert images.max() == 1


def test_a_thousandth_of_a_step_is_rounding():
    brain = np.ones((9, 9, 5), bool)

    def slices(last, height):
        affine = np.diag([1.0, 1.0, height / 4, 1.0])
        return len(place_slices(brain, affine, Preparation(step=1, below_top=(0, last))).below_top)

    for short, n in ((0.0, 4), (0.0008, 4), (0.0012, 3)):
        assert slices(3 - short, 9) == slices(9, 3 - short) == n


def test_the_head_is_brighter_than_its_share_of_the_brightest():
    values = np.repeat([0.0, 15.0, 100.0], [30, 30, 40]).reshape(1, 10, 10)
    # 15 is just the share of 100 that does not belong to the head, so all of the head is white.
    for head, grey in ((0.15, 0.15), (0.149, 1.0)):
        found = normalise(values, Preparation(white=20.0, head=head))
        assert found[0, 4, 0] == pytest.approx(grey)


def test_headroom_leaves_room_above_white():
    slices = np.full((1, 40, 40), 0.0)
    slices[:, 5:35, 5:35] = 100.0
    slices[:, 10:13, 10:13] = 140.0  # a bright lesion
    tight, roomy = (normalise(slices, Preparation(headroom=room)) for room in (1.0, 1.5))
    assert tight[0, 11, 11] == tight[0, 20, 20] == 1.0
    assert roomy[0, 20, 20] == pytest.approx(1 / 1.5)
    assert roomy[0, 11, 11] == pytest.approx(1.4 / 1.5)
    with pytest.raises(ValueError, match="headroom"):
        Preparation(headroom=0.5)


@pytest.mark.parametrize("black", [0.0, 20.0, 60.0])
def test_black_is_a_percentile_of_all_voxels(black):
    values = np.random.default_rng(0).gamma(2.0, 50.0, size=(3, 20, 20)).astype(np.float32)
    found = normalise(values, Preparation(black=black, head=0.0, white=100.0, headroom=1.0))
    dark = np.percentile(values, black)
    expected = np.clip((values - dark) / (values.max() - dark), 0, 1)
    np.testing.assert_allclose(found, expected, atol=1e-5)
