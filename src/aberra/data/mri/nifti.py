"""NIfTI files: scans and masks in, maps out."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.volume import Volume, check_kind, check_voxels, direction_matrix
from aberra.errors import DataError
from aberra.extras import need
from aberra.files import reading, refuse_special, replacing

ENDINGS = (".nii", ".nii.gz")
REPAIR = "Copy it again from where it came from, or leave it out."
DEFLATE = 1032  # gzip makes nothing smaller than by this factor
FREESURFER = (".mgz", ".mgh")
PACKED = (".gz", ".mgz")
REST, PIECE = 1 << 26, 1 << 20  # bytes that may follow the voxels, and how many are read at once
AT_ONCE = 1 << 25  # voxels of a large file that are held in its own precision
PAIRED, HEADERS = ".img", (".hdr", ".HDR")  # Analyze, and NIfTI in two files


def is_nifti(path: Path) -> bool:
    """Say whether a file is called as NIfTI files are, in any case, or as other scans we read.

    These are FreeSurfer's, and Analyze: an .img file with a header of the same name beside it.
    """
    name = path.name.lower()
    if name.endswith(PAIRED):
        return any(path.with_suffix(ending).is_file() for ending in HEADERS)
    return name.endswith((*ENDINGS, *FREESURFER))


def read_nifti(path: str | Path, axes: str | None = None) -> Volume:
    """Read one scan.

    Parameters
    ----------
    path : path
        A `.nii` or `.nii.gz` file, FreeSurfer's `.mgz` or `.mgh`, or the `.img` of a pair of
        files. Analyze does not say how the head lies, so it needs `axes`.
    axes : str, optional
        Where the array axes really point, such as "SPR", if the header is wrong or silent.

    Returns
    -------
    scan : Volume
        Intensities with the file's slope applied, in float32.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aberra.data.mri.nifti import read_nifti, write_nifti
    >>> from aberra.data.mri.volume import Volume
    >>> scan = Volume(np.arange(24.0).reshape(2, 3, 4), np.diag([2.0, 2.0, 3.0, 1.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_nifti(Path(folder) / "scan.nii.gz", scan.array, scan)
    ...     read_nifti(path).directions
    'RAS'
    """
    source = Path(path)
    if axes is not None:
        direction_matrix(axes)  # a wrong argument is not the file's fault
    with _opened(source) as (image, packed), reading(source, REPAIR):
        check_kind(image.get_data_dtype(), str(source))
        shape = image.shape
        while len(shape) > 3 and shape[-1] == 1:  # some tools write a time axis of length one
            shape = shape[:-1]
        if len(shape) != 3:
            raise DataError(
                f"{source} has shape {image.shape}: {len(shape)} dimensions instead of three. Save "
                "the time point, echo or direction that is meant as a file of its own."
            )
        _check_header(image.header, source, axes)
        array = _voxels(image, packed, source).reshape(shape)
        space = int(image.header["sform_code"]) or int(image.header["qform_code"]) or 1
        return Volume(array, np.asarray(image.affine, np.float64), source, axes, space)


def read_mask(path: str | Path, scan: Volume, *, may_be_empty: bool = False) -> NDArray[np.bool_]:
    """Read a mask on the grid of a scan; every voxel above zero belongs to it.

    The mask of a brain holds something; that of a lesion may be empty, and then says that there is
    none.
    """
    source = Path(path)
    with _opened(source) as (image, packed), reading(source, REPAIR):
        check_kind(image.get_data_dtype(), str(source))
        array = _voxels(image, packed, source)
    check_mask(array, scan, str(source), may_be_empty)
    if not np.allclose(image.affine, scan.affine, atol=1e-2):
        raise DataError(
            f"{source} has the shape of {scan.where} but lies elsewhere: their affines differ by "
            f"up to {np.abs(image.affine - scan.affine).max():.3g}. Resample the mask to the scan."
        )
    return np.asarray(array.reshape(scan.array.shape) > 0)


def check_mask(
    mask: NDArray[Any], scan: Volume, where: str = "The mask", may_be_empty: bool = False
) -> None:
    """Raise an error if a mask does not cover the voxels of a scan, or covers none of it."""
    shape = mask.shape[:3] if mask.shape[3:] in ((), (1,)) else mask.shape
    if shape != scan.array.shape:
        raise DataError(
            f"{where} has shape {mask.shape}, but {scan.where} has {scan.array.shape}. "
            "A mask has the grid of its scan; resample it, or let Aberra find the brain "
            "(mask='auto')."
        )
    if not may_be_empty and not (mask > 0).any():
        raise DataError(f"{where} is empty: no voxel is above zero.")


def write_nifti(path: str | Path, array: NDArray[Any], like: Volume, description: str = "") -> Path:
    """Write an array on the grid of a scan: same shape, same affine, same world.

    The file appears under its name when it is complete, never before.

    Parameters
    ----------
    path : path
        Where to, ending in `.nii` or `.nii.gz`. Missing folders are made.
    array : ndarray of the shape of `like`
        Truth values are written as 0 and 1, numbers as float32.
    like : Volume
        The scan.
    description : str
        Goes into the header, cut after 79 characters.

    Returns
    -------
    path : Path
    """
    target = Path(path)
    ending = next((e for e in reversed(ENDINGS) if target.name.endswith(e)), None)
    if ending is None:
        raise ValueError(f"{target} must end in .nii or .nii.gz.")
    if array.shape != like.array.shape:
        raise ValueError(f"Array of shape {array.shape} for a scan of shape {like.array.shape}.")
    nib = need("nibabel", "mri", "Reading scans")
    kind = np.uint8 if array.dtype == np.bool_ else np.float32
    image = nib.Nifti1Image(array.astype(kind, copy=False), like.affine)
    image.set_sform(like.affine, code=like.space)
    try:  # programs disagree on which of the two to read; a sheared grid has no qform
        image.set_qform(like.affine, code=like.space, strip_shears=False)
    except nib.spatialimages.HeaderDataError:
        image.set_qform(None, code=0)
    image.header.set_xyzt_units("mm")
    image.header["descrip"] = description.encode("ascii", "replace")[:79]
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as temporary:
        nib.save(image, temporary)
    return target


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, list[gzip.GzipFile]]]:
    """Yield an image whose voxels are still in its files, and those files that gzip packed."""
    if not path.exists():
        raise DataError(f"There is no file {path}.")
    refuse_special(path)
    nib = need("nibabel", "mri", "Reading scans")
    with ExitStack() as held:
        try:
            image, packed = _loaded(nib, path, held)
            image = _as_nifti(nib, image, path)
        except DataError:
            raise
        except Exception as error:  # a damaged header raises nearly anything
            raise DataError(f"{path} is no NIfTI file, or a damaged one: {error}.") from error
        if not isinstance(image, nib.Nifti1Pair):  # NIfTI-2 derives from it
            kind = type(image).__name__
            raise DataError(f"{path} is a file of type {kind}. Convert it to NIfTI.")
        yield image, packed


def _loaded(nib: Any, path: Path, held: ExitStack) -> tuple[Any, list[gzip.GzipFile]]:
    """Return an image and its packed files, which stay open until their checksums were reached."""
    if path.name.lower().endswith(".mgz"):  # whose header ends behind the voxels
        image, kind = None, nib.MGHImage
        files = kind.filespec_to_file_map(path)
    else:
        image = nib.load(path)
        kind, files = type(image), dict(image.file_map)
    packed = []
    for part, file in files.items():
        if str(file.filename).lower().endswith(PACKED):
            stream = held.enter_context(gzip.GzipFile(file.filename))
            packed.append(stream)
            files[part] = nib.FileHolder(file.filename, stream)
    return (kind.from_file_map(files, mmap=False) if packed else image), packed


def _as_nifti(nib: Any, image: Any, path: Path) -> Any:
    """Return FreeSurfer's and Analyze's images with NIfTI's header; others as they are."""
    if not isinstance(image, nib.Nifti1Pair):
        _check_size(image, path)  # nibabel looks at some voxels already when it makes a header
    if isinstance(image, nib.MGHImage):
        return nib.Nifti1Image(image.dataobj, image.affine)
    if isinstance(image, nib.AnalyzeImage) and not isinstance(image, nib.Nifti1Pair):
        plain = nib.Nifti1Image(image.dataobj, image.affine)
        plain.set_sform(None, 0)
        plain.set_qform(None, 0)
        return plain
    return image


def _voxels(image: Any, packed: list[gzip.GzipFile], path: Path) -> NDArray[np.float32]:
    _check_size(image, path)
    try:
        array = _in_single(image)
        for stream in packed:
            _read_rest(stream, path)
    except DataError:
        raise
    except Exception as error:  # the decompressor and NumPy have errors of their own
        raise DataError(
            f"{path} is cut short or damaged ({error}). Copy it again from where it came from."
        ) from error
    return array


def _in_single(image: Any) -> NDArray[np.float32]:
    """Return the voxels in single precision, those of a large file some planes at a time.

    Read at once, voxels of double precision would take three times as much memory on the way.
    """
    held, shape = image.dataobj, image.shape
    axis = min(2, len(shape) - 1)  # a time axis of length one may follow
    planes = shape[axis]
    step = max(1, AT_ONCE * planes // max(1, math.prod(shape)))
    if step >= planes:
        return np.asarray(image.get_fdata(dtype=np.float32, caching="unchanged"))
    array = np.empty(shape, np.float32, order="F")
    for k in range(0, planes, step):
        here = (*[slice(None)] * axis, slice(k, k + step))
        array[here] = held._get_scaled(dtype=np.float32, slicer=here)  # as get_fdata does
    return array


def _read_rest(stream: gzip.GzipFile, path: Path) -> None:
    """Read what is behind the voxels: gzip compares the checksum only at the end of a file."""
    last = stream.tell() + REST
    while stream.read(PIECE):
        if stream.tell() > last:
            raise DataError(
                f"{path} is damaged: more than {REST:,} bytes follow its voxels. Copy it again "
                "from where it came from."
            )


def _check_size(image: Any, path: Path) -> None:
    """Refuse what the file cannot hold, before there is memory for it."""
    check_voxels(image.shape, str(path))
    promised = math.prod(image.shape) * image.get_data_dtype().itemsize
    most = path.stat().st_size * (DEFLATE if path.name.lower().endswith(PACKED) else 1)
    if promised > most:
        raise DataError(
            f"{path} is cut short or damaged (its header promises {promised:,} bytes of voxels, "
            f"but it has room for {most:,}). Copy it again from where it came from."
        )


def _check_header(header: Any, path: Path, axes: str | None) -> None:
    unit = header.get_xyzt_units()[0]
    if unit not in ("mm", "unknown"):
        raise DataError(f"{path} gives its voxel size in {unit}. Convert it to millimetres.")
    if axes is None and not (header["sform_code"] or header["qform_code"]):
        raise DataError(
            f"{path} does not say how the head lies (sform and qform codes are 0). Say where its "
            "array axes point, for instance axes='RAS'."
        )
