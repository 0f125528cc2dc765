"""What can be shown, listed once at the start; afterwards only numbers lead to files."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from aberra.data.mri.files import FINDINGS, MAP, SEGMENTATION, find_volumes, stem
from aberra.data.mri.nifti import ENDINGS, is_nifti
from aberra.data.sources.csv_check import long_cells
from aberra.errors import DataError
from aberra.files import refuse_special
from aberra.scoring.folder import SCORES
from aberra.viewer.held import Held

SCAN_COLUMNS = {"scan", "map", "segmentation", "score", "millilitres", "error"}
PIECE = ("millilitres", "x", "y", "z", "p_value")
LONGEST_LIST, MOST_PIECES = 1 << 18, 50  # bytes and lines of a list of findings that are shown
TABLE_ENDINGS = (".csv", ".parquet")
PageKind = Literal["scans", "table", "model", "report"]


@dataclass(frozen=True)
class ListedScan:
    """One line of the list of scans; files are positions in `Catalogue.files`."""

    name: str
    scan: int | None = None
    map: int | None = None
    mask: int | None = None
    score: float | None = None
    millilitres: float | None = None
    error: str = ""
    findings: int | None = None


@dataclass(frozen=True)
class ListedPage:
    """One page: all scans together, one table, one model or one report."""

    kind: PageKind
    title: str
    file: int | None = None


@dataclass
class Catalogue:
    """Everything that the server may show.

    Parameters
    ----------
    root : Path
        The folder that was given, or that of the file; marks are kept here.
    files : list of Held
        Every file that may be read. A request names a position in this list, never a path.
    items : list of ListedPage
        The pages, most interesting first.
    scans : list of ListedScan
        Highest score first.
    remarks : list of str
        What was left out, and why.
    """

    root: Path
    files: list[Held] = field(default_factory=list)
    items: list[ListedPage] = field(default_factory=list)
    scans: list[ListedScan] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, path: Path | None, root: Path) -> int | None:
        """Return the number of a file; None if there is none or it leads out of its folder."""
        if path is None:
            return None
        held = Held(path, root)
        if not held.inside:
            self.remarks.append(f"{path.name} was left out: it is a link out of the folder.")
            return None
        self.files.append(held)
        return len(self.files) - 1


def catalogue(target: Path, scans: Path | None = None, pattern: str = "*") -> Catalogue:
    """List what a folder or a file has to show; no volume is read.

    Parameters
    ----------
    target : Path
        A folder (results of `aberra score`, or any scans), a table of scores, a model, a report.
    scans : Path, optional
        Where the scans themselves are, if not in the folder of the results.
    pattern : str, default="*"
        What the names of scans look like, where no table of scores lists them.

    Returns
    -------
    catalogue : Catalogue

    Raises
    ------
    DataError
        If there is nothing to show; the message says what would be.
    """
    if scans is not None and not scans.is_dir():
        raise DataError(f"There is no folder {scans}. Give --scans the folder of the scans.")
    if target.is_dir():
        return _of_folder(target.resolve(), None if scans is None else scans.resolve(), pattern)
    if not target.exists():
        raise DataError(f"There is no {target}. Give a folder, a table, a model or a report.")
    refuse_special(target)
    return _of_file(target)


def _of_file(target: Path) -> Catalogue:
    kind = page_kind(target)
    if kind is None:
        raise DataError(
            f"The viewer cannot show {target}. Give a folder of scans or results, a "
            "table of scores (.csv, .parquet), a model (.aberra) or a report (.html)."
        )
    whole = target.resolve()  # the file was named by the person, so a link is fine
    if kind == "table" and whole.name == SCORES and _lists_scans(whole):
        return _of_folder(whole.parent, None, "*")
    found = Catalogue(whole.parent)
    found.items.append(ListedPage(kind, target.name, found.add(whole, found.root)))
    return found


def page_kind(path: Path) -> PageKind | None:
    """Return what a file's name says that it is."""
    if path.name.endswith(TABLE_ENDINGS):
        return "table"
    if path.name.endswith(".aberra"):
        return "model"
    return "report" if path.name.endswith((".html", ".htm")) else None


def _of_folder(root: Path, scans: Path | None, pattern: str) -> Catalogue:
    found = Catalogue(root)
    table = root / SCORES
    if Held(table, root).inside and _lists_scans(table):
        rows = _listed_scans(found, table, scans or root)
    else:
        rows = _unlisted_scans(found, scans or root, pattern)
    found.scans = sorted(rows, key=lambda s: (s.score is None, -(s.score or 0.0), s.name))
    if found.scans:
        found.items.append(ListedPage("scans", "Scans"))
    for path in sorted(p for p in root.iterdir() if p.is_file() and not p.name.startswith(".")):
        kind = page_kind(path)
        if kind is None or (kind == "table" and not _is_table(path)):
            continue
        number = found.add(path, root)
        if number is not None:
            found.items.append(ListedPage(kind, path.name, number))
    if not found.items:
        raise DataError(
            f"{root} has nothing to show: no scan (.nii, .nii.gz, DICOM series), no table of "
            "scores, no model and no report. Give the folder that aberra score wrote."
            + "".join(f" {remark}" for remark in found.remarks[:1])
        )
    return found


def _header(path: Path, errors: str = "strict") -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8-sig", errors=errors) as file, long_cells():
            return next(csv.reader(file), [])
    except (OSError, ValueError, csv.Error):
        return []


def _lists_scans(path: Path) -> bool:
    """Say whether a file is a list of scans, whose names may not be UTF-8."""
    return path.is_file() and set(_header(path, "surrogateescape")) >= SCAN_COLUMNS


def _is_table(path: Path) -> bool:
    """Say whether a file is a table of row scores, as far as its name or first line tells."""
    if path.name.endswith(".parquet"):
        return True
    header = _header(path)
    return "score" in header and not set(header) >= SCAN_COLUMNS


def _listed_scans(found: Catalogue, table: Path, scans: Path) -> Iterator[ListedScan]:
    """Yield the scans that a table of scores lists."""
    text = table.open(newline="", encoding="utf-8-sig", errors="surrogateescape")
    with text, long_cells():
        rows = list(csv.DictReader(text))
    for row in rows:
        given = row["scan"] or ""
        yield ListedScan(
            name=PurePosixPath(given.replace("\\", "/")).as_posix(),
            scan=_first(found, given, (scans, found.root)),
            map=_first(found, row["map"], (found.root,)),
            mask=_first(found, row["segmentation"], (found.root,)),
            score=_finite(row["score"]),
            millilitres=_finite(row["millilitres"]),
            error=row["error"] or "",
            findings=_findings(found, row["map"]),
        )


def _first(found: Catalogue, given: str | None, roots: Iterable[Path]) -> int | None:
    """Return the number of the first volume of that name; None if no folder has it."""
    if not given:
        return None
    there = [(root / given, root) for root in roots if _exists(root / given)]
    fit = [(path, root) for path, root in there if path.is_dir() or is_nifti(path)]
    inside = [(path, root) for path, root in fit if Held(path, root).inside]
    return found.add(*(inside or fit)[0]) if fit else None


def _findings(found: Catalogue, map_name: str | None) -> int | None:
    """Return the number of the list of findings beside a map."""
    if not map_name:
        return None
    place = found.root / map_name
    beside = place.parent / (stem(place).removesuffix(MAP) + FINDINGS)
    return found.add(beside, found.root) if _exists(beside) and beside.is_file() else None


def _exists(path: Path) -> bool:
    """Say whether there is something; a list may hold names that no file can have."""
    try:
        return path.exists()
    except OSError:
        return False


def _finite(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _unlisted_scans(found: Catalogue, scans: Path, pattern: str) -> Iterator[ListedScan]:
    """Yield the scans of a folder, with the maps of the same name where there are any."""
    maps = _beside(found.root, MAP)
    masks = _beside(found.root, SEGMENTATION)
    try:
        volumes = find_volumes(scans, pattern)
    except DataError:  # there may still be maps without scans
        volumes = []
    for path in volumes:
        key = _key(path.relative_to(scans))
        number = found.add(path, scans)
        if number is not None:
            name = path.relative_to(scans).as_posix()
            yield _scan(found, name, number, maps.pop(key, None), masks.get(key))
    for key in sorted(maps):
        yield _scan(found, key, None, maps[key], masks.get(key))


def _scan(
    found: Catalogue, name: str, scan: int | None, map_path: Path | None, mask_path: Path | None
) -> ListedScan:
    name_of_map = None if map_path is None else map_path.relative_to(found.root).as_posix()
    return ListedScan(
        name,
        scan,
        found.add(map_path, found.root),
        found.add(mask_path, found.root),
        findings=_findings(found, name_of_map),
    )


def _beside(root: Path, suffix: str) -> dict[str, Path]:
    paths = (p for ending in ENDINGS for p in root.rglob(f"*{suffix}{ending}"))
    return {
        _key(p.relative_to(root)).removesuffix(suffix): p
        for p in paths
        if not p.name.startswith(".")
    }


def _key(path: Path) -> str:
    return (path.parent / stem(path)).as_posix()


def listed_findings(held: Held) -> list[dict[str, float | None]]:
    """Return what was flagged in a scan: millilitres, place in mm, and p-value of each piece."""
    file, _ = held.open()
    with file:
        text = file.read(LONGEST_LIST).decode("utf-8", errors="replace")
    with long_cells():
        rows = list(csv.DictReader(text.splitlines()))
    read = [{name: _finite(row.get(name)) for name in PIECE} for row in rows]
    placed = [row for row in read if None not in (row["x"], row["y"], row["z"])]
    return placed[:MOST_PIECES]
