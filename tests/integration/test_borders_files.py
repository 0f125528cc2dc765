"""Damaged scans, pictures and arrays that once raised foreign errors or took all memory.

Each is the smallest form of a case that a campaign found (`benchmarks/borders.py`).
"""

import gzip
import io
import os
import struct
import zipfile

import nibabel as nib
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from pyarrow import feather
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage

from aberra.data.blocks.opening import blocks_of
from aberra.data.mri.brain import brain_mask
from aberra.data.mri.dicom import read_dicom
from aberra.data.mri.nifti import read_nifti, write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume
from aberra.data.sources import kind_of_path
from aberra.data.sources.arrays import main_array
from aberra.data.sources.csv_check import header_of
from aberra.data.sources.images import ImageShape, read_images, read_usable, shape_for
from aberra.data.sources.staged import table_at
from aberra.data.sources.table_file import TableFile
from aberra.errors import DataError
from aberra.viewer.marks import NAME, Marks, marks_in
from aberra.workflow.reviewing import read_marks

# Scans


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    path = tmp_path_factory.mktemp("scan") / "head.nii"
    scan, _ = head_phantom(shape=(12, 12, 12))
    return write_nifti(path, scan.array, scan).read_bytes()


HEADERS = {  # place in the header, format, value
    "2000 cubed": (42, "3h", (2000, 2000, 2000)),
    "side below 0": (42, "h", (-5,)),
    "eight dimensions": (40, "h", (9,)),
    "no dimension": (40, "h", (0,)),
    "strange type": (70, "h", (77,)),
    "complex": (70, "h", (32,)),
    "colour": (70, "h", (128,)),
    "offset": (108, "f", (float("nan"),)),
    "far offset": (108, "f", (1e30,)),
    "affine": (280, "f", (float("nan"),)),
    "kilometres": (280, "f", (1e9,)),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("header", HEADERS)
def test_wrong_nifti_headers_are_told_by_our_error(header, packed, head, tmp_path):
    at, form, values = HEADERS[header]
    data = bytearray(head)
    struct.pack_into(f"<{form}", data, at, *values)
    path = tmp_path / ("scan.nii.gz" if packed else "scan.nii")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(DataError, match=r"scan\.nii"):
        read_nifti(path)


@pytest.mark.parametrize("side", [65_560, -5, 1 << 30])
def test_sides_that_nifti_has_no_place_for_are_told(side, tmp_path):
    """FreeSurfer's header holds sides of 32 bits, NIfTI's only 16."""
    path = tmp_path / "scan.mgz"
    scan, _ = head_phantom(shape=(12, 12, 12))
    nib.save(nib.MGHImage(scan.array, scan.affine), path)
    data = bytearray(gzip.decompress(path.read_bytes()))
    struct.pack_into(">i", data, 4, side)
    path.write_bytes(gzip.compress(data))
    with pytest.raises(DataError, match=r"scan\.mgz"):
        read_nifti(path)


def test_a_scan_of_a_kilometre_is_no_head():
    array = np.random.default_rng(0).random((24, 24, 24)).astype(np.float32)
    with pytest.raises(DataError, match="more than any head"):
        brain_mask(Volume(array, np.diag([900.0, 900.0, 900.0, 1.0])))


def slice_file(**tags):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = MRImageStorage, "1.2"
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, "1.2"
    data.SeriesInstanceUID, data.Modality, data.Columns, data.Rows = "1.2", "MR", 4, 4
    data.PixelSpacing, data.ImageOrientationPatient = ["1", "1"], ["1", "0", "0", "0", "1", "0"]
    data.ImagePositionPatient, data.SamplesPerPixel = ["0", "0", "0"], 1
    data.PhotometricInterpretation, data.PixelRepresentation = "MONOCHROME2", 0
    data.BitsAllocated, data.BitsStored, data.HighBit = 16, 16, 15
    data.PixelData = np.arange(16, dtype=np.uint16).tobytes()
    for name, value in tags.items():
        setattr(data, name, value)
    buffer = io.BytesIO()
    data.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


@pytest.mark.parametrize("damage", ["cut", "number", "length", "meta", "rows"])
def test_a_damaged_dicom_file_is_told_by_our_error(damage, tmp_path):
    for k in range(3):
        data = slice_file(ImagePositionPatient=["0", "0", str(k)])
        if k == 1:
            data = {
                "cut": lambda d: d[:300],
                "number": lambda d: d.replace(b"1\\1", b"1\\x"),
                "length": lambda d: d.replace(b"US\x02\x00\x04\x00", b"US\xff\xff\x04\x00"),
                "meta": lambda d: d[:132] + b"\x02\x00\x00\x00UL\xff\xff" + d[140:],
                "rows": lambda d: d.replace(b"US\x02\x00\x04\x00", b"US\x02\x00\xff\xff"),
            }[damage](data)
        (tmp_path / f"{k}.dcm").write_bytes(data)
    with pytest.raises(DataError):
        read_dicom(tmp_path)


# Pictures


def test_one_bad_picture_does_not_spoil_the_folder(tmp_path):
    for k in range(3):
        Image.fromarray(np.full((8, 8), 40 * k, np.uint8)).save(tmp_path / f"{k}.png")
    whole = (tmp_path / "0.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[:45])
    (tmp_path / "header.png").write_bytes(whole.replace(b"IHDR", b"IHDX"))
    paths, errors = sorted(tmp_path.iterdir()), {}
    images, used = read_usable(paths, shape_for(paths, 8, errors), errors)
    assert [p.name for p in used] == ["0.png", "1.png", "2.png"]
    assert len(images) == 3
    assert sorted(p.name for p in errors) == ["cut.png", "header.png"]


def test_an_eps_file_of_another_name_starts_no_interpreter(tmp_path):
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(buffer, "EPS")
    (tmp_path / "a.png").write_bytes(buffer.getvalue())
    with pytest.raises(DataError, match="no picture that can be read"):
        read_images([tmp_path / "a.png"], ImageShape(4, 4, 1))


# Arrays


def npy(tmp_path, array, name="a.npy"):
    np.save(tmp_path / name, array)
    return tmp_path / name


def test_big_endian_and_dates_are_read(tmp_path):
    big = npy(tmp_path, np.arange(6.0).reshape(3, 2).astype(">f8"))
    assert TableFile(big).read().to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert TableFile(big).read()["x0"].dtype.isnative
    days = npy(tmp_path, np.array(["2020-01-01", "2021-01-01"], "M8[D]"), "days.npy")
    assert TableFile(days).read()["x0"].dt.year.tolist() == [2020, 2021]


def test_arrays_without_rows_are_told(tmp_path):
    for array in (np.float64(3.0), np.zeros(3, "i4,f4")):
        with pytest.raises(DataError, match=r"a\.npy holds .*not rows"):
            kind_of_path(npy(tmp_path, array))
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8',")
    with pytest.raises(DataError, match=r"a\.npy cannot be read"):
        main_array(tmp_path / "a.npy")


def test_an_npz_that_claims_too_much_is_refused(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (10**5, 10**5)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", head.getvalue() + b"\0" * 800)
    with pytest.raises(DataError, match="does not have the size it tells"):
        main_array(tmp_path / "a.npz")


# Tables


def test_a_packed_table_that_is_cut_short_is_told(tmp_path):
    rows = "a,b\n" + "".join(f"{k},{k * k % 97}\n" for k in range(500))
    packed = gzip.compress(rows.encode())
    for name, data in {"cut": packed[:-20], "changed": packed[:200] + b"\0" + packed[201:]}.items():
        path = tmp_path / f"{name}.csv.gz"
        path.write_bytes(data)
        with pytest.raises(DataError, match=rf"{name}\.csv\.gz cannot be read"):
            table_at(path)


def test_a_header_with_a_quote_that_closes_in_another_line_is_told(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'a;";cn\n?a ""b""",\n"')
    with pytest.raises(DataError, match=r"rows\.csv cannot be read: new-line"):
        header_of(path)


def test_deeply_nested_marks_are_told(tmp_path):
    path = tmp_path / "marks.json"
    path.write_bytes(b'{"a":' * 100_000)
    with pytest.raises(DataError, match=r"marks\.json cannot be read"):
        marks_in(path)


@pytest.mark.parametrize(
    ("data", "line"), [(b"id,mark\n,rk\n\xde,1", 2), (b"id,mark\n-1,\xde\r,1\n", 3)]
)
def test_a_mark_without_a_name_is_told_by_its_line(data, line, tmp_path):
    """Found by fuzzing: the names were sorted, and a gap among them cannot be."""
    path = tmp_path / "marks.csv"
    path.write_bytes(data)
    with pytest.raises(DataError, match=rf"marks\.csv, line {line}: there is a mark, but no id"):
        read_marks(path)


def test_text_that_is_not_utf_8_is_told_in_any_format(tmp_path):
    rows = pa.table({"a": ["x", "Z\u00fcrich", "y"]})
    feather.write_feather(rows, tmp_path / "rows.feather", compression="uncompressed")
    pq.write_table(rows, tmp_path / "rows.parquet", compression="none", use_dictionary=False)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes().replace("\u00fc".encode(), b"\xfc\xfc"))
        with pytest.raises(DataError, match="Some cells are damaged"):
            table_at(path).read()


def test_cells_beyond_their_column_are_told(tmp_path):
    """Arrow itself would read past the end of the memory."""
    path = tmp_path / "rows.feather"
    feather.write_feather(pa.table({"a": ["x", "yy"]}), path, compression="uncompressed")
    ends = struct.pack("<3i", 0, 1, 3)
    path.write_bytes(path.read_bytes().replace(ends, struct.pack("<3i", 0, 1, 1 << 30)))
    with pytest.raises(DataError, match="Some cells are damaged"):
        table_at(path).read()


def test_one_file_with_other_columns_does_not_spoil_the_folder(tmp_path):
    for name, header in {"1": "a,x", "2": "a,b", "3": "a,b"}.items():
        (tmp_path / f"{name}.csv").write_text(f"{header}\n1,2\n3,4\n")
    blocks = blocks_of(tmp_path, on_error="skip")
    assert (blocks.n_rows, blocks.columns) == (4, ["a", "b"])
    with pytest.raises(DataError, match=r"1\.csv has other columns than .*2\.csv \(b, x\)"):
        blocks_of(tmp_path)


# Pipes: whoever opens one waits for ever


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("rows.csv", table_at),
        ("marks.csv", read_marks),
        ("marks.json", read_marks),
        (NAME, lambda path: Marks(path.parent).of("rows.csv")),
        ("scan.nii", read_nifti),
        ("rows.feather", lambda path: blocks_of(str(path.with_name("*.feather")))),
    ],
)
def test_a_pipe_is_refused_wherever_a_file_is_asked_for(name, read, tmp_path):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="is a device, a pipe or a socket"):
        read(tmp_path / name)
