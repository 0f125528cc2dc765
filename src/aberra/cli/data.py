"""`aberra data`: public data sets by name, where they are kept, and how to get them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aberra.cli.shell import begin, command, shell

if TYPE_CHECKING:
    from aberra.data.data_set import DataSet
    from aberra.data.registry import Found

Folder = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        help="The folder of the data sets. Default: $ABERRA_DATA, or else a folder in your cache.",
    ),
]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List and download public data sets.",
)


@app.command("list")
@command
def list_sets(
    data_dir: Folder = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """List the public data sets.

    The list says what they are, whether you have them, and under which licence they come. "MB"
    is the size of the download, where it is published. "check" says how a download is
    verified: by a published sha256 or md5, or, where none is published (unverified), by
    comparing it with your first download.

    Example: aberra data list
    """
    from aberra.data.catalogue import DATA_SETS
    from aberra.data.registry import data_dir as folder_of
    from aberra.data.registry import find

    if json:
        begin(replace(shell(), json=True))
    folder = folder_of(data_dir).absolute()
    found = {name: find(name, folder) for name in DATA_SETS}
    shell().say(_lines(found))
    shell().say(f"The data folder is {folder}")
    sets = [_facts(known, found[name]) for name, known in DATA_SETS.items()]
    shell().result({"data_dir": folder, "sets": sets})


@app.command("where")
@command
def where(
    name: Annotated[str, typer.Argument(help="A name that `aberra data list` shows.")],
    data_dir: Folder = None,
) -> None:
    """Print where a data set is kept.

    If you do not have it, this says how to get it, and ends with exit code 3.

    Example: aberra data where cardio
    """
    from aberra.data.registry import data_dir as folder_of
    from aberra.data.registry import find, what_to_do
    from aberra.errors import DataError

    folder = folder_of(data_dir).absolute()
    found = find(name, folder)
    if found is None:
        raise DataError(f"{name} is not in {folder}. {what_to_do(name, folder)}")
    if not shell().json:  # the path is the result: --quiet does not silence it
        typer.echo(found.path)
    shell().result({"name": name, "path": found.path, "whole": found.whole})


@app.command("get")
@command
def get(
    names: Annotated[
        list[str],
        typer.Argument(help="Names that `aberra data list` shows, or odds for a whole group."),
    ],
    data_dir: Folder = None,
) -> None:
    """Download data sets.

    Those that you have already are left as they are. An interrupted download continues where
    it stopped.

    Example: aberra data get cardio mnist
    """
    from aberra.data.registry import data_dir as folder_of
    from aberra.data.registry import get as get_set
    from aberra.errors import DataError

    folder = folder_of(data_dir).absolute()
    failures = []
    sets = []
    for name in _members(names):
        try:
            with shell().progress():
                found = get_set(name, folder)
        except DataError as error:
            failures.append(str(error))
            continue
        sets.append({"name": name, "path": found.path, "sha256": _noted(name, folder)})
        shell().say(f"{name}: {found.path}")
        for remark in _remarks(name, folder):
            shell().say(f"  {remark}")
    if failures:
        raise DataError(" ".join(failures))
    shell().result({"data_dir": folder, "sets": sets})


def _members(names: list[str]) -> list[str]:
    """Return the names with groups spelt out, each once; refuse unknown ones before any work."""
    from aberra.data.catalogue import DATA_SETS
    from aberra.data.registry import entry

    chosen: dict[str, None] = {}
    for name in names:
        group = [known.name for known in DATA_SETS.values() if known.group == name]
        chosen |= dict.fromkeys(group or [entry(name).name])
    return list(chosen)


def _remarks(name: str, folder: Path) -> Iterator[str]:
    from aberra.data.registry import entry

    known = entry(name)
    for path, digest in _noted(name, folder).items():
        yield f"no sha256 is published; from now on it is {digest} for {path}"
    archives = [folder / file.path for file in known.files if known.unpacking]
    for archive in archives:
        if archive.exists():
            yield f"{archive} is unpacked and may be deleted"


def _noted(name: str, folder: Path) -> dict[str, str]:
    """Return the checksums that were taken from a first download, by file."""
    from aberra.data.download import kept_sha256
    from aberra.data.registry import entry

    noted = {file.path: kept_sha256(folder / file.path) for file in entry(name).files}
    return {path: digest for path, digest in noted.items() if digest}


def _facts(known: DataSet, found: Found | None) -> dict[str, Any]:
    return {
        "name": known.name,
        "group": known.group,
        "kind": known.kind,
        "what": known.what,
        "shape": known.shape,
        "anomalies": known.anomalies,
        "bytes": known.size,
        "check": known.checked,
        "path": None if found is None else found.path,
        "whole": None if found is None else found.whole,
        "licence": known.licence,
        "citation": known.citation,
        "page": known.page,
        "addresses": [file.addresses[0] for file in known.files],
    }


def _lines(found: dict[str, Found | None]) -> str:
    """Return one line a set, so that what is printed can be searched line by line."""
    from aberra.data.catalogue import DATA_SETS

    rows = [("name", "size", "MB", "there", "check", "licence", "what")]
    for name, known in DATA_SETS.items():
        megabytes = "" if known.size is None else f"{known.size / 1e6:.0f}"
        state = (_there(found[name]), known.checked, known.licence, known.what)
        rows.append((name, _extent(known), megabytes, *state))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = "<>><<<<"
    return "\n".join(
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in rows
    )


def _extent(known: DataSet) -> str:
    count, *rest = map(str, known.shape)
    return f"{count} x {'x'.join(rest)}" if rest else f"{count} scans"


def _there(found: Found | None) -> str:
    if found is None:
        return "no"
    return "yes" if found.whole else "a part"
