"""A DICOM series as one NIfTI volume in memory, because the page reads nothing else."""

from __future__ import annotations

from aberra.data.mri.files import read_volume
from aberra.errors import DataError
from aberra.extras import need
from aberra.viewer.held import Held


def series_as_nifti(held: Held) -> bytes:
    """Return a DICOM folder as the bytes of a NIfTI file.

    Parameters
    ----------
    held : Held
        The folder; a link in it that leads out of the root is refused.

    Returns
    -------
    data : bytes
    """
    folder = held.real()
    for path in folder.iterdir():
        if not Held(path, held.root).inside:
            raise DataError(f"{path.name} is a link that leads out of the folder. Remove it.")
    scan = read_volume(folder)
    nib = need("nibabel", "mri", "Reading scans")
    data: bytes = nib.Nifti1Image(scan.array, scan.affine).to_bytes()
    return data
