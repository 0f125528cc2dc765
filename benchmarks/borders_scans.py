"""NIfTI, Analyze and FreeSurfer files with other bytes in their headers, and cut ones."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path

import nibabel as nib
import numpy as np

from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import read_volume
from aberra.data.mri.nifti import write_nifti
from aberra.data.mri.phantom import head_phantom
from aberra.data.mri.prepare import Preparation, prepare
from aberra.data.mri.volume import Volume
from benchmarks.borders_kinds import centred

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


OTHERS = ("two.nii", "pair.img", "plain.img", "head.mgz")  # NIfTI-2, two files, Analyze, FreeSurfer


class MutatedNifti:
    """Scans whose header was changed field by field, or byte by byte."""

    n = 5000

    def prepare(self, sound: Path) -> None:
        """Write one small head in every format."""
        folder = sound / "heads"
        if not folder.exists():
            scan, _ = head_phantom(shape=(24, 24, 24), affine=centred(24, 9.0))
            write_nifti(folder / "head.nii", scan.array, scan)
            nib.save(nib.Nifti2Image(scan.array, scan.affine), folder / "two.nii")
            nib.save(nib.Nifti1Pair(scan.array, scan.affine), folder / "pair.img")
            nib.save(nib.AnalyzeImage(scan.array, scan.affine), folder / "plain.img")
            nib.save(nib.MGHImage(scan.array, scan.affine), folder / "head.mgz")
        self.files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.files["head.mgz"] = gzip.decompress(self.files["head.mgz"])

    def try_one(self, k: int, folder: Path) -> str:
        """Change the header, read the scan and prepare its slices."""
        rng = random.Random(k)
        if rng.random() < 0.3:
            return self._other(rng.choice(OTHERS), rng, folder, k)
        data = bytearray(self.files["head.nii"])
        for _ in range(rng.choice([1, 1, 2, 4])):
            mutate(data, rng)
        if rng.random() < 0.1:
            data = data[: rng.randrange(len(data))]
        packed = rng.random() < 0.3
        path = folder / ("m.nii.gz" if packed else "m.nii")
        path.write_bytes(gzip.compress(bytes(data), 1) if packed else bytes(data))
        return prepared(read_volume(path), k)

    def _other(self, name: str, rng: random.Random, folder: Path, k: int) -> str:
        """Change bytes of the header of another format, which may be a file of its own."""
        header = name.replace(".img", ".hdr")
        data = bytearray(self.files[header])
        for _ in range(rng.choice([1, 2, 4, 8])):
            at = rng.randrange(min(len(data), 540))
            data[at] = rng.choice([data[at] ^ (1 << rng.randrange(8)), 0, 1, 127, 128, 255])
        if header != name:
            (folder / name).write_bytes(self.files[name])
        packed = name.endswith(".mgz")
        (folder / header).write_bytes(gzip.compress(bytes(data), 1) if packed else bytes(data))
        return prepared(read_volume(folder / name, axes="RAS" if name == "plain.img" else None), k)


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
