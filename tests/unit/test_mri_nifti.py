"""NIfTI in and out, and files that cannot be used."""

import gzip
import sys

import nibabel as nib
import numpy as np
import pytest

from aberra.data.mri import nifti
from aberra.data.mri.files import find_volumes, read_volume, stem
from aberra.data.mri.nifti import is_nifti, read_mask, read_nifti, write_nifti
from aberra.data.mri.volume import Volume
from aberra.errors import DataError

AFFINE = np.array([[0.0, 2, 0, -7], [-1.5, 0, 0, 4], [0, 0, 3, 1], [0, 0, 0, 1]])


def numbers(shape=(6, 5, 4), dtype=np.int16):
    return np.random.default_rng(0).integers(0, 900, shape).astype(dtype)


@pytest.fixture
def save(tmp_path):
    def make(array, affine=AFFINE, name="scan.nii.gz", change=None):
        image = nib.Nifti1Image(array, affine)
        if change is not None:
            change(image)
        nib.save(image, tmp_path / name)
        return tmp_path / name

    return make


def test_reads_values_slope_and_place(save):
    path = save(numbers(), change=lambda image: image.header.set_slope_inter(0.5, 10))
    scan = read_nifti(path)
    np.testing.assert_allclose(scan.array, nib.load(path).get_fdata())
    np.testing.assert_array_equal(scan.affine, AFFINE)
    assert scan.directions == "PRS"
    assert scan.array.dtype == np.float32


@pytest.mark.parametrize("space", [1, 4])
@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
def test_what_is_written_lies_where_the_scan_lies(save, tmp_path, space, ending):
    path = save(numbers(), change=lambda image: image.set_sform(AFFINE, space))
    scan = read_nifti(path)
    values = np.random.default_rng(1).normal(size=scan.array.shape).astype(np.float32)
    deep = tmp_path / "deep" / "er"
    out = nib.load(write_nifti(deep / f"map{ending}", values, scan, "what it is"))
    np.testing.assert_array_equal(out.affine, nib.load(path).affine)
    np.testing.assert_allclose(out.get_qform(), AFFINE, atol=1e-5)
    assert int(out.header["sform_code"]) == space
    assert out.header["descrip"].item() == b"what it is"
    np.testing.assert_array_equal(out.get_fdata(dtype=np.float32), values)
    marks = nib.load(write_nifti(tmp_path / f"seg{ending}", values > 0, scan))
    assert marks.get_data_dtype() == np.uint8
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        ["deep", f"seg{ending}", "scan.nii.gz"]
    )


def test_a_sheared_grid_is_kept(tmp_path):
    sheared = AFFINE.copy()
    sheared[0, 2] = 0.7
    scan = Volume(numbers().astype(np.float32), sheared)
    out = nib.load(write_nifti(tmp_path / "map.nii", scan.array, scan))
    np.testing.assert_allclose(out.affine, sheared, atol=1e-6)
    assert int(out.header["qform_code"]) == 0


def test_a_time_axis_of_length_one_is_nothing(save):
    assert read_nifti(save(numbers((6, 5, 4, 1)))).array.shape == (6, 5, 4)


def rgb(shape=(4, 4, 4)):
    return np.zeros(shape, [("R", "u1"), ("G", "u1"), ("B", "u1")])


def with_nan():
    array = numbers(dtype=np.float32)
    array[2, 3, 1] = np.nan
    return array


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (numbers((6, 5, 4, 3)), "4 dimensions instead of three"),
        (numbers((6, 5)), "2 dimensions instead of three"),
        (numbers((6, 5, 1)), "single slice"),
        (with_nan(), r"1 voxels that are NaN or infinite, the first at \(2, 3, 1\)"),
        (np.zeros((6, 5, 4), np.int16), "in every voxel"),
        (numbers().astype(np.complex64), "complex numbers"),
        (rgb(), "colours or records"),
    ],
)
def test_files_that_are_no_scan(save, array, message):
    with pytest.raises(DataError, match=message) as raised:
        read_nifti(save(array))
    assert "scan.nii.gz" in str(raised.value)


@pytest.mark.parametrize("keep", [0.0, 0.002, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
def test_truncated_files(save, keep, ending):
    path = save(numbers((30, 30, 30)), name=f"scan{ending}")
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    with pytest.raises(DataError, match="damaged") as raised:
        read_nifti(path)
    assert path.name in str(raised.value)


def test_files_of_another_kind(tmp_path):
    (tmp_path / "scan.nii.gz").write_text("hello")
    with pytest.raises(DataError, match="no NIfTI file"):
        read_nifti(tmp_path / "scan.nii.gz")
    with pytest.raises(DataError, match="There is no file"):
        read_volume(tmp_path / "absent.nii")
    (tmp_path / "table.csv").write_text("a,b")
    with pytest.raises(DataError, match="Convert it to NIfTI"):
        read_volume(tmp_path / "table.csv")


def silent(image):
    image.set_sform(None, 0)
    image.set_qform(None, 0)


def test_a_header_without_directions_needs_axes(save):
    path = save(numbers(), change=silent)
    with pytest.raises(DataError, match="axes='RAS'"):
        read_nifti(path)
    assert read_nifti(path, axes="ASL").directions == "ASL"


def test_metres_are_refused(save):
    with pytest.raises(DataError, match="voxel size in meter"):
        read_nifti(save(numbers(), change=lambda image: image.header.set_xyzt_units("meter")))


def test_masks(save):
    scan = read_nifti(save(numbers()))
    inside = numbers() > 400
    np.testing.assert_array_equal(
        read_mask(save(inside.astype(np.uint8), name="m.nii"), scan), inside
    )
    with pytest.raises(DataError, match=r"shape \(5, 5, 4\), but .*scan.nii.gz has \(6, 5, 4\)"):
        read_mask(save(np.ones((5, 5, 4), np.uint8), name="m.nii"), scan)
    with pytest.raises(DataError, match="lies elsewhere"):
        read_mask(save(inside.astype(np.uint8), np.eye(4), "m.nii"), scan)
    with pytest.raises(DataError, match="empty"):
        read_mask(save(np.zeros((6, 5, 4), np.uint8), name="m.nii"), scan)


def test_folder_lists_scans_and_not_our_own_maps(save, tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/two.nii.gz", "one.nii", "one_anomaly.nii.gz", "one_segmentation.nii.gz"):
        save(numbers(), name=name)
    (tmp_path / "notes.txt").write_text("x")
    assert [p.name for p in find_volumes(tmp_path)] == ["two.nii.gz", "one.nii"]
    assert [p.name for p in find_volumes(tmp_path, "t*")] == ["two.nii.gz"]
    with pytest.raises(DataError, match="No NIfTI file"):
        find_volumes(tmp_path, "z*")


def test_the_missing_extra_is_named(save, monkeypatch):
    path = save(numbers())
    monkeypatch.setitem(sys.modules, "nibabel", None)
    with pytest.raises(ImportError, match=r'pip install "aberra\[mri\]"'):
        read_nifti(path)


def test_a_pair_of_files_is_one_scan_and_analyze_needs_axes(tmp_path):
    nib.save(nib.Nifti1Pair(numbers(), AFFINE), tmp_path / "pair.img")
    old = nib.AnalyzeImage(numbers(), np.diag([2.0, 1.5, 3.0, 1.0]))
    nib.save(old, tmp_path / "old.img")
    (tmp_path / "disc.img").write_bytes(b"no header beside it")
    first, second = find_volumes(tmp_path)
    assert (stem(first), stem(second)) == ("old", "pair")
    np.testing.assert_array_equal(read_volume(second).array, numbers())
    np.testing.assert_allclose(read_volume(second).affine, AFFINE)
    with pytest.raises(DataError, match="does not say how the head lies"):
        read_volume(first)
    scan = read_volume(first, axes="LAS")
    np.testing.assert_array_equal(scan.array, numbers())
    assert scan.directions == "LAS"
    np.testing.assert_allclose(scan.spacing, [2.0, 1.5, 3.0])


def test_results_lie_where_the_header_says_whatever_axes_were_stated(tmp_path):
    path = write_nifti(tmp_path / "scan.nii", numbers(), Volume(numbers(), AFFINE))
    scan = read_nifti(path, axes="PIL")
    assert not np.allclose(scan.anatomy, scan.affine)
    image = nib.load(write_nifti(tmp_path / "map.nii", numbers(), scan))
    for found in (image.affine, image.get_sform(), image.get_qform()):
        np.testing.assert_allclose(found, AFFINE, atol=1e-5)


def test_a_packed_scan_cannot_promise_more_than_gzip_can_pack(tmp_path):
    path = tmp_path / "short.nii.gz"
    raw = bytearray(nib.Nifti1Image(np.zeros((4, 4, 4), np.float32), np.eye(4)).to_bytes())
    most = 1032 * len(gzip.compress(raw))  # a few bytes more or less when the shape is another
    for share, says_so in ((1.2, True), (0.8, False)):
        raw[42:48] = np.array([100, 10, share * most / 4000], np.int16).tobytes()
        path.write_bytes(gzip.compress(raw))
        with pytest.raises(DataError) as caught:
            read_nifti(path)
        assert ("it has room for" in str(caught.value)) is says_so


@pytest.mark.parametrize(("s", "q", "space"), [(2, 1, 2), (0, 3, 3), (4, 0, 4)])
def test_the_world_is_that_of_the_first_form_that_is_given(save, s, q, space):
    def change(image):
        image.set_sform(AFFINE, s)
        image.set_qform(AFFINE, q)

    scan = read_nifti(save(numbers(), change=change))
    assert scan.space == space
    np.testing.assert_allclose(scan.affine, AFFINE, atol=1e-5)
    assert read_nifti(save(numbers(), change=silent), axes="RAS").space == 1


def test_masks_at_their_borders(save):
    scan = read_nifti(save(numbers()))
    some = np.zeros((6, 5, 4, 1), np.float32)
    some[0, 0, 0], some[1, 0, 0], some[2, 0, 0] = 1e-3, 0.0, -1.0
    found = read_mask(save(some, name="m.nii"), scan)  # a fourth axis of length one is nothing
    assert np.argwhere(found).tolist() == [[0, 0, 0]]
    with pytest.raises(DataError, match=r"shape \(6, 5, 4, 2\)"):
        read_mask(save(np.ones((6, 5, 4, 2), np.uint8), name="m.nii"), scan)
    nothing = save(np.zeros((6, 5, 4), np.uint8), name="m.nii")
    assert not read_mask(nothing, scan, may_be_empty=True).any()
    everywhere = np.ones((6, 5, 4), np.uint8)
    moved = AFFINE + 0.009 * np.eye(4)[:, [3, 0, 1, 2]]  # a hundredth of a millimetre is rounding
    assert read_mask(save(everywhere, moved, "m.nii"), scan).all()
    moved[2, 3] += 0.05
    with pytest.raises(DataError, match=r"lies elsewhere: .* up to 0\.05"):
        read_mask(save(everywhere, moved, "m.nii"), scan)


def test_what_is_written_has_a_known_ending_the_shape_of_the_scan_and_short_words(tmp_path):
    scan = Volume(numbers().astype(np.float32), AFFINE)
    with pytest.raises(ValueError, match=r"must end in \.nii"):
        write_nifti(tmp_path / "map.img", scan.array, scan)
    with pytest.raises(ValueError, match="for a scan of shape"):
        write_nifti(tmp_path / "map.nii", scan.array[1:], scan)
    out = nib.load(write_nifti(tmp_path / "map.nii", scan.array, scan, "é" + "x" * 100))
    assert out.header["descrip"].item() == b"?" + b"x" * 78
    assert out.header.get_xyzt_units()[0] == "mm"
    assert out.get_data_dtype() == np.float32


def test_endings_of_scans(tmp_path):
    for name, fits in (("a.nii", True), ("a.NII.GZ", True), ("a.mgz", True), ("a.MGH", True),
                       ("a.img", False), ("a.hdr", False), ("a.gz", False)):  # fmt: skip
        assert is_nifti(tmp_path / name) is fits
    for header in ("a.hdr", "b.HDR"):
        (tmp_path / header).touch()
        assert is_nifti(tmp_path / header.lower().replace("hdr", "img"))


def test_more_voxels_than_there_is_memory_for_are_refused_by_their_number(save, monkeypatch):
    path = save(numbers())
    monkeypatch.setattr("aberra.data.mri.volume.MOST_VOXELS", 6 * 5 * 4)
    assert read_nifti(path).array.size == 120
    monkeypatch.setattr("aberra.data.mri.volume.MOST_VOXELS", 6 * 5 * 4 - 1)
    with pytest.raises(DataError, match="6 x 5 x 4 voxels, more than 119"):
        read_nifti(path)


def test_a_file_that_is_not_packed_holds_at_least_its_voxels(save):
    path = save(numbers((30, 30, 30)), name="scan.nii")
    path.write_bytes(path.read_bytes()[: 2 * 30**3 - 1])
    with pytest.raises(DataError, match=r"promises 54,000 bytes of voxels.* room for 53,999"):
        read_nifti(path)
    path.write_bytes(path.read_bytes() + b"x")  # room for them, but not for the header, too
    with pytest.raises(DataError, match="cut short or damaged") as raised:
        read_nifti(path)
    assert "room for" not in str(raised.value)


def packed_scan(folder, kind):
    """A scan whose voxels are all there, whatever else is wrong with its file."""
    image = nib.Nifti1Image(numbers(), AFFINE)
    if kind == "img.gz":
        nib.save(nib.Nifti1Pair(numbers(), AFFINE), folder / "scan.img.gz")
    else:
        nib.save(
            image if kind == "nii.gz" else nib.MGHImage(numbers(), AFFINE), folder / f"scan.{kind}"
        )
    return folder / f"scan.{kind}"


DAMAGE = {
    "another checksum": lambda data: data[:-8] + bytes([data[-8] ^ 1]) + data[-7:],
    "no checksum": lambda data: data[:-8],
    "one bit": lambda data: data[:-20] + bytes([data[-20] ^ 4]) + data[-19:],
    "endless": lambda data: gzip.compress(gzip.decompress(data) + bytes(5000)),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", ["nii.gz", "mgz", "img.gz"])
def test_a_packed_scan_is_read_to_its_checksum(kind, damage, tmp_path, monkeypatch):
    monkeypatch.setattr(nifti, "REST", 4000)
    path = packed_scan(tmp_path, kind)
    if kind == "img.gz":
        np.testing.assert_array_equal(read_mask(path, read_nifti(path)), numbers() > 0)
    np.testing.assert_array_equal(read_nifti(path).array, numbers())
    raw = gzip.decompress(path.read_bytes())
    if kind != "mgz":  # which has tags behind its voxels
        path.write_bytes(gzip.compress(raw + bytes(4000)))  # just as much as may follow
        np.testing.assert_array_equal(read_nifti(path).array, numbers())
    path.write_bytes(DAMAGE[damage](gzip.compress(raw, 0)))  # stored: every flip is in the voxels
    with pytest.raises(DataError, match=rf"scan\.{kind} .*damaged"):
        read_nifti(path)
    with pytest.raises(DataError, match=rf"scan\.{kind} .*damaged"):
        read_mask(path, Volume(numbers().astype(np.float32), AFFINE))


@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
@pytest.mark.parametrize("kind", [np.int16, np.int32, np.float64])
def test_large_files_are_read_in_pieces_with_the_same_voxels(kind, ending, tmp_path, monkeypatch):
    """4 MB of zeros in double precision took 8 GB, where the limit says 2 GB."""
    voxels = (1000 * np.random.default_rng(0).normal(size=(4, 5, 7, 1))).astype(kind)
    image = nib.Nifti1Image(voxels, np.eye(4))
    if kind is not np.float64:
        image.header.set_slope_inter(0.1, 3.3)
    nib.save(image, tmp_path / f"scan{ending}")
    whole = read_nifti(tmp_path / f"scan{ending}").array
    monkeypatch.setattr(nifti, "AT_ONCE", 45)  # two planes and a bit
    monkeypatch.setattr(nib.Nifti1Image, "get_fdata", None)
    pieces = read_nifti(tmp_path / f"scan{ending}").array
    assert pieces.dtype == whole.dtype == np.float32
    assert (pieces == whole).all()
