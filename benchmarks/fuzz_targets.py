"""What is fuzzed: the parsers of foreign bytes that are ours, and what is done with their results.

A target takes the bytes of a file, and may use them or refuse them by one of Aberra's errors.
`SurpriseError` says that something was used, but not as it should be.
"""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from aberra.errors import AberraError

# What is watched while it runs. Compiled modules cannot be: numba reads their bytecode itself.
WATCHED = {
    "model": [
        "aberra.model_file",
        "aberra.recipe",
        "aberra.contract",
        "aberra.robust",
        "aberra.data.drift",
        "aberra.data.tables",
        "aberra.explain",
        "aberra.viewer.models",
        "aberra.workflow.opened",
    ],
    "csv": ["aberra.data.sources", "aberra.data.tables", "aberra.files"],
    "json": ["aberra.data.sources", "aberra.data.tables", "aberra.data.nested"],
    "sheet": ["aberra.data.sources", "aberra.data.tables"],
    "marks": ["aberra.workflow.reviewing", "aberra.viewer.marks", "aberra.data.sources"],
    "frame": ["aberra.data.mri"],
}
IMPORTED = {
    "model": ["aberra.workflow.opened", "aberra.viewer.models", "aberra.robust.rounds"],
    "csv": ["aberra.data.sources.staged", "aberra.data.sources.columns", "aberra.data.tables"],
    "json": ["aberra.data.sources.staged", "aberra.data.sources.columns", "aberra.data.tables"],
    "sheet": ["aberra.data.sources.staged", "aberra.data.sources.columns", "aberra.data.tables"],
    "marks": ["aberra.workflow.reviewing", "aberra.data.sources.staged"],
    "frame": ["aberra.data.mri.dicom"],
}
SYNTAXES = {  # from codecs of imagecodecs to the transfer syntaxes of DICOM
    "ljpeg": "1.2.840.10008.1.2.4.70",
    "jpegls": "1.2.840.10008.1.2.4.80",
    "jpeg2k": "1.2.840.10008.1.2.4.90",
    "jpeg8": "1.2.840.10008.1.2.4.51",
}
MOST_PIXELS = 1 << 24  # of a frame that is decoded; what it claims beyond is only read
SELDOM = 4  # one in so many models is shown as well: showing loads it twice more

Target = Callable[[bytes, Path], object]


class SurpriseError(Exception):
    """What was read is not what it should be."""


def model(data: bytes, folder: Path) -> object:
    """Open a model file with its recipe, score rows or images with it, and show it."""
    from aberra.viewer.models import model_page
    from aberra.workflow.opened import opened

    path = folder / "m.aberra"
    path.write_bytes(data)
    known = opened(path)
    made = known.model
    X = _asked(made)
    scores = made.anomaly_score(X)
    if scores.shape != (len(X),) or not np.isfinite(scores).all():
        raise SurpriseError(f"scores of shape {scores.shape}, finite: {np.isfinite(scores).all()}")
    made.predict(X)
    if not made.localises and not np.isfinite(np.asarray(made.explain(X[:2]), float)).all():
        raise SurpriseError("explanations are not finite")
    if sha256(data).digest()[0] % SELDOM == 0:
        model_page(path)
    return known.recipe


def _asked(made: Any) -> Any:
    """Return a few rows or images that a model should know what to do with."""
    from benchmarks.borders_kinds import rows

    if made.image_shape_ is not None:
        return np.zeros((2, *made.image_shape_), np.float32)
    names = made.column_names()
    if names is None:
        return np.random.default_rng(1).normal(size=(4, made.n_features_in_))
    table = rows(8).assign(year=2023)
    return table.reindex(columns=names)


def csv(data: bytes, folder: Path) -> object:
    """Read a CSV file whole and in chunks, as fitting and scoring do, with and without a header."""
    return _read_table(data, folder / "m.csv", headers=(True, False))


def json(data: bytes, folder: Path) -> object:
    """Read a list of JSON objects, or one a line, as a CSV file is read."""
    return _read_table(data, folder / "m.json")


def sheet(data: bytes, folder: Path) -> object:
    """Read an Excel file as a CSV file is read."""
    return _read_table(data, folder / "m.xlsx")


def _read_table(data: bytes, path: Path, headers: tuple[bool, ...] = (True,)) -> object:
    """Read a table every way; raise the last refusal."""
    from aberra.data.sources import staged

    path.write_bytes(data)
    refused: AberraError | None = None
    try:
        for header in headers:
            try:
                _read_as_table(path, header)
            except AberraError as error:
                refused = error
    finally:  # copies of the file: nobody will ask for them again
        staged._remembered.cache_clear()
        for copied in staged._folder().iterdir():
            shutil.rmtree(copied)
    if refused is not None:
        raise refused
    return None


def _read_as_table(path: Path, header: bool) -> None:
    from aberra.data.sources.columns import choose_columns
    from aberra.data.sources.staged import table_at
    from aberra.data.tables import TableReader

    file = table_at(path, header=header)
    table, kinds = file.read(), file.kinds()
    found = list(file.chunks(file.columns, dict.fromkeys(file.columns, "text"), 2))
    counted = sum(len(chunk.frame) for chunk in found)
    if not len(table) == counted == file.n_rows():
        raise SurpriseError(
            f"{len(table)} rows as a whole, {counted} in chunks, {file.n_rows()} else"
        )
    if list(kinds) != file.columns:
        raise SurpriseError(f"kinds of the columns {list(kinds)} instead of {file.columns}")
    if len(table):
        file.place_of(len(table) - 1)
    chosen = choose_columns(table, place=file.place_of)
    file.identifiers(chosen.id_column or file.columns[0])
    reader = TableReader("impute", "auto")
    reader.fit(table[chosen.used])
    if np.isnan(reader.transform(table[chosen.used])).any():
        raise SurpriseError("numbers with gaps, though gaps are filled")


def marks(data: bytes, folder: Path) -> object:
    """Read what a reviewer decided, give it to a model, and change it as the viewer does."""
    from aberra.data.sources import staged
    from aberra.data.sources.table_file import TableFile
    from aberra.viewer.marks import NAME, Marks
    from aberra.workflow.reviewing import learn_marks

    path = folder / (NAME if data[:1] == b"{" else "m.csv")
    path.write_bytes(data)
    try:
        learn_marks(deepcopy(_reviewed()), TableFile(_reviewed_table(folder)), "id", path)
        if path.name == NAME:
            Marks(folder).set("t.csv", "b", "accept")
            Marks(folder).of("t.csv")
    finally:
        staged._remembered.cache_clear()
        for copied in staged._folder().iterdir():
            shutil.rmtree(copied)
    return None


@cache
def _reviewed() -> Any:
    from aberra import OCSVM

    return OCSVM(random_state=0).fit(np.random.default_rng(0).normal(size=(8, 2)))


@cache
def _reviewed_table(folder: Path) -> Path:
    path = folder / "t.csv"
    lines = [f"{name},{k}.5,{k * k}.25" for k, name in enumerate("abcdefgx")]
    path.write_text("\n".join(["id,u,v", *lines, "3,1.5,2.5", "8,1.5,0.5"]) + "\n")
    return path


def frame(data: bytes, folder: Path) -> object:
    """Ask a compressed picture how large it is, and read a series of scans that holds it."""
    from aberra.data.mri.compressed import frame_shape
    from aberra.data.mri.dicom import read_dicom

    rows, columns = frame_shape(data) or (8, 8)
    if not (0 <= rows < 1 << 16 and 0 <= columns < 1 << 16 and rows * columns <= MOST_PIXELS):
        return None
    refused: AberraError | None = None
    for codec in SYNTAXES:
        paths = [folder / f"{k}.dcm" for k in range(2)]
        for k, path in enumerate(paths):
            path.write_bytes(dicom_of(data, codec, rows, columns, k))
        try:
            read_dicom(paths)
        except AberraError as error:
            refused = error
    if refused is not None:
        raise refused
    return None


def dicom_of(compressed: bytes, codec: str, rows: int, columns: int, k: int) -> bytes:
    """Return slice k of a series, whose only frame is this compressed picture."""
    head = _dicom_head(codec, k)
    head = head.replace(struct.pack("<H", 0x4141), struct.pack("<H", rows))
    head = head.replace(struct.pack("<H", 0x4242), struct.pack("<H", columns))
    item, end = b"\xfe\xff\x00\xe0", b"\xfe\xff\xdd\xe0" + bytes(4)
    even = compressed + bytes(len(compressed) % 2)
    pixels = b"\xe0\x7f\x10\x00OB\x00\x00\xff\xff\xff\xff"
    return head + pixels + item + bytes(4) + item + struct.pack("<I", len(even)) + even + end


@cache
def _dicom_head(codec: str, k: int) -> bytes:
    """Return all of a DICOM file that comes before the pixels."""
    import io

    from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
    from pydicom.uid import UID, MRImageStorage

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = MRImageStorage
    meta.MediaStorageSOPInstanceUID = UID(f"1.2.3.{k + 1}")
    meta.TransferSyntaxUID = UID(SYNTAXES[codec])
    buffer = io.BytesIO()
    data = FileDataset("", Dataset(), file_meta=meta, preamble=bytes(128))
    data.SOPClassUID, data.SOPInstanceUID = MRImageStorage, meta.MediaStorageSOPInstanceUID
    data.SeriesInstanceUID, data.Modality = "1.2.3", "MR"
    data.Rows, data.Columns = 0x4141, 0x4242
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.BitsAllocated, data.BitsStored, data.HighBit = 16, 16, 15
    data.PixelRepresentation, data.PixelSpacing = 0, [1.0, 1.0]
    data.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    data.ImagePositionPatient = [0, 0, k]
    data.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


TARGETS: dict[str, Target] = {
    target.__name__: target for target in (model, csv, json, sheet, marks, frame)
}
