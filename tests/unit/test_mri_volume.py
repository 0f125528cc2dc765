"""Where a scan lies: directions, reorientation, and what is no scan."""

from itertools import permutations, product

import nibabel as nib
import numpy as np
import pytest

from aberra.data.mri.volume import (
    Volume,
    apply_affine,
    check_voxels,
    direction_letters,
    direction_matrix,
    nearest_directions,
    reorient,
)
from aberra.errors import DataError

EVERY = [
    "".join(pair[side] for pair, side in zip(order, sides, strict=True))
    for order in permutations(("LR", "PA", "IS"))
    for sides in product((0, 1), repeat=3)
]


def oblique_affine(letters="PRS", spacing=(2.0, 1.5, 3.0), angle=0.3):
    turn = np.array(
        [[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]]
    )
    affine = np.eye(4)
    affine[:3, :3] = turn @ direction_matrix(letters) * spacing
    affine[:3, 3] = (-31.0, 17.0, 5.0)
    return affine


def scan_of(affine, shape=(4, 5, 6), **more):
    return Volume(np.random.default_rng(0).normal(size=shape), affine, **more)


def test_directions_agree_with_nibabel():
    for letters in EVERY:
        affine = oblique_affine(letters)
        assert direction_letters(nearest_directions(affine)) == letters
        assert "".join(nib.aff2axcodes(affine)) == letters


@pytest.mark.parametrize("start", ["PRS", "LAI"])
def test_reorientation_keeps_the_world_and_has_an_exact_inverse(start):
    scan = scan_of(oblique_affine(start))
    for letters in EVERY:
        there = reorient(scan, letters)
        assert there.directions == letters
        voxel = (1, 2, 3)
        value = there.array[voxel]
        home = tuple(np.rint(scan.to_voxels(there.to_world(voxel))).astype(int))
        assert scan.array[home] == value
        back = reorient(there, start)
        np.testing.assert_array_equal(back.array, scan.array)
        np.testing.assert_allclose(back.affine, scan.affine, atol=1e-12)


def test_a_wrong_header_is_put_right_for_cutting_only():
    scan = scan_of(oblique_affine("PRS"), axes="SPR")
    assert scan.directions == "SPR"
    np.testing.assert_array_equal(scan.to_world([0, 0, 0]), scan.affine[:3, 3])
    # A turn by right angles: lengths and angles are those of the header, so it stays oblique.
    turn = scan.anatomy @ np.linalg.inv(scan.affine)
    np.testing.assert_allclose(np.abs(turn[:3, :3]).sum(axis=0), 1.0, atol=1e-12)
    assert set(np.rint(np.abs(turn[:3, :3]).ravel())) == {0.0, 1.0}
    moved = reorient(scan)
    assert moved.axes == "RAS"
    np.testing.assert_allclose(
        apply_affine(moved.anatomy, [0, 0, 0]),
        apply_affine(scan.anatomy, scan.to_voxels(moved.to_world([0, 0, 0]))),
    )


def test_voxels_and_world_are_inverse():
    scan = scan_of(oblique_affine())
    points = np.random.default_rng(1).normal(size=(7, 3)) * 50
    np.testing.assert_allclose(scan.to_world(scan.to_voxels(points)), points, atol=1e-10)
    np.testing.assert_allclose(scan.spacing, (2.0, 1.5, 3.0))


@pytest.mark.parametrize("letters", ["RA", "RLS", "XYZ", "RASS"])
def test_axes_that_are_none(letters):
    with pytest.raises(ValueError, match="three directions"):
        scan_of(np.eye(4), axes=letters)


def spoilt(value):
    array = np.arange(120.0).reshape(4, 5, 6)
    array[1, 2, 3] = value
    return array


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 5, 6, 7)), "not one three-dimensional scan"),
        (np.ones((4, 5)), "not one three-dimensional scan"),
        (np.arange(20.0).reshape(4, 5, 1), "single slice"),
        (spoilt(np.nan), r"1 voxels that are NaN or infinite, the first at \(1, 2, 3\)"),
        (spoilt(-np.inf), "NaN or infinite"),
        (np.zeros((4, 5, 6)), "value 0.0 in every voxel"),
        (np.full((4, 5, 6), 7), "value 7 in every voxel"),
        (np.ones((4, 5, 6), complex), "complex numbers"),
        (np.ones((4, 5, 6), [("R", "u1"), ("G", "u1"), ("B", "u1")]), "colours or records"),
        (np.ones((4, 5, 6), bool), "true and false"),
        (np.full((4, 5, 6), "a"), "values of type <U1"),
    ],
)
def test_what_is_no_scan(array, message):
    with pytest.raises(DataError, match=message):
        Volume(array, np.eye(4))


def test_a_scan_of_more_than_two_gigabytes_is_refused():
    for shape in ((812, 812, 812), (512, 1024, 1024)):  # the second has just as many as may be
        check_voxels(shape, "it")
    with pytest.raises(DataError, match="more than 536,870,912"):
        check_voxels((512, 1024, 1025), "it")
    with pytest.raises(DataError, match="813 x 813 x 813 voxels"):
        check_voxels((813, 813, 813), "it")


@pytest.mark.parametrize(
    "affine",
    [np.eye(3), np.diag([1.0, 0.0, 1.0, 1.0]), np.full((4, 4), np.nan), np.ones((4, 4))],
)
def test_affines_that_place_nothing(affine):
    with pytest.raises(DataError, match="affine"):
        scan_of(affine)


def test_affines_at_the_borders_of_what_a_head_has():
    def squeezed(angle):
        matrix = np.eye(4)
        matrix[:2, 1] = np.cos(angle), np.sin(angle)  # the determinant is the sine
        return matrix

    far = np.eye(4)
    far[1, 3] = -1e6
    for fits in (np.diag([1e-3, 1, 1e3, 1]), far, squeezed(0.0011)):
        scan_of(fits)
    beyond = np.eye(4)
    beyond[1, 3] = -1.001e6
    for wrong, words in (
        (np.diag([0.9e-3, 1, 1, 1]), "which no head has"),
        (np.diag([1, 1, 1.001e3, 1]), "which no head has"),
        (beyond, r"up to 1e\+06 mm away"),
        (squeezed(0.0009), "squeezes the scan flat"),
    ):
        with pytest.raises(DataError, match=words):
            scan_of(wrong)


def test_a_scan_has_two_slices_in_every_direction():
    for shape in ((2, 5, 6), (5, 2, 6), (5, 6, 2)):
        assert scan_of(np.eye(4), shape).array.shape == shape
    with pytest.raises(DataError, match="single slice"):
        scan_of(np.eye(4), (5, 1, 6))
    Volume(np.arange(24).reshape(2, 3, 4).astype(np.uint8), np.eye(4))  # whole numbers will do


def test_the_closest_axes_are_found_together():
    # By itself each of the first two columns points to the right more than anywhere else.
    affine = np.eye(4)
    affine[:3, :3] = [[0.8, 0.75, 0.1], [0.59, -0.66, 0.0], [0.1, 0.0, -0.99]]
    assert direction_letters(nearest_directions(affine)) == "RPI"
    assert direction_letters(nearest_directions(affine[:, [1, 0, 2, 3]])) == "PRI"


def test_reoriented_scans_keep_their_source_and_lie_where_they_lay():
    scan = scan_of(oblique_affine("PRS"), source="here", space=3)
    there = reorient(scan, "LIA")
    assert (there.source, there.space, there.axes, there.where) == ("here", 3, None, "here")
    corners = np.array(list(product((0, 3), (0, 4), (0, 5))))
    for voxel in corners:
        back = np.rint(there.to_voxels(scan.to_world(voxel))).astype(int)
        assert there.array[tuple(back)] == scan.array[tuple(voxel)]
    assert scan_of(np.eye(4)).where == "The scan"


def test_a_scan_lies_in_the_scanners_world_unless_another_is_named():
    scan = scan_of(np.eye(4))
    assert (scan.space, scan.axes, scan.source) == (1, None, None)
    assert [direction_letters(direction_matrix(letters)) for letters in EVERY] == EVERY


def test_a_scan_is_equal_to_itself_alone():
    one, other = scan_of(oblique_affine()), scan_of(oblique_affine())
    assert one not in [other]  # arrays within them cannot be compared as a whole
    assert len({one, other}) == 2
