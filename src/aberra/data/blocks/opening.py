"""Sources of blocks: paths, folders, globs, Arrow and Ray datasets, arrays and memory maps."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
import pandas as pd

from aberra.data.blocks.given import library_of
from aberra.data.blocks.parts import ArrowPart, FilePart, FragmentPart, MemoryPart, Part
from aberra.data.blocks.source import SAMPLE_ROWS, Blocks
from aberra.data.sources import GLOB
from aberra.data.sources.arrow_frames import kind_of_type
from aberra.data.sources.formats import FEATHER, files_of_table, tell_of_links
from aberra.data.sources.staged import table_at, within_reach
from aberra.data.tables import kind_of
from aberra.errors import DataError
from aberra.files import check_file, reading
from aberra.words import count

OnError = Literal["stop", "skip"]

NOTHING = "__HIVE_DEFAULT_PARTITION__"  # how Hive writes a gap in the name of a folder
SHOWN = 5


def blocks_of(source: Any, on_error: OnError = "stop", sample_rows: int = SAMPLE_ROWS) -> Blocks:
    r"""Return a table that is read block by block.

    Parameters
    ----------
    source : path, Dataset, array-like or DataFrame
        A CSV, TSV, Parquet, Feather, JSON, npy or npz file, a folder of them (also one with
        folders such as `year=2024`, each of which is then a column), a pattern such as
        "big/*.parquet", an Arrow dataset, a Ray dataset, an array, a memory map or a data frame.
    on_error : {"stop", "skip"}, default "stop"
        What to do about files that cannot be read: name them all and stop, or go on without them.
    sample_rows : int, default 262,144
        Rows that training sees; a table of no more rows is seen whole.

    Returns
    -------
    blocks : Blocks

    Raises
    ------
    DataError
        If there is nothing to read, files differ in their columns, or a file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from aberra.data.blocks.opening import blocks_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for year in (2023, 2024):
    ...         place = Path(folder) / f"year={year}"
    ...         place.mkdir()
    ...         _ = (place / "rows.csv").write_text("a,b\n1,2\n3,4\n")
    ...     blocks = blocks_of(folder)
    >>> blocks.n_rows, blocks.columns
    (4, ['a', 'b', 'year'])
    """
    found = _blocks_of(source, on_error)
    return found if isinstance(source, Blocks) else replace(found, sample_rows=sample_rows)


def _blocks_of(source: Any, on_error: OnError) -> Blocks:
    if isinstance(source, Blocks):
        return source
    if isinstance(source, str | Path):
        return _of_paths(str(source), on_error)
    library = library_of(source)
    if library == "pyarrow":
        return _checked("the dataset", _fragments(source), on_error, {})
    if library == "ray":
        return _checked("the dataset", _ray_parts(source), on_error, {})
    return _in_memory(source)


# Paths


def files_at(place: str) -> tuple[Path, list[Path]]:
    """Return the files of a path, a folder or a glob, sorted, and the folder that they lie in."""
    path = Path(place)
    if path.is_dir():
        tell_of_links(path)
        return path, files_of_table(path)
    if path.exists():
        return path.parent, [path]
    if any(mark in place for mark in GLOB):
        found = [Path(name) for name in sorted(glob.glob(place, recursive=True))]
        files = [file for each in found for file in (files_at(str(each))[1])]
        if files:
            return _root_of(place), files
        raise DataError(f"No file matches {place}. Check the pattern.")
    raise DataError(f"There is no file or folder {place}. Check the path.")


def _root_of(pattern: str) -> Path:
    """Return the folders of a glob in front of its first mark."""
    before = Path(pattern).parts
    fixed = next(k for k, part in enumerate(before) if any(mark in part for mark in GLOB))
    return Path(*before[:fixed]) if fixed else Path()


def _of_paths(place: str, on_error: OnError) -> Blocks:
    root, files = files_at(place)
    keys = [_keys(file, root) for file in files]
    typed = _typed(keys)
    parts, bad = _opened(files, typed)
    if bad and on_error == "stop":
        raise DataError(_about(bad))
    if not parts:
        raise DataError(f"No file of {place} can be read. {_about(bad)}")
    return _checked(place, parts, on_error, bad)


def _opened(
    files: Sequence[Path], said: Sequence[dict[str, Any]]
) -> tuple[list[Part], dict[str, str]]:
    """Open all files; return those that can be read, and what is wrong with the others."""
    parts: list[Part] = []
    bad: dict[str, str] = {}
    for file, constants in zip(files, said, strict=True):
        try:
            parts.append(_file_part(file, constants))
        except (DataError, OSError) as error:
            bad[str(file)] = str(error)
    return parts, bad


def _about(bad: dict[str, str]) -> str:
    shown = " ".join(list(bad.values())[:SHOWN])
    more = f" There are {len(bad) - SHOWN} more." if len(bad) > SHOWN else ""
    return (
        f"{count(len(bad), 'file')} cannot be used: {shown}{more} Nothing was done. Correct them, "
        "or leave them out (on_error='skip', --on-error skip)."
    )


def _file_part(file: Path, said: dict[str, Any]) -> Part:
    check_file(file)
    if file.name.lower().endswith(FEATHER):  # read as it is: a copy of a large one has no place
        return _feather(file, said)
    table = table_at(file.absolute())  # workers may be somewhere else
    return FilePart(str(file), table.n_rows(), _kinds(table.kinds(), said), table, constants=said)


def _feather(file: Path, said: dict[str, Any]) -> Part:
    from pyarrow import dataset

    with reading(file, "Write it again, or leave it out."):
        found = dataset.dataset(str(within_reach(file.absolute())), format="feather")
        fragment = next(iter(found.get_fragments()))
        own = {field.name: kind_of_type(field.type) for field in found.schema}
        n_rows = fragment.count_rows()
    kinds = _kinds(own, said)
    return FragmentPart(str(file), n_rows, kinds, fragment, found.schema, constants=said)


def _kinds(own: dict[str, str | None], said: dict[str, Any]) -> dict[str, str | None]:
    twice = [name for name in said if name in own]
    if twice:
        raise DataError(f"The column {twice[0]!r} is in the files and in the names of folders.")
    return {**own, **{name: "text" if isinstance(v, str) else "number" for name, v in said.items()}}


def _keys(file: Path, root: Path) -> dict[str, str]:
    """Return what Hive's folder names say: `year=2024/month=5` are two columns."""
    folders = file.relative_to(root).parts[:-1] if file.is_relative_to(root) else file.parts[:-1]
    pairs = (folder.partition("=") for folder in folders)
    return {name: unquote(value) for name, mark, value in pairs if mark and name}


def _typed(keys: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """Return the values of folder names as numbers where all of a column's are."""
    names = {name for said in keys for name in said}
    numbers = {name for name in names if all(_is_number(said.get(name)) for said in keys)}
    return [
        {name: _value(said.get(name), name in numbers) for name in sorted(names)} for said in keys
    ]


def _is_number(text: str | None) -> bool:
    try:
        return text in (None, NOTHING) or bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _value(text: str | None, number: bool) -> Any:
    if text in (None, NOTHING):
        return np.nan if number else None
    return float(text) if number else text


# What all parts have to agree on


def _checked(name: str, parts: list[Part], on_error: OnError, bad: dict[str, str]) -> Blocks:
    """Return the table once all parts have the same columns of the same kinds."""
    usual = _usual(parts)
    columns = list(usual.kinds)
    odd = {part.name: why for part in parts if (why := _other_columns(part, usual))}
    if odd and on_error == "stop":
        raise DataError(_about(odd))
    left = [part for part in parts if part.name not in odd]
    kinds = {column: _kind(column, left) for column in columns}
    found = Blocks(name, tuple(left), kinds, skipped={**bad, **odd})
    if not found.n_rows:
        raise DataError(f"{name} has no rows.")
    return found


def _usual(parts: Sequence[Part]) -> Part:
    """Return the first part with the columns that most parts have: one bad file is outvoted."""
    counts = Counter(frozenset(part.kinds) for part in parts)
    return max(parts, key=lambda part: counts[frozenset(part.kinds)])  # of equals, the first


def _other_columns(part: Part, usual: Part) -> str:
    odd = sorted(set(part.kinds) ^ set(usual.kinds))[:SHOWN]
    return f"{part.name} has other columns than {usual.name} ({', '.join(odd)})." if odd else ""


def _kind(column: str, parts: Sequence[Part]) -> str:
    """Return what a column holds; where files disagree, it is text if CSV files say so."""
    kinds = {part.kinds[column] for part in parts} - {None}
    if len(kinds) <= 1:
        return str(next(iter(kinds), "number"))
    if "text" in kinds and all(isinstance(part, FilePart) and part.file.is_csv for part in parts):
        return "text"
    one = {kind: next(p.name for p in parts if p.kinds[column] == kind) for kind in kinds}
    held = " but ".join(f"{kind} in {name}" for kind, name in sorted(map(_pair, one.items())))
    raise DataError(f"The column {column!r} holds {held}. Give it one type in all files.")


def _pair(item: tuple[str | None, str]) -> tuple[str, str]:
    return str(item[0]), item[1]


# Datasets and what is in memory


def _fragments(dataset: Any) -> list[Part]:
    kinds = {field.name: kind_of_type(field.type) for field in dataset.schema}
    parts: list[Part] = []
    for k, fragment in enumerate(dataset.get_fragments()):
        name = str((vars(type(fragment)).get("path") and fragment.path) or f"fragment {k}")
        with reading(name, "Write it again, or leave it out of the dataset."):
            n = fragment.count_rows()
        parts.append(FragmentPart(name, n, dict(kinds), fragment, dataset.schema))
    return parts


def _ray_parts(dataset: Any) -> list[Part]:
    """Return the blocks of a Ray dataset, which stay where they are until they are asked for."""
    import ray

    refs = _in_order(dataset).to_arrow_refs()
    count_rows = ray.remote(_n_rows)
    counts = ray.get([count_rows.remote(ref) for ref in refs])
    schema = dataset.schema().base_schema
    kinds = {field.name: kind_of_type(field.type) for field in schema}
    return [
        ArrowPart(f"block {k}", n, dict(kinds), ref, ray.get)
        for k, (ref, n) in enumerate(zip(refs, counts, strict=True))
    ]


def _in_order(dataset: Any) -> Any:
    """Return a dataset in memory whose blocks come in the order of its rows, in every run."""
    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        return dataset.materialize()
    finally:
        options.preserve_order = before


def _n_rows(table: Any) -> int:
    return len(table)


def _in_memory(rows: Any) -> Blocks:
    if isinstance(rows, pd.DataFrame):
        kinds = {str(name): kind_of(column) for name, column in rows.items()}
        part = MemoryPart("the table", len(rows), dict(kinds), rows.set_axis(list(kinds), axis=1))
        return Blocks("the table", (part,), kinds)
    array = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise DataError(f"Rows must be a table of numbers, but have shape {array.shape}.")
    kinds = {f"x{j}": "number" for j in range(array.shape[1])}
    return Blocks(
        "the array", (MemoryPart("the array", len(array), dict(kinds), array),), kinds, False
    )
