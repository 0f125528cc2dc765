"""NIfTI and DICOM files with other bytes in their headers, and cut or stretched ones."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import numpy as np
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, MRImageStorage, generate_uid

from aberra.data.mri.brain import brain_mask
from aberra.data.mri.dicom import read_dicom
from aberra.data.mri.files import read_volume
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Volume

NIFTI_HEADER = 352
# Where NIfTI-1 keeps what decides memory and place: offset, format, how many.
FIELDS = [(0, "i", 1), (40, "h", 8), (68, "h", 1), (70, "h", 1), (72, "h", 1), (76, "f", 8),
          (108, "f", 1), (112, "f", 2), (123, "B", 1), (252, "h", 2), (256, "f", 6),
          (280, "f", 12), (344, "4s", 1)]  # fmt: skip
NUMBERS: dict[str, list[float]] = {
    "i": [0, -1, 348, 540, 2**31 - 1],
    "h": [0, -1, 1, 2, 7, 8, 16, 64, 128, 2000, 32767, -32768],
    "f": [0.0, -1.0, float("nan"), float("inf"), 1e-30, 1e30, 1e10, 352.0],
    "B": [0, 1, 2, 3, 7, 255],
}


class MutatedNifti:
    """NIfTI files whose header was changed field by field, or byte by byte."""

    n = 5000

    def prepare(self, sound: Path) -> None:
        """Write one small head."""
        path = sound / "head.nii"
        if not path.exists():
            scan, _ = head_phantom(shape=(24, 24, 24), affine=_centred(24, 9.0))
            write_nifti(path, scan.array, scan)
        self.data = path.read_bytes()

    def try_one(self, k: int, folder: Path) -> str:
        """Change the header, read the scan and prepare its slices."""
        rng = random.Random(k)
        data = bytearray(self.data)
        for _ in range(rng.choice([1, 1, 2, 4])):
            mutate(data, rng)
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data))]
        packed = rng.random() < 0.3
        path = folder / ("m.nii.gz" if packed else "m.nii")
        path.write_bytes(gzip.compress(bytes(data), 1) if packed else bytes(data))
        return prepared(read_volume(path), k)


def mutate(data: bytearray, rng: random.Random) -> None:
    """Give one field of the header another value, or flip one of its bits."""
    if rng.random() < 0.3:
        data[rng.randrange(NIFTI_HEADER)] ^= 1 << rng.randrange(8)
        return
    offset, kind, n = rng.choice(FIELDS)
    if kind == "4s":
        data[offset : offset + 4] = rng.choice([b"n+1\0", b"n+2\0", b"ni1\0", b"\0\0\0\0"])
        return
    at = offset + struct.calcsize(kind) * rng.randrange(n)
    value = rng.choice(NUMBERS[kind])
    struct.pack_into(f"<{kind}", data, at, value if kind == "f" else int(value))


def prepared(scan: Volume, k: int) -> str:
    """Look at a scan; cut every hundredth into slices, which takes seconds, as scoring does."""
    if not np.isfinite(scan.array).all() or len(scan.directions) != 3:
        return "the scan is not finite"
    if k % 100:
        return "fine"
    images, _ = prepare(scan, brain_mask(scan), Preparation(size=32))
    return "fine" if np.isfinite(images).all() else "slices are not finite"


def _centred(n: int, spacing: float) -> np.ndarray:
    affine = np.diag([spacing, spacing, spacing, 1.0])
    affine[:3, 3] = -spacing * (n - 1) / 2
    return affine


class MutatedDicom:
    """DICOM series in which one file was changed: its header, its length, or any byte."""

    n = 5000

    def prepare(self, sound: Path) -> None:
        """Write one small series."""
        folder = sound / "series"
        if not folder.exists():
            folder.mkdir()
            scan, _ = head_phantom(shape=(24, 24, 24), affine=_centred(24, 9.0))
            for k in range(24):
                _write_slice(folder / f"{k:03d}.dcm", scan, k)
        self.files = [path.read_bytes() for path in sorted(folder.iterdir())]

    def try_one(self, k: int, folder: Path) -> str:
        """Change a file, read the series and prepare its slices."""
        rng = random.Random(k)
        series = folder / "series"
        series.mkdir(exist_ok=True)
        changed = rng.randrange(len(self.files))
        for j, data in enumerate(self.files):
            held = bytearray(data)
            if j == changed:
                for _ in range(rng.choice([1, 1, 3, 10])):
                    end = len(held) if rng.random() < 0.1 else min(len(held), 900)
                    at = rng.randrange(132, end)
                    held[at] = rng.choice([held[at] ^ (1 << rng.randrange(8)), 0, 255, 32])
                if rng.random() < 0.1:
                    held = held[: rng.randrange(132, len(held))]
            (series / f"{j:03d}.dcm").write_bytes(bytes(held))
        return prepared(read_dicom(series), k)


def _write_slice(path: Path, scan: Volume, k: int) -> None:
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
    data.SeriesInstanceUID, data.SeriesDescription, data.Modality = "1.2.3", "t1", "MR"
    data.Columns, data.Rows = scan.array.shape[:2]
    spacing = scan.spacing
    data.PixelSpacing = [str(spacing[1]), str(spacing[0])]
    data.ImageOrientationPatient = ["-1", "0", "0", "0", "-1", "0"]
    place = np.diag([-1.0, -1.0, 1.0]) @ scan.to_world([0, 0, k])
    data.ImagePositionPatient = [f"{v:.6f}" for v in place]
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 16, 16, 15, 0
    data.RescaleSlope, data.RescaleIntercept, data.NumberOfFrames = "1", "0", "1"
    data.PixelData = np.ascontiguousarray(scan.array[:, :, k].T.astype(np.uint16)).tobytes()
    data.save_as(path, enforce_file_format=True)
