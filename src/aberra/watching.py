"""Looking in on a training: its losses and a few restored images, in a folder, as it goes.

A training asks `open_watch`; there is none unless a `watching` block is open around it.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.errors import DataError
from aberra.extras import need
from aberra.files import write_atomically

LOSSES, PICTURE = "losses.csv", "restored.png"
HEAD = "training,step,seconds,loss,value\n"
SHOWN = 4  # images in the picture
WIDE = 160  # pixels a side at which an image is shown at least


@dataclass
class Watch:
    """Writes what a training does into a folder.

    Parameters
    ----------
    folder : Path
    seconds : float
        Time between two pictures.
    board : object, optional
        TensorBoard's writer.
    """

    folder: Path
    seconds: float
    board: Any = None
    training: int = 0
    _started: float = field(default_factory=time.monotonic)
    _next: float = 0.0

    def begin(self) -> None:
        """Say that a training begins; an ensemble has several of them."""
        self.training += 1
        self._next = 0.0

    def losses(self, step: int, values: Mapping[str, float]) -> None:
        """Add the losses of a step to the file."""
        seconds = time.monotonic() - self._started
        with (self.folder / LOSSES).open("a") as file:
            for name, value in values.items():
                file.write(f"{self.training},{step},{seconds:.1f},{name},{value:.6g}\n")
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(f"training {self.training}/{name}", value, step)

    def wants_picture(self, last: bool) -> bool:
        """Say whether it is time for a picture: at first, now and then, and at the end."""
        return last or time.monotonic() >= self._next

    def picture(self, step: int, images: NDArray[Any], restored: NDArray[Any]) -> None:
        """Draw images (n, c, h, w) in [-1, 1], what became of them, and the difference."""
        sheet = side_by_side(images[:SHOWN], restored[:SHOWN])
        pillow = need("PIL.Image", "images", "Watching a training")
        text = io.BytesIO()
        pillow.fromarray(sheet).save(text, "PNG")
        write_atomically(self.folder / PICTURE, text.getvalue())
        if self.board is not None:
            name = f"training {self.training}/restored"
            self.board.add_image(name, sheet, step, dataformats="HWC")
        self._next = time.monotonic() + self.seconds


def side_by_side(images: NDArray[Any], restored: NDArray[Any]) -> NDArray[np.uint8]:
    """Return one row for each image: itself, restored, and how far apart they are."""
    restored = restored.clip(-1, 1)
    apart = 2 * np.abs(images - restored).clip(0, 1) - 1
    rows = [np.concatenate(three, axis=2) for three in zip(images, restored, apart, strict=True)]
    sheet = np.moveaxis(np.concatenate(rows, axis=1), 0, -1)
    times = max(1, -(-WIDE // images.shape[3]))
    large = sheet.repeat(times, axis=0).repeat(times, axis=1)
    grey = (127.5 * (large + 1)).round().astype(np.uint8)
    return grey if grey.shape[2] == 3 else grey[:, :, :1].repeat(3, axis=2)


_watch: ContextVar[Watch | None] = ContextVar("aberra_watch", default=None)


def open_watch() -> Watch | None:
    """Return the watch of the block that is open, if one is."""
    return _watch.get()


@contextmanager
def watching(folder: str | Path, seconds: float = 30.0) -> Iterator[None]:
    """Let every training of a localiser inside the block show what it does.

    The folder gets `losses.csv`, a line for each loss every 20 steps, and `restored.png`, which is
    renewed: a few training images, what the network makes of them by now, and the difference.
    Where TensorBoard is installed, it gets the same.

    Parameters
    ----------
    folder : path
        Is made where there is none. Earlier losses in it are kept, and new ones follow.
    seconds : float, default=30.0
        Time between two pictures.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from aberra import SpatialAE
    >>> from aberra.watching import watching
    >>> images = np.random.default_rng(0).random((16, 1, 16, 16))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with watching(folder):
    ...         _ = SpatialAE(train_steps=2, batch_size=4, random_state=0).fit(images)
    ...     sorted(file.name for file in Path(folder).glob("*.*") if "tfevents" not in file.name)
    ['losses.csv', 'restored.png']
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        if not (place / LOSSES).exists():
            (place / LOSSES).write_text(HEAD)
    except OSError as error:
        raise DataError(f"{place} cannot hold what a training shows: {error}.") from error
    board = _board(place)
    token = _watch.set(Watch(place, seconds, board))
    try:
        yield
    finally:
        _watch.reset(token)
        if board is not None:
            board.close()


def _board(folder: Path) -> Any:
    """Return TensorBoard's writer, where it is installed."""
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder))
