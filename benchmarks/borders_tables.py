"""Damaged CSV, Parquet, NumPy and picture files, read as `aberra fit` and `aberra score` do."""

from __future__ import annotations

import gzip
import io
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

from aberra.data.blocks.opening import blocks_of
from aberra.data.blocks.source import Blocks, PartError
from aberra.data.sources import kind_of_path
from aberra.data.sources.arrays import main_array
from aberra.data.sources.columns import choose_columns
from aberra.data.sources.images import find_images, read_usable, shape_for
from aberra.data.sources.staged import table_at

PICTURES = (".png", ".jpg", ".tif", ".bmp", ".webp", ".ppm")
WORDS = [b'"', b",", b"\n", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf", b"nan", b"1e999", b"=1+1",
         b"2024-01-01", b"\\", b"'", b";", b"\t", "é".encode("latin-1"), b'""']  # fmt: skip


def _table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    frame["name"] = [f"patient {k}, {k % 7}" for k in range(200)]
    frame["day"] = pd.date_range("2020-01-01", periods=200)
    frame["ward"] = pd.Categorical(rng.choice(["north", "south"], 200))
    return frame


class DamagedTables:
    """Tables of every format with bytes flipped, cut out, put in or copied about."""

    n = 3000

    def prepare(self, sound: Path) -> None:
        """Write one table in every format."""
        frame, buffer, numbers = _table(), io.BytesIO(), _table()[list("abcd")].to_numpy()
        text = frame.to_csv(index=False, quoting=2).encode()
        frame.to_parquet(buffer)
        lines = frame.to_json(orient="records", lines=True, date_format="iso").encode()
        self.files = {
            ".csv": text,
            ".csv.gz": gzip.compress(text),
            ".parquet": buffer.getvalue(),
            ".jsonl": lines,
            ".json": frame.to_json(orient="records", date_format="iso").encode(),
        }
        savers: dict[str, Callable[[io.BytesIO], None]] = {
            ".npy": lambda file: np.save(file, numbers),
            ".npz": lambda file: np.savez(file, X=numbers, label=np.zeros(200)),
            ".packed.npz": lambda file: np.savez_compressed(file, X=numbers),
            ".feather": lambda file: frame.to_feather(file),
            ".xlsx": lambda file: frame[:20].to_excel(file, index=False),
            ".csv.zip": lambda file: frame.to_csv(file, compression="zip"),
        }
        for ending, save in savers.items():
            buffer = io.BytesIO()
            save(buffer)
            self.files[ending] = buffer.getvalue()

    def try_one(self, k: int, folder: Path) -> str:
        """Damage a file; read it whole and in chunks, which must agree."""
        rng = random.Random(k)
        ending = rng.choice(sorted(self.files))
        path = folder / f"m{ending}"
        path.write_bytes(damaged(self.files[ending], rng))
        if kind_of_path(path) != "table":
            return "fine"  # an array of another shape is one of images
        file = table_at(path)
        frame = file.read()
        choose_columns(frame)
        kinds = dict.fromkeys(file.columns, "text")
        rows = sum(len(c.frame) for c in file.chunks(file.columns, kinds, 64))
        return "fine" if rows == len(frame) else "chunks have other rows than the whole"


class DamagedFolders:
    """Tables in folders such as `year=2024`, of which one file is damaged."""

    n = 500

    def prepare(self, sound: Path) -> None:
        """Make a file in every format that is read block by block."""
        frame, buffer, arrow = _table(), io.BytesIO(), io.BytesIO()
        frame.to_parquet(buffer)
        frame.to_feather(arrow)
        text = frame.to_csv(index=False, quoting=2).encode()
        self.files = {
            ".csv": text, ".parquet": buffer.getvalue(), ".feather": arrow.getvalue()
        }  # fmt: skip

    def try_one(self, k: int, folder: Path) -> str:
        """Damage one file of three; leave it out, and read all rows of the others."""
        rng = random.Random(k)
        ending, place = rng.choice(sorted(self.files)), folder / "parts"
        bad = rng.randrange(3)
        for j in range(3):
            part = place / f"year={2020 + j}"
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            data = self.files[ending]
            (part / f"rows{ending}").write_bytes(damaged(data, rng) if j == bad else data)
        blocks = blocks_of(str(place), on_error="skip")
        try:
            rows = _n_rows(blocks)
        except PartError as error:  # found out late: the pass begins again without the part
            rows = _n_rows(blocks.without({error.part: error.why}))
        if rows < 400:
            return "a sound file was left out"
        return "fine" if rows >= 600 else "refused"


def _n_rows(blocks: Blocks) -> int:
    """Read all rows, and count them."""
    return sum(len(block.rows) for task in blocks.tasks() for block in blocks.read(task))


class DamagedPictures:
    """Folders of three sound pictures and a damaged one."""

    n = 2000

    def prepare(self, sound: Path) -> None:
        """Make a picture in every format."""
        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 255, (40, 30, 3)).astype(np.uint8)
        self.files = {}
        for ending in PICTURES:
            buffer = io.BytesIO()
            Image.fromarray(pixels).save(buffer, Image.registered_extensions()[ending])
            self.files[ending] = buffer.getvalue()

    def try_one(self, k: int, folder: Path) -> str:
        """Damage one picture of four; the others must be read."""
        rng = random.Random(k)
        ending, place = rng.choice(PICTURES), folder / "pictures"
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for j, name in enumerate(rng.sample(PICTURES, 3)):
            (place / f"sound{j}{name}").write_bytes(self.files[name])
        (place / f"bad{ending}").write_bytes(damaged(self.files[ending], rng))
        errors: dict[Path, str] = {}
        paths = find_images(place)
        images, used = read_usable(paths, shape_for(paths, 32, errors), errors)
        if len(used) < 3 or len(images) != len(used):
            return "a sound picture was left out"
        return "refused" if errors else "fine"


class DamagedImageArrays:
    """Arrays of images in NumPy files, damaged."""

    n = 500

    def prepare(self, sound: Path) -> None:
        """Make an array."""
        buffer = io.BytesIO()
        np.save(buffer, np.zeros((4, 1, 8, 8), np.float32))
        self.data = buffer.getvalue()

    def try_one(self, k: int, folder: Path) -> str:
        """Damage the file; open the array and look at every number."""
        path = folder / "m.npy"
        path.write_bytes(damaged(self.data, random.Random(k)))
        kind_of_path(path)
        np.asarray(main_array(path)).sum()
        return "fine"


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return a file in which a few things have gone wrong."""
    held = data
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(held) + 1) if rng.random() < 0.7 else rng.randrange(128)
        size = rng.choice([1, 2, 8, 100, len(held)])
        new, rest = rng.choice(
            [
                (bytes([held[at] ^ (1 << rng.randrange(8))]) if at < len(held) else b"", 1),
                (b"", size),  # cut out
                (rng.choice(WORDS), 0),  # put in
                (rng.choice(WORDS), 1),
                (held[at : at + size][:10_000], 0),  # twice
                (rng.choice([b"\xff", b"\0", b"\x7f"]) * 8, 8),
            ]
        )
        held = held[:at] + new + held[at + rest :]
    return held
