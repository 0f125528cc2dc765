"""What is known about a public data set, before anything of it is fetched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aberra.data.archives import Unpacking
from aberra.data.transfer import RemoteFile

DataKind = Literal["table", "images", "scans"]


@dataclass(frozen=True)
class DataSet:
    """A named public data set.

    Parameters
    ----------
    name : str
    kind : {"table", "images", "scans"}
        A table has X and y; images have a training and a test part; scans are a folder of volumes
        or an npz file of slices.
    what : str
        What it is, in a few words.
    shape : tuple of int
        Rows and columns; images, channels, height and width; or the number of subjects.
    licence, citation : str
        "restricted" means: to be evaluated on, not to be passed on.
    prepared : tuple of str
        Files or folders below the data folder that count as the set, first match first.
    reduced : tuple of str
        Files that hold a part of it; used when nothing else is there.
    files : tuple of RemoteFile
        The public originals; empty if no script may fetch them.
    original : str
        What the originals are read from: one of them, or their folder.
    anomalies : int, optional
        Rows of a table that are anomalies.
    unpacking : Unpacking, optional
        What to take out of the original, an archive.
    page : str
        Where a person reads more, and gets what no script may fetch.
    by_hand : str
        What a person has to do to get it; empty if a download does.
    """

    name: str
    kind: DataKind
    what: str
    shape: tuple[int, ...]
    licence: str
    citation: str
    page: str
    prepared: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()
    original: str = ""
    anomalies: int | None = None
    unpacking: Unpacking | None = None
    by_hand: str = ""

    @property
    def group(self) -> str:
        """The folder that it lies in, below the data folder."""
        return (self.original or self.prepared[0]).partition("/")[0]

    @property
    def checked(self) -> str:
        """What tells the right download from a wrong one."""
        if not self.files:
            return "by hand"
        if all(file.sha256 for file in self.files):
            return "sha256"
        return "md5" if all(file.known for file in self.files) else "unverified"

    @property
    def size(self) -> int | None:
        """Bytes to download, if published."""
        sizes = [file.size for file in self.files]
        return sum(s for s in sizes if s) if sizes and all(sizes) else None
