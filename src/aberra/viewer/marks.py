"""What a reviewer decided, in one small file beside the data."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from aberra.errors import DataError
from aberra.files import refuse_special, write_atomically
from aberra.locks import only_one

ReviewMark = Literal["accept", "reject"]
NAME = "aberra-marks.json"
MARKS_FORMAT = 1
MOST_BYTES = 1 << 27  # of a file of marks: more than a million


class Marks:
    """Accepted and rejected scans and rows, kept in `aberra-marks.json`.

    Every change reads the file, changes one mark and writes the file whole, under a lock. So two
    browsers, or two servers, on one folder keep each other's marks, and a killed server loses none.
    Where another folder, or a link to one, has taken the place of this one, nothing is kept.

    Parameters
    ----------
    folder : Path
        The folder of the data.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / NAME
        self._opened = _state(folder)

    def of(self, group: str) -> dict[str, ReviewMark]:
        """Return the marks of one page: name to mark.

        Parameters
        ----------
        group : str
            "scans", or the name of a table.

        Returns
        -------
        marks : dict
        """
        return {name: entry["mark"] for name, entry in self._read().get(group, {}).items()}

    def set(self, group: str, name: str, mark: ReviewMark | None) -> dict[str, ReviewMark]:
        """Set or, with None, take back one mark; return all marks of its page.

        Parameters
        ----------
        group, name : str
        mark : {"accept", "reject"} or None

        Returns
        -------
        marks : dict
        """
        self._refuse_another_folder()  # where not even a lock belongs
        try:
            with only_one(self.path):
                groups = self._read()
                entries = groups.setdefault(group, {})
                entries.pop(name, None)
                if mark is not None:
                    when = datetime.now(UTC).isoformat(timespec="seconds")
                    entries[name] = {"mark": mark, "when": when}
                held = {"format": MARKS_FORMAT, "marks": groups}
                text = json.dumps(held, indent=1, sort_keys=True)
                write_atomically(self.path, text.encode())
        except OSError as error:
            raise DataError(
                f"The mark was not saved: {error.strerror or error}. Check the permissions of the "
                f"folder {self.folder} and the space left on its disk."
            ) from error
        return {key: entry["mark"] for key, entry in entries.items()}

    def trouble(self) -> str:
        """Return why marks cannot be kept here, or nothing."""
        try:
            self._read()
        except DataError as error:
            return str(error)
        if os.access(self.folder, os.W_OK):
            return ""
        return (
            f"Marks cannot be saved: the folder {self.folder} is not writable. Change its "
            "permissions, or copy the results to a folder of yours."
        )

    def _refuse_another_folder(self) -> None:
        now = _state(self.folder)
        if self._opened is None or now is None or os.path.samestat(self._opened, now):
            return  # if it is gone, whoever opens a file in it will say so
        raise DataError(
            f"Marks cannot be saved: {self.folder} is not the folder that was opened; another one, "
            "or a link, has taken its place. Start aberra view again to see what is there now."
        )

    def _read(self) -> dict[str, dict[str, Any]]:
        self._refuse_another_folder()
        if self.path.is_symlink():  # writing would change a file elsewhere
            raise DataError(
                f"Marks cannot be saved: {NAME} is a link. Replace it with the file itself."
            )
        try:
            held = _json_in(self.path)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(
                f"{NAME} cannot be read ({error}). Move it away to start with no marks."
            ) from error
        if not _is_marks(held):
            raise DataError(
                f"{NAME} was not written by this viewer. Move it away to start with no marks."
            )
        return held["marks"]


def marks_in(path: Path) -> dict[str, dict[str, ReviewMark]]:
    """Return all marks in a file of the viewer: page to name to mark."""
    try:
        held = _json_in(path)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}. Give a file of marks.") from error
    if not _is_marks(held):
        raise DataError(f"{path} was not written by aberra view. Give its aberra-marks.json.")
    groups = held["marks"].items()
    return {group: {name: e["mark"] for name, e in marks.items()} for group, marks in groups}


def _json_in(path: Path) -> Any:
    refuse_special(path)
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 20} MB")
    return json.loads(path.read_bytes())


def _state(folder: Path) -> os.stat_result | None:
    try:
        return os.stat(folder)
    except OSError:
        return None


def _is_marks(held: Any) -> bool:
    return (
        isinstance(held, dict)
        and held.get("format") == MARKS_FORMAT
        and isinstance(held.get("marks"), dict)
        and all(
            isinstance(entries, dict)
            and all(
                isinstance(e, dict) and e.get("mark") in ("accept", "reject")
                for e in entries.values()
            )
            for entries in held["marks"].values()
        )
    )
