"""Pictures in a folder, brought to one size; Pillow reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.errors import DataError
from aberra.extras import need
from aberra.files import reading

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "PPM")  # what Pillow may take them for
OURS = "_anomaly.png"  # what `aberra score` writes


@dataclass(frozen=True)
class ImageShape:
    """What every picture is brought to.

    Parameters
    ----------
    height, width : int
        In pixels.
    channels : int
        1 for grey, 3 for colour.
    deep : bool
        Whether intensities have more than 8 bits, and are kept as they are.
    """

    height: int
    width: int
    channels: int
    deep: bool = False

    def keywords(self) -> dict[str, Any]:
        """Return the fields, for a recipe."""
        return asdict(self)


def is_picture(path: Path) -> bool:
    """Say whether a name is that of a picture that is not one of Aberra's own maps."""
    name = path.name.lower()
    return name.endswith(PICTURES) and not name.endswith(OURS) and not name.startswith(".")


def find_images(path: str | Path) -> list[Path]:
    """Return the pictures below a folder sorted by path, or the one picture itself."""
    root = Path(path)
    if root.is_file():
        return [root]
    found = sorted(p for p in root.rglob("*") if p.is_file() and is_picture(p))
    if not found:
        raise DataError(f"There is no picture below {root}. Give a folder of .png or .jpg files.")
    return found


def shape_for(
    paths: Sequence[Path], longest: int, errors: dict[Path, str] | None = None
) -> ImageShape:
    """Choose one shape for all pictures: that of most of them, reduced to `longest` pixels a side.

    Parameters
    ----------
    paths : sequence of Path
    longest : int
        Largest side that the model looks at; larger pictures would only cost memory.
    errors : dict, optional
        Takes the pictures that cannot be read, and why; without it, the first one is an error.

    Returns
    -------
    shape : ImageShape
        Colour if any picture has colour.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    modes = set()
    for path in paths:
        try:
            with _open(path) as picture:
                sizes[picture.height, picture.width] += 1
                modes.add(picture.mode)
        except DataError as error:
            if errors is None:
                raise
            errors[path] = str(error)
    if not sizes:
        raise DataError(f"No picture can be read. {next(iter((errors or {}).values()), '')}")
    (height, width), _ = sizes.most_common(1)[0]
    shrink = min(1.0, longest / max(height, width))
    deep = all(_is_deep(mode) for mode in modes)
    grey = deep or modes <= {"L", "1", "LA", "I;16"}
    side = (max(1, round(height * shrink)), max(1, round(width * shrink)))
    return ImageShape(*side, channels=1 if grey else 3, deep=deep)


def read_images(paths: Sequence[Path], shape: ImageShape) -> NDArray[Any]:
    """Read pictures and bring them to one shape.

    Returns
    -------
    images : ndarray of shape (n, channels, height, width)
        uint8, or float32 where the shape is deep.
    """
    return np.stack([_read(path, shape) for path in paths])


def read_usable(
    paths: Sequence[Path], shape: ImageShape, errors: dict[Path, str]
) -> tuple[NDArray[Any], list[Path]]:
    """Read the pictures that can be read; note in `errors` why the others cannot.

    Returns
    -------
    images : ndarray of shape (n, channels, height, width)
    used : list of Path
        The pictures that these are.
    """
    images, used = [], []
    for path in paths:
        try:
            if path not in errors:
                images.append(_read(path, shape))
                used.append(path)
        except DataError as error:
            errors[path] = str(error)
    if not used:
        raise DataError(f"No picture can be read. {next(iter(errors.values()))}")
    return np.stack(images), used


def size_of(path: Path) -> tuple[int, int]:
    """Return height and width of a picture as it is."""
    with _open(path) as picture:
        return picture.height, picture.width


def _read(path: Path, shape: ImageShape) -> NDArray[Any]:
    mode = "F" if shape.deep else ("L" if shape.channels == 1 else "RGB")
    with _open(path) as picture, reading(path, "It is damaged: replace it or leave it out."):
        if _is_deep(picture.mode) and not shape.deep:
            raise DataError(
                f"{path} has more than 8 bits a pixel, unlike the pictures that the model was "
                "fitted on. Convert it."
            )
        pixels = picture.convert(mode)
        if (pixels.height, pixels.width) != (shape.height, shape.width):
            pil = need("PIL.Image", "images", "Reading pictures")
            pixels = pixels.resize((shape.width, shape.height), pil.Resampling.BOX)
        array = np.asarray(pixels)
    return array[None] if array.ndim == 2 else np.moveaxis(array, -1, 0)


def _is_deep(mode: str) -> bool:
    return mode.startswith(("I", "F"))


def _open(path: Path) -> Any:
    pil = need("PIL.Image", "images", "Reading pictures")
    try:
        # With a list: an EPS file of another name would start Ghostscript.
        return pil.open(path, formats=FORMATS)
    except Exception as error:  # a damaged header raises nearly anything
        raise DataError(f"{path} is no picture that can be read: {error}.") from error
