"""Inputs of the fuzzer: what it begins with, and how it changes models and Excel files.

Nearly every change of a byte breaks the checksum of a model file, or its JSON. So model files are
taken apart, their manifest or an array is changed, and they are packed again with a checksum that
fits; and parts of one model are put in the place of another's. An Excel file is a zip of XML, with
a checksum for each entry: one entry is changed, and all are packed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aberra.errors import AberraError

LARGEST_MODEL = 150_000  # bytes: larger ones cost more time than they have kinds of parts

# Words of the formats, which a change of bytes alone would take long to find.
WORDS = {
    "csv": ['"', '""', '","', ",", ";", "\t", "|", "\r\n", "\n", "\r", "\ufeff", "nan", "NaN",
            "inf", "-inf", "1e308", "1e999", "-0", "0x10", "1,5", "1.234,5", "2024-01-01",
            "2024-01-01T00:00:00Z", "9999-12-31", "0001-01-01", "12:30:00", "true", "False", "?",
            "n.a.", "NULL", "99999999999999999999", "\u00e9", "\u2028", "\0", "=1+1", "id"],
    "json": ['{"a":', '"b":', "[", "]", "{", "}", ":", ",", "null", "true", "1e999", "NaN",
             "-Infinity", "-0.0", '""', '"\\ud800"', '"\\u0000"', '"2024-01-01"', "\n", "\r\n",
             '"id":', "\ufeff", "99999999999999999999", "1.0", '"x"', "\\\""],
    "marks": ['{"format": 1, "marks": {', '"mark"', '"accept"', '"reject"', '"when"', '"format"',
              "null", "true", "1e999", "NaN", "[", "]", "{", "}", ":", ",", "\\ud800", "\\u0000",
              "row", "id", "name", "label", "mark", "reject", "accept", "\n", "0", "1", "-1"],
}  # fmt: skip
MARKERS = [b"\xff\xd8", b"\xff\xc0", b"\xff\xc3", b"\xff\xc4", b"\xff\xda", b"\xff\xf7",
           b"\xff\xd9", b"\xff\x4f\xff\x51", b"\xff\x52", b"\xff\x5c", b"\xff\x90",
           b"\xff\x93"]  # fmt: skip
VALUES: list[Any] = [float("nan"), float("inf"), -float("inf"), 10**400, -(10**400), 1 << 64,
          "\ud800", "\0", "x" * 70_000, "../x", "__class__", [[[[[]]]]], {"": {}}, 1e-320, -0.0,
          2**31, 2**53, 0.1, {"estimator": {"class": "IADC", "params": {}}}, {"float": "nan"},
          {"random_state": ["C", 0, 0, 0.0]}, {"sklearn": "C"}, {"tuple": [1, [2]]}]  # fmt: skip

Manifest = dict[str, Any]
Parts = tuple[Manifest, dict[str, Any]]


def seeds(name: str, folder: Path) -> list[bytes]:
    """Return small sound inputs to begin with."""
    if name == "model":
        return _models(folder)
    if name == "csv":
        return _tables()
    if name == "json":
        return _objects()
    if name == "sheet":
        return _workbooks()
    if name == "marks":
        entry = {"mark": "accept", "when": "2024-01-01"}
        noted = {"format": 1, "marks": {"scans": {"a": entry}, "t.csv": {"b": {"mark": "reject"}}}}
        return [json.dumps(noted).encode(), b"row,mark\n3,reject\n8,accept\n", b"id,mark\nx,1\n"]
    return _frames()


def _models(folder: Path) -> list[bytes]:
    """Return a model of every kind that is small and quick."""
    from benchmarks.borders_kinds import save_all

    made, sources = folder / "models", folder / "sources"
    made.mkdir()
    sources.mkdir()
    save_all(made, sources)
    held = [path.read_bytes() for path in sorted(made.iterdir())]
    return [data for data in held if len(data) <= LARGEST_MODEL]


def _tables() -> list[bytes]:
    frame = pd.DataFrame({"a": [1.5, None], "b": ["x, y", 'a "b"'], "c": ["2024-01-01", ""]})
    held = [frame.to_csv(index=False, sep=mark).encode() for mark in ",;\t|"]
    comma = "name;height\nAda;1,75\nBob;1,8\nCy;\n"
    held += [comma.encode(), comma.encode("utf-16"), ("\ufeff" + comma).encode()]
    held += ["s,n\nGr\u00fc\u00dfe,1\nx,2\n".encode("cp1252"), "s,n\n\u00e9,1\nx,2\n".encode()]
    numbers = "\n".join(f"{k},{k * k % 7},{'n/a' if k == 9 else k / 3:}" for k in range(30))
    held += [f"id,u,v\n{numbers}\n".encode(), numbers.encode(), b'"a\nb",c\r\n"1\n2",3\r\n']
    held += [b"t,ok\n12:30:00,true\n08:15:00,false\n", b"400,410.5,420\n1,2,3\n4,5,6\n"]
    return held


def _objects() -> list[bytes]:
    frame = pd.DataFrame(
        {"a": [1.5, None, 3], "b": ["x", 'a "b"', "\u00fc"], "c": [True, False, True]}
    )
    held = [frame.to_json(orient="records"), frame.to_json(orient="records", lines=True)]
    held += ['[{"id": 1, "t": "2024-01-01T00:00:00Z"}, {"id": 2, "more": null}]']
    held += ['{"id": 1, "t": "2024-01-01"}\n{"id": 12345678901, "more": -0.5e-3}\n', "\ufeff[{}]"]
    held += ['[{"a": [1, 2]}, {"a": {"b": "c"}}]', '{"a": {"b": 1}}\n{"a": {"b": 2}}\n']
    return [text.encode() for text in held]


def _workbooks() -> list[bytes]:
    whole = pd.DataFrame({"id": [1, 2], "text": ["x", None], "when": pd.to_datetime("2024-01-01")})
    whole["ok"] = [True, False]
    tables = [whole, pd.DataFrame({"n": np.arange(20) / 3}), pd.DataFrame({"a": ["#N/A", "=1+1"]})]
    held = []
    for table in tables:
        buffer = io.BytesIO()
        table.to_excel(buffer, index=False)
        held.append(buffer.getvalue())
    return held


def _frames() -> list[bytes]:
    import imagecodecs

    pixels = np.arange(64, dtype=np.uint16).reshape(8, 8)
    small = (pixels % 256).astype(np.uint8)
    return [
        bytes(imagecodecs.ljpeg_encode(pixels, bitspersample=16)),
        bytes(imagecodecs.jpegls_encode(pixels)),
        bytes(imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="j2k")),
        bytes(imagecodecs.jpeg2k_encode(pixels, level=0, codecformat="jp2")),
        bytes(imagecodecs.jpeg8_encode(small)),
        bytes(imagecodecs.jpegls_encode(small)),
    ]


def dictionary(name: str) -> str | None:
    """Return the words of a format as libFuzzer reads them; None where bytes will do."""
    words = MARKERS if name == "frame" else [word.encode() for word in WORDS.get(name, [])]
    lines = ["".join(f"\\x{byte:02x}" for byte in word) for word in words]
    return "".join(f'"{line}"\n' for line in lines) or None


def packed(manifest: Manifest, arrays: dict[str, Any]) -> bytes:
    """Return the bytes of a model file; its numbers may be some that JSON does not know."""
    from safetensors.numpy import save as save_arrays

    text = json.dumps(manifest).encode("ascii")
    return framed(text, save_arrays({n: np.ascontiguousarray(a) for n, a in arrays.items()}))


def framed(text: bytes, blob: bytes) -> bytes:
    """Put manifest and arrays into a file with lengths and a checksum that fit."""
    from aberra.model_file import container

    body = container.LENGTHS.pack(len(text), len(blob)) + text + blob
    digest = hashlib.sha256(body).digest()
    return container.HEAD.pack(container.MAGIC, container.FORMAT, digest) + body


def forged(
    data: bytes, longest: int, seed: int, mutate: Callable[[bytes, int], bytes], sound: list[bytes]
) -> bytes:
    """Change the manifest, an array or the text of a model file, and make its checksum fit.

    Parameters
    ----------
    data : bytes
        A model file. Most of those that led somewhere new were refused, and so would be what comes
        of them; so a sound one is changed in its place as often.
    longest : int
        Bytes that the result may have.
    seed : int
    mutate : callable
        Changes any bytes, at most to a given length.
    sound : list of bytes
    """
    from aberra.model_file import container
    from benchmarks import borders_models

    rng = random.Random(seed)
    if sound and rng.random() < 0.5:
        data = rng.choice(sound)
    try:
        end = container.START + container._check_head(data[: container.START], len(data))
        text, blob = data[container.START : end], data[end:]
        if rng.random() < 0.1:
            return framed(mutate(text, len(text) + 64), blob)[:longest]
        if rng.random() < 0.05:
            return framed(text, mutate(blob, len(blob) + 64))[:longest]
        manifest, arrays = container.unpack(data)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            rng.choice([*borders_models.FORGERIES, _strange_value])(manifest, arrays, rng)
        made = packed(manifest, arrays)
    except (AberraError, ValueError, TypeError, IndexError, KeyError, RecursionError):
        return mutate(data, longest)  # nothing is left that could be changed by its parts
    return made if len(made) <= longest else data


def _strange_value(manifest: Manifest, arrays: dict[str, Any], rng: random.Random) -> None:
    """Put something in one place that JSON can say and no model of ours does."""
    from benchmarks.borders_models import places, some_places

    notes = manifest.get("notes")
    near = list(places(notes)) if notes and rng.random() < 0.5 else some_places(manifest, rng)
    node, key = rng.choice(near)
    node[key] = rng.choice(VALUES)


def crossed(first: bytes, second: bytes, longest: int, seed: int) -> bytes:
    """Put a part of the second model in the place that it has in the first."""
    from aberra.model_file import container
    from benchmarks.borders_models import places

    rng = random.Random(seed)
    try:
        (manifest, arrays), (other, others) = container.unpack(first), container.unpack(second)
        theirs: dict[Any, list[Any]] = {}
        for node, key in places(other):
            if isinstance(key, str):
                theirs.setdefault(key, []).append(node[key])
        mine = [(n, k) for n, k in places(manifest) if isinstance(k, str) and k in theirs]
        if mine and rng.random() < 0.8:
            node, key = rng.choice(mine)
            node[key] = rng.choice(theirs[key])
        shared = sorted(set(arrays) & set(others))
        if shared and rng.random() < 0.5:
            name = rng.choice(shared)
            arrays[name] = others[name]
        made = packed(manifest, arrays)
    except (AberraError, ValueError, TypeError, IndexError, KeyError, RecursionError):
        return first
    return made if len(made) <= longest else first


# Excel files

TEXTS = re.compile(rb'"[^"<>]*"|>[^<>]+<')  # values of attributes, and texts
STRANGE = [b"", b"0", b"-1", b"1", b"A1", b"XFD1048576", b"ZZZZ9", b"A0", b"A99999999", b"1e999",
           b"nan", b"#REF!", b"99999999999", b"s", b"n", b"d", b"e", b"b", b"str", b"inlineStr",
           b"2024-13-45", b"1900-02-29T25:61:00", b"-693594", b"2958466", b"rId9", b"../../x",
           b"&#0;", b"&lt;", b"true", b"xl/worksheets/sheet1.xml", b"\xed\xa0\x80"]  # fmt: skip
Entries = list[tuple[str, bytes]]


def changed_workbook(
    data: bytes, longest: int, seed: int, mutate: Callable[[bytes, int], bytes], sound: list[bytes]
) -> bytes:
    """Change an entry of an Excel file, leave it out or repeat a part of it, and pack it again.

    Parameters
    ----------
    data : bytes
    longest : int
        Bytes that the result may have.
    seed : int
    mutate : callable
        Changes any bytes, at most to a given length.
    sound : list of bytes
    """
    rng = random.Random(seed)
    if sound and rng.random() < 0.3:
        data = rng.choice(sound)
    if rng.random() < 0.05:
        return mutate(data, longest)
    try:
        entries = _entries(data)
        for _ in range(rng.choice([1, 1, 2, 4])):
            k = rng.randrange(len(entries))
            cells = [n for n, (name, _) in enumerate(entries) if "sheet" in name.lower()]
            if cells and rng.random() < 0.6:
                k = rng.choice(cells)
            name, text = entries[k]
            entries[k] = name, _changed_text(text, rng, mutate)
        if rng.random() < 0.05:
            entries.pop(rng.randrange(len(entries)))
        made = _zipped(entries)
    except (zipfile.BadZipFile, zlib.error, ValueError, IndexError, NotImplementedError, EOFError):
        return mutate(data, longest)
    return made if len(made) <= longest else data


def _entries(data: bytes) -> Entries:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def _zipped(entries: Entries) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries:
            archive.writestr(name, text)
    return buffer.getvalue()


def _changed_text(text: bytes, rng: random.Random, mutate: Callable[[bytes, int], bytes]) -> bytes:
    """Put a strange value in one place, repeat a stretch, or change any bytes."""
    places = list(TEXTS.finditer(text))
    chance = rng.random()
    if places and chance < 0.7:
        at = rng.choice(places)
        return text[: at.start() + 1] + rng.choice(STRANGE) + text[at.end() - 1 :]
    if places and chance < 0.8:
        start, end = sorted(rng.choice(places).start() for _ in range(2))
        return text[:end] + text[start:end] * rng.choice([1, 2, 50]) + text[end:]
    return mutate(text, len(text) + 64)
