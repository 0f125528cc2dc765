"""A scan of another format as one NIfTI volume in memory, because the page reads nothing else."""

from __future__ import annotations

from pathlib import Path

from aberra.data.mri.files import read_volume
from aberra.data.mri.nifti import ENDINGS, HEADERS
from aberra.errors import DataError
from aberra.extras import need
from aberra.viewer.held import Held


def is_for_the_page(path: Path) -> bool:
    """Say whether the page can read a file as it is."""
    return not path.is_dir() and path.name.lower().endswith(ENDINGS)


def as_nifti(held: Held) -> bytes:
    """Return a DICOM folder, or a scan of FreeSurfer or Analyze, as the bytes of a NIfTI file.

    Parameters
    ----------
    held : Held
        The folder or file; a link beside it that leads out of the root is refused.

    Returns
    -------
    data : bytes
    """
    source = held.real()
    if not source.is_dir():
        file, _ = held.open()  # refuses what is not a regular file, or too large
        file.close()
    for path in _read_with(source):
        if not Held(path, held.root).inside:
            raise DataError(f"{path.name} is a link that leads out of the folder. Remove it.")
    scan = read_volume(source)
    nib = need("nibabel", "mri", "Reading scans")
    data: bytes = nib.Nifti1Image(scan.array, scan.affine).to_bytes()
    return data


def _read_with(source: Path) -> list[Path]:
    """Return the files that are read with a path: those of a series, or the header of a pair."""
    if source.is_dir():
        return list(source.iterdir())
    beside = (source.with_suffix(ending) for ending in HEADERS)
    return [path for path in beside if path.exists()]
