"""Many scans in, training slices out, with memory for one scan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aberra.data.mri.brain import brain_mask
from aberra.data.mri.files import read_volume
from aberra.data.mri.nifti import read_mask
from aberra.data.mri.prepare import Preparation, prepare
from aberra.errors import DataError
from aberra.progress import advance

MaskOf = Callable[[Path], Path]


@dataclass(frozen=True, eq=False)
class CollectedSlices:
    """Slices of many scans, kept in a file.

    Parameters
    ----------
    images : ndarray of shape (n, 1, h, w), float32 in [0, 1]
        A memory map of the file. Changing it changes no file.
    sources : list of Path
        One for each slice.
    below_top : ndarray of shape (n,)
        Millimetres below the top of the brain.
    errors : dict
        Scans that were left out, and why.
    """

    images: NDArray[np.float32]
    sources: list[Path]
    below_top: NDArray[np.float64]
    errors: dict[Path, str]


def collect_slices(
    scans: Iterable[str | Path],
    output: str | Path,
    preparation: Preparation | None = None,
    *,
    mask: MaskOf | None = None,
    axes: str | None = None,
    on_error: Literal["raise", "skip"] = "raise",
) -> CollectedSlices:
    """Cut scans into training slices, with memory for one scan.

    Parameters
    ----------
    scans : iterable of paths
        Such as `find_volumes` returns.
    output : path
        The npy file to write.
    preparation : Preparation, optional
    mask : callable, optional
        From the path of a scan to that of its brain mask, which says where the slices are; the
        automatic mask by default.
    axes : str, optional
        Where the array axes of all scans really point, if headers are wrong.
    on_error : {"raise", "skip"}, default="raise"
        Whether a scan that cannot be used stops the run or is left out and listed in `errors`.

    Returns
    -------
    collected : CollectedSlices
    """
    recipe = Preparation() if preparation is None else preparation
    target, paths = Path(output), [Path(scan) for scan in scans]
    sources: list[Path] = []
    depths: list[NDArray[np.float64]] = []
    errors: dict[Path, str] = {}

    def slices(path: Path) -> tuple[bytes, NDArray[np.float64]]:
        scan = read_volume(path, axes)
        brain = brain_mask(scan) if mask is None else read_mask(mask(path), scan)
        images, grid = prepare(scan, brain, recipe)
        return images.astype("<f4").tobytes(), grid.below_top

    with target.open("wb") as file:
        _write_header(file, 0, recipe.size)
        for k, path in enumerate(paths):
            try:
                data, below_top = slices(path)
            except DataError as error:
                if on_error == "raise":
                    raise
                errors[path] = str(error)
                continue
            file.write(data)
            sources += [path] * len(below_top)
            depths.append(below_top)
            advance("slices", (k + 1) / len(paths), path.name)
        file.seek(0)
        _write_header(file, len(sources), recipe.size)
    if not sources:
        raise DataError(f"None of {len(paths)} scans could be used. {list(errors.values())[:1]}")
    return CollectedSlices(np.load(target, mmap_mode="c"), sources, np.concatenate(depths), errors)


def _write_header(file: Any, n: int, size: int) -> None:
    """Write the head of an npy file; NumPy leaves room in it for the first axis to grow."""
    head = {"descr": "<f4", "fortran_order": False, "shape": (n, 1, size, size)}
    np.lib.format.write_array_header_1_0(file, head)
