"""Results that survive an interruption: one JSON line per finished cell, keyed by its setting.

::

    FOLDER/cells/FAMILY.jsonl        numbers, one line for each setting and seed
    FOLDER/arrays/FAMILY/KEY.npz     scores of every row, where something later needs them
    FOLDER/claims/NAME               locked while a process works on a job
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aberra.files import write_atomically
from aberra.locks import lock
from aberra.reproduce.engines import MARKS

PACKAGES = ("aberra", "numpy", "scipy", "scikit-learn", "torch")

Setting = Mapping[str, Any]
Record = dict[str, Any]


def key_of(setting: Setting) -> str:
    """Return the digest of a whole setting; its result is stored under this key."""
    return hashlib.sha256(json.dumps(setting, sort_keys=True).encode()).hexdigest()[:16]


def identity_of(setting: Setting) -> str:
    """Return the digest of what was asked for, whichever version of the code computed it."""
    return key_of({name: value for name, value in setting.items() if name not in MARKS})


@dataclass(frozen=True)
class Store:
    """Finished cells in a folder; several processes may share it."""

    folder: Path

    def read(self, family: str) -> dict[str, Record]:
        """Return the finished cells by key; a line cut short by an interruption is left out."""
        return {line["key"]: line for line in read_lines(self._lines(family)) if "key" in line}

    def add(
        self,
        family: str,
        setting: Setting,
        found: Record,
        arrays: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Keep a finished cell, with the versions and the commit that made it."""
        key = key_of(setting)
        if arrays is not None:
            held = io.BytesIO()
            np.savez_compressed(held, allow_pickle=False, **dict(arrays))
            path = self._arrays(family, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, held.getvalue())
        line = {"key": key, "setting": dict(setting), **found, **environment()}
        append_line(self._lines(family), line)

    def arrays(self, family: str, key: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of a cell, or None where they were not kept."""
        path = self._arrays(family, key)
        if not path.exists():
            return None
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}

    def claim(self, name: str) -> AbstractContextManager[bool]:
        """Hold a piece of work; False if another process holds it."""
        path = self.folder / "claims" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return lock(path, wait=False)

    def _lines(self, family: str) -> Path:
        return self.folder / "cells" / f"{family}.jsonl"

    def _arrays(self, family: str, key: str) -> Path:
        return self.folder / "arrays" / family / f"{key}.npz"


def read_lines(path: Path) -> Iterator[Record]:
    """Yield the JSON objects of a file; a line that was cut short is left out."""
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines():
        try:
            found = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(found, dict):
            yield found


def append_line(path: Path, line: Record) -> None:
    """Add one JSON object, whole, even while other processes add theirs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = (json.dumps(line) + "\n").encode()
    with lock(path), path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size and not _ends_a_line(file, size):
            data = b"\n" + data  # the last writer was killed in the middle of its line
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _ends_a_line(file: io.BufferedRandom, size: int) -> bool:
    file.seek(size - 1)
    return file.read(1) == b"\n"


@cache
def environment() -> dict[str, Any]:
    """Describe what makes a result: versions, processor, and the commit where there is one."""
    try:
        commit = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
    except OSError:
        commit = ""
    versions = {name: _version(name) for name in PACKAGES}
    where = {"python": platform.python_version(), "processor": _processor()}
    return {"commit": commit, **where, **versions}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # tables are computed without torch
        return "not installed"


def _processor() -> str:
    """Return the processor's name, family and model.

    Another kind rounds otherwise, and training carries it far; some kinds share their name.
    """
    known = Path("/proc/cpuinfo")
    lines = known.read_text("utf-8").splitlines() if known.exists() else []
    first = lines[: lines.index("")] if "" in lines else lines
    parts = [line.partition(":") for line in first]
    said = {name.strip(): value.strip() for name, _, value in parts}
    if "model name" not in said:
        return platform.processor()
    kind = ", ".join(f"{name} {said[name]}" for name in ("cpu family", "model") if name in said)
    return f"{said['model name']} ({kind})" if kind else said["model name"]
