"""Coverage-guided fuzzing of the parsers of foreign bytes that are ours.

    pip install atheris
    python -m benchmarks.fuzz model --seconds 300
    python -m benchmarks.fuzz csv --seconds 300
    python -m benchmarks.fuzz marks --seconds 300
    python -m benchmarks.fuzz frame --seconds 60

Inputs may only be used or refused by one of Aberra's errors. Anything else ends the run, and the
input lies in the folder as `crash-...`; `--again crash-...` tries it once more. atheris is no
dependency of the project: it is asked for here alone. Limits are 20 s and 2 GB for an input.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aberra.errors import AberraError

# What is watched while it runs. Compiled modules cannot be: numba reads their bytecode itself.
WATCHED = [
    "aberra.model_file",
    "aberra.recipe",
    "aberra.data.sources",
    "aberra.data.mri.compressed",
    "aberra.viewer.marks",
    "aberra.workflow.reviewing",
]
MODULES = {
    "model": "aberra.model_file",
    "csv": "aberra.data.sources.staged",
    "marks": "aberra.workflow.reviewing",
    "frame": "aberra.data.mri.compressed",
}
Target = Callable[[bytes, Path], object]


def model(data: bytes, folder: Path) -> object:
    """Load a model file whose lengths and checksum are made to fit."""
    from aberra.model_file import container, load

    body = data[container.HEAD.size + container.LENGTHS.size :]
    given = int.from_bytes(data[container.HEAD.size : container.HEAD.size + 8], "little")
    n_text = min(given, len(body))
    whole = container.LENGTHS.pack(n_text, len(body) - n_text) + body
    head = container.HEAD.pack(container.MAGIC, container.FORMAT, hashlib.sha256(whole).digest())
    path = folder / "m.aberra"
    path.write_bytes(head + whole)
    return load(path)


def csv(data: bytes, folder: Path) -> object:
    """Read a CSV file whole and in chunks, as fitting and scoring do."""
    from aberra.data.sources.columns import choose_columns
    from aberra.data.sources.staged import table_at

    path = folder / "m.csv"
    path.write_bytes(data)
    file = table_at(path)
    choose_columns(file.read())
    return list(file.chunks(file.columns, dict.fromkeys(file.columns, "text"), 64))


def marks(data: bytes, folder: Path) -> object:
    """Read what a reviewer decided, from the viewer's file or from a CSV file."""
    from aberra.workflow.reviewing import read_marks

    path = folder / ("m.json" if data[:1] == b"{" else "m.csv")
    path.write_bytes(data)
    return read_marks(path)


def frame(data: bytes, folder: Path) -> object:
    """Ask a compressed picture how large it is."""
    from aberra.data.mri.compressed import frame_shape

    return frame_shape(data)


TARGETS: dict[str, Target] = {"model": model, "csv": csv, "marks": marks, "frame": frame}


def seeds(name: str, folder: Path) -> list[bytes]:
    """Return small sound inputs to begin with."""
    if name == "model":
        from aberra import OCSVM, MultiView, save

        rows = np.random.default_rng(0).normal(size=(8, 2))
        held = []
        for made in (OCSVM(random_state=0), MultiView(random_state=0)):
            save(made.fit(rows), folder / "seed")
            held.append((folder / "seed").read_bytes())
        return held
    if name == "csv":
        frame = pd.DataFrame({"a": [1.5, None], "b": ["x, y", 'a "b"'], "c": ["2024-01-01", ""]})
        return [frame.to_csv(index=False, sep=mark).encode() for mark in ",;\t"]
    if name == "marks":
        entry = {"mark": "accept", "when": "2024-01-01"}
        noted = {"format": 1, "marks": {"scans": {"a": entry}, "t.csv": {"b": {"mark": "reject"}}}}
        return [json.dumps(noted).encode(), b"row,mark\n3,reject\n8,accept\n", b"id,mark\nx,1\n"]
    import imagecodecs

    pixels = np.arange(64, dtype=np.uint16).reshape(8, 8)
    return [
        bytes(imagecodecs.ljpeg_encode(pixels, bitspersample=16)),
        bytes(imagecodecs.jpegls_encode(pixels)),
        bytes(imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="j2k")),
    ]


def main() -> None:
    """Fuzz one parser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--again", type=Path, help="an input that once failed")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if asked.again is not None:
            print(TARGETS[asked.name](asked.again.read_bytes(), folder))
        else:
            _fuzz(asked.name, asked.seconds, folder)


def _fuzz(name: str, seconds: int, folder: Path) -> None:
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=WATCHED):
        import_module(MODULES[name])
    corpus = folder / "corpus"
    corpus.mkdir()
    for k, seed in enumerate(seeds(name, folder)):
        (corpus / str(k)).write_bytes(seed)

    def try_one(data: bytes) -> None:
        with suppress(AberraError):  # refused, and told why
            TARGETS[name](data, folder)

    options = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", str(corpus)]
    atheris.Setup([sys.argv[0], *options], try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
