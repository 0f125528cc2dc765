"""What a path holds: a table, images, or volumes; and how to read it, whole or piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from aberra.data.sources.arrays import ARRAYS, array_dimensions
from aberra.data.sources.formats import MORE_TABLES
from aberra.data.sources.images import PICTURES, is_picture
from aberra.data.sources.standard_input import STDIN
from aberra.errors import DataError
from aberra.files import refuse_special

GLOB = "*?["  # what makes a pattern of a path

Kind = Literal["table", "images", "volumes"]

READABLE = (
    "Aberra reads tables (.csv, .tsv, .parquet, .feather, .xlsx, .jsonl, .json, packed or not, a "
    "folder of them, .npy, .npz), images (a folder of .png, .jpg, .tif or .bmp files, or an array "
    "in .npy or .npz) and volumes (.nii, .nii.gz, or a folder of NIfTI files or DICOM series)."
)


def kind_of_path(path: str | Path) -> Kind:
    r"""Return what a file or folder holds.

    Parameters
    ----------
    path : path
        A file or folder; "-" for standard input, which brings a table; or a pattern such as
        "big/*.parquet", which stands for the files of a table.

    Returns
    -------
    kind : {"table", "images", "volumes"}
        Of a folder: volumes if there is a NIfTI file or a DICOM series anywhere below it, else
        images if there is a picture, else a table if there is a file of rows.

    Raises
    ------
    DataError
        If there is no such path, or it holds nothing that Aberra reads.

    Examples
    --------
    >>> import tempfile
    >>> from aberra.data.sources import kind_of_path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "rows.csv"
    ...     _ = file.write_text("a,b\n1,2\n")
    ...     kind_of_path(file)
    'table'
    """
    if str(path) == STDIN:
        return "table"
    source = Path(path)
    if not source.exists() and any(mark in str(path) for mark in GLOB):
        return "table"  # a pattern; whoever reads it says if nothing matches
    if not source.exists():
        raise DataError(f"There is no file or folder {source}. Check the path.")
    refuse_special(source)
    return _kind_of_folder(source) if source.is_dir() else _kind_of_file(source)


def _kind_of_file(path: Path) -> Kind:
    name = path.name.lower()
    if name.endswith(MORE_TABLES):
        return "table"
    if name.endswith(ARRAYS):
        return "table" if array_dimensions(path) <= 2 else "images"
    return _kind_of_other_file(path, name)


def _kind_of_other_file(path: Path, name: str) -> Kind:
    from aberra.data.mri.dicom import is_dicom
    from aberra.data.mri.nifti import is_nifti

    if is_nifti(path):
        return "volumes"
    if name.endswith(PICTURES):
        return "images"
    if is_dicom(path):
        raise DataError(f"{path} is one file of a DICOM series. Give the folder of the series.")
    raise DataError(f"{path} is of no known type. {READABLE}")


def _kind_of_folder(folder: Path) -> Kind:
    from aberra.data.mri.dicom import is_dicom
    from aberra.data.mri.nifti import is_nifti

    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    if any(is_nifti(path) for path in files):
        return "volumes"
    pictures = [path for path in files if is_picture(path)]
    if any(is_dicom(path) for path in files if not is_picture(path)):
        return "volumes"  # a picture beside DICOM series is the logo of the disc they came on
    if pictures:
        return "images"
    if any(path.name.lower().endswith(MORE_TABLES) for path in files):
        return "table"
    raise DataError(f"Nothing in the folder {folder} can be read. {READABLE}")
