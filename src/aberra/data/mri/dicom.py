"""DICOM series: files sorted by where they lie, never by name or number."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.compressed import check_frames, unreadable
from aberra.data.mri.enhanced import EACH, SHARED, frame_headers, is_enhanced
from aberra.data.mri.volume import Volume, check_voxels, direction_matrix
from aberra.errors import DataError
from aberra.extras import need
from aberra.files import reading

TAGS = [
    "SeriesInstanceUID",
    "SeriesDescription",
    "Modality",
    "Rows",
    "Columns",
    "PixelSpacing",
    "ImageOrientationPatient",
    "ImagePositionPatient",
    "SamplesPerPixel",
    "PhotometricInterpretation",
    "NumberOfFrames",
    "RescaleSlope",
    "RescaleIntercept",
    SHARED,
    EACH,
]
SHOWN = 6
TURNED = "MONOCHROME1"  # high values are black
GREY = (TURNED, "MONOCHROME2")
TOLERANCE = 0.05  # of the distance of two slices; headers are rounded


def read_dicom(
    source: str | Path | Sequence[str | Path],
    modality: str | None = "MR",
    axes: str | None = None,
) -> Volume:
    """Read one series.

    Slices are sorted by their position along the normal of the slice plane. File names and
    instance numbers play no part. A file may hold one slice or, as enhanced DICOM, all of them.

    Parameters
    ----------
    source : path or sequence of paths
        A folder that holds the files of one series (files that are not DICOM images are passed
        over), or the files.
    modality : str, optional, default="MR"
        What the series must be; None takes any.
    axes : str, optional
        Where the array axes (column, row, slice) really point, if the headers are wrong.

    Returns
    -------
    scan : Volume
        Intensities with each file's slope and intercept applied, in float32; high is bright, also
        where the files have it the other way round (MONOCHROME1).
    """
    if axes is not None:
        direction_matrix(axes)  # a wrong argument is not the files' fault
    files, where = _files(source)
    with reading(where, "Export the series again."):
        heads = _headers(files, where)
        _check_images(heads, where, modality)
        heads = _sorted(heads, where)
        first = heads[0].tags
        shape = (int(first.Columns), int(first.Rows), len(heads))
        check_voxels(shape, where)
        array = np.empty(shape, np.float32)
        for k, pixels in enumerate(_pixels(heads)):
            array[:, :, k] = pixels
        if first.get("PhotometricInterpretation") == TURNED:
            array = array.max() + array.min() - array
        folder = source if isinstance(source, str | Path) else files[0].parent
        return Volume(array, _affine(heads), Path(folder), axes)


def is_dicom(path: Path) -> bool:
    """Say whether a file starts as DICOM files do: 128 free bytes, then "DICM"."""
    with path.open("rb") as file:
        return file.read(132)[128:] == b"DICM"


def _files(source: str | Path | Sequence[str | Path]) -> tuple[list[Path], str]:
    if not isinstance(source, str | Path):
        return [Path(path) for path in source], "The series"
    folder = Path(source)
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.")
    return sorted(path for path in folder.iterdir() if path.is_file()), str(folder)


class Head(NamedTuple):
    """The header of one slice: of a file, or of a frame of an enhanced file."""

    path: Path
    tags: Any
    frame: int | None = None

    @property
    def name(self) -> str:
        """How the slice is called in a message."""
        return self.path.name if self.frame is None else f"{self.path.name}[{self.frame}]"


def _headers(files: Iterable[Path], where: str) -> list[Head]:
    pydicom = need("pydicom", "mri", "Reading scans")
    heads = []
    for path in files:
        if is_dicom(path):
            with reading(path, "Export the series again, or take the file out."):
                head = pydicom.dcmread(_whole(path), stop_before_pixels=True, specific_tags=TAGS)
            if "Rows" in head:
                heads += _slices_of(path, head)
            elif _says_image(head):  # directories, reports and notes have no picture
                raise DataError(
                    f"{path} is cut short: it calls itself a picture, but holds none. Export the "
                    "series again, or take the file out."
                )
    if not heads:
        raise DataError(f"{where} holds no DICOM image.")
    return heads


def _slices_of(path: Path, head: Any) -> list[Head]:
    if not is_enhanced(head):
        return [Head(path, head)]
    return [Head(path, one, k) for k, one in enumerate(frame_headers(head))]


def _whole(path: Path) -> io.BytesIO:
    """Return a file in memory: a length that lies, up to 4 GB, then takes no more than there is."""
    return io.BytesIO(path.read_bytes())


def _says_image(head: Any) -> bool:
    kind = head.file_meta.get("MediaStorageSOPClassUID")
    return kind is not None and kind.name.endswith("Image Storage")


def _check_images(heads: list[Head], where: str, modality: str | None) -> None:
    _same(heads, where, "series", _series, "Give the files of one series, or a folder each.")
    first = heads[0].tags
    if modality is not None and first.get("Modality") != modality:
        raise DataError(
            f"{where} is a series of modality {first.get('Modality')}, not {modality}. A model "
            "judges what it was trained on; pass modality=None to read it all the same."
        )
    if int(first.get("NumberOfFrames", 1) or 1) > 1:
        raise DataError(
            f"{where} holds several slices per file and does not say where each lies. Convert it "
            "to NIfTI, with dcm2niix for instance."
        )
    colour = first.get("PhotometricInterpretation", "MONOCHROME2")
    if int(first.get("SamplesPerPixel", 1)) != 1 or colour not in GREY:
        raise DataError(f"{where} holds {colour} pictures, not one intensity per voxel.")
    for name in ("ImageOrientationPatient", "ImagePositionPatient", "PixelSpacing"):
        silent = [head.name for head in heads if head.tags.get(name) is None]
        if silent:
            raise DataError(
                f"{where}: {len(silent)} slices have no {name}, such as {silent[0]}, so their "
                "place is not known. Export the series again with its geometry."
            )
    advice = "Keep the files that belong together in a folder of their own."
    _same(heads, where, "orientations", _orientation, advice)
    _same(heads, where, "picture sizes", lambda h: (int(h.Rows), int(h.Columns)), advice)
    _same(heads, where, "pixel sizes", lambda h: _rounded(h.PixelSpacing), advice)


def _series(head: Any) -> Hashable:
    return f"{head.get('SeriesDescription', 'no description')} ({head.get('SeriesInstanceUID')})"


def _orientation(head: Any) -> Hashable:
    return _rounded(head.ImageOrientationPatient)


def _rounded(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(round(float(value), 3) + 0.0 for value in values)


def _same(heads: list[Head], where: str, what: str, key: Any, advice: str) -> None:
    counts = Counter(key(head.tags) for head in heads)
    if len(counts) > 1:
        listed = "\n".join(f"  {n} slices: {name}" for name, n in counts.most_common(SHOWN))
        raise DataError(f"{where} mixes {len(counts)} {what}:\n{listed}\n{advice}")


def _normal(head: Any) -> NDArray[np.float64]:
    directions = np.array(head.ImageOrientationPatient, np.float64)
    return np.asarray(np.cross(directions[:3], directions[3:]))


def _position(head: Any) -> NDArray[np.float64]:
    return np.array(head.ImagePositionPatient, np.float64)


def _sorted(heads: list[Head], where: str) -> list[Head]:
    """Return the files along the normal of their plane; refuse doubles, gaps and bends."""
    if len(heads) < 2:
        raise DataError(f"{where} holds a single slice. Give the folder of its series.")
    normal = _normal(heads[0].tags)
    heads = sorted(heads, key=lambda head: float(_position(head.tags) @ normal))
    positions = np.array([_position(head.tags) for head in heads])
    gaps = np.diff(positions @ normal)
    usual = float(np.median(gaps))
    doubles = np.flatnonzero(gaps < 1e-3)
    if len(doubles):
        pairs = ", ".join(f"{heads[k].name} and {heads[k + 1].name}" for k in doubles[:SHOWN])
        raise DataError(
            f"{where} has {len(doubles)} slices at the place of another one ({pairs}). "
            "Keep one echo, time point or copy."
        )
    wide = np.flatnonzero(np.abs(gaps - usual) > TOLERANCE * usual)
    if len(wide):
        listed = ", ".join(
            f"{gaps[k]:.2f} mm between {heads[k].name} and {heads[k + 1].name}"
            for k in wide[:SHOWN]
        )
        missing = int(sum(max(round(gaps[k] / usual) - 1, 0) for k in wide))
        raise DataError(
            f"{where}: slices are {usual:.2f} mm apart, but {listed}. "
            + (f"About {missing} slices are missing; " if missing else "Spacing is uneven; ")
            + "export the whole series again."
        )
    line = np.linspace(positions[0], positions[-1], len(heads))
    if np.abs(positions - line).max() > TOLERANCE * usual:
        raise DataError(f"{where}: the slices do not lie along one line. Convert it to NIfTI.")
    return heads


def _affine(heads: list[Head]) -> NDArray[np.float64]:
    """Return the matrix from (column, row, slice) to right-anterior-superior.

    DICOM's world runs to the left and to the back. The step between slices is taken from the
    positions, not from the normal, so that a tilted gantry is kept.
    """
    first, last = heads[0].tags, heads[-1].tags
    directions = np.array(first.ImageOrientationPatient, np.float64)
    down, across = (float(v) for v in first.PixelSpacing)  # between rows, between columns
    matrix = np.eye(4)
    matrix[:3, 0] = directions[:3] * across
    matrix[:3, 1] = directions[3:] * down
    matrix[:3, 2] = (_position(last) - _position(first)) / (len(heads) - 1)
    matrix[:3, 3] = _position(first)
    return np.asarray(np.diag([-1.0, -1.0, 1.0, 1.0]) @ matrix)


def _pixels(heads: list[Head]) -> Iterator[NDArray[np.float32]]:
    """Yield each slice as (column, row), in the units that slope and intercept give."""
    path, stored = None, np.empty(0)
    for head in heads:
        if head.path != path:  # the frames of one file are decompressed together
            path, stored = head.path, _stored(head.path)
        tags, whole = head.tags, stored if stored.ndim > 2 else stored[None]
        k = head.frame or 0
        own = whole[k] if k < len(whole) else np.empty(0)
        if own.shape != (int(tags.Rows), int(tags.Columns)):
            raise DataError(f"{path} holds pictures of shape {own.shape}, unlike its header.")
        slope, intercept = tags.get("RescaleSlope", 1) or 1, tags.get("RescaleIntercept", 0) or 0
        yield np.asarray(own.T * float(slope) + float(intercept), np.float32)


def _stored(path: Path) -> NDArray[Any]:
    pydicom = need("pydicom", "mri", "Reading scans")
    try:
        data = pydicom.dcmread(_whole(path))
        if (unread := unreadable(data.file_meta.TransferSyntaxUID)) is None:
            check_frames(data)
            return np.asarray(data.pixel_array)
    except Exception as error:  # a damaged file raises nearly anything
        raise DataError(
            f"{path} is cut short or damaged: {error}. Export the series again, or take the file "
            "out."
        ) from error
    raise DataError(
        f'{path} is compressed ({unread}), which needs pip install "aberra[dicom]"; or export the '
        "series uncompressed."
    )
