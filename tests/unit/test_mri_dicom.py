"""DICOM series: sorted by place, refused with a list when they do not belong together."""

from pathlib import Path

import numpy as np
import pytest
from pydicom import dcmread
from pydicom.data import get_testdata_file
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.pixels import get_decoder
from pydicom.uid import (
    HTJ2K,
    EnhancedMRImageStorage,
    ExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGLosslessSV1,
    JPEGLSLossless,
    MRImageStorage,
    generate_uid,
)

from aberra.data.mri.compressed import JP2_START, check_frames, frame_shape, register
from aberra.data.mri.dicom import _stored, read_dicom
from aberra.data.mri.files import find_volumes, read_volume
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume, reorient
from aberra.errors import DataError
from aberra.localise.volumes import score_volume

SERIES = generate_uid()
MR_JPEG_LS = "MR_small_jpeg_ls_lossless.dcm"
FLIP = np.diag([-1.0, -1.0, 1.0, 1.0])  # between DICOM's world and ours


def oblique():
    a, b = 0.2, 0.35
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_z = np.array([[np.cos(b), -np.sin(b), 0], [np.sin(b), np.cos(b), 0], [0, 0, 1]])
    affine = np.eye(4)
    affine[:3, :3] = about_x @ about_z @ np.diag([1.25, -0.75, 3.0])
    affine[:3, 3] = (-20.0, 31.0, -12.5)
    return affine


def write_slice(path, stored, affine, k, **tags):
    """Write slice k of a scan of stored numbers (column, row, slice)."""
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset(path, {}, file_meta=meta, preamble=b"\0" * 128)
    lps = FLIP @ affine
    data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
    data.SeriesInstanceUID, data.SeriesDescription, data.Modality = SERIES, "t1", "MR"
    data.Columns, data.Rows = stored.shape[:2]
    across, down = np.linalg.norm(lps[:3, :2], axis=0)
    data.PixelSpacing = [f"{down:.9g}", f"{across:.9g}"]
    directions = np.concatenate([lps[:3, 0] / across, lps[:3, 1] / down])
    data.ImageOrientationPatient = [f"{v:.10f}" for v in directions]
    data.ImagePositionPatient = [f"{v:.8f}" for v in lps[:3, 3] + k * lps[:3, 2]]
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
    for name, value in tags.items():
        setattr(data, name, value)
    data.PixelData = np.ascontiguousarray(stored[:, :, k].T).tobytes()
    data.save_as(path, enforce_file_format=True)


@pytest.fixture
def series(tmp_path):
    """Return a function that writes a series and gives the stored numbers and the folder."""

    def make(affine, shape=(7, 6, 9), folder="series", names=None, tags=lambda k: {}):
        stored = np.random.default_rng(0).integers(0, 2000, shape).astype(np.uint16)
        target = tmp_path / folder
        target.mkdir(exist_ok=True)
        order = np.random.default_rng(1).permutation(shape[2]) if names is None else names
        for k in range(shape[2]):
            write_slice(target / f"IM{order[k]:04d}", stored, affine, k, **tags(k))
        return stored, target

    return make


@pytest.mark.parametrize("reverse", [False, True])
def test_shuffled_names_numbers_and_slopes(series, reverse):
    affine = oblique()
    if reverse:  # slices against the normal of their plane: read the other way round, same place
        affine[:3, 2] *= -1
    slope = np.random.default_rng(2).choice([0.5, 1.0, 2.5], 9)
    numbers = np.random.default_rng(3).permutation(9)

    def tags(k):
        return {"RescaleSlope": slope[k], "RescaleIntercept": -7, "InstanceNumber": numbers[k]}

    stored, folder = series(affine, tags=tags)
    (folder / "readme.txt").write_text("not a picture")
    twin = Volume(stored * slope - 7.0, affine)
    scan = read_dicom(folder)
    assert scan.directions == reorient(twin, scan.directions).directions
    same = reorient(scan, twin.directions)
    np.testing.assert_allclose(same.array, twin.array, rtol=1e-6)
    np.testing.assert_allclose(same.affine, affine, atol=1e-6)
    assert find_volumes(folder.parent) == [folder]
    np.testing.assert_array_equal(read_volume(folder).array, scan.array)
    np.testing.assert_array_equal(read_dicom(sorted(folder.glob("IM*"))).array, scan.array)


def test_a_tilted_gantry_is_kept(series):
    affine = np.diag([1.0, 1.0, 3.0, 1.0])
    affine[1, 2] = 0.6
    _, folder = series(affine)
    np.testing.assert_allclose(reorient(read_dicom(folder), "RAS").affine, affine, atol=1e-6)


@pytest.mark.slow
def test_a_series_gives_the_map_of_its_nifti_twin(tmp_path):
    scan, brain = head_phantom(lesion=(20.0, 10.0, 40.0))
    names = np.random.default_rng(0).permutation(scan.array.shape[2])
    for k, name in enumerate(names):
        stored = (scan.array * 2 + 50).astype(np.uint16)
        tags = {"RescaleSlope": 0.5, "RescaleIntercept": -25, "InstanceNumber": 99 - name}
        write_slice(tmp_path / f"IM{name}", stored, scan.affine, k, **tags)

    class Dark:
        def anomaly_map(self, images):
            return 1.0 - images[:, 0]

    twin = score_volume(Dark(), scan, mask=brain, threshold=0.6)
    series = read_dicom(tmp_path)
    mask = reorient(Volume(brain.astype(np.uint8), scan.affine), series.directions).array > 0
    scored = score_volume(Dark(), series, mask=mask, threshold=0.6)
    back = reorient(Volume(scored.anomaly_map, series.affine), "RAS")
    np.testing.assert_allclose(back.affine, scan.affine, atol=1e-6)
    np.testing.assert_allclose(back.array, twin.anomaly_map, atol=1e-4)
    assert twin.segmentation.sum() == scored.segmentation.sum() > 0


def test_missing_slices_are_counted_and_placed(series):
    _, folder = series(oblique(), names=range(9))
    for k in (3, 4):
        (folder / f"IM{k:04d}").unlink()
    with pytest.raises(
        DataError, match=r"9\.00 mm between IM0.* About 2 slices are missing"
    ) as raised:
        read_dicom(folder)
    assert "IM0002" in str(raised.value)
    assert "IM0005" in str(raised.value)


def test_mixed_series_are_listed(series):
    other = generate_uid()
    series(oblique(), names=range(9))
    _, folder = series(
        oblique(),
        shape=(7, 6, 4),
        names=range(20, 24),
        tags=lambda k: {"SeriesInstanceUID": other, "SeriesDescription": "flair"},
    )
    with pytest.raises(DataError, match="mixes 2 series") as raised:
        read_dicom(folder)
    assert "9 slices: t1" in str(raised.value)
    assert f"4 slices: flair ({other})" in str(raised.value)


def test_mixed_orientations_are_listed(series):
    series(oblique(), names=range(9))
    _, folder = series(np.eye(4), shape=(7, 6, 1), names=[30])
    with pytest.raises(DataError, match="mixes 2 orientations:\n  9 slices"):
        read_dicom(folder)


def test_mixed_sizes_and_doubles(series):
    series(oblique(), names=range(9))
    _, folder = series(oblique(), shape=(8, 6, 2), names=[30, 31])
    with pytest.raises(DataError, match="mixes 2 picture sizes"):
        read_dicom(folder)
    _, folder = series(oblique(), names=range(9), folder="twice")
    series(oblique(), shape=(7, 6, 2), names=[30, 31], folder="twice")
    with pytest.raises(DataError, match=r"2 slices at the place of another one \(IM00"):
        read_dicom(folder)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"Modality": "CT"}, "modality CT, not MR"),
        ({"NumberOfFrames": 3}, "several slices per file"),
        ({"SamplesPerPixel": 3, "PhotometricInterpretation": "RGB"}, "RGB pictures"),
        ({"ImagePositionPatient": None}, "have no ImagePositionPatient, such as IM"),
    ],
)
def test_files_that_are_no_scan(series, tags, message):
    _, folder = series(oblique(), tags=lambda k: tags)
    with pytest.raises(DataError, match=message):
        read_dicom(folder)
    if "Modality" in tags:
        assert read_dicom(folder, modality=None).array.shape == (7, 6, 9)


def test_damage_and_emptiness(series, tmp_path):
    _, folder = series(oblique(), names=range(9))
    path = folder / "IM0004"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="IM0004 is cut short or damaged"):
        read_dicom(folder)
    _, lone = series(oblique(), shape=(7, 6, 1), folder="lone")
    with pytest.raises(DataError, match="single slice"):
        read_dicom(lone)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no DICOM image"):
        read_dicom(tmp_path / "empty")
    with pytest.raises(DataError, match="There is no folder"):
        read_dicom(tmp_path / "absent")
    with pytest.raises(DataError, match="Give the folder of its series"):
        read_volume(next(iter(lone.iterdir())))


def test_slices_that_bend(series):
    def shifted(k):
        return {"ImagePositionPatient": ["0", str(float(k == 4)), str(3.0 * k)]}

    _, folder = series(FLIP @ FLIP, tags=shifted)
    with pytest.raises(DataError, match="along one line"):
        read_dicom(folder)


def test_a_series_in_which_high_is_black_is_turned_round(series):
    turned = {"PhotometricInterpretation": "MONOCHROME1"}
    _, plain = series(oblique(), folder="plain")
    _, other = series(oblique(), folder="turned", tags=lambda k: turned)
    dark, bright = read_dicom(plain).array, read_dicom(other).array
    assert (bright == dark.max() + dark.min() - dark).all()


def grouped(group, **tags):
    """Return a functional group: a sequence of one item that holds the tags."""
    item = Dataset()
    for name, value in tags.items():
        setattr(item, name, value)
    return {group: [item]}


def write_enhanced(path, folder, order, slope_of=lambda k: 1.0):
    """Write the slices of a plain series as the frames of one file, in any order."""
    plain = [dcmread(file) for file in sorted(folder.iterdir())]
    data, frames = plain[0], []
    for k in order:
        own, frame = plain[k], Dataset()
        place = grouped("PlanePositionSequence", ImagePositionPatient=own.ImagePositionPatient)
        units = grouped(
            "PixelValueTransformationSequence", RescaleSlope=slope_of(k), RescaleIntercept=-3
        )
        for name, value in (place | units).items():
            setattr(frame, name, value)
        frames.append(frame)
    shared = Dataset()
    lies = grouped("PlaneOrientationSequence", ImageOrientationPatient=data.ImageOrientationPatient)
    sizes = grouped("PixelMeasuresSequence", PixelSpacing=data.PixelSpacing)
    for name, value in (lies | sizes).items():
        setattr(shared, name, value)
    pixels = b"".join(plain[k].PixelData for k in order)
    for name in ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing"):
        delattr(data, name)
    data.SharedFunctionalGroupsSequence, data.PerFrameFunctionalGroupsSequence = [shared], frames
    data.NumberOfFrames, data.PixelData = len(order), pixels
    data.SOPClassUID = data.file_meta.MediaStorageSOPClassUID = EnhancedMRImageStorage
    path.parent.mkdir(exist_ok=True)
    data.save_as(path, enforce_file_format=True)


def test_an_enhanced_file_is_the_series_of_its_frames(series, tmp_path):
    _, folder = series(oblique(), names=range(9), tags=lambda k: {"RescaleIntercept": -3})
    twin, path = read_dicom(folder), tmp_path / "enhanced" / "all.dcm"
    write_enhanced(path, folder, np.random.default_rng(4).permutation(9))
    scan = read_dicom(path.parent)
    np.testing.assert_array_equal(scan.array, twin.array)
    np.testing.assert_allclose(scan.affine, twin.affine, atol=1e-6)
    np.testing.assert_array_equal(read_volume(path).array, twin.array)


def test_the_frames_of_an_enhanced_file_have_slopes_of_their_own(series, tmp_path):
    stored, folder = series(np.diag([1.0, 1.0, 3.0, 1.0]), names=range(9))
    path = tmp_path / "enhanced" / "all.dcm"
    write_enhanced(path, folder, range(9), slope_of=lambda k: 1.0 + k)
    want = stored * (1.0 + np.arange(9)) - 3
    np.testing.assert_allclose(reorient(read_volume(path), "RAS").array, want)


def test_frames_that_are_missing_or_at_one_place_are_named(series, tmp_path):
    _, folder = series(oblique(), names=range(9))
    path = tmp_path / "enhanced" / "all.dcm"
    write_enhanced(path, folder, [0, 1, 2, 5, 6, 7, 8])
    with pytest.raises(DataError, match=r"all.dcm\[\d\] and all.dcm\[\d\].*2 slices are missing"):
        read_volume(path)
    write_enhanced(path, folder, [0, 1, 1, 2])
    with pytest.raises(DataError, match="place of another"):
        read_volume(path)
    write_enhanced(path, folder, range(9))
    data = dcmread(path)
    data.NumberOfFrames, data.PixelData = 8, data.PixelData[: 8 * 7 * 6 * 2]
    data.save_as(path)
    with pytest.raises(DataError, match="unlike its header"):
        read_volume(path)


def compress(path, codec, uid, **options):
    """Compress the picture of a file in place, and say so in its header."""
    codecs = pytest.importorskip("imagecodecs")
    data = dcmread(path)
    usual = {"bitspersample": 16} if codec == "ljpeg" else {}
    usual |= {"level": 0, "codecformat": "j2k"} if codec == "jpeg2k" else {}
    frame = getattr(codecs, f"{codec}_encode")(data.pixel_array, **usual | options)
    put_frame(path, bytes(frame), uid)


def put_frame(path, frame, uid):
    """Make a compressed picture the only frame of a file."""
    data = dcmread(path)
    data.PixelData = encapsulate([frame])
    data["PixelData"].is_undefined_length = True
    data.file_meta.TransferSyntaxUID = uid
    data.save_as(path, enforce_file_format=True)


COMPRESSED = {
    "ljpeg": JPEGLosslessSV1,
    "jpegls": JPEGLSLossless,
    "jpeg2k": JPEG2000Lossless,
}


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_compressed_series_is_read_as_it_was(series, codec):
    _, folder = series(oblique(), shape=(40, 33, 4))
    plain = read_dicom(folder)
    for path in folder.iterdir():
        compress(path, codec, COMPRESSED[codec])
    np.testing.assert_array_equal(read_dicom(folder).array, plain.array)


def test_boxes_around_a_compressed_picture_do_not_matter(series):
    """Some programs put whole JP2 files into DICOM files, against the standard."""
    _, folder = series(oblique(), shape=(40, 33, 4))
    plain = read_dicom(folder)
    for path in folder.iterdir():
        compress(path, "jpeg2k", JPEG2000Lossless, codecformat="jp2")
    np.testing.assert_array_equal(read_dicom(folder).array, plain.array)


NOWHERE = [bytes(8), b"\0\0\0\7ftyp", b"\0\0\0\x08ftyp", b"\0\0\0"]


@pytest.mark.parametrize("boxes", NOWHERE)
def test_boxes_that_lead_nowhere_are_refused(series, boxes, monkeypatch):
    """pydicom never comes back from a box of no length, so it must not be asked at all."""
    monkeypatch.setattr("pydicom.pixels.decoders.base.get_j2k_parameters", None)
    _, folder = series(oblique(), shape=(4, 3, 2))
    for path in folder.iterdir():
        put_frame(path, JP2_START + bytes.fromhex("0d0a870a") + boxes, JPEG2000Lossless)
    with pytest.raises(DataError, match=r"damaged: a frame does not say how large .* Export"):
        read_dicom(folder)


def test_frames_are_looked_at_whoever_decodes_them():
    """Other plug-ins of pydicom read more kinds of JPEG 2000 than ours."""
    data = Dataset()
    data.file_meta, data.Rows, data.Columns = FileMetaDataset(), 8, 8
    data.file_meta.TransferSyntaxUID = HTJ2K
    data.PixelData = encapsulate([JP2_START + bytes(12)])
    with pytest.raises(ValueError, match="does not say"):
        check_frames(data)


def test_a_picture_says_how_large_it_is_after_bytes_that_say_nothing():
    """Filling bytes and markers without a length come before the size, and decoders skip them."""
    size = bytes.fromhex("ffc0 0011 08 0007 0009 03 000000")
    for before in ("", "ffff", "ff01", "ffd0 ffd7", "ffe0 0004 ffc0", "ff01 ffe0 0002 ff"):
        assert frame_shape(bytes.fromhex("ffd8" + before) + size) == (7, 9)
    assert frame_shape(bytes.fromhex("ffd8 00") + size) is None


def test_a_file_that_another_tool_compressed_holds_the_same_pixels():
    """pydicom ships one picture plain and as JPEG-LS, and one with 12-bit JPEG."""
    plain, packed = (
        _stored(Path(get_testdata_file(name))) for name in ("MR_small.dcm", MR_JPEG_LS)
    )
    np.testing.assert_array_equal(plain, packed)
    lossy = _stored(Path(get_testdata_file("JPEG-lossy.dcm")))
    assert lossy.shape == (1024, 256)
    assert 0 < lossy.max() < 4096


def test_a_frame_of_another_size_than_the_header_is_refused(series):
    _, folder = series(oblique(), shape=(40, 33, 4))
    for path in folder.iterdir():
        compress(path, "ljpeg", JPEGLosslessSV1)
    bad = sorted(folder.iterdir())[2]
    whole = bytearray(bad.read_bytes())
    at = whole.index(bytes.fromhex("ffc3")) + 5
    whole[at : at + 4] = b"\xff\xff\xff\xff"  # 65,535 x 65,535 pixels
    bad.write_bytes(bytes(whole))
    with pytest.raises(DataError, match=r"(65535, 65535)"):
        read_dicom(folder)


def test_without_a_decompressor_the_extra_is_named(series, monkeypatch):
    _, folder = series(oblique(), shape=(40, 33, 4))
    for path in folder.iterdir():
        compress(path, "ljpeg", JPEGLosslessSV1)
    register()
    monkeypatch.setattr(get_decoder(JPEGLosslessSV1), "_available", {})
    with pytest.raises(DataError, match=r'IM\d+ is compressed \(JPEG Loss.*"aberra\[dicom\]"'):
        read_dicom(folder)
