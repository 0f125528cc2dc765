"""DICOM series in which one file was changed: plain, compressed, and all slices in one file."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
from pydicom import dcmread
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import (
    UID,
    EnhancedMRImageStorage,
    ExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGLosslessSV1,
    JPEGLSLossless,
    MRImageStorage,
    RLELossless,
    generate_uid,
)

from aberra.data.mri.dicom import read_dicom
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.volume import Volume
from benchmarks.borders_kinds import centred
from benchmarks.borders_scans import prepared

N_SLICES = 12
CODECS: dict[str, tuple[str, dict[str, Any]]] = {
    JPEGLosslessSV1: ("ljpeg", {"bitspersample": 16}),
    JPEGLSLossless: ("jpegls", {}),
    JPEG2000Lossless: ("jpeg2k", {"level": 0, "codecformat": "j2k"}),
}
PIXELS = b"\xe0\x7f\x10\x00"  # the tag in front of the pixels


class MutatedDicom:
    """Series with a changed file: its header, its length, its frames, or any byte."""

    n = 5000

    def prepare(self, sound: Path) -> None:
        """Write one small series in every form."""
        if not (sound / "plain").exists():
            scan, _ = head_phantom(shape=(24, 24, N_SLICES), affine=_lying(24, 9.0))
            for name in ("plain", "rle", *(codec for codec, _ in CODECS.values())):
                (sound / name).mkdir()
                for k in range(N_SLICES):
                    _write_slice(sound / name / f"{k:03d}.dcm", scan, k)
            for syntax, (codec, options) in CODECS.items():
                for path in (sound / codec).iterdir():
                    _compress(path, codec, syntax, options)
            for path in (sound / "rle").iterdir():
                data = dcmread(path)
                data.compress(RLELossless)
                data.save_as(path)
            _write_enhanced(sound / "enhanced", sound / "plain")
        self.series = {
            folder.name: [path.read_bytes() for path in sorted(folder.iterdir())]
            for folder in sorted(sound.iterdir())
        }
        for name in self.series:
            read_dicom(sound / name)

    def try_one(self, k: int, folder: Path) -> str:
        """Change a file, read the series and prepare its slices."""
        rng = random.Random(k)
        name = rng.choice(["plain", *self.series])
        place = folder / name
        if not place.exists():
            place.mkdir()
            for j, data in enumerate(self.series[name]):
                (place / f"{j:03d}.dcm").write_bytes(data)
        j = rng.randrange(len(self.series[name]))
        sound = self.series[name][j]
        (place / f"{j:03d}.dcm").write_bytes(changed(sound, name != "plain", rng))
        try:
            return prepared(read_dicom(place), k)
        finally:
            (place / f"{j:03d}.dcm").write_bytes(sound)


def changed(data: bytes, packed: bool, rng: random.Random) -> bytes:
    """Return a file with other bytes in its header or, where they mean something, its pixels."""
    held, start = bytearray(data), data.index(PIXELS)
    for _ in range(rng.choice([1, 1, 3, 10])):
        inside = rng.random() < (0.4 if packed else 0.1)
        at = rng.randrange(start, len(held)) if inside else rng.randrange(132, start + 16)
        held[at] = rng.choice([held[at] ^ (1 << rng.randrange(8)), 0, 255, 32])
    if rng.random() < 0.1:
        held = held[: rng.randrange(132, len(held))]
    return bytes(held)


def _lying(n: int, spacing: float) -> Any:
    affine = centred(n, spacing)
    affine[2, 2], affine[2, 3] = 2 * spacing, -spacing * (N_SLICES - 1)
    return affine


def _compress(path: Path, codec: str, syntax: str, options: dict[str, Any]) -> None:
    data = dcmread(path)
    frame = getattr(imagecodecs, f"{codec}_encode")(data.pixel_array, **options)
    data.PixelData = encapsulate([bytes(frame)])
    data["PixelData"].is_undefined_length = True
    data.file_meta.TransferSyntaxUID = UID(syntax)
    data.save_as(path, enforce_file_format=True)


def _item(**tags: Any) -> list[Dataset]:
    """Return a sequence of one item that holds the tags."""
    item = Dataset()
    for name, value in tags.items():
        setattr(item, name, value)
    return [item]


def _write_enhanced(folder: Path, plain: Path) -> None:
    """Write the slices of a series as the frames of one file."""
    slices = [dcmread(path) for path in sorted(plain.iterdir())]
    data = slices[0]
    frames = [
        _item(PlanePositionSequence=_item(ImagePositionPatient=one.ImagePositionPatient))[0]
        for one in slices
    ]
    data.SharedFunctionalGroupsSequence = _item(
        PlaneOrientationSequence=_item(ImageOrientationPatient=data.ImageOrientationPatient),
        PixelMeasuresSequence=_item(PixelSpacing=data.PixelSpacing),
    )
    data.PerFrameFunctionalGroupsSequence = frames
    data.NumberOfFrames = len(frames)
    data.PixelData = b"".join(one.PixelData for one in slices)
    for name in ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing"):
        delattr(data, name)
    data.SOPClassUID = data.file_meta.MediaStorageSOPClassUID = EnhancedMRImageStorage
    folder.mkdir()
    data.save_as(folder / "all.dcm", enforce_file_format=True)


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
