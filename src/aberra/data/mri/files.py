"""Which scans a folder holds, and how to read each."""

from __future__ import annotations

from pathlib import Path

from aberra.data.mri.dicom import is_dicom, read_dicom
from aberra.data.mri.nifti import FREESURFER, PAIRED, is_nifti, read_nifti
from aberra.data.mri.volume import Volume
from aberra.errors import DataError

MAP, SEGMENTATION, SCORED = "_anomaly", "_segmentation", "_scored"
FINDINGS = "_findings.csv"
PERCENTILE, DEVIATIONS = "_percentile", "_z"
OWN = (MAP, SEGMENTATION, SCORED, PERCENTILE, DEVIATIONS)
# How masks and label maps are called: by BIDS, and by habit.
MASKS = ("_mask", "_dseg", "_probseg", "_seg", "_lesion", "_label", "_labels", "_roi")
DESCRIPTION = "dataset_description.json"  # BIDS: what a folder holds
DERIVED = "derivatives"  # BIDS: what was computed from the scans


def read_volume(path: str | Path, axes: str | None = None) -> Volume:
    """Read a scan: a NIfTI file, a folder that holds one DICOM series, or an enhanced DICOM file.

    Parameters
    ----------
    path : path
    axes : str, optional
        Where the array axes really point, such as "SPR", if the header is wrong or silent.

    Returns
    -------
    scan : Volume
    """
    source = Path(path)
    if source.is_dir():
        return read_dicom(source, axes=axes)
    if source.exists() and not is_nifti(source):
        if is_dicom(source):
            return read_dicom([source], axes=axes)
        raise DataError(f"{source} is not a NIfTI file. Convert it to NIfTI.")
    return read_nifti(source, axes)


def find_volumes(folder: str | Path, pattern: str = "*") -> list[Path]:
    """Return the scans below a folder, sorted by path.

    Parameters
    ----------
    folder : path
    pattern : str, default="*"
        What the name of a NIfTI file or of a DICOM folder must look like, such as "*_t1w.nii.gz".
        With "*", masks and label maps (names that end in _mask, _dseg, _seg and the like) and
        everything in a folder `derivatives` are passed over; another pattern takes what it names.

    Returns
    -------
    scans : list of Path
        NIfTI files, and folders with DICOM files directly in them. Aberra's own maps and
        segmentations are passed over.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"There is no folder {root}.")
    files = [p for p in root.rglob(pattern) if p.is_file() and _is_scan(p)]
    folders = [p for p in (root, *root.rglob(pattern)) if p.is_dir() and _is_series(p)]
    scans = sorted(files + folders)
    if pattern == "*":
        scans = [p for p in scans if not _is_derived(p, root)]
    if not scans:
        raise DataError(f"No NIfTI file and no DICOM series like {pattern!r} below {root}.")
    return scans


def stem(path: Path) -> str:
    """Return the name of a scan without its ending."""
    for ending in (".nii.gz", ".nii", PAIRED, *FREESURFER):
        if path.name.lower().endswith(ending):
            return path.name[: -len(ending)]
    return path.name


def _is_scan(path: Path) -> bool:
    return is_nifti(path) and not path.name.startswith(".") and not stem(path).endswith(OWN)


def _is_derived(path: Path, root: Path) -> bool:
    """Say whether a path is called as masks are, or lies where BIDS puts what was computed."""
    masks = path.is_file() and stem(path).lower().endswith(MASKS)
    return masks or DERIVED in path.relative_to(root).parts


def _is_series(folder: Path) -> bool:
    return any(is_dicom(path) for path in folder.iterdir() if path.is_file())
